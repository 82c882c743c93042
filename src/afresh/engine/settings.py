"""``afresh.toml``: every key has a default, is checked on load, and an unknown one is refused.

The file's text, the environment's overrides and the options of a command come in as arguments; nothing here
reads a file or the environment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from afresh.sources.kinds import BUILT_IN, SourceKind
from afresh.sources.settings import SourceSettings, read_settings
from afresh.values.errors import UsageError, did_you_mean
from afresh.values.units import parse_duration, parse_rate, parse_share, parse_size_rate

FILE_NAME = "afresh.toml"
DEFAULT_SOURCE = "web"


def _reader(parse: Any) -> BeforeValidator:
    """A number alone is refused by the parser: it says nothing about time."""
    return BeforeValidator(lambda given: parse(str(given)) if isinstance(given, str | int | float) else given)


def _duration(given: object) -> object:
    return parse_duration(given) if isinstance(given, str) else given


Rate = Annotated[float, _reader(parse_rate), Field(gt=0, allow_inf_nan=False)]
SizeRate = Annotated[float, _reader(parse_size_rate), Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, _reader(parse_share), Field(gt=0, le=1)]
Seconds = Annotated[float, BeforeValidator(_duration), Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreTable(_Table):
    """Where copies and state live, and how much of the past is kept."""

    url: str = Field(default="sqlite:afresh.db", min_length=1)
    versions: int = Field(default=5, ge=1)
    observations: int = Field(default=1000, ge=1)


class BudgetTable(_Table):
    """What all sources together may be asked for. Only requests are limited unless the others are given.

    ``each_item``: the requests are for each item; ``0.05/item/d`` says it in one word.
    """

    requests: Rate = 1.0
    each_item: bool = False
    bytes: SizeRate | None = None
    seconds: Share | None = None
    money: Rate | None = None
    price_per_request: float = Field(default=0.0, ge=0)
    price_per_gb: float = Field(default=0.0, ge=0)
    price_per_second: float = Field(default=0.0, ge=0)

    def of_items(self, items: int) -> BudgetTable:
        """The budget for so many items.

        >>> read("[budget]\\nrequests = '0.5/item/s'").budget.of_items(10).requests
        5.0
        """
        return self.model_copy(update={"requests": self.requests * max(items, 1)}) if self.each_item else self


class PlanTable(_Table):
    """How the budget is spent."""

    policy: Literal["adaptive", "uniform"] = "adaptive"
    objective: Literal["freshness", "age", "harmonic", "missed", "lag"] = "freshness"
    audit_share: float = Field(default=0.02, ge=0, lt=1)
    target: float | None = Field(default=None, gt=0, lt=1)
    caps: Mapping[str, Rate] = Field(default_factory=dict)


class RunTable(_Table):
    """How the engine runs."""

    lease: Seconds = 120.0
    claim: Seconds = 30.0
    concurrency: int = Field(default=256, ge=1)
    retry_first: Seconds = 60.0
    retry_longest: Seconds = 86400.0
    listings_every: Seconds = 3600.0
    hook_timeout: Seconds = 60.0


class WebTable(_Table):
    """Where the dashboard listens; ``token`` may be a secret (``env:NAME``)."""

    host: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    token: str = Field(default="", repr=False)
    names: tuple[str, ...] = ()


class Said(str):
    """A setting that was given elsewhere than in the file, and where: what is wrong with it is said there.

    >>> read("", {"budget.requests": Said("soon", "--budget soon")})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --budget soon: 'soon' is not a rate: write it like 5000/d
    """

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, value: str, origin: str) -> Self:
        """The value, with its origin."""
        said = super().__new__(cls, value)
        said.origin = origin
        return said


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One ``[[source]]``: its own settings, what builds it, and what the engine does with its changes.

    ``on_change`` is a command (a list of words) or ``module:function``. ``benefit`` is the money per second
    that a right copy of weight 1 earns, ``stale_cost`` what a wrong one loses.
    """

    settings: SourceSettings
    on_change: tuple[str, ...] | str | None = None
    kind: SourceKind[Any] = BUILT_IN["http"]
    benefit: float = 0.0
    stale_cost: float = 0.0

    @property
    def concurrency(self) -> int:
        """How many polls of one group may be under way at once."""
        return int(getattr(self.settings, "concurrency", 1))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an engine is told.

    ``written_requests`` is the budget in the file, where an option of the command line goes over it.

    >>> read("[budget]\\nrequests = '2/s'").budget.requests
    2.0
    >>> read("[run]\\nleas = '2m'")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: afresh.toml, line 2: [run]: unknown setting 'leas': did you mean 'lease'?
    """

    store: StoreTable
    budget: BudgetTable
    plan: PlanTable
    run: RunTable
    web: WebTable
    sources: tuple[SourceTable, ...]
    written_requests: float | None = None

    def source(self, name: str) -> SourceTable | None:
        """The source of this name."""
        return next((source for source in self.sources if source.settings.name == name), None)


_TABLES: dict[str, type[_Table]] = {
    "store": StoreTable,
    "budget": BudgetTable,
    "plan": PlanTable,
    "run": RunTable,
    "web": WebTable,
}


def read(
    text: str,
    overrides: Mapping[str, str] | None = None,
    *,
    name: str = FILE_NAME,
    kinds: Mapping[str, SourceKind[Any]] = BUILT_IN,
) -> Settings:
    """The settings in a file's text, with ``overrides`` such as ``{"budget.requests": "2/s"}`` on top.

    ``kinds`` are the kinds of source that it may name.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML: {error}") from None
    for table in raw:
        if table not in (*_TABLES, "source"):
            near = did_you_mean(table, (*_TABLES, "source"))
            raise UsageError(f"{_place(name, text, table, '')}unknown table {table!r}{near}")
    written = _written_requests(raw, overrides or {}, name, text)
    origins: dict[str, str] = {}
    for path, value in (overrides or {}).items():
        _override(raw, path, value)
        origins[path] = value.origin if isinstance(value, Said) else path
    _split_per_item(raw)
    tables = {
        key: _checked(model, raw.get(key, {}), key, name, text, origins) for key, model in _TABLES.items()
    }
    sources = _sources(raw, name, kinds, origins)
    settings = Settings(**tables, sources=sources, written_requests=written)  # type: ignore[arg-type]
    _check_money(settings, name)
    return settings


def environment_overrides(environment: Mapping[str, str]) -> dict[str, str]:
    """``AFRESH_BUDGET_REQUESTS`` means ``budget.requests``, ``AFRESH_SOURCE_WEB_DELAY`` ``source.web.delay``.

    >>> environment_overrides({"AFRESH_BUDGET_REQUESTS": "2/s", "HOME": "/"})
    {'budget.requests': '2/s'}
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        prefix, _, rest = name.partition("_")
        table, _, key = rest.lower().partition("_")
        if prefix == "AFRESH" and key and table in (*_TABLES, "source"):
            if table == "source":
                source, _, key = key.partition("_")
                key = f"{source}.{key}"
            found[f"{table}.{key}"] = Said(value, name)
    return found


def shown(settings: Settings) -> dict[str, Any]:
    """The settings as they were read, every default filled in; what may be secret is only said to be there.

    >>> shown(read("[web]\\ntoken = 'a'"))["web"]["token"], shown(read(""))["budget"]["requests"]
    ('hidden', 1.0)
    """
    tables: dict[str, Any] = {name: _shown(getattr(settings, name)) for name in _TABLES}
    own = ("on_change", "benefit", "stale_cost")
    tables["source"] = [
        _shown(table.settings) | {name: getattr(table, name) for name in own} for table in settings.sources
    ]
    return tables


def _shown(table: BaseModel) -> dict[str, Any]:
    plain = table.model_dump(mode="json")
    hidden = {key for key, field in type(table).model_fields.items() if not field.repr and plain[key]}
    return {key: "hidden" if key in hidden else value for key, value in plain.items()}


def changes(before: Settings, after: Settings) -> list[str]:
    """What a reload changed but for the sources, in words; nothing secret.

    >>> changes(read(""), read("[budget]\\nrequests = '2/s'"))
    ['budget.requests is now 2.0 (was 1.0)']
    """
    found = []
    for name in _TABLES:
        old, new = getattr(before, name), getattr(after, name)
        for key, field in type(new).model_fields.items():
            if getattr(old, key) != getattr(new, key):
                shown = (
                    f" is now {getattr(new, key)} (was {getattr(old, key)})" if field.repr else " is another"
                )
                found.append(f"{name}.{key}{shown}")
    return found


def _checked(
    model: type[_Table], table: object, key: str, name: str, text: str, origins: Mapping[str, str]
) -> _Table:
    if not isinstance(table, dict):
        raise UsageError(f"{_place(name, text, key, '')}[{key}] must be a table")
    for given in table:
        if given not in model.model_fields:
            near = did_you_mean(given, model.model_fields)
            raise UsageError(f"{_place(name, text, key, given)}[{key}]: unknown setting {given!r}{near}")
    try:
        return model.model_validate(table)
    except UsageError as error:
        raise UsageError(f"{name}: [{key}]: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        origin = origins.get(f"{key}.{where}")
        place = f"{_place(name, text, key, where)}[{key}] {where}" if origin is None else origin
        raise UsageError(f"{place}: {words[:1].lower()}{words[1:]}") from None


def _sources(
    raw: Mapping[str, Any], name: str, kinds: Mapping[str, SourceKind[Any]], origins: Mapping[str, str]
) -> tuple[SourceTable, ...]:
    found = []
    for table in raw.get("source", [{"name": DEFAULT_SOURCE}]):
        own = dict(table)
        hook = own.pop("on_change", None)
        if hook is not None and not _is_hook(hook):
            who = f"{name}: source {own.get('name', '?')!r}"
            raise UsageError(f"{who}: on_change must be a list of words or 'module:function'")
        chosen = str(own.setdefault("kind", "http"))
        if chosen not in kinds:
            raise UsageError(f"{name}: unknown kind of source {chosen!r}{did_you_mean(chosen, kinds)}")
        kind = kinds[chosen]
        earned = [_money_rate(own, key, name) for key in ("benefit", "stale_cost")]
        try:
            settings = read_settings(kind.settings, own)
        except UsageError as error:
            raise UsageError(_blamed(str(error), own.get("name"), origins)) from None
        found.append(SourceTable(settings, tuple(hook) if isinstance(hook, list) else hook, kind, *earned))
    names = [source.settings.name for source in found]
    for twice in {each for each in names if names.count(each) > 1}:
        raise UsageError(f"{name}: two sources are named {twice!r}: give each its own name")
    return tuple(found)


def _blamed(words: str, source: object, origins: Mapping[str, str]) -> str:
    """What is wrong with a source, said of the option or variable where that is what was wrong."""
    for path, origin in origins.items():
        who, _, problem = words.partition(f": {path.rpartition('.')[2]}: ")
        if problem and path.startswith(f"source.{source}.") and who == f"source {source!r}":
            return f"{origin}: {problem}"
    return words


def _money_rate(own: dict[str, Any], key: str, name: str) -> float:
    """Money per second, from ``0.01/d``; 0 where nothing is said."""
    said = own.pop(key, None)
    if said is None or said == 0:
        return 0.0
    try:
        return parse_rate(str(said))
    except UsageError:
        who = f"{name}: source {own.get('name', '?')!r}"
        raise UsageError(f'{who}: {key} is {said!r}: money per time, such as "0.01/d"') from None


def _check_money(settings: Settings, name: str) -> None:
    """Where copies earn, a poll must cost something: else no budget would be the best."""
    budget = settings.budget
    earns = [source for source in settings.sources if source.benefit > 0 or source.stale_cost > 0]
    if earns and not budget.price_per_request + budget.price_per_gb + budget.price_per_second > 0:
        who = f"{name}: source {earns[0].settings.name!r}"
        raise UsageError(
            f"{who} has a benefit, but polls cost nothing, so that no budget is best: "
            "give price_per_request, price_per_gb or price_per_second in [budget]"
        )


def _split_per_item(raw: dict[str, Any]) -> None:
    """``requests = "0.05/item/d"`` means ``requests = "0.05/d"`` and ``each_item = true``."""
    budget = raw.get("budget")
    if not isinstance(budget, dict):
        return
    said = budget.get("requests")
    if isinstance(said, str) and re.search(r"/\s*item\s*/", said):
        raw["budget"] = {**budget, "requests": re.sub(r"/\s*item\s*/", "/", said), "each_item": True}


def _written_requests(
    raw: Mapping[str, Any], overrides: Mapping[str, str], name: str, text: str
) -> float | None:
    """The budget that stands in the file, where an option of the command line goes over it."""
    said = overrides.get("budget.requests")
    if not (isinstance(said, Said) and said.origin.startswith("--")):
        return None
    in_file = {"budget": raw.get("budget", {})}
    _split_per_item(in_file)
    table = _checked(BudgetTable, in_file["budget"], "budget", name, text, {})
    assert isinstance(table, BudgetTable)
    return table.requests


def _is_hook(hook: object) -> bool:
    if isinstance(hook, str):
        return re.fullmatch(r"[\w.]+:\w+", hook) is not None
    return isinstance(hook, list) and bool(hook) and all(isinstance(word, str) for word in hook)


def _override(raw: dict[str, Any], path: str, value: str) -> None:
    parts = path.split(".")
    if len(parts) == 2 and parts[0] in _TABLES:
        key = parts[1]
        model = _TABLES[parts[0]]
        if key not in model.model_fields:
            raise UsageError(f"{path}: unknown setting {key!r}{did_you_mean(key, model.model_fields)}")
        raw.setdefault(parts[0], {})[key] = _value(value, _wants_text(model, key))
    elif len(parts) == 3 and parts[0] == "source":
        tables = raw.setdefault("source", [{"name": DEFAULT_SOURCE}])
        named = [table for table in tables if table.get("name") == parts[1]]
        if not named:
            raise UsageError(f"{path}: there is no source {parts[1]!r}")
        named[0][parts[2]] = _value(value, wants_text=False)
    else:
        raise UsageError(
            f"{path!r} is not a setting: write TABLE.KEY or source.NAME.KEY, such as budget.requests"
        )


def _wants_text(model: type[_Table], key: str) -> bool:
    wanted = model.model_fields[key].annotation
    return wanted is str or (get_origin(wanted) is Union and str in get_args(wanted))


def _value(text: str, wants_text: bool) -> object:
    """What an override means: a TOML value where it is one, else the text itself."""
    if wants_text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _place(name: str, text: str, table: str, key: str) -> str:
    """``afresh.toml, line 3: `` where the key is found, else the file's name."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)", line)
        if header:
            inside = header[1] == table
        if (inside and not key) or (inside and re.match(rf"\s*{re.escape(key)}\s*=", line)):
            return f"{name}, line {number}: "
    return f"{name}: "


TEMPLATE = """\
# Settings of this mirror. Every line may be left out; what is commented shows the default.
# Durations: 90s 15m 6h 1d. Rates: 2/s 5000/d. Secrets: env:NAME. All settings, with
# what they are now: afresh config check --json

[store]
# url = "sqlite:afresh.db"
# versions = 5              # copies kept of each item

[budget]
requests = "1/s"            # or "0.05/item/d"; robots.txt, redirects, retries, audits count
# bytes = "10GB/d"
# seconds = "20m/h"

[plan]
# policy = "adaptive"       # or uniform
# objective = "freshness"   # or age, harmonic, missed, lag
# audit_share = 0.02        # share of polls at random, to measure freshness without bias
# target = 0.9              # warn when audited freshness falls below

[run]
# retry_first = "1m"        # after a failure, doubled each time …
# retry_longest = "1d"      # … up to this

[[source]]
name = "web"
kind = "http"
# delay = "1s"              # between requests to one host
# sitemaps = ["https://example.org/sitemap.xml"]
# selectors = ["main"]      # what counts as content
# on_change = ["python", "reindex.py"]
"""
