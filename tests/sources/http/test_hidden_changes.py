"""The share of changes that validators hide decides whether they are sent, and how often they are checked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.http.hidden_changes import NO_CHANGES, RAREST, HiddenShare, SeenChanges


def share(shown: float, hidden: float, quiet: float = 0.0) -> HiddenShare:
    return HiddenShare.of(SeenChanges(shown, hidden, quiet), NO_CHANGES)


def test_one_lie_ends_trust_in_a_class_of_pages_unless_many_changes_were_shown() -> None:
    assert not share(0, 1).is_tolerable
    assert share(60, 1).is_tolerable
    assert not share(100, 10).is_tolerable


def test_polls_that_find_no_change_do_not_restore_trust() -> None:
    """They made it return too easily: most answers of a lying page look right."""
    assert not share(0, 1, quiet=10_000).is_tolerable


def test_checks_become_rarer_with_shown_changes_and_never_end() -> None:
    often = [share(shown, 0).check_probability for shown in (0, 5, 20, 1e6)]
    assert often == sorted(often, reverse=True)
    assert (often[0] > 0.4, often[-1]) == (True, RAREST)
    assert share(0, 0, quiet=500).check_probability < 0.1


def test_a_class_of_pages_begins_with_what_the_host_taught_and_then_differs() -> None:
    lying_host = SeenChanges(shown=100, hidden=100)
    assert not HiddenShare.of(NO_CHANGES, lying_host).is_tolerable
    assert HiddenShare.of(SeenChanges(shown=200), lying_host).is_tolerable


@given(st.lists(st.sampled_from(["shown", "hidden", "quiet"]), max_size=60))
def test_counts_stay_small_and_the_probability_is_one(polls: list[str]) -> None:
    seen = SeenChanges(900, 50, 400)
    for poll in polls:
        seen = seen.count(changed=poll != "quiet", is_hidden=poll == "hidden")
        assert seen.shown + seen.hidden + 0.05 * seen.quiet <= 1000
        found = HiddenShare.of(seen, seen)
        assert RAREST <= found.check_probability <= 1.0
