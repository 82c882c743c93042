"""A quota of requests to a host that the settings state: so many in a period, which then begins again.

All functions are pure; times are Unix seconds. The requests that remain are spread over the rest of the
period (``quota_headers.RemainingQuota``), as if the host had stated them in its headers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from afresh.sources.http.pacing.quota_headers import RemainingQuota
from afresh.values.errors import UsageError
from afresh.values.units import parse_duration

_QUOTA = re.compile(
    r"(?P<requests>[0-9]{1,12})\s*/\s*(?P<period>[^@]*?)(?:\s+at\s+(?P<at>[0-9]{2}:[0-9]{2}))?"
)
_DAY_S = 86400.0
# The wait for the end of a period is measured by another clock. Rounded to floats, it may end a quarter of a
# microsecond early in Unix seconds.
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """At most ``requests`` in a period of ``period_s`` seconds. A period begins with its first request; if
    ``reset_at`` is set ("08:00"), it ends at that time of day in ``time_zone``, and lasts a day."""

    requests: int
    period_s: float
    reset_at: str = ""
    time_zone: str = "UTC"

    def end_s(self, begin_s: float) -> float:
        """Return when the period ends in which ``begin_s`` lies, if that is the first request in it.

        >>> QuotaRule(10, 3600.0).end_s(100.0), QuotaRule(10, 86400.0, "08:00").end_s(100.0)
        (3700.0, 28800.0)
        """
        if not self.reset_at:
            return begin_s + self.period_s
        begin = datetime.fromtimestamp(begin_s, UTC).astimezone(ZoneInfo(self.time_zone))
        hour, minute = map(int, self.reset_at.split(":"))
        end = begin.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return (end if end > begin else end + timedelta(days=1)).timestamp()


@dataclass(frozen=True, slots=True)
class UsedQuota:
    """``requests`` were sent in the period that ends at ``until_s``."""

    requests: int = 0
    until_s: float = -math.inf


NOTHING_USED = UsedQuota()


def parse_quota(text: str, time_zone: str = "UTC") -> QuotaRule:
    """Return the rule of a quota such as ``5000/1h`` or ``1000/1d at 08:00``.

    >>> parse_quota("5000/1h"), parse_quota("1000/d at 08:00").reset_at
    (QuotaRule(requests=5000, period_s=3600.0, reset_at='', time_zone='UTC'), '08:00')
    """
    match = _QUOTA.fullmatch(text.strip())
    wrong = UsageError(f"quota: {text!r} is no quota: write it like 5000/1h, or 1000/1d at 08:00")
    if match is None or int(match["requests"]) == 0:
        raise wrong
    period, at = match["period"].strip(), match["at"] or ""
    try:
        period_s = parse_duration(period if period[:1].isdigit() else f"1{period}")
    except UsageError:
        raise wrong from None
    if period_s <= 0:
        raise UsageError(f"quota: {text!r}: the period must be longer than 0, such as 5000/1h")
    if at and (at > "23:59" or at[3:] > "59"):
        raise UsageError(f"quota: {text!r}: there is no time {at}: write 00:00 to 23:59")
    if at and period_s != _DAY_S:
        raise UsageError(f"quota: {text!r}: with a time of day the period must be a day: 1000/1d at {at}")
    return QuotaRule(int(match["requests"]), period_s, at, time_zone)


def count_request(used: UsedQuota, rule: QuotaRule, now_s: float) -> UsedQuota:
    """Return what is used after one more request at ``now_s``. If the clock was set back, a period does not
    become longer than it is.

    >>> count_request(UsedQuota(4, 200.0), QuotaRule(5, 60.0), 150.0)
    UsedQuota(requests=5, until_s=200.0)
    >>> count_request(UsedQuota(4, 200.0), QuotaRule(5, 60.0), 200.0)
    UsedQuota(requests=1, until_s=260.0)
    """
    if now_s < used.until_s <= now_s + _ROUNDING_S:
        now_s = used.until_s  # else one more than the quota would start in the old period
    end_s = rule.end_s(now_s)
    if now_s < used.until_s <= end_s:
        return UsedQuota(used.requests + 1, used.until_s)
    if used.until_s > end_s:
        return UsedQuota(used.requests + 1, end_s)
    return UsedQuota(1, end_s)


def remaining(used: UsedQuota, rule: QuotaRule, now_s: float) -> RemainingQuota:
    """Return how many requests remain, and in how many seconds the period ends."""
    return RemainingQuota(max(rule.requests - used.requests, 0), max(used.until_s - now_s, 0.0))
