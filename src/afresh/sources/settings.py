"""Settings that every source has, from its ``[[source]]`` table: checked, frozen, unknown keys refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from afresh.sources.change_detection import Recipe
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError, did_you_mean
from afresh.values.units import SIZE_BYTES, parse_duration

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?)\s*(?P<unit>[A-Za-z]+)")
_GONE_FOR_GOOD = 410


def _duration(given: object) -> object:
    return parse_duration(given) if isinstance(given, str) else given


def _size(given: object) -> object:
    if not isinstance(given, str):
        return given
    match = _SIZE.fullmatch(given.strip())
    if match is None or match["unit"] not in SIZE_BYTES:
        raise UsageError(
            f"{given!r} is not a size: give a number and a unit ({', '.join(SIZE_BYTES)}), such as 5MB"
        )
    return int(float(match["number"]) * SIZE_BYTES[match["unit"]])


def _several(given: object) -> object:
    return (given,) if isinstance(given, str) else given


Seconds = Annotated[float, BeforeValidator(_duration), Field(ge=0, allow_inf_nan=False)]
SomeSeconds = Annotated[float, BeforeValidator(_duration), Field(gt=0, allow_inf_nan=False)]
Size = Annotated[int, BeforeValidator(_size), Field(gt=0)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_several)]


@dataclass(frozen=True, slots=True)
class MissingRule:
    """When a missing item counts as gone: after ``polls`` misses in a row over at least ``time_s`` seconds.
    Pages come back, and deployments break sites for an hour. Two responses 410, "gone for good", are
    enough."""

    polls: int = 3
    time_s: float = 86400.0


def is_gone(status: int | None, misses: int, silent_s: float, rule: MissingRule) -> bool:
    """Tell whether an item is gone after ``misses`` in a row, ``silent_s`` seconds after it was last there.

    >>> is_gone(404, 3, 3600.0, MissingRule()), is_gone(404, 3, 2 * 86400.0, MissingRule())
    (False, True)
    >>> is_gone(410, 1, 60.0, MissingRule()), is_gone(410, 2, 60.0, MissingRule())
    (False, True)
    """
    if status == _GONE_FOR_GOOD:
        return misses >= min(2, rule.polls)
    return misses >= rule.polls and silent_s >= rule.time_s


class SourceSettings(BaseModel):
    """The settings of every source: its kind, its name, when it may be polled, and what counts as content.

    ``windows`` are in ``time_zone``; no windows mean that polls are always allowed. ``selectors``, ``drop``,
    ``json_path``, ``text_only``, ``ignore`` and ``ignore_blanks`` form the ``Recipe``. ``near_duplicate`` 0.9
    means that content which is at least that similar is no change. ``timeout`` is the longest time, in
    seconds, that the answer to a poll may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    kind: str
    name: str = Field(min_length=1)
    windows: Texts = ()
    time_zone: str = "UTC"
    selectors: Texts = ()
    drop: Texts = ()
    json_path: str = ""
    text_only: bool = False
    ignore: Texts = ()
    ignore_blanks: bool = False
    near_duplicate: float | None = Field(default=None, gt=0, lt=1)
    timeout: SomeSeconds = 60.0
    missing_polls: int = Field(default=3, ge=1)
    missing_time: Seconds = 86400.0

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            self.json_path, self.selectors, self.drop, self.text_only, self.ignore, self.ignore_blanks
        )

    @property
    def open_windows(self) -> Windows:
        return Windows.parse(self.windows, self.time_zone)

    @property
    def missing(self) -> MissingRule:
        return MissingRule(self.missing_polls, self.missing_time)

    @property
    def lists_items(self) -> bool:
        """Whether ``Source.listings`` yields anything."""
        return False

    @property
    def longest_retry_s(self) -> float:
        """The longest wait after a failure in seconds; it limits what the settings of the run say."""
        return float("inf")

    @property
    def delay_s(self) -> float | None:
        """The shortest time between two requests to one host; None for sources without such a rule."""
        return None

    @property
    def polls_at_once(self) -> int:
        """How many polls of one group may be under way at once."""
        return 1

    @property
    def first_rest_s(self) -> float:
        """How long to wait after the first failure; each further one doubles it."""
        return 1.0

    @property
    def listings_every_s(self) -> float | None:
        """How often the listings are read; None for the interval in the settings of the run."""
        return None

    @property
    def access_fingerprint(self) -> str:
        """The settings that decide which requests are allowed, without secrets. Items that failed are polled
        again as soon as it changes."""
        return ""

    def model_post_init(self, context: Any, /) -> None:
        """Parse recipe and windows on load, so that mistakes show early."""
        del context
        _ = self.recipe, self.open_windows


Settings = TypeVar("Settings", bound=SourceSettings)


def read_settings(model: type[Settings], table: Mapping[str, Any]) -> Settings:
    """Check the table of one source and return its settings.

    >>> read_settings(SourceSettings, {"kind": "x", "name": "web", "timeout": "2s"}).timeout
    2.0
    >>> read_settings(SourceSettings, {"name": "web", "timeuot": "2s"})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: source 'web': unknown setting 'timeuot': did you mean 'timeout'?
    """
    who = f"source {table.get('name', '?')!r}"
    for key in table:
        if key not in model.model_fields:
            raise UsageError(f"{who}: unknown setting {key!r}{did_you_mean(key, model.model_fields)}")
    try:
        return model.model_validate(dict(table))
    except UsageError as error:
        raise UsageError(f"{who}: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        place = f"{where}: " if where else ""  # checks over several settings have no place
        raise UsageError(f"{who}: {place}{words[:1].lower()}{words[1:]}") from None
