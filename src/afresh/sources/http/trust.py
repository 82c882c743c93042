"""How far a host's validators can be trusted, from what they said and what the content then was.

A validator lies when it says "the same" and the content is another (a 304, or the same ETag, over changed
content): those are missed changes, so few are enough to demote it. It is noise when it says "another" and
the content is the same (an ETag made per answer): that only wastes bytes, and it keeps If-Modified-Since
from working. Last-Modified is also evidence of *when* a change was; it is believed only while it is
neither in the future, nor always now, nor older than a copy that it replaced.

A 304 shows no content, so every so often a poll is made without validators; the more of those checks a
host passes, the rarer they get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

_FORGET_AT = 64  # counts are halved here, so that a host that mends its ways is trusted again
_FEWEST = 3  # wasteful answers before an ETag counts as noise
_NOISE_SHARE = 0.5
_LIE_SHARE = 0.02
_FIRST_CHECK, _RAREST_CHECK = 4, 64
SKEW_S = 300.0  # clocks differ; a lie must be larger than that


@dataclass(frozen=True, slots=True)
class ValidatorRecord:
    """What a validator did: ``right``, ``lied`` ("same" over a change), ``noise`` ("other" over none)."""

    right: float = 0.0
    lied: float = 0.0
    noise: float = 0.0

    def counted(self, *, right: int = 0, lied: int = 0, noise: int = 0) -> ValidatorRecord:
        """One more answer."""
        new = ValidatorRecord(self.right + right, self.lied + lied, self.noise + noise)
        total = new.right + new.lied + new.noise
        return ValidatorRecord(new.right / 2, new.lied / 2, new.noise / 2) if total > _FORGET_AT else new

    @property
    def lies(self) -> bool:
        """One lie is enough, until some fifty right answers outweigh it."""
        return self.lied > _LIE_SHARE * (self.right + self.lied)

    @property
    def is_noise(self) -> bool:
        """Whether it mostly changes without the content."""
        total = self.right + self.noise
        return self.noise >= _FEWEST and self.noise > _NOISE_SHARE * total


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """A host's record: a few numbers. The default is a host not yet known, which is trusted.

    ``unseen`` counts the 304s since the last check; ``gap`` is how many may pass before the next.
    ``date_lie`` says in words what was wrong with a Last-Modified the last time that it was.
    """

    etag: ValidatorRecord = ValidatorRecord()
    modified: ValidatorRecord = ValidatorRecord()
    dated: ValidatorRecord = ValidatorRecord()
    unseen: int = 0
    gap: int = _FIRST_CHECK
    date_lie: str = ""

    @property
    def check_due(self) -> bool:
        """Whether the next poll should ask without validators, to see whether the 304s were true."""
        return self.unseen >= self.gap

    @property
    def believes_dates(self) -> bool:
        """Whether Last-Modified may serve as evidence of when a change was."""
        return not (self.modified.lies or self.dated.lies)


def trusted_headers(validators: Mapping[str, str], honesty: ValidatorTrust) -> dict[str, str]:
    """The conditional headers worth sending: validators that neither lie nor are noise.

    >>> trusted_headers({"etag": '"a"', "last-modified": "x"}, ValidatorTrust(etag=ValidatorRecord(noise=9)))
    {'If-Modified-Since': 'x'}
    """
    headers = {}
    if "etag" in validators and not (honesty.etag.lies or honesty.etag.is_noise):
        headers["If-None-Match"] = validators["etag"]
    if "last-modified" in validators and not (honesty.modified.lies or honesty.modified.is_noise):
        headers["If-Modified-Since"] = validators["last-modified"]
    return headers


def complaints(honesty: ValidatorTrust) -> tuple[str, ...]:
    """What is held against a host's validators, in words; nothing where they are trusted.

    >>> complaints(ValidatorTrust(etag=ValidatorRecord(noise=9)))
    ('its ETag changes while the content does not: no longer sent',)
    """
    found = []
    for name, track in (("ETag", honesty.etag), ("Last-Modified", honesty.modified)):
        if track.lies:
            found.append(f"its {name} stays while the content changes: no longer sent")
        elif track.is_noise:
            found.append(f"its {name} changes while the content does not: no longer sent")
    if honesty.dated.lies:
        found.append(f"its Last-Modified is {honesty.date_lie or 'wrong'}: not believed as a date")
    return tuple(found)


def record_check_sent(honesty: ValidatorTrust) -> ValidatorTrust:
    """A check is on its way: the polls that go at the same time need not check as well.

    >>> ValidatorTrust(unseen=9).check_due, record_check_sent(ValidatorTrust(unseen=9)).check_due
    (True, False)
    """
    return replace(honesty, unseen=0)


def record_not_modified(honesty: ValidatorTrust) -> ValidatorTrust:
    """The host answered 304: nothing seen, one more answer to check."""
    seen = honesty.etag, honesty.modified, honesty.dated
    return ValidatorTrust(*seen, honesty.unseen + 1, honesty.gap, honesty.date_lie)


def record_content(
    honesty: ValidatorTrust,
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    changed: bool,
    checked: bool,
) -> ValidatorTrust:
    """Content came with validators ``after``; ``before`` are those of the copy that it is compared with.

    ``checked``: the poll was made without validators although the host had them. The same ETag over
    changed content is a lie:

    >>> record_content(ValidatorTrust(), {"etag": "1"}, {"etag": "1"}, changed=True, checked=True).etag.lies
    True
    """
    etag = _compared(honesty.etag, before.get("etag"), after.get("etag"), changed=changed)
    modified = _compared(
        honesty.modified, before.get("last-modified"), after.get("last-modified"), changed=changed
    )
    lied = etag.lied > honesty.etag.lied or modified.lied > honesty.modified.lied
    gap = honesty.gap
    if lied:
        gap = _FIRST_CHECK
    elif checked:
        gap = min(2 * gap, _RAREST_CHECK)
    return replace(honesty, etag=etag, modified=modified, gap=gap)


def record_date(
    honesty: ValidatorTrust, modified_s: float, now_s: float, *, copied_s: float | None, changed: bool
) -> ValidatorTrust:
    """A Last-Modified came with content whose copy was made at ``copied_s`` (None: the first copy).

    It lies if it is in the future, if it is older than a copy that differs, or if it is now although the
    content has not changed since the copy.

    >>> record_date(ValidatorTrust(), 1e9, 0.0, copied_s=None, changed=True).believes_dates
    False
    """
    lie = ""
    if modified_s > now_s + SKEW_S:
        lie = "in the future"
    elif copied_s is not None and changed and modified_s < copied_s - SKEW_S:
        lie = "older than the change it came with"
    elif copied_s is not None and not changed and modified_s > copied_s + SKEW_S:
        lie = "new where nothing has changed"
    dated = honesty.dated.counted(lied=int(bool(lie)), right=int(not lie))
    return replace(honesty, dated=dated, date_lie=lie or honesty.date_lie)


def _compared(
    track: ValidatorRecord, before: str | None, after: str | None, *, changed: bool
) -> ValidatorRecord:
    if before is None or after is None:
        return track
    same = before == after
    if same and changed:
        return track.counted(lied=1)
    if not same and not changed:
        return track.counted(noise=1)
    return track.counted(right=1)
