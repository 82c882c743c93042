"""What a view is made from, and when it is stale."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.views.catalogue import (
    FOREIGN,
    MATERIALISED,
    PLAIN,
    TABLE,
    Catalogue,
    CatalogueRelation,
    Stamp,
    State,
    is_known,
    is_stale,
    state_after,
)
from afresh.values.errors import InputError

KINDS = {"r": TABLE, "s": TABLE, "p": PLAIN, "f": FOREIGN}


def catalogue(below: Mapping[str, tuple[str, ...]], **stamps: int) -> Catalogue:
    """Names beginning with v are materialised views, p plain ones, f foreign tables, others tables."""
    names = {*below, *(part for parts in below.values() for part in parts)}
    relations = {
        name: CatalogueRelation(name, KINDS.get(name[0], MATERIALISED), Stamp(stamps.get(name, 0), 1))
        for name in sorted(names)
    }
    return Catalogue(relations, below, lambda name: name != "vother")


DIAMOND = {
    "v1": ("r",),
    "v2": ("p1",),
    "p1": ("r", "s"),
    "v3": ("v1", "v2", "s"),
    "v4": ("vother",),
    "vother": ("r",),
}


def test_views_come_after_the_views_that_they_are_made_from() -> None:
    seen = catalogue(DIAMOND)
    assert seen.views == ("v1", "v2", "v3", "v4")
    assert seen.parts("v3") == {"r", "s", "p1"}
    assert seen.bases("v3") == ("r", "s")
    assert seen.upstream("v3") == {"v1", "v2"}
    assert seen.direct("v3") == (frozenset({"s"}), frozenset({"v1", "v2"}))
    assert (seen.bases("v4"), seen.upstream("v4")) == (("vother",), frozenset())
    with pytest.raises(InputError, match="no view is called 'v9'"):
        seen.parts("v9")


def test_deep_chains_of_views_come_in_order() -> None:
    below = {f"v{at:03}": (f"v{at + 1:03}" if at < 200 else "r",) for at in range(201)}
    assert catalogue(below).views == tuple(f"v{at:03}" for at in range(200, -1, -1))


def test_a_foreign_table_is_never_known_to_be_unchanged() -> None:
    seen = catalogue({"v1": ("f1",)})
    state = state_after("v1", seen, {})
    assert not is_known("v1", seen, state)
    assert is_known("v2", catalogue({"v2": ("r",)}), {"r": Stamp(0, 1)})


def test_without_a_state_a_view_is_taken_to_be_stale() -> None:
    assert is_stale("v1", catalogue(DIAMOND), None)


def test_a_view_over_one_whose_refresh_was_not_seen_is_stale() -> None:
    seen = catalogue(DIAMOND)
    assert is_stale("v3", seen, state_after("v3", seen, {}))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["r", "s", "p1", "v1", "v2", "v3"]), max_size=30))
def test_staleness_is_that_of_the_content(events: list[str]) -> None:
    """Each table has a version; a view's content is the versions it was made from, directly or copied."""
    versions = dict.fromkeys(["r", "s", "p1"], 0)
    contents: dict[str, frozenset[tuple[str, int]]] = {}
    states: dict[str, State] = {}

    def content(name: str, *, live: bool) -> frozenset[tuple[str, int]]:
        parts = []
        for part in DIAMOND[name]:
            if part in ("v1", "v2") and not live:
                parts.append(contents.get(part, frozenset({("nothing", 0)})))
            else:
                own = frozenset({(part, versions[part])}) if part in versions else frozenset()
                parts.append(own | (content(part, live=live) if part in DIAMOND else frozenset()))
        return frozenset().union(*parts)

    for event in events:
        if event in versions:
            versions[event] += 1
        else:
            contents[event] = content(event, live=False)
            states[event] = state_after(event, catalogue(DIAMOND, **versions), states)
        seen = catalogue(DIAMOND, **versions)
        for view, held in contents.items():
            assert is_stale(view, seen, states[view]) == (held != content(view, live=True))
