"""The settings of an engine: the tables of ``afresh.toml``, their keys and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from afresh.engine.settings.hook_rules import HookRules
from afresh.engine.settings.item_views import HookSetting, ItemViews
from afresh.engine.settings.notify_rules import NotifyRules
from afresh.engine.settings.receiver_rules import Webhooks
from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.sources.settings import Size, SourceSettings
from afresh.values.errors import one_of
from afresh.values.formatting import format_count
from afresh.values.objective_names import Measure, parse_target
from afresh.values.units import format_rate, parse_duration, parse_rate, parse_share, parse_size_rate


def _reader(parse: Any) -> BeforeValidator:
    """Return a validator that applies ``parse``, which refuses a number without a unit of time."""
    return BeforeValidator(lambda given: parse(str(given)) if isinstance(given, str | int | float) else given)


def _objective(given: str) -> str:
    from afresh.values.objective_names import OBJECTIVE_NAMES

    return one_of("objective", given, OBJECTIVE_NAMES)


def _check_target(given: float | str | None) -> float | str | None:
    """Return a target unless it is neither a freshness between 0 and 1 nor a content lag above 0."""
    found = None if given is None else parse_target(str(given))
    if found is not None and found.measure == "age":
        raise ValueError(f"is {given}: give a freshness between 0 and 1, or a content lag such as lag=6h")
    if found is not None and found.measure == "freshness" and not 0 < found.value < 1:
        raise ValueError(f"is {given}: a freshness must be more than 0 and less than 1")
    if found is not None and not found.value > 0:
        raise ValueError(f"is {given}: a content lag must be more than 0")
    return given


Rate = Annotated[float, _reader(parse_rate), Field(gt=0, allow_inf_nan=False)]
SizeRate = Annotated[float, _reader(parse_size_rate), Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, _reader(parse_share), Field(gt=0, le=1)]
Seconds = Annotated[
    float,
    BeforeValidator(lambda given: parse_duration(given) if isinstance(given, str) else given),
    Field(gt=0, allow_inf_nan=False),
]
ObjectiveName = Annotated[str, AfterValidator(_objective)]


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreTable(Table):
    """Where copies and state are stored, and how many versions and observations of each item are kept.
    ``max_size`` is the most bytes that copies and state may take. ``copies`` is the address of an object
    store or folder for the copies, instead of the database. An object that no version uses any more is
    deleted after ``copies_grace``."""

    url: str = Field(default="sqlite:afresh.db", min_length=1)
    versions: int = Field(default=5, ge=1)
    observations: int = Field(default=1000, ge=1)
    max_size: Size = 100_000_000_000
    copies: str = ""
    copies_grace: Seconds = 86400.0


class BudgetTable(Table):
    """The budget of all sources together, per second. Bytes, seconds (of requests) and money are not limited
    if they are None. With ``each_item``, ``requests`` is for each item (``0.05/item/d`` in the file). In any
    T seconds at most requests·T + ``burst`` requests start; see ``burst_requests``."""

    requests: Rate = 1.0
    burst: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    each_item: bool = False
    bytes: SizeRate | None = None
    seconds: Share | None = None
    money: Rate | None = None
    price_per_request: float = Field(default=0.0, ge=0)
    price_per_gb: float = Field(default=0.0, ge=0)
    price_per_second: float = Field(default=0.0, ge=0)

    @property
    def burst_requests(self) -> float:
        """The burst in requests: by default those of one second, and at least one."""
        return max(self.requests, 1.0) if self.burst is None else self.burst

    def of_items(self, items: int) -> BudgetTable:
        """Return the budget for ``items`` items: with ``each_item``, its requests times ``items``.

        >>> from afresh.engine.settings.parsing import parse_settings
        >>> parse_settings("[budget]\\nrequests = '0.5/item/s'").budget.of_items(10).requests
        5.0
        """
        return self.model_copy(update={"requests": self.requests * max(items, 1)}) if self.each_item else self

    def describe_requests(self, items: int) -> str:
        """Describe the limit of requests, and what a limit for each item amounts to for ``items`` items.

        >>> BudgetTable(requests="24/d", each_item=True).describe_requests(13)
        '1/item/h: 13/h for 13 items'
        >>> BudgetTable(requests="2/s").describe_requests(13)
        '2/s'
        """
        if not self.each_item:
            return format_rate(self.requests)
        whole = f"{format_rate(self.of_items(items).requests)} for {format_count(items, 'item')}"
        return f"{format_rate(self.requests).replace('/', '/item/')}: {whole}"


class PlanTable(Table):
    """How the budget is spent. ``audit_share`` is the share of audits among the polls, ``target`` the
    freshness below which, or the content lag (``lag=6h``) above which the engine warns. ``caps`` limits the
    requests per second of single groups."""

    policy: Literal["adaptive", "uniform"] = "adaptive"
    objective: ObjectiveName = "freshness"
    audit_share: float = Field(default=0.02, ge=0, lt=1)
    target: Annotated[float | str | None, AfterValidator(_check_target)] = None
    caps: Mapping[str, Rate] = Field(default_factory=dict)

    def target_for(self, measure: Measure) -> float | None:
        """Return the target if it is one for ``measure``, else None: a share, or seconds for ``lag``."""
        found = None if self.target is None else parse_target(str(self.target))
        return found.value if found is not None and found.measure == measure else None


class RunTable(Table):
    """How the engine runs, with durations in seconds. ``concurrency`` is the most polls at the same time."""

    lease: Seconds = 120.0
    claim: Seconds = 30.0
    concurrency: int = Field(default=256, ge=1)
    retry_first: Seconds = 60.0
    retry_longest: Seconds = 86400.0
    listings_every: Seconds = 3600.0
    hook_timeout: Seconds = 60.0
    drain_timeout: Seconds = 60.0


class FeedTable(Table):
    """The change feed. Changes are kept for ``keep`` seconds."""

    keep: Seconds = 30 * 86400.0


def _check_callback(given: str) -> str:
    """Return the public address of this server, without a slash at its end."""
    parts = urlsplit(given)
    is_whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if given and not is_whole:
        raise ValueError(
            f"is {given!r}: the address of this server for others, such as https://afresh.example"
        )
    return given.rstrip("/")


ContentReaders = Literal["nobody", "token", "everybody"]


class WebTable(Table):
    """Where the dashboard listens; ``token`` may be a secret (``env:NAME``). ``read_token`` says whether
    reading needs the token too; by default it does if other machines can reach the host. ``content`` says
    who may read the content of copies over the API if other machines can reach the host. ``webhook`` are
    webhooks by name; ``callback`` is the address at which hubs of feeds reach this server."""

    host: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    token: str = Field(default="", repr=False)
    read_token: bool | None = None
    content: ContentReaders = "nobody"
    names: tuple[str, ...] = ()
    webhook: Webhooks = Field(default_factory=dict, repr=False)
    callback: Annotated[str, AfterValidator(_check_callback)] = ""


def _check_shard_store(given: str) -> str:
    if "{shard}" not in given:
        raise ValueError(
            f"is {given!r}: it must contain {{shard}}, because each shard has a store of its own"
        )
    return given


class ClusterTable(Table):
    """The shards of ``afresh cluster``. ``store`` is the address of a shard's store, with ``{shard}`` for its
    number. A shard that hears nothing from the coordinator stops after ``share`` seconds; it sends a report
    every ``report`` seconds."""

    store: Annotated[str, AfterValidator(_check_shard_store)] = "sqlite:shards/{shard}.db"
    share: Seconds = 20.0
    report: Seconds = 3.0


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One ``[[source]]`` of the settings file. ``on_change`` is its hook: a command as a list of words, or
    ``module:function``; ``hook`` is how it is called. ``benefit`` is the money per second that a fresh copy
    of weight 1 earns, ``stale_cost`` the money per second that a stale copy of weight 1 loses. ``objective``
    is what is optimised for its items, if the settings say so. ``update_cost`` is the money that each change
    that a poll finds costs beyond the poll, ``decay`` how copies decay (empty: as the rate alone tells).
    ``notify`` are the addresses, which may be secret, of people who
    are told of changes; ``notification`` is what they are told."""

    settings: SourceSettings
    on_change: HookSetting | None = None
    kind: SourceKind[Any] = BUILT_IN["http"]
    benefit: float = 0.0
    stale_cost: float = 0.0
    objective: str | None = None
    update_cost: float = 0.0
    decay: str = ""
    hook: HookRules = field(default_factory=HookRules)
    notify: tuple[str, ...] = field(default=(), repr=False)
    notification: NotifyRules = field(default_factory=NotifyRules)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of an engine. ``written_requests`` are the requests in the file's budget, if an option of
    the command line overrides them. ``views`` are the item views.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> parse_settings("[budget]\\nrequests = '2/s'").budget.requests
    2.0
    >>> parse_settings("[run]\\nkeep = '2m'")
    Traceback (most recent call last):
    afresh.values.errors.WrongSettingsError: afresh.toml, line 2: [run]: unknown setting 'keep'.
    """

    store: StoreTable
    budget: BudgetTable
    plan: PlanTable
    run: RunTable
    web: WebTable
    sources: tuple[SourceTable, ...]
    written_requests: float | None = None
    feed: FeedTable = field(default_factory=FeedTable)
    views: ItemViews = field(default_factory=ItemViews)
    cluster: ClusterTable = field(default_factory=ClusterTable)

    def source(self, name: str) -> SourceTable | None:
        return next((source for source in self.sources if source.settings.name == name), None)

    def objective_of(self, source: str) -> str:
        """Return what is optimised for the items of ``source``: its own setting, or the default of its kind
        (``age`` for views, unless copies earn money), or that of ``[plan]``.

        >>> from afresh.engine.settings.parsing import parse_settings
        >>> parse_settings("[[source]]\\nname = 'web'\\nobjective = 'age'").objective_of("web")
        'age'
        """
        table = self.source(source)
        if table is None:
            return self.plan.objective
        earns = any(each.benefit > 0 or each.stale_cost > 0 for each in self.sources)
        default = None if earns else table.settings.default_objective
        return table.objective or default or self.plan.objective

    def min_intervals(self) -> dict[str, float]:
        """Return by source the least seconds between two polls of an item that has no interval of its own.

        >>> from afresh.engine.settings.parsing import parse_settings
        >>> text = "[[source]]\\nname = 'a'\\n[[source]]\\nname = 'b'\\nmin_interval = 0"
        >>> parse_settings(text).min_intervals()
        {'a': 60.0, 'b': 0.0}
        """
        found: dict[str, float] = {}
        for own in (table.settings for table in self.sources):
            least_s = own.default_min_interval_s if own.min_interval is None else own.min_interval
            found[own.name] = self.run.listings_every if least_s is None else least_s
        return found

    def has_hook(self, source: str, key: str) -> bool:
        """Return whether a hook is told of changes of the item ``key`` of ``source``."""
        table = self.source(source)
        if table is not None and table.on_change:
            return True
        return any(view.on_stale for view in self.views.of_item(key))

    def closed_sources(self, now_s: float) -> dict[str, float]:
        """Return the sources that may not be polled now, each with the Unix time when that ends.

        >>> from afresh.engine.settings.parsing import parse_settings
        >>> parse_settings("[[source]]\\nname = 'web'\\nwindows = ['01:00-02:00']").closed_sources(0.0)
        {'web': 3600.0}
        """
        tables = [table.settings for table in self.sources]
        opens_s = {table.name: table.open_windows.next_opening_s(now_s) for table in tables}
        return {name: when_s for name, when_s in opens_s.items() if when_s > now_s}


class LiveSettings:
    """The current settings of a run. All its parts read ``now`` at each use; a reload replaces ``now``."""

    def __init__(self, settings: Settings) -> None:
        self.now = settings


TABLES: dict[str, type[Table]] = {
    "store": StoreTable,
    "budget": BudgetTable,
    "plan": PlanTable,
    "run": RunTable,
    "web": WebTable,
    "cluster": ClusterTable,
    "feed": FeedTable,
}
