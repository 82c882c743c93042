"""Validators that are wrong are noticed and no longer used; those that improve are trusted again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.validators import (
    ValidatorRecord,
    ValidatorTrust,
    record_check_sent,
    record_content,
    record_date,
    record_not_modified,
    trusted_headers,
    validators_of,
)

BOTH = {"etag": '"1"', "last-modified": "Thu, 01 Jan 1970 00:16:40 GMT"}


def trust_after(trust: ValidatorTrust, times: int, *, same: bool, changed: bool) -> ValidatorTrust:
    """``times`` answers with content whose ETag is the same or not as the copy's."""
    after = {"etag": '"1"' if same else '"2"'}
    for _ in range(times):
        trust = record_content(trust, {"etag": '"1"'}, after, changed=changed, checked=True)
    return trust


def test_a_host_not_known_is_trusted() -> None:
    assert list(trusted_headers(BOTH, ValidatorTrust())) == ["If-None-Match", "If-Modified-Since"]


def test_one_missed_change_ends_trust_and_many_right_answers_restore_it() -> None:
    untrusted = trust_after(ValidatorTrust(), 1, same=True, changed=True)
    assert "If-None-Match" not in trusted_headers(BOTH, untrusted)
    restored = trust_after(untrusted, 200, same=True, changed=False)
    assert "If-None-Match" in trusted_headers(BOTH, restored)


def test_noise_ends_the_use_of_the_etag_only() -> None:
    noisy = trust_after(ValidatorTrust(), 3, same=False, changed=False)
    assert list(trusted_headers(BOTH, noisy)) == ["If-Modified-Since"]
    assert not noisy.etag.is_wrong


@given(st.lists(st.booleans(), max_size=300))
@settings(deadline=None)
def test_validators_that_are_right_stay_in_use(changes: list[bool]) -> None:
    trust = ValidatorTrust()
    for changed in changes:
        trust = trust_after(trust, 1, same=not changed, changed=changed)
    assert "If-None-Match" in trusted_headers(BOTH, trust)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=400))
@settings(deadline=None)
def test_the_record_stays_a_few_small_numbers(answers_: list[tuple[bool, bool]]) -> None:
    trust = ValidatorTrust()
    for same, changed in answers_:
        trust = trust_after(record_not_modified(trust), 1, same=same, changed=changed)
        total = trust.etag.right + trust.etag.missed + trust.etag.noise
        assert 0 <= total <= 64
        assert 4 <= trust.gap <= 64


def test_checks_get_rarer_as_they_are_passed_and_frequent_after_a_missed_change() -> None:
    trust, gaps = ValidatorTrust(), []
    for _ in range(6):
        unseen = 0
        while not trust.is_check_due:
            trust = record_not_modified(trust)
            unseen += 1
        gaps.append(unseen)
        trust = trust_after(record_check_sent(trust), 1, same=True, changed=False)
    assert gaps == [4, 8, 16, 32, 64, 64]
    assert trust_after(trust, 1, same=True, changed=True).gap == 4


def test_dates_in_the_future_or_against_the_content_are_not_believed() -> None:
    now_s = 1e9
    future = record_date(ValidatorTrust(), now_s + 1e6, now_s, copied_s=None, changed=True)
    behind = record_date(ValidatorTrust(), now_s - 1e6, now_s, copied_s=now_s - 1000, changed=True)
    invented = record_date(ValidatorTrust(), now_s, now_s, copied_s=now_s - 1000, changed=False)
    assert not any(host.believes_dates for host in (future, behind, invented))


def test_dates_that_agree_are_believed_and_clocks_may_differ_a_little() -> None:
    now_s, trust = 1e9, ValidatorTrust()
    for modified_s, copied_s, changed in (
        (now_s - 500, now_s - 1000, True),
        (now_s - 5000, now_s - 1000, False),
        (now_s + 100, None, True),
        (now_s - 1100, now_s - 1000, True),
    ):
        trust = record_date(trust, modified_s, now_s, copied_s=copied_s, changed=changed)
    assert trust.believes_dates
    assert trust.dated == ValidatorRecord(right=4)


@given(st.text(max_size=2000), st.text(max_size=50))
@settings(deadline=None)
def test_only_validators_that_can_be_sent_back_verbatim_are_kept(etag: str, date: str) -> None:
    for value in validators_of({"etag": etag, "last-modified": date}).values():
        assert value in (etag, date)
        assert value.encode("ascii").isascii()
        assert not any(ord(char) < 32 for char in value)
