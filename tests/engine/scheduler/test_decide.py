"""The decider as a table: what each kind of answer means for the item."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from afresh.engine.scheduler.decide import REFUSALS_ENOUGH, TOLD_GONE, RetryRules, decide
from afresh.sources.settings import MissingRule
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.outcome import STARTS_AGAIN

DAY = 86400.0
PATIENT = RetryRules(60.0, 3600.0, MissingRule(3, DAY))


def lease(*, failures: int = 0, held: bool = True, polled_s: float | None = 1000.0) -> Lease:
    return Lease(
        7,
        "a",
        "web",
        "host",
        token=3,
        until_s=9e9,
        content_hash=b"old" if held else None,
        polled_s=polled_s if held else None,
        failures=failures,
    )


def content(**more: object) -> Fetched:
    return Fetched("content", content=b"new", media_type="text/plain", normal_hash=b"n", requests=1, **more)  # type: ignore[arg-type]


def test_the_first_copy_starts_the_clock() -> None:
    decision = decide(lease(held=False), content(modified_s=5.0), PATIENT, 2000.0)
    seen = decision.observation
    assert seen is not None
    assert (seen.elapsed_s, seen.changed, seen.modified_s) == (0.0, False, 5.0)
    assert decision.new_copy is not None
    assert decision.new_copy.content == b"new"
    assert decision.event == "new"


def test_other_content_is_a_change() -> None:
    decision = decide(lease(failures=4), content(), PATIENT, 1500.0, audit=True)
    seen = decision.observation
    assert seen is not None
    assert (seen.elapsed_s, seen.changed, seen.audit) == (500.0, True, True)
    assert (decision.event, decision.failures, decision.status, decision.problem) == (
        "changed",
        0,
        "active",
        "",
    )


def test_content_compared_under_other_settings_is_a_new_baseline() -> None:
    decision = decide(lease(), content(comparable=False), PATIENT, 1500.0)
    assert decision.observation is not None
    assert (decision.observation.elapsed_s, decision.observation.changed) == (STARTS_AGAIN, False)
    assert decision.new_copy is not None
    assert decision.event == "changed"


def test_a_change_that_earlier_answers_denied_is_compared_with_the_last_poll_that_saw_the_content() -> None:
    decision = decide(lease(), content(verified_s=400.0), PATIENT, 1500.0)
    assert decision.observation is not None
    assert (decision.observation.elapsed_s, decision.observation.changed) == (1100.0, True)


def test_what_the_source_states_is_observed() -> None:
    seen = decide(lease(), content(modified_s=1400.0, count=3), PATIENT, 1500.0).observation
    assert seen is not None
    assert (seen.modified_s, seen.count) == (1400.0, 3)


def test_unchanged_is_an_observation_and_no_event() -> None:
    decision = decide(lease(), Fetched("unchanged", requests=1), PATIENT, 1500.0)
    assert decision.observation is not None
    assert not decision.observation.changed
    assert (decision.new_copy, decision.event, decision.validators) == (None, None, {})


def test_a_clock_set_back_tells_nothing_of_rates() -> None:
    decision = decide(lease(), Fetched("unchanged"), PATIENT, 900.0)
    assert decision.observation is not None
    assert decision.observation.elapsed_s == 0.0


@pytest.mark.parametrize(("before", "wait_s"), [(0, 60), (1, 120), (3, 480), (9, 3600), (5000, 3600)])
def test_failures_wait_twice_as_long_each_time(before: int, wait_s: float) -> None:
    decision = decide(lease(failures=before), Fetched("failed", requests=1, problem="p"), PATIENT, 100.0)
    assert (decision.due_s, decision.failures, decision.status) == (100.0 + wait_s, before + 1, "active")
    assert decision.observation is None
    assert decision.validators is None
    assert decision.problem == "p"


def test_retry_after_is_heeded() -> None:
    decision = decide(lease(), Fetched("failed", requests=1, retry_after_s=9999.0), PATIENT, 0.0)
    assert decision.due_s == 9999.0


def test_a_resting_host_is_no_fault_of_the_item() -> None:
    decision = decide(lease(failures=2), Fetched("failed", retry_after_s=30.0, problem="rests"), PATIENT, 0.0)
    assert (decision.failures, decision.due_s, decision.status) == (2, 30.0, "active")


def test_a_poll_that_was_put_off_is_no_failure_though_robots_txt_was_asked_for() -> None:
    put_off = Fetched("failed", requests=1, retry_after_s=90.0, problem="rests", put_off=True)
    decision = decide(lease(failures=2), put_off, PATIENT, 0.0)
    assert (decision.failures, decision.due_s, decision.status) == (2, 90.0, "active")


@pytest.mark.parametrize(
    ("status", "failures", "silent_s", "gone"),
    [
        (404, 0, 9 * DAY, False),
        (404, 2, 3600.0, False),
        (404, 2, 2 * DAY, True),
        (410, 0, 9 * DAY, False),
        (410, 1, 60.0, True),
    ],
)
def test_missing_is_gone_with_patience(status: int, failures: int, silent_s: float, gone: bool) -> None:
    missing = Fetched("gone", status=status, requests=1, problem="404")
    decision = decide(lease(failures=failures), missing, PATIENT, 1000.0 + silent_s)
    assert (decision.status == "gone") is gone
    assert (decision.event == "gone") is gone
    assert math.isinf(decision.due_s) is gone


def test_an_item_never_seen_goes_without_an_event() -> None:
    missing = Fetched("gone", status=404, requests=1)
    decision = decide(lease(failures=2, held=False), missing, PATIENT, 0.0)
    assert (decision.status, decision.event) == ("gone", None)


def test_refusals_end_in_not_asking() -> None:
    refused = Fetched("refused", requests=1, problem="robots.txt")
    first = decide(lease(), refused, PATIENT, 0.0)
    assert (first.status, first.due_s) == ("active", 3600.0)
    assert decide(lease(failures=REFUSALS_ENOUGH - 1), refused, PATIENT, 0.0).status == "refused"


@pytest.mark.parametrize("answer", [content(), Fetched("unchanged", requests=1)], ids=["other", "the same"])
def test_an_item_that_was_gone_and_comes_back_is_told_as_new(answer: Fetched) -> None:
    """Whoever was told that it is gone has dropped it, also if it comes back with the same content."""
    missing = Fetched("gone", status=410, problem="410 Gone", requests=1)
    gone = decide(replace(lease(failures=2), validators={"etag": '"1"'}), missing, PATIENT, 3 * DAY)
    assert (gone.event, gone.validators) == ("gone", {"etag": '"1"', TOLD_GONE: "1"})
    resumed = replace(lease(failures=2), validators=gone.validators or {})
    assert decide(resumed, missing, PATIENT, 4 * DAY).event is None  # it is told once
    back = decide(resumed, replace(answer, validators=resumed.validators), PATIENT, 5 * DAY)
    assert (back.event, back.validators) == ("new", {"etag": '"1"'})
    assert decide(replace(lease(), status="gone"), answer, PATIENT, 5 * DAY).event == "new"
    later = replace(lease(), validators=back.validators or {})
    assert decide(later, content(), PATIENT, 6 * DAY).event == "changed"
