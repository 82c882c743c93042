"""Settings of one source, as a ``[[source]]`` table gives them: checked, frozen, unknown keys refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from afresh.sources.content import Recipe
from afresh.sources.http.decompression import ENCODINGS
from afresh.sources.http.fetcher import USER_AGENT, ResponseLimits
from afresh.sources.http.politeness import Politeness
from afresh.sources.patience import Patience
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError, did_you_mean
from afresh.values.units import SIZE_BYTES, parse_duration

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?)\s*(?P<unit>[A-Za-z]+)")


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


class SourceSettings(BaseModel):
    """What every source has: its kind, its name, when it may be polled and what counts as its content.

    ``windows`` in ``time_zone``, none means always; ``selectors drop json_path text_only ignore
    ignore_blanks`` are the recipe (see ``content``); ``near_duplicate`` 0.9 means that content at least
    so alike is no change; ``timeout`` is the longest a poll's answer may take.
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
        """How content is normalised."""
        return Recipe(
            self.json_path, self.selectors, self.drop, self.text_only, self.ignore, self.ignore_blanks
        )

    @property
    def open_windows(self) -> Windows:
        """When polling is allowed."""
        return Windows.parse(self.windows, self.time_zone)

    @property
    def missing(self) -> Patience:
        """How long an item may be missing before it is gone."""
        return Patience(self.missing_polls, self.missing_time)

    @property
    def lists_items(self) -> bool:
        """Whether ``listings`` of the source gives anything."""
        return False

    @property
    def longest_retry_s(self) -> float:
        """How long to wait after a failure at the most, whatever the settings of the run say."""
        return float("inf")

    @property
    def delay_s(self) -> float | None:
        """The least time between two requests to one host; None: it has no such manners."""
        return None

    @property
    def polls_at_once(self) -> int:
        """How many polls of one group may be under way at once."""
        return 1

    @property
    def first_rest_s(self) -> float:
        """How long to wait after the first failure; doubled with each further one."""
        return 1.0

    @property
    def listings_every_s(self) -> float | None:
        """How often its listings are read; None: as often as those of any source."""
        return None

    @property
    def reach(self) -> str:
        """What bears on whether it may be asked at all, without secrets; another one: try again."""
        return ""

    def model_post_init(self, context: Any, /) -> None:
        """Read what is written in little languages now, so that mistakes show on load."""
        del context
        _ = self.recipe, self.open_windows


class HttpSettings(SourceSettings):
    """A source of kind ``http``: items are addresses of pages.

    ``headers``, ``cookies`` and ``proxy`` may be secrets (``env:NAME``); headers and cookies go only to the
    hosts of the items themselves, never along a redirect to another. ``sitemaps``, ``feeds`` and
    ``discover`` (start pages) list items. ``queue_time`` is how long a poll may wait for its host's turn.
    """

    kind: Literal["http"] = "http"
    sitemaps: Texts = ()
    feeds: Texts = ()
    discover: Texts = ()
    max_listings: int = Field(default=1000, ge=1)
    user_agent: str = Field(default=USER_AGENT, min_length=1)
    respect_robots: bool = True
    delay: Seconds = 1.0
    concurrency: int = Field(default=1, ge=1)
    first_rest: SomeSeconds = 10.0
    longest_rest: SomeSeconds = 86400.0
    queue_time: Seconds = 30.0
    allow_private: bool = False
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    cookies: Mapping[str, str] = Field(default_factory=dict, repr=False)
    proxy: str = Field(default="", repr=False)
    accept_encoding: str = "gzip, deflate"
    connect_timeout: SomeSeconds = 10.0
    idle_timeout: SomeSeconds = 20.0
    max_size: Size = 50_000_000
    max_ratio: float = Field(default=200.0, gt=1)
    max_header_size: Size = 8190
    max_headers: int = Field(default=128, ge=8)
    max_redirects: int = Field(default=5, ge=0)
    soft_errors: Texts = ()

    @property
    def lists_items(self) -> bool:
        """Whether there are documents to read."""
        return bool(self.sitemaps or self.feeds or self.discover)

    @property
    def delay_s(self) -> float | None:
        """The setting ``delay``."""
        return self.delay

    @property
    def polls_at_once(self) -> int:
        """The setting ``concurrency``."""
        return self.concurrency

    @property
    def first_rest_s(self) -> float:
        """The setting ``first_rest``."""
        return self.first_rest

    @property
    def reach(self) -> str:
        """Addresses and rules, and who we say we are: names of headers, not what they hold."""
        names = [*sorted(self.headers), *sorted(self.cookies)]
        own = bool(self.proxy), self.user_agent, *names
        return repr((self.allow_private, self.respect_robots, *own))

    @property
    def limits(self) -> ResponseLimits:
        """What an answer may cost."""
        return ResponseLimits(
            self.connect_timeout,
            self.idle_timeout,
            self.timeout,
            self.max_size,
            self.max_ratio,
            self.max_header_size,
            self.max_headers,
        )

    @property
    def manners(self) -> Politeness:
        """How hosts are treated."""
        return Politeness(self.delay, self.concurrency, self.first_rest, self.longest_rest)

    @property
    def error_patterns(self) -> tuple[re.Pattern[str], ...]:
        """The patterns of this source's own error pages."""
        try:
            return tuple(re.compile(pattern) for pattern in self.soft_errors)
        except re.error as error:
            raise UsageError(f"soft_errors: not a regular expression: {error}") from None

    def model_post_init(self, context: Any, /) -> None:
        """Check the patterns and the encodings too."""
        super().model_post_init(context)
        _ = self.error_patterns
        for encoding in re.split(r"[,\s]+", self.accept_encoding):
            if encoding and encoding not in ENCODINGS:
                raise UsageError(f"accept_encoding: cannot read {encoding!r}, only {', '.join(ENCODINGS)}")


class PythonSettings(SourceSettings):
    """A source of kind ``python``: ``call`` is ``module:function``, given an item's key."""

    kind: Literal["python"] = "python"
    call: str
    concurrency: int = Field(default=4, ge=1)
    max_size: Size = 50_000_000

    @property
    def polls_at_once(self) -> int:
        """The setting ``concurrency``."""
        return self.concurrency


Settings = TypeVar("Settings", bound=SourceSettings)


def read_settings(model: type[Settings], table: Mapping[str, Any]) -> Settings:
    """The checked settings of one source.

    >>> read_settings(HttpSettings, {"name": "web", "delay": "2s"}).delay
    2.0
    >>> read_settings(HttpSettings, {"name": "web", "dellay": "2s"})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: source 'web': unknown setting 'dellay': did you mean 'delay'?
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
        place = f"{where}: " if where else ""  # what settings say together has no place of its own
        raise UsageError(f"{who}: {place}{words[:1].lower()}{words[1:]}") from None
