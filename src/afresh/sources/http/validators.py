"""What is stored of a response for the next conditional request, and how far a host's validators are trusted.

A validator misses a change if it stays the same while the content changes (a 304, or the same ETag, over
changed content). Few such cases are enough to stop using it. It is noise if it changes while the content
does not (an ETag generated per response); noise wastes bytes and defeats If-Modified-Since. Last-Modified is
also evidence of *when* a change happened. It is believed only while it is neither in the future, nor always
the current time, nor older than a copy that it replaced. A 304 shows no content, so now and then a poll is
sent without validators as a check. The more checks a host passes, the rarer they get.

etag, last-modified   verbatim as the server sent them
accept-encoding       what was requested then; it is requested again, because ETags differ by encoding
url                   where they came from, if a redirect led there; they mean nothing at another address
moved                 where permanent redirects led; the next poll goes there directly
recipe                how the copy was normalised (see ``change_detection``)
sketch                of the copy, if near-duplicates are no changes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from afresh.values.lease import Lease

_FORGET_AT = 64  # counts are halved here, so that a host that improves is trusted again
_FEWEST = 3  # needless changes before a validator counts as noise
_NOISE_SHARE = 0.5
_MISS_SHARE = 0.02
_FIRST_CHECK, _RAREST_CHECK = 4, 64
SKEW_S = 300.0  # clocks differ; smaller contradictions do not count
MOVED = "moved"
_STORED = ("etag", "last-modified")
_LONGEST_VALIDATOR = 1024


@dataclass(frozen=True, slots=True)
class ValidatorRecord:
    """How often a validator was right, missed a change, or was noise (changed without the content)."""

    right: float = 0.0
    missed: float = 0.0
    noise: float = 0.0

    def count(self, *, right: int = 0, missed: int = 0, noise: int = 0) -> ValidatorRecord:
        new = ValidatorRecord(self.right + right, self.missed + missed, self.noise + noise)
        total = new.right + new.missed + new.noise
        return ValidatorRecord(new.right / 2, new.missed / 2, new.noise / 2) if total > _FORGET_AT else new

    @property
    def is_wrong(self) -> bool:
        """Whether it misses changes: one is enough, until some fifty right responses outweigh it."""
        return self.missed > _MISS_SHARE * (self.right + self.missed)

    @property
    def is_noise(self) -> bool:
        """Whether it mostly changes without the content."""
        total = self.right + self.noise
        return self.noise >= _FEWEST and self.noise > _NOISE_SHARE * total

    @property
    def is_usable(self) -> bool:
        """Whether it is worth sending in a conditional request."""
        return not (self.is_wrong or self.is_noise)


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """The record of a host's validators; an unknown host is trusted. It is saved by position. ``unseen``
    counts the 304 responses since the last check, and ``gap`` is how many may pass before the next one.
    ``date_problem`` says what was wrong with the last Last-Modified that was not believed."""

    etag: ValidatorRecord = ValidatorRecord()
    modified: ValidatorRecord = ValidatorRecord()
    dated: ValidatorRecord = ValidatorRecord()
    unseen: int = 0
    gap: int = _FIRST_CHECK
    date_problem: str = ""

    @property
    def is_check_due(self) -> bool:
        """Whether the next poll should be sent without validators, to check whether the 304s were true."""
        return self.unseen >= self.gap

    @property
    def believes_dates(self) -> bool:
        """Whether Last-Modified may serve as evidence of when a change happened."""
        return not (self.modified.is_wrong or self.dated.is_wrong)


def trusted_headers(validators: Mapping[str, str], trust: ValidatorTrust) -> dict[str, str]:
    """Return the conditional headers for those validators that are worth sending.

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
    """Say in words why validators of a host are not used; empty if they are.

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
    """Return the trust after a check was sent, so that polls at the same time do not check as well.

    >>> ValidatorTrust(unseen=9).is_check_due, record_check_sent(ValidatorTrust(unseen=9)).is_check_due
    (True, False)
    """
    return replace(trust, unseen=0)


def record_not_modified(trust: ValidatorTrust) -> ValidatorTrust:
    """Return the trust after a 304: the content was not seen, so there is one more response to check."""
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
    """Return the trust after content came with the validators ``after``; the copy had those of ``before``.

    ``checked``: the poll was sent without validators although the host had some. The same ETag over changed
    content is a missed change:

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
    """Return the trust after a Last-Modified came; the copy was made at ``copied_s`` (None: the first copy).

    The date is wrong if it is in the future, if it is older than a copy that differs, or if it is newer than
    a copy that is still the same.

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
    """Return the conditional headers for a request to ``url``; none if the validators belong elsewhere.
    ``recipe`` is the fingerprint of how content is normalised now. Without a copy there is nothing that a 304
    could confirm."""
    if lease.content_hash is None:
        return {}
    validators = lease.validators
    belong = validators.get("url", lease.key) == url and validators.get("recipe", "") == recipe
    return trusted_headers(validators, trust) if belong else {}


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Tell whether a request with these headers may be answered by a 304.

    >>> is_conditional({"If-None-Match": "*"}), is_conditional({"Accept": "*/*"})
    (True, False)
    """
    return "If-None-Match" in headers or "If-Modified-Since" in headers


def validators_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the validators of a response, without those that could not be sent back byte for byte.

    >>> validators_of({"etag": 'W/"7"', "last-modified": "\\udcff", "server": "x"})
    {'etag': 'W/"7"'}
    """
    found = {name: headers[name] for name in _STORED if name in headers}
    return {
        name: value
        for name, value in found.items()
        if value and value.isascii() and value.isprintable() and len(value) <= _LONGEST_VALIDATOR
    }
