"""Validators (ETag, Last-Modified) for conditional requests, and which of a host's are noise or wrong dates.

A validator *hides* a change if it stays the same although the content changed (see ``hidden_changes``). It is
*noise* if it changes although the content did not (an ETag generated per response). Noise wastes bytes and
makes If-Modified-Since useless. Last-Modified also shows *when* a change happened. That date is believed
unless it is in the future, newer than a copy that is still the same, or older than a copy that changed. These
values are stored with a copy:

etag, last-modified   as the server sent them
accept-encoding       the encodings requested; they are requested again, because ETags depend on the encoding
url                   the URL that sent the validators, if it was a redirect target; they are valid only there
moved                 the target of permanent redirects, which the next poll requests directly
recipe                how the copy was normalised (see ``change_detection``)
sketch, near          the sketch of the copy and the similarity, if near-duplicates are no changes
looked                when the content was last received (Unix seconds), if only 304s followed since
shown                 the names of validators that showed a change of this item to a poll without validators
lied                  the names of validators that hid a change of this item; they are neither kept nor sent
rendered              "1" if the copy is the page as a browser shows it; then there are no other validators
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from afresh.sources.change_detection import is_comparable
from afresh.values.lease import Lease

_FORGET_AT = 64  # counts are then halved, so that a host that improves is trusted again
_FEWEST = 3  # changes without new content before a validator counts as noise
_NOISE_SHARE = 0.5
_WRONG_SHARE = 0.02
SKEW_S = 300.0  # clocks differ, so smaller contradictions are ignored
MOVED, LOOKED, SHOWN, LIED = "moved", "looked", "shown", "lied"
FINAL_ADDRESS, RENDERED = "url", "rendered"
CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
"""The header by which each validator is sent back."""

_LONGEST_VALIDATOR = 1024


@dataclass(frozen=True, slots=True)
class ValidatorRecord:
    """How often a validator or date was right, and how often it was wrong."""

    right: float = 0.0
    wrong: float = 0.0

    def count(self, *, is_right: bool) -> ValidatorRecord:
        """Return the record with one more answer."""
        new = ValidatorRecord(self.right + is_right, self.wrong + (not is_right))
        return ValidatorRecord(new.right / 2, new.wrong / 2) if new.right + new.wrong > _FORGET_AT else new

    @property
    def is_noise(self) -> bool:
        """Whether the validator changes mostly without a change of the content."""
        return self.wrong >= _FEWEST and self.wrong > _NOISE_SHARE * (self.right + self.wrong)

    @property
    def is_wrong(self) -> bool:
        """Whether more than 2 % of the dates are wrong."""
        return self.wrong > _WRONG_SHARE * (self.right + self.wrong)


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """The records of a host: whether its ``etag`` and ``modified`` (Last-Modified) change only with the
    content, and whether the dates of Last-Modified are right (``dated``). ``date_problem`` describes the last
    wrong date. The fields are saved by position."""

    etag: ValidatorRecord = ValidatorRecord()
    modified: ValidatorRecord = ValidatorRecord()
    dated: ValidatorRecord = ValidatorRecord()
    date_problem: str = ""

    def noisy(self) -> tuple[str, ...]:
        """Return the names of the validators that are noise.

        >>> ValidatorTrust(etag=ValidatorRecord(wrong=9)).noisy()
        ('etag',)
        """
        records = zip(CONDITIONS, (self.etag, self.modified), strict=True)
        return tuple(name for name, record in records if record.is_noise)


def record_content(
    trust: ValidatorTrust, before: Mapping[str, str], after: Mapping[str, str], *, changed: bool
) -> ValidatorTrust:
    """Return the trust after a poll received content with the validators ``after``. ``before`` are the
    validators of the copy. ``changed`` is True if the content differs from the copy. Another ETag with the
    same content is noise:

    >>> record_content(ValidatorTrust(), {"etag": "1"}, {"etag": "2"}, changed=False).etag
    ValidatorRecord(right=0.0, wrong=1.0)
    """
    etag, modified = (
        _compare(record, before.get(name), after.get(name), changed=changed)
        for name, record in zip(CONDITIONS, (trust.etag, trust.modified), strict=True)
    )
    return replace(trust, etag=etag, modified=modified)


def record_date(
    trust: ValidatorTrust, modified_s: float, now_s: float, *, copied_s: float | None, changed: bool
) -> ValidatorTrust:
    """Return the trust after a response with the Last-Modified ``modified_s``. ``copied_s`` is the time of
    the copy, or None without a copy. All times are in Unix seconds. The date is wrong if it is in the future,
    if it is older than a copy that differs, or if it is newer than a copy that is still the same.

    >>> record_date(ValidatorTrust(), 1e9, 0.0, copied_s=None, changed=True).dated.is_wrong
    True
    """
    problem = ""
    if modified_s > now_s + SKEW_S:
        problem = "in the future"
    elif copied_s is not None and changed and modified_s < copied_s - SKEW_S:
        problem = "older than the change it came with"
    elif copied_s is not None and not changed and modified_s > copied_s + SKEW_S:
        problem = "new where nothing has changed"
    dated = trust.dated.count(is_right=not problem)
    return replace(trust, dated=dated, date_problem=problem or trust.date_problem)


def _compare(
    record: ValidatorRecord, before: str | None, after: str | None, *, changed: bool
) -> ValidatorRecord:
    if before is None or after is None or (changed and before == after):  # the last is counted as hidden
        return record
    return record.count(is_right=changed or before == after)


def sendable_validators(
    lease: Lease, url: str, recipe: str, near_duplicate: float | None = None
) -> dict[str, str]:
    """Return the validators that a conditional request to ``url`` may contain; none if the content must be
    sent in any case: if there is no copy, if the validators belong to another URL, or if the copy was
    compared by other content settings than today's: ``recipe`` is the fingerprint of the recipe."""
    if lease.content_hash is None:
        return {}
    validators = lease.validators
    if validators.get("url", lease.key) != url or not is_comparable(validators, recipe, near_duplicate):
        return {}
    return {name: validators[name] for name in CONDITIONS if name in validators}


def has_other_copy(lease: Lease, url: str) -> bool:
    """Return whether the item has a copy that came from another address than ``url``."""
    return lease.content_hash is not None and lease.validators.get("url", lease.key) != url


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Return whether a request with these headers may be answered by a 304.

    >>> is_conditional({"If-None-Match": "*"}), is_conditional({"Accept": "*/*"})
    (True, False)
    """
    return "If-None-Match" in headers or "If-Modified-Since" in headers


def validators_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the validators of a response, except those that cannot be sent back unchanged.

    >>> validators_of({"etag": 'W/"7"', "last-modified": "\\udcff", "server": "x"})
    {'etag': 'W/"7"'}
    """
    found = {name: headers[name] for name in CONDITIONS if name in headers}
    return {
        name: value
        for name, value in found.items()
        if value and value.isascii() and value.isprintable() and len(value) <= _LONGEST_VALIDATOR
    }
