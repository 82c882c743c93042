"""What the API takes and gives. Times are Unix seconds, rates per second, shares 0 … 1; null is "none"."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from afresh.values.items import Status as ItemStatus

Key = Annotated[str, Field(min_length=1, max_length=8192)]
Number = float | None


class Model(BaseModel):
    """Unknown fields are refused: a slip of the pen must not pass as a wish."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ShareOut(Model):
    """A share with its 95 % interval, from ``n`` draws."""

    value: Number
    low: Number
    high: Number
    n: int


class SpentOut(Model):
    """What was spent."""

    requests: int
    bytes: int
    seconds: float
    money: float


class SeenOut(Model):
    """One item whose staleness is seen without polls, such as a materialised view."""

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


class ChosenOut(Model):
    """What the engine chose to spend, and expects to earn, where copies earn money.

    ``futile`` and ``dropped`` are items, by the plan of the long run: no poll of the futile ever pays; one of
    the dropped would, but the limits of the budget leave nothing for it.
    """

    requests_per_s: float
    money_per_s: float
    income_per_s: float
    futile: int
    dropped: int
    price: float


class TroubleOut(Model):
    """A source that cannot be listed or looked at, and why."""

    source: str
    problem: str


class WorkerOut(Model):
    """One engine that polls for this store: when it was last seen, and how many groups it holds."""

    name: str
    host: str
    started_s: float
    seen_s: float
    groups: int
    plans: bool


class FailingOut(Model):
    """Why some items cannot be had, and one of them."""

    words: str
    items: int
    example: str


class StatusOut(Model):
    """How the mirror does. ``state`` is that of the engine.

    ``dropped`` are items that no poll is spent on as things are now; futile ones (``money``) are not among
    them.
    """

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
    audited: ShareOut
    age_s: Number
    budget_per_s: float
    absorbed_per_s: Number
    spent_last_hour: SpentOut
    events: int
    notices: int
    file_bytes: int
    target: Number
    views: list[SeenOut]
    money: ChosenOut | None
    troubles: list[TroubleOut]
    workers: list[WorkerOut]
    problems: list[FailingOut] = []


class ItemOut(Model):
    """One item and what is believed of it; the rate comes with its 90 % interval."""

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
    """A page of items; ``cursor`` leads to the next, null at the end."""

    items: list[ItemOut]
    cursor: str | None


class PollOut(Model):
    """One poll that told something."""

    time_s: float
    elapsed_s: float
    changed: bool
    audit: bool


class VersionOut(Model):
    """One version of the copy."""

    number: int
    time_s: float
    media_type: str
    size: int


class CurvesOut(Model):
    """After the last poll: chance that the copy is right, worth of a poll, and where that is enough."""

    time_s: list[float]
    fresh: list[Number]
    worth: list[Number]
    threshold: Number
    now_s: Number
    due_s: Number


class ItemDetailOut(Model):
    """One item explained; ``curves`` is null without a copy, and where its staleness is seen."""

    item: ItemOut
    reasons: list[str]
    threshold: Number
    curves: CurvesOut | None
    polls: list[PollOut]
    versions: list[VersionOut]


class AddIn(Model):
    """Items to register."""

    keys: list[Key] = Field(min_length=1, max_length=10_000)
    source: str | None = None
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)


class AddedOut(Model):
    """How many of them were new."""

    new: int


class ChangeIn(Model):
    """What to change of an item; what is left out stays."""

    weight: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    status: Literal["active", "paused"] | None = None


class NoticesIn(Model):
    """Items that are said to have changed."""

    keys: list[Key] = Field(min_length=1, max_length=10_000)


class NoticedOut(Model):
    """How many were known, and which were not."""

    noticed: int
    unknown: list[str]


class BudgetIn(Model):
    """A budget such as ``2/s`` or ``5000/d``."""

    requests: str = Field(max_length=40)


class BudgetOut(Model):
    """The budget from now on."""

    requests_per_s: float


class BudgetPointOut(Model):
    """What one budget gives; freshness with its 90 % interval, wide while little is known of the rates."""

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
    """How things are now, as the status says."""

    freshness: Number
    age_s: Number
    dropped: int


class PlanOut(Model):
    """The optimal plan over rates, one's own items, and over budgets. From ``sample`` of ``items``.

    ``today`` is what today's budget gives in the long run, ``now`` how things are.
    """

    objective: str
    items: int
    sample: int
    now: PlanNowOut
    today: BudgetPointOut
    absorbed_per_s: Number
    budgets: list[BudgetPointOut]
    curve_rate: list[float]
    curve_frequency: list[Number]
    dot_rate: list[float]
    dot_frequency: list[Number]
    dot_weight: list[float]
    dot_key: list[str]
    typical: float
    equal_weights: bool
    priced: bool
    earns: bool
    most_money_per_day: Number


class OtherBudgetOut(Model):
    """Another budget against today's; a few of the items it brings back or drops by name."""

    then: BudgetPointOut
    today: BudgetPointOut
    back: int
    gone: int
    back_named: list[str]
    gone_named: list[str]


class HostOut(Model):
    """A politeness group: how it is treated, what fails, and what is held against its validators.

    ``problem`` is the host's own; ``failing`` of its items fail, of 200 looked at, most of ``failing_of``.
    """

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
    """A keyword query: its results on the server, and how many of our records its pages were seen to hold."""

    query: str
    total: Number
    brings: int
    pages: int
    asked: int
    asked_s: float


class ScaleOut(Model):
    """The server's results over those of the sample, learned from ``totals`` of an attribute's words."""

    attribute: str
    totals: int
    times: float
    low: float
    high: float


class SearchOut(Model):
    """What a search source reached: records seen, by queries, and the queries that bring the most."""

    records: int
    seen: int
    by_queries: int
    queries: int
    look_ups: int
    shown: list[QueryOut]
    scales: list[ScaleOut]


class SourceOut(Model):
    """One source; ``kind`` is null where the settings no longer have it."""

    name: str
    kind: str | None
    delay_s: Number
    concurrency: int | None
    items: int
    by_status: dict[str, int]
    spent: SpentOut
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
    course: dict[str, list[Number]]
    rates: dict[str, list[Number]]
    audits: dict[str, list[Number]]
    minutes: dict[str, list[Number]]
    budget_per_minute: float
    target: Number
