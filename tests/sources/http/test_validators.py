"""Validators that are noise and dates that are wrong are noticed; those that can be sent back are kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.validators import (
    ValidatorRecord,
    ValidatorTrust,
    record_content,
    record_date,
    validators_of,
)


def trust_after(trust: ValidatorTrust, times: int, *, same: bool, changed: bool) -> ValidatorTrust:
    """``times`` answers with content whose ETag is the same or not as the copy's."""
    after = {"etag": '"1"' if same else '"2"'}
    for _ in range(times):
        trust = record_content(trust, {"etag": '"1"'}, after, changed=changed)
    return trust


def test_an_etag_that_changes_without_the_content_is_noise_and_may_improve() -> None:
    noisy = trust_after(ValidatorTrust(), 3, same=False, changed=False)
    assert (ValidatorTrust().noisy(), noisy.noisy()) == ((), ("etag",))
    assert trust_after(noisy, 9, same=True, changed=False).noisy() == ()


@given(st.lists(st.booleans(), max_size=300))
@settings(deadline=None)
def test_validators_that_are_right_are_no_noise(changes: list[bool]) -> None:
    trust = ValidatorTrust()
    for changed in changes:
        trust = trust_after(trust, 1, same=not changed, changed=changed)
        assert trust.noisy() == ()
        assert trust.etag.right <= 64


def test_dates_in_the_future_or_against_the_content_are_not_believed() -> None:
    now_s = 1e9
    future = record_date(ValidatorTrust(), now_s + 1e6, now_s, copied_s=None, changed=True)
    behind = record_date(ValidatorTrust(), now_s - 1e6, now_s, copied_s=now_s - 1000, changed=True)
    invented = record_date(ValidatorTrust(), now_s, now_s, copied_s=now_s - 1000, changed=False)
    assert all(host.dated.is_wrong for host in (future, behind, invented))


def test_dates_that_agree_are_believed_and_clocks_may_differ_a_little() -> None:
    now_s, trust = 1e9, ValidatorTrust()
    for modified_s, copied_s, changed in (
        (now_s - 500, now_s - 1000, True),
        (now_s - 5000, now_s - 1000, False),
        (now_s + 100, None, True),
        (now_s - 1100, now_s - 1000, True),
    ):
        trust = record_date(trust, modified_s, now_s, copied_s=copied_s, changed=changed)
    assert not trust.dated.is_wrong
    assert trust.dated == ValidatorRecord(right=4)


@given(st.text(max_size=2000), st.text(max_size=50))
@settings(deadline=None)
def test_only_validators_that_can_be_sent_back_verbatim_are_kept(etag: str, date: str) -> None:
    for value in validators_of({"etag": etag, "last-modified": date}).values():
        assert value in (etag, date)
        assert value.encode("ascii").isascii()
        assert not any(ord(char) < 32 for char in value)
