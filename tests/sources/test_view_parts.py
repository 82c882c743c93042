"""The pure parts of the view source: what a view stands on, when it is stale, how often tables change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
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
from afresh.sources.views.rates import WriteTally, table_rates, view_rates
from afresh.sources.views.tracker import MeasuredCost
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


def test_parts_are_looked_through_and_views_come_after_what_they_stand_on() -> None:
    seen = catalogue(DIAMOND)
    assert seen.views == ("v1", "v2", "v3", "v4")
    assert seen.parts("v3") == {"r", "s", "p1"}
    assert seen.bases("v3") == ("r", "s")
    assert seen.upstream("v3") == {"v1", "v2"}
    assert seen.direct("v3") == (frozenset({"s"}), frozenset({"v1", "v2"}))
    assert (seen.bases("v4"), seen.upstream("v4")) == (("vother",), frozenset())
    with pytest.raises(InputError, match="no view is called 'v9'"):
        seen.parts("v9")


def test_deep_chains_come_in_order() -> None:
    below = {f"v{at:03}": (f"v{at + 1:03}" if at < 200 else "r",) for at in range(201)}
    assert catalogue(below).views == tuple(f"v{at:03}" for at in range(200, -1, -1))


def test_a_foreign_table_is_never_known_to_be_unchanged() -> None:
    seen = catalogue({"v1": ("f1",)})
    state = state_after("v1", seen, {})
    assert not is_known("v1", seen, state)
    assert is_known("v2", catalogue({"v2": ("r",)}), {"r": Stamp(0, 1)})


def test_without_a_state_a_view_is_taken_to_be_stale() -> None:
    assert is_stale("v1", catalogue(DIAMOND), None)


def test_a_view_over_one_never_seen_refreshed_is_stale() -> None:
    seen = catalogue(DIAMOND)
    assert is_stale("v3", seen, state_after("v3", seen, {}))


@settings(max_examples=300, deadline=None)
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


def test_rates_of_transactions_whatever_their_size() -> None:
    """Intervals of 90 % hold the true rate nine times out of ten, though rows come in batches."""
    rng = np.random.default_rng(7)
    truth, each_s, held, means = 0.12, 5.0, 0, []
    for _ in range(400):
        tally = WriteTally()
        for writes in rng.poisson(truth * each_s, 60):
            tally = tally.add(each_s, int(rng.geometric(0.02, writes).sum()))
        found = table_rates({"t": tally})
        held += bool(found.low[0] <= truth <= found.high[0])
        means.append(float(found.rate[0]))
        assert tally.dispersion > 20
    assert 0.86 <= held / 400 <= 0.95
    assert np.mean(means) == pytest.approx(truth, rel=0.04)


def test_where_every_look_sees_a_change_rows_say_more() -> None:
    rng = np.random.default_rng(3)
    tally = WriteTally()
    for writes in rng.poisson(200.0, 100):
        tally = tally.add(5.0, int(writes))
    found = table_rates({"t": tally})
    assert float(found.rate[0]) == pytest.approx(40.0, rel=0.5)
    assert found.low[0] < 40.0 < found.high[0]
    assert found.low[0] < found.rate[0] <= found.high[0]


def test_old_looks_fade() -> None:
    tally = WriteTally()
    for _ in range(1000):
        tally = tally.add(86400.0, 1)
    assert tally.readings == pytest.approx(7.5, rel=0.01)


def test_views_without_bases_and_tables_never_looked_at() -> None:
    assert view_rates([], {}) == {}
    found = view_rates([("v", "r")], {})["v"]
    assert (found.rate, found.polls) == (0.0, 0)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_a_measured_cost_lies_between_the_least_and_the_most(measured: list[float]) -> None:
    cost = MeasuredCost()
    for one in measured:
        cost = cost.add(one)
    assert min(measured) * (1 - 1e-9) <= cost.mean <= max(measured) * (1 + 1e-9)
    assert cost.count == len(measured)
    if len(measured) <= 20:
        assert cost.mean == pytest.approx(np.mean(measured), rel=1e-9, abs=1e-9)
