"""What is asked of ``afresh estimate``, in values, from the flags as they were given."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from afresh.values.errors import UsageError, one_of
from afresh.values.units import parse_duration

_SEASON = {"auto": None, "off": False, "on": True}
_DRIFT = {"auto": None, "off": inf}


@dataclass(frozen=True, slots=True)
class Answer:
    """How the answer is wanted: in which unit, written where, in which form."""

    unit: str
    target: str | None
    as_json: bool
    plot: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a log of polls; None is left to the log.

    ``every_s`` is the mean interval of the plan to come, ``horizon_s`` the time over which evidence fades.
    """

    method: str | None
    level: float
    every_s: float | None
    horizon_s: float | None
    season: bool | None
    group: str | None
    views: str | None
    check_poisson: bool


def check_level_flag(level: float) -> None:
    """Refuse a ``--level`` that is no probability."""
    if not 0 < level < 1:
        raise UsageError(f"--level is {level:g}: must be between 0 and 1, such as 0.9")


def fading_s(drift: str) -> float | None:
    """``--drift`` in seconds: None is left to the log, ∞ is never.

    >>> fading_s("auto"), fading_s("off"), fading_s("1d")
    (None, inf, 86400.0)
    """
    return _DRIFT[drift] if drift in _DRIFT else time_s("--drift", drift, "auto, off or a time such as 30d")


def season_flag(season: str) -> bool | None:
    """``--season``: None is left to the log."""
    return _SEASON[one_of("--season", season, _SEASON)]


def time_s(flag: str, text: str, right: str = "a time such as 20d") -> float:
    """The seconds of a flag that must be a time above 0."""
    try:
        seconds = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{flag} must be {right}: {error}") from None
    if seconds == 0:
        raise UsageError(f"{flag} is 0: must be above 0")
    return seconds


def refuse_without_polls(**given: object) -> None:
    """Refuse flags that ask something of polls where there are none."""
    wrong = [
        f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, False, "auto")
    ]
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: goes with POLLS, not with --cohorts or --lifetimes")
