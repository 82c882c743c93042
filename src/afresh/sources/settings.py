"""The settings that all sources have, read from a ``[[source]]`` table. Unknown or wrong ones are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from afresh.sources.change_detection import Recipe
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError, did_you_mean
from afresh.values.units import SIZE_BYTES, parse_duration, parse_rate, parse_size_rate

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?)\s*(?P<unit>[A-Za-z]+)")
_GONE_FOR_GOOD = 410


def _parse_duration(given: object) -> object:
    return parse_duration(given) if isinstance(given, str) else given


def _parse_size(given: object) -> object:
    if not isinstance(given, str):
        return given
    match = _SIZE.fullmatch(given.strip())
    if match is None or match["unit"] not in SIZE_BYTES:
        raise UsageError(
            f"{given!r} is not a size: give a number and a unit ({', '.join(SIZE_BYTES)}), such as 5MB"
        )
    return int(float(match["number"]) * SIZE_BYTES[match["unit"]])


def _as_tuple(given: object) -> object:
    return (given,) if isinstance(given, str) else given


Seconds = Annotated[float, BeforeValidator(_parse_duration), Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, BeforeValidator(_parse_duration), Field(gt=0, allow_inf_nan=False)]
Size = Annotated[int, BeforeValidator(_parse_size), Field(gt=0)]
SizeRate = Annotated[
    float,
    BeforeValidator(lambda given: parse_size_rate(given) if isinstance(given, str) else given),
    Field(ge=0, allow_inf_nan=False),
]
PositiveRate = Annotated[
    float,
    BeforeValidator(lambda given: parse_rate(given) if isinstance(given, str) else given),
    Field(gt=0, allow_inf_nan=False),
]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A problem of a table of settings (``words``). ``key`` is the wrong setting, ``place`` the wrong part of
    it, such as ``limits.delay``, if it is known."""

    key: str
    place: str
    words: str


@dataclass(frozen=True, slots=True)
class MissingRule:
    """An item is gone if it was missing in ``polls`` consecutive polls, over at least ``time_s`` seconds. The
    time matters because a faulty deployment can break a site for an hour. If the server answers 410 ("gone
    for good"), two polls are enough."""

    polls: int = 3
    time_s: float = 86400.0


def is_gone(status: int | None, misses: int, silent_s: float, rule: MissingRule) -> bool:
    """Return whether an item is gone by ``rule``, after ``misses`` consecutive polls that did not find it.
    ``status`` is the HTTP status of the last poll, ``silent_s`` the seconds since the item was last found.

    >>> is_gone(404, 3, 3600.0, MissingRule()), is_gone(404, 3, 2 * 86400.0, MissingRule())
    (False, True)
    >>> is_gone(410, 1, 60.0, MissingRule()), is_gone(410, 2, 60.0, MissingRule())
    (False, True)
    """
    if status == _GONE_FOR_GOOD:
        return misses >= min(2, rule.polls)
    return misses >= rule.polls and silent_s >= rule.time_s


class SourceSettings(BaseModel):
    """The settings of every source: its kind, its name, when it may be polled, and which content is compared.

    ``windows`` are the hours of the week in which polls are allowed, in ``time_zone``. Without windows, polls
    are always allowed. ``selectors``, ``drop``, ``json_path``, ``text_only``, ``main_text``, ``ignore`` and
    ``ignore_blanks`` form the ``Recipe``. If ``near_duplicate`` is 0.9, content whose similarity to the copy
    is 0.9 or more is no change; ``min_change`` = 0.1 says the same by the size of the change.

    ``timeout`` is the longest duration of a poll, in seconds. Listings add items only until the source has
    ``max_items``; a user may add more. ``min_interval`` is the least time in seconds between two polls of an
    item that has none of its own; None stands for that of the kind of source. ``saa_guess`` is a first guess
    of the rates, in changes per second, with which SAA polls items until it knows their rates."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    kind: str
    name: str = Field(min_length=1)
    windows: Texts = ()
    time_zone: str = "UTC"
    saa_guess: PositiveRate | None = None
    selectors: Texts = ()
    drop: Texts = ()
    json_path: str = ""
    text_only: bool = False
    ignore: Texts = ()
    ignore_blanks: bool = False
    main_text: bool = False
    near_duplicate: float | None = Field(default=None, gt=0, lt=1)
    min_change: float = Field(default=0.0, ge=0, lt=1)
    timeout: PositiveSeconds = 60.0
    missing_polls: int = Field(default=3, ge=1)
    missing_time: Seconds = 86400.0
    max_items: int = Field(default=10_000_000, ge=0)
    min_interval: Seconds | None = None

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            self.json_path,
            self.selectors,
            self.drop,
            self.text_only,
            self.ignore,
            self.ignore_blanks,
            self.main_text,
        )

    @property
    def least_similarity(self) -> float | None:
        """The similarity to the copy from which on content is no change, by ``near_duplicate`` or
        ``min_change``; None if every difference is a change."""
        return 1.0 - self.min_change if self.min_change else self.near_duplicate

    @property
    def open_windows(self) -> Windows:
        return Windows.parse(self.windows, self.time_zone)

    @property
    def missing(self) -> MissingRule:
        return MissingRule(self.missing_polls, self.missing_time)

    @property
    def lists_items(self) -> bool:
        """Whether the source can list its items, so that ``Source.listings`` yields something."""
        return False

    @property
    def longest_retry_s(self) -> float:
        """The longest wait after a failure, in seconds. The settings of the run may set a shorter one."""
        return float("inf")

    @property
    def delay_s(self) -> float | None:
        """The shortest time in seconds between two requests to one host; None for sources without a delay."""
        return None

    @property
    def polls_at_once(self) -> int:
        """How many polls of one group may run at the same time."""
        return 1

    @property
    def first_rest_s(self) -> float:
        """The seconds to wait after the first failure. Each further failure in a row doubles the wait."""
        return 1.0

    @property
    def listings_every_s(self) -> float | None:
        """The seconds between two readings of the listings; None if the setting of the run applies."""
        return None

    @property
    def default_objective(self) -> str | None:
        """What is optimised for the items of this kind of source by default; None: what ``[plan]`` says."""
        return None

    @property
    def default_min_interval_s(self) -> float | None:
        """The ``min_interval`` of this kind of source in seconds, if the settings have none: 0 for no limit,
        None for the time between two listings of the run."""
        return 0.0

    @property
    def detection_delay_s(self) -> float:
        """The longest time in seconds until a source that observes staleness sees a change."""
        return 0.0

    def refusal(self, key: str) -> str:
        """Return why these settings refuse to poll an item, as far as its key says; empty if they do not."""
        del key
        return ""

    def target_lag_s(self, key: str) -> float | None:
        """Return the target lag in seconds that the settings give the item ``key``; None without one."""
        del key
        return None

    @property
    def access_fingerprint(self) -> str:
        """A text, without secrets, that changes when the settings allow or forbid other requests than before.
        After such a change, the engine polls items that failed again at once."""
        return ""

    @property
    def content_fingerprint(self) -> str:
        """A text that changes when other differences of contents count as changes than before. After such a
        change, what was learned of the rates of the items is forgotten."""
        return f"{self.recipe.fingerprint} {self.least_similarity}"

    def model_post_init(self, context: Any, /) -> None:
        """Parse the recipe and the windows, so that mistakes in them are found when the settings are read."""
        del context
        _ = self.recipe, self.open_windows
        if self.min_change and self.near_duplicate is not None:
            raise UsageError("min_change and near_duplicate exclude each other: one is 1 − near_duplicate")


Settings = TypeVar("Settings", bound=SourceSettings)


def read_settings(model: type[Settings], table: Mapping[str, Any]) -> Settings:
    """Check the ``[[source]]`` table of one source, and return it as settings of the class ``model``.

    >>> read_settings(SourceSettings, {"kind": "x", "name": "web", "timeout": "2s"}).timeout
    2.0
    >>> read_settings(SourceSettings, {"name": "web", "timeuot": "2s"})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: source 'web': unknown setting 'timeuot': did you mean 'timeout'?
    """
    problems = find_problems(model, table)
    if problems:
        first = problems[0]
        place = f"{first.place}: " if first.place else ""
        raise UsageError(f"source {table.get('name', '?')!r}: {place}{first.words}")
    return model.model_validate(dict(table))


def find_problems(model: type[BaseModel], table: Mapping[str, Any]) -> list[SettingProblem]:
    """Return everything that is wrong in a table of settings."""
    found = [
        SettingProblem(key, "", f"unknown setting {key!r}{did_you_mean(key, model.model_fields)}")
        for key in table
        if key not in model.model_fields
    ]
    try:
        model.model_validate({key: value for key, value in table.items() if key in model.model_fields})
    except UsageError as error:
        found.append(SettingProblem("", "", str(error)))
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            # A check of several settings together has no location.
            key = str(each["loc"][0]) if each["loc"] else ""
            place = ".".join(map(str, each["loc"]))
            found.append(SettingProblem(key, place, _plain_words(each)))
    return found


_WANTED = {
    "tuple_type": 'must be a list, such as ["one", "two"]',
    "string_type": 'must be a text in quotation marks, such as "one"',
    "dict_type": "must be a table, such as { name = value }",
    "mapping_type": "must be a table, such as { name = value }",
    "model_type": "must be a table, such as { name = value }",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "missing": "is missing: the source needs it",
    "extra_forbidden": "is not known here",
}
"""What a setting must be, by pydantic's type of the problem."""


def _plain_words(error: ErrorDetails) -> str:
    wanted = _WANTED.get(error["type"])
    if wanted is not None:
        return wanted.format(**error.get("ctx", {}))
    words = error["msg"].removeprefix("Value error, ")
    return f"{words[:1].lower()}{words[1:]}"
