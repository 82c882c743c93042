"""The JSON of the API's requests and responses; the pages show the same objects.

Times are Unix seconds, rates are per second, shares lie between 0 and 1. A number that is not known or not
finite is null in JSON, and None here. Values of the engine whose fields are all finite are used directly.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from afresh.engine.ratelimit.fleet_member import WorkerStatus
from afresh.engine.reporting.item_snapshot import PastPoll
from afresh.engine.reporting.status import ItemProblem, SourceTrouble
from afresh.engine.scheduler.earnings import SpendingPlan
from afresh.sources.search.saved_records import ScaleNote
from afresh.values.items import Status as ItemStatus
from afresh.values.outcome import Spent

Key = Annotated[str, Field(min_length=1, max_length=8192)]


def _replace_infinite(values: list[float | None]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else value for value in values]


Number = Annotated[float | None, BeforeValidator(lambda value: _replace_infinite([value])[0])]
# A column has thousands of numbers: one call for all of them is several times as fast as one call for each.
Column = Annotated[list[float | None], BeforeValidator(_replace_infinite)]


class Model(BaseModel):
    """Base class: refuses unknown fields, and can be built from any object with attributes of these names."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, from_attributes=True)


class ShareOut(Model):
    """A share with its 95 % interval, from a sample of ``n``."""

    value: Number
    low: Number
    high: Number
    n: int


class SeenOut(Model):
    """An item whose staleness is observed without polls, such as a materialised view."""

    item: str
    source: str
    state: Literal["fresh", "stale", "left alone", "unknown"]
    stale_for_s: float
    rate_per_s: Number
    low_per_s: Number
    high_per_s: Number
    dispersion: Number
    cost_s: Number
    refreshed_s: Number
    next_s: Number
    problem: str


class FactorOut(Model):
    """An estimated factor, and the interval that contains it with the probability ``level``."""

    value: Number
    low: Number
    high: Number
    level: float


class StatusOut(Model):
    """The state of the local copy and of the engine. ``dropped`` items are not polled at this budget."""

    time_s: float
    state: Literal["running", "stopped", "lost", "none", "no store"]
    problem: str
    items: int
    looked_at: int
    by_status: dict[str, int]
    copies: int
    failing: int
    due: int
    dropped: int
    freshness: ShareOut
    uniform_needs: FactorOut
    audited: ShareOut
    age_s: Number
    budget_per_s: float
    absorbed_per_s: Number
    spent_last_hour: Spent
    events: int
    notices: int
    file_bytes: int
    target: Number
    views: list[SeenOut]
    money: SpendingPlan | None
    troubles: list[SourceTrouble]
    workers: list[WorkerStatus]
    problems: list[ItemProblem] = []


class ItemOut(Model):
    """An item and the estimates about it; ``rate_low_per_s`` to ``rate_high_per_s`` is a 90 % interval."""

    key: str
    source: str
    group: str
    status: ItemStatus
    plan: str
    weight: float
    cost: float
    rate_per_s: Number
    rate_low_per_s: Number
    rate_high_per_s: Number
    interval_s: Number
    fresh: Number
    worth: Number
    added_s: float
    polled_s: Number
    changed_s: Number
    due_s: Number
    polls: int
    changes: int
    failures: int
    problem: str
    version: int


class ItemsOut(Model):
    """A page of items; ``cursor`` leads to the next page and is null on the last one."""

    items: list[ItemOut]
    cursor: str | None


class VersionOut(Model):
    """A version of the copy."""

    number: int
    time_s: float
    media_type: str
    size: int


class CurvesOut(Model):
    """The probability that the copy is right, and the poll value, over the time since the last poll."""

    time_s: list[float]
    fresh: Column
    worth: Column
    threshold: Number
    now_s: Number
    due_s: Number


class ItemDetailOut(Model):
    """An item, its polls and reasons; ``curves`` is null without a copy, or if its staleness is observed."""

    item: ItemOut
    reasons: list[str]
    threshold: Number
    curves: CurvesOut | None
    polls: list[PastPoll]
    versions: list[VersionOut]


class AddIn(Model):
    """Items to register."""

    keys: list[Key] = Field(min_length=1, max_length=10_000)
    source: str | None = None
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)


class AddedOut(Model):
    """How many of the items were new."""

    new: int


class ChangeIn(Model):
    """Changes of an item; a field that is left out does not change."""

    weight: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    status: Literal["active", "paused"] | None = None


class NoticesIn(Model):
    """Items that have changed according to the sender."""

    keys: list[Key] = Field(min_length=1, max_length=10_000)


class NoticedOut(Model):
    """The number of items that are registered, and the keys that are not."""

    noticed: int
    unknown: list[str]


class BudgetIn(Model):
    """A budget such as ``2/s`` or ``5000/d``."""

    requests: str = Field(max_length=40)


class BudgetOut(Model):
    """The budget that applies from now on."""

    requests_per_s: float


class BudgetPointOut(Model):
    """The result of one budget in the long run. ``marginal`` is the shadow price."""

    requests_per_s: float
    freshness: Number
    freshness_low: Number
    freshness_high: Number
    age_s: Number
    marginal: Number
    dropped: int
    money_per_day: float
    income_per_day: Number


class PlanNowOut(Model):
    """The present state, as the status reports it."""

    freshness: Number
    age_s: Number
    dropped: int


class PlanOut(Model):
    """The curve of optimal frequencies, the items as dots, and other budgets, from ``sample`` of all items.
    ``today`` is the result of today's budget in the long run, ``now`` the present state."""

    objective: str
    items: int
    sample: int
    now: PlanNowOut
    today: BudgetPointOut
    absorbed_per_s: Number
    budgets: list[BudgetPointOut]
    curve_rate: list[float]
    curve_frequency: Column
    dot_rate: list[float]
    dot_frequency: Column
    dot_weight: list[float]
    dot_key: list[str]
    typical: float
    equal_weights: bool
    priced: bool
    earns: bool
    most_money_per_day: Number


class OtherBudgetOut(Model):
    """Another budget compared with today's. It polls ``back`` items more and ``gone`` items no longer; the
    lists name a few of these items."""

    then: BudgetPointOut
    today: BudgetPointOut
    back: int
    gone: int
    back_named: list[str]
    gone_named: list[str]


class HostOut(Model):
    """A host: its delay, robots.txt, back-off, and problems with its validators. ``failing`` counts failing
    items among the source's 200 worst; ``failing_of`` is their most common problem."""

    name: str
    items: int
    by_status: dict[str, int]
    delay_s: Number
    robots: str
    problem: str
    failures: int
    rests_until_s: Number
    validators: list[str]
    failing: int
    failing_of: str


class QueryOut(Model):
    """A keyword query: ``total`` results on the server, of which ``brings`` are our records."""

    query: str
    total: Number
    brings: int
    pages: int
    asked: int
    asked_s: float


class SearchOut(Model):
    """The records that a search source has seen, those that queries found, and the most useful queries."""

    records: int
    seen: int
    by_queries: int
    queries: int
    look_ups: int
    shown: list[QueryOut]
    scales: list[ScaleNote]


class SourceOut(Model):
    """A source; ``kind`` is null if it is no longer in the settings but still has items."""

    name: str
    kind: str | None
    delay_s: Number
    concurrency: int | None
    items: int
    by_status: dict[str, int]
    spent: Spent
    hosts: list[HostOut]
    more_hosts: int
    problem: str
    views: list[SeenOut]
    search: SearchOut | None
    facts: dict[str, str]


class SourcesOut(Model):
    """All sources."""

    sources: list[SourceOut]


class SeriesOut(Model):
    """The course of the last day, in columns of equal length."""

    time_s: float
    course: dict[str, Column]
    rates: dict[str, Column]
    audits: dict[str, Column]
    minutes: dict[str, Column]
    budget_per_minute: float
    target: Number
