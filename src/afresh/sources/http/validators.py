"""Validators (ETag, Last-Modified) for conditional requests, and how far those of a host are trusted.

A validator *misses* a change if it stays the same although the content changed. A few misses are enough to
stop using it. A validator is *noise* if it changes although the content did not (an ETag generated per
response). Noise wastes bytes and makes If-Modified-Since useless. Last-Modified also shows *when* a change
happened. That date is believed unless it is in the future, newer than a copy that is still the same, or older
than a copy that changed. A 304 shows no content, so from time to time a poll is sent without validators as a
check. The more checks a host passes, the rarer they become. These values are stored with a copy:

etag, last-modified   as the server sent them
accept-encoding       the encodings requested; they are requested again, because ETags depend on the encoding
url                   the URL that sent the validators, if it was a redirect target; they are valid only there
moved                 the target of permanent redirects, which the next poll requests directly
recipe                how the copy was normalised (see ``change_detection``)
sketch                the sketch of the copy, if near-duplicates are no changes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from afresh.values.lease import Lease

_FORGET_AT = 64  # counts are then halved, so that a host that improves is trusted again
_FEWEST = 3  # changes without new content before a validator counts as noise
_NOISE_SHARE = 0.5
_MISS_SHARE = 0.02
_FIRST_CHECK, _RAREST_CHECK = 4, 64
SKEW_S = 300.0  # clocks differ, so smaller contradictions are ignored
MOVED = "moved"
_STORED = ("etag", "last-modified")
_LONGEST_VALIDATOR = 1024


@dataclass(frozen=True, slots=True)
class ValidatorRecord:
    """How often a validator was right, missed a change, or changed although the content did not (noise)."""

    right: float = 0.0
    missed: float = 0.0
    noise: float = 0.0

    def count(self, *, right: int = 0, missed: int = 0, noise: int = 0) -> ValidatorRecord:
        new = ValidatorRecord(self.right + right, self.missed + missed, self.noise + noise)
        total = new.right + new.missed + new.noise
        return ValidatorRecord(new.right / 2, new.missed / 2, new.noise / 2) if total > _FORGET_AT else new

    @property
    def is_wrong(self) -> bool:
        """Whether the validator misses more than 2 % of changes."""
        return self.missed > _MISS_SHARE * (self.right + self.missed)

    @property
    def is_noise(self) -> bool:
        """Whether the validator changes mostly without a change of the content."""
        total = self.right + self.noise
        return self.noise >= _FEWEST and self.noise > _NOISE_SHARE * total

    @property
    def is_usable(self) -> bool:
        """Whether the validator is sent in conditional requests."""
        return not (self.is_wrong or self.is_noise)


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """The records of a host's validators: ``etag``, ``modified`` (Last-Modified), and its date (``dated``).
    An unknown host is trusted. ``unseen`` is the number of 304 responses since the last check; after ``gap``
    of them a check is due. ``date_problem`` describes the last wrong date. The fields are saved by position.
    """

    etag: ValidatorRecord = ValidatorRecord()
    modified: ValidatorRecord = ValidatorRecord()
    dated: ValidatorRecord = ValidatorRecord()
    unseen: int = 0
    gap: int = _FIRST_CHECK
    date_problem: str = ""

    @property
    def is_check_due(self) -> bool:
        """Whether the next poll should be sent without validators, to check that the 304s were right."""
        return self.unseen >= self.gap

    @property
    def believes_dates(self) -> bool:
        """Whether Last-Modified is used as the time of a change."""
        return not (self.modified.is_wrong or self.dated.is_wrong)


def trusted_headers(validators: Mapping[str, str], trust: ValidatorTrust) -> dict[str, str]:
    """Return the conditional headers for those of the ``validators`` that are trusted.

    >>> trusted_headers({"etag": '"a"', "last-modified": "x"}, ValidatorTrust(etag=ValidatorRecord(noise=9)))
    {'If-Modified-Since': 'x'}
    """
    headers = {}
    if "etag" in validators and trust.etag.is_usable:
        headers["If-None-Match"] = validators["etag"]
    if "last-modified" in validators and trust.modified.is_usable:
        headers["If-Modified-Since"] = validators["last-modified"]
    return headers


def complaints(trust: ValidatorTrust) -> tuple[str, ...]:
    """Return the reasons why validators of a host are not used, as texts; empty if all are used.

    >>> complaints(ValidatorTrust(etag=ValidatorRecord(noise=9)))
    ('its ETag changes while the content does not: no longer sent',)
    """
    found = []
    for name, record in (("ETag", trust.etag), ("Last-Modified", trust.modified)):
        if record.is_wrong:
            found.append(f"its {name} stays while the content changes: no longer sent")
        elif record.is_noise:
            found.append(f"its {name} changes while the content does not: no longer sent")
    if trust.dated.is_wrong:
        found.append(f"its Last-Modified is {trust.date_problem or 'wrong'}: not believed as a date")
    return tuple(found)


def record_check_sent(trust: ValidatorTrust) -> ValidatorTrust:
    """Return the trust after a check was sent. Polls that run at the same time then do not check as well.

    >>> ValidatorTrust(unseen=9).is_check_due, record_check_sent(ValidatorTrust(unseen=9)).is_check_due
    (True, False)
    """
    return replace(trust, unseen=0)


def record_not_modified(trust: ValidatorTrust) -> ValidatorTrust:
    """Return the trust after a 304. It shows no content, so it is one more response to check."""
    # Built directly: dataclasses.replace takes several times as long, and this runs on most polls.
    records = trust.etag, trust.modified, trust.dated
    return ValidatorTrust(*records, trust.unseen + 1, trust.gap, trust.date_problem)


def record_content(
    trust: ValidatorTrust,
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    changed: bool,
    checked: bool,
) -> ValidatorTrust:
    """Return the trust after a poll received content with the validators ``after``. ``before`` are the
    validators of the copy. ``changed`` is True if the content differs from the copy, ``checked`` if the poll
    was sent without validators. The same ETag with changed content is a miss:

    >>> trust = record_content(ValidatorTrust(), {"etag": "1"}, {"etag": "1"}, changed=True, checked=True)
    >>> trust.etag.is_wrong
    True
    """
    etag = _compare(trust.etag, before.get("etag"), after.get("etag"), changed=changed)
    modified = _compare(
        trust.modified, before.get("last-modified"), after.get("last-modified"), changed=changed
    )
    gap = trust.gap
    if etag.missed > trust.etag.missed or modified.missed > trust.modified.missed:
        gap = _FIRST_CHECK
    elif checked:
        gap = min(2 * gap, _RAREST_CHECK)
    return replace(trust, etag=etag, modified=modified, gap=gap)


def record_date(
    trust: ValidatorTrust, modified_s: float, now_s: float, *, copied_s: float | None, changed: bool
) -> ValidatorTrust:
    """Return the trust after a response with the Last-Modified ``modified_s``. ``copied_s`` is the time of
    the copy, or None without a copy. All times are in Unix seconds. The date is wrong if it is in the future,
    if it is older than a copy that differs, or if it is newer than a copy that is still the same.

    >>> record_date(ValidatorTrust(), 1e9, 0.0, copied_s=None, changed=True).believes_dates
    False
    """
    problem = ""
    if modified_s > now_s + SKEW_S:
        problem = "in the future"
    elif copied_s is not None and changed and modified_s < copied_s - SKEW_S:
        problem = "older than the change it came with"
    elif copied_s is not None and not changed and modified_s > copied_s + SKEW_S:
        problem = "new where nothing has changed"
    dated = trust.dated.count(missed=int(bool(problem)), right=int(not problem))
    return replace(trust, dated=dated, date_problem=problem or trust.date_problem)


def _compare(
    record: ValidatorRecord, before: str | None, after: str | None, *, changed: bool
) -> ValidatorRecord:
    if before is None or after is None:
        return record
    same = before == after
    if same and changed:
        return record.count(missed=1)
    if not same and not changed:
        return record.count(noise=1)
    return record.count(right=1)


def conditional_headers(lease: Lease, url: str, recipe: str, trust: ValidatorTrust) -> dict[str, str]:
    """Return the conditional headers for a request to ``url``; none if the content must be sent in any case.

    The content must be sent if there is no copy, if the validators belong to another URL, or if the copy was
    normalised with other content settings than today's, whose fingerprint is ``recipe``.
    """
    if lease.content_hash is None:
        return {}
    validators = lease.validators
    belong = validators.get("url", lease.key) == url and validators.get("recipe", "") == recipe
    return trusted_headers(validators, trust) if belong else {}


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
    found = {name: headers[name] for name in _STORED if name in headers}
    return {
        name: value
        for name, value in found.items()
        if value and value.isascii() and value.isprintable() and len(value) <= _LONGEST_VALIDATOR
    }
