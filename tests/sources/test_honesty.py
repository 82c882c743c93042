"""Validators that lie are noticed and demoted; those that mend their ways are trusted again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.trust import (
    ValidatorRecord,
    ValidatorTrust,
    record_check_sent,
    record_content,
    record_date,
    record_not_modified,
    trusted_headers,
)
from afresh.sources.http.validators import validators_of

BOTH = {"etag": '"1"', "last-modified": "Thu, 01 Jan 1970 00:16:40 GMT"}


def answers(honesty: ValidatorTrust, times: int, *, same: bool, changed: bool) -> ValidatorTrust:
    """``times`` answers with content whose ETag is the same or not as the copy's."""
    after = {"etag": '"1"' if same else '"2"'}
    for _ in range(times):
        honesty = record_content(honesty, {"etag": '"1"'}, after, changed=changed, checked=True)
    return honesty


def test_a_host_not_known_is_trusted() -> None:
    assert list(trusted_headers(BOTH, ValidatorTrust())) == ["If-None-Match", "If-Modified-Since"]


def test_one_lie_demotes_and_many_truths_restore() -> None:
    liar = answers(ValidatorTrust(), 1, same=True, changed=True)
    assert "If-None-Match" not in trusted_headers(BOTH, liar)
    mended = answers(liar, 200, same=True, changed=False)
    assert "If-None-Match" in trusted_headers(BOTH, mended)


def test_noise_demotes_the_etag_only() -> None:
    noisy = answers(ValidatorTrust(), 3, same=False, changed=False)
    assert list(trusted_headers(BOTH, noisy)) == ["If-Modified-Since"]
    assert not noisy.etag.is_wrong


@given(st.lists(st.booleans(), max_size=300))
@settings(deadline=None)
def test_an_honest_host_is_never_demoted(changes: list[bool]) -> None:
    honesty = ValidatorTrust()
    for changed in changes:
        honesty = answers(honesty, 1, same=not changed, changed=changed)
    assert "If-None-Match" in trusted_headers(BOTH, honesty)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=400))
@settings(deadline=None)
def test_the_record_stays_a_few_small_numbers(answers_: list[tuple[bool, bool]]) -> None:
    honesty = ValidatorTrust()
    for same, changed in answers_:
        honesty = answers(record_not_modified(honesty), 1, same=same, changed=changed)
        total = honesty.etag.right + honesty.etag.missed + honesty.etag.noise
        assert 0 <= total <= 64
        assert 4 <= honesty.gap <= 64


def test_checks_get_rarer_as_they_are_passed_and_frequent_after_a_lie() -> None:
    honesty, gaps = ValidatorTrust(), []
    for _ in range(6):
        unseen = 0
        while not honesty.is_check_due:
            honesty = record_not_modified(honesty)
            unseen += 1
        gaps.append(unseen)
        honesty = answers(record_check_sent(honesty), 1, same=True, changed=False)
    assert gaps == [4, 8, 16, 32, 64, 64]
    assert answers(honesty, 1, same=True, changed=True).gap == 4


def test_dates_in_the_future_behind_or_invented_are_not_believed() -> None:
    now_s = 1e9
    future = record_date(ValidatorTrust(), now_s + 1e6, now_s, copied_s=None, changed=True)
    behind = record_date(ValidatorTrust(), now_s - 1e6, now_s, copied_s=now_s - 1000, changed=True)
    invented = record_date(ValidatorTrust(), now_s, now_s, copied_s=now_s - 1000, changed=False)
    assert not any(host.believes_dates for host in (future, behind, invented))


def test_dates_that_fit_are_believed_and_clocks_may_differ_a_little() -> None:
    now_s, honesty = 1e9, ValidatorTrust()
    for modified_s, copied_s, changed in (
        (now_s - 500, now_s - 1000, True),
        (now_s - 5000, now_s - 1000, False),
        (now_s + 100, None, True),
        (now_s - 1100, now_s - 1000, True),
    ):
        honesty = record_date(honesty, modified_s, now_s, copied_s=copied_s, changed=changed)
    assert honesty.believes_dates
    assert honesty.dated == ValidatorRecord(right=4)


@given(st.text(max_size=2000), st.text(max_size=50))
@settings(deadline=None)
def test_only_what_can_be_sent_back_verbatim_is_kept(etag: str, date: str) -> None:
    for value in validators_of({"etag": etag, "last-modified": date}).values():
        assert value in (etag, date)
        assert value.encode("ascii").isascii()
        assert not any(ord(char) < 32 for char in value)
