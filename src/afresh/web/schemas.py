"""The JSON objects of the API's requests and responses. The pages show the same objects.

Times are Unix seconds, rates are per second, shares are from 0 to 1. A number that is not known or not finite
is null in JSON, and None here. Dataclasses of the engine whose fields are always finite are used directly.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from afresh.engine.reporting.item_snapshot import PastPoll
from afresh.engine.reporting.item_view_status import ItemViewStatus
from afresh.engine.reporting.lag_status import LagStatus
from afresh.engine.reporting.savings import FactorEstimate
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.scheduler.audits import ShareEstimate
from afresh.sources.search.saved_records import ScaleNote
from afresh.values.items import Status as ItemStatus
from afresh.values.outcome import EventKind, Spent

Key = Annotated[str, Field(min_length=1, max_length=8192)]


def _replace_infinite(values: list[float | None]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else value for value in values]


Number = Annotated[float | None, BeforeValidator(lambda value: _replace_infinite([value])[0])]
# A column has thousands of numbers, and one call for all of them is several times as fast as a call for each.
Column = Annotated[list[float | None], BeforeValidator(_replace_infinite)]


class Model(BaseModel):
    """A base class that refuses unknown fields, and can read its fields from the attributes of any object."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, from_attributes=True)


class ShareOut(Model):
    """An estimated share and the ends of its 95 % confidence interval, from a sample of ``n``."""

    value: Number
    low: Number
    high: Number
    n: int


class SeenOut(Model):
    """An item whose source reports its staleness without polls, such as a materialised view."""

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
    objective: str
    target_lag_s: Number
    missing_s: Number
    weight_needed: Number
    delay_s: float
    max_interval_s: Number


class UnfitTargetOut(Model):
    """A target lag that does not fit the budget, which lacks ``missing_s`` seconds of refreshing per hour for
    it; null if no budget suffices. It is the larger one of what all targets lack (``demand_missing_s``)
    and what the wait for the longest other refresh lacks (``wait_missing_s``). Refreshing and seeing a change
    take ``least_s`` seconds."""

    item: str
    target_lag_s: float
    missing_s: Number
    demand_missing_s: Number
    wait_missing_s: Number
    least_s: Number


class LagsOut(Model):
    """The target lags, in seconds of refreshing per hour: what the budget allows, what the targets need on
    average, and the least budget that would do for all that a budget can keep."""

    targets: int
    allowed_s: float
    demand_s: Number
    needed_s: Number
    unfit: list[UnfitTargetOut]


class ItemViewOut(Model):
    """A view of the settings, made from several items: it is fresh with the probability ``fresh``."""

    name: str
    weight: float
    items: int
    unknown: int
    rate_per_s: Number
    low_per_s: Number
    high_per_s: Number
    fresh: float
    polled_s: Number
    changed_s: Number


class FactorOut(Model):
    """An estimated factor, and the ends of the interval that contains it with the probability ``level``."""

    value: Number
    low: Number
    high: Number
    level: float


class SnapshotOut(Model):
    """The fields of ``StatusOut`` that the snapshot has beside the status."""

    time_s: float
    state: Literal["running", "stopped", "lost", "none", "no store"]
    problem: str


_NOT_SENT = frozenset({"leases", "groups", "run", "limits", "closed", "searches"})
_ALWAYS_FINITE = frozenset({"budget_per_s"})
_SENT_AS: dict[Any, Any] = {  # a type of a field of ``Status``, and the type that stands for it in the API
    float: Number,
    float | None: Number,
    ShareEstimate: ShareOut,
    FactorEstimate: FactorOut,
    tuple[WatchedItem, ...]: list[SeenOut],
    tuple[ItemViewStatus, ...]: list[ItemViewOut],
    LagStatus | None: LagsOut | None,
}


def _status_fields() -> dict[str, Any]:
    """Return the type and the default value of every field of ``Status`` that the API sends."""
    hints = get_type_hints(Status)
    return {
        one.name: (
            hints[one.name] if one.name in _ALWAYS_FINITE else _SENT_AS.get(hints[one.name], hints[one.name]),
            ... if one.default is MISSING else one.default,
        )
        for one in fields(Status)
        if one.name not in _NOT_SENT | SnapshotOut.model_fields.keys()
    }


StatusOut: type[Model] = create_model(
    "StatusOut",
    __base__=SnapshotOut,
    __doc__="The state of the copies and of the engine. ``dropped`` is how many items are not polled at this"
    " budget;\n``looked_at`` is how many items the estimates were made from.",
    **_status_fields(),
)


class ItemOut(Model):
    """An item and the estimates about it. Its rate lies between ``rate_low_per_s`` and ``rate_high_per_s``
    with a probability of 90 %; ``worth`` is its poll value now."""

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
    """A page of items. Send ``cursor`` to get the next page; it is null on the last page."""

    items: list[ItemOut]
    cursor: str | None


class VersionOut(Model):
    """One version of an item's copy."""

    number: int
    time_s: float
    media_type: str
    size: int


class CurvesOut(Model):
    """Two curves over the seconds since the last poll (``time_s``): the probability that the copy is right
    (``fresh``) and the poll value (``worth``). The item is polled when ``worth`` reaches ``threshold``."""

    time_s: list[float]
    fresh: Column
    worth: Column
    threshold: Number
    now_s: Number
    due_s: Number


class ItemDetailOut(Model):
    """An item, its past polls, and the reasons for its polling interval. ``curves`` is null if there is no
    copy, or if the source reports the item's staleness."""

    item: ItemOut
    reasons: list[str]
    threshold: Number
    curves: CurvesOut | None
    polls: list[PastPoll]
    versions: list[VersionOut]


class ShardOut(Model):
    """A shard: its part of the budget in requests per second, and why it does not poll (empty: it does)."""

    shard: int
    items: int
    rate_per_s: float
    node: str
    problem: str


class LargeHostOut(Model):
    """A host with more items than a shard has on average; it stays whole."""

    host: str
    items: int
    shard: int


class ClusterOut(Model):
    """The shards of a cluster. ``price`` is the value of one more request, the same in all shards."""

    is_running: bool
    price: Number
    shards: list[ShardOut]
    large_hosts: list[LargeHostOut]


class ChangeIn(Model):
    """The fields of an item to change. A field that is left out stays as it is."""

    weight: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    status: Literal["active", "paused"] | None = None


class NoticesIn(Model):
    """The keys of items that have changed, according to the sender. Without ``source``, the items of all
    sources that have these keys are meant."""

    keys: list[Key] = Field(min_length=1, max_length=10_000)
    source: str | None = None


class NoticedOut(Model):
    """The number of keys for whose items a notice was stored, and the keys that no item has."""

    noticed: int
    unknown: list[str]


class BudgetIn(Model):
    """A budget such as ``2/s`` or ``5000/d``."""

    requests: str = Field(max_length=40)


class BudgetOut(Model):
    """The budget that applies from now on."""

    requests_per_s: float


class BudgetPointOut(Model):
    """What one budget would achieve in the long run. ``marginal`` is the shadow price: the lowest poll value
    that this budget pays for. ``uniform_needs`` is how many times the requests uniform polling needs for the
    same freshness; null for other objectives."""

    requests_per_s: float
    freshness: Number
    freshness_low: Number
    freshness_high: Number
    age_s: Number
    marginal: Number
    dropped: int
    uniform_needs: Number
    money_per_day: float
    income_per_day: Number


class PlanNowOut(Model):
    """The freshness, age and dropped items at present, as in the status."""

    freshness: Number
    age_s: Number
    dropped: int
    uniform_needs: Number = None


class ViewBudgetOut(Model):
    """What a budget of ``seconds_per_h`` of refreshing would give in the long run: the seconds per hour that
    would be spent, the share of views that are fresh, their mean age, and how many target lags would hold."""

    seconds_per_h: float
    spent_s: float
    freshness: float
    age_s: float
    targets: int
    targets_kept: int


class ViewPlanOut(Model):
    """Budgets for views, whose staleness is observed. ``planned`` of the ``views`` have a known rate and
    cost; ``is_all`` says whether every active item is a view; ``used_s`` was used in the last hour."""

    views: int
    planned: int
    is_all: bool
    used_s: float
    today: ViewBudgetOut
    budgets: list[ViewBudgetOut]


class PlanOut(Model):
    """A plan from a sample of ``sample`` items: the curve of optimal frequencies over rates, items as dots,
    and other budgets. ``today`` is today's budget in the long run, ``now`` the present state."""

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
    views: ViewPlanOut | None = None


class OtherBudgetOut(Model):
    """Another budget (``then``) compared with today's. It would poll ``back`` more items, and no longer poll
    ``gone`` items; the lists name a few of them."""

    then: BudgetPointOut
    today: BudgetPointOut
    back: int
    gone: int
    back_named: list[str]
    gone_named: list[str]


class HostOut(Model):
    """A host: its delay, robots.txt, back-off, and problems with its validators. ``pace_per_s`` is the
    learned pace in requests per second, None if it never asked for fewer requests. ``failing`` counts its
    items among the 200 items of the source with most failures; ``failing_of`` is their most common problem.
    """

    name: str
    items: int
    by_status: dict[str, int]
    delay_s: Number
    pace_per_s: Number
    robots: str
    problem: str
    failures: int
    rests_until_s: Number
    validators: list[str]
    failing: int
    failing_of: str


class QueryOut(Model):
    """A keyword query. The server has ``total`` results for it, of which ``brings`` are local records."""

    query: str
    total: Number
    brings: int
    pages: int
    asked: int
    asked_s: float


class SearchOut(Model):
    """The numbers of records that a search source has, has seen, and found by queries; and the most useful
    queries (``shown``)."""

    records: int
    seen: int
    by_queries: int
    queries: int
    look_ups: int
    shown: list[QueryOut]
    scales: list[ScaleNote]


class SourceOut(Model):
    """A source. ``kind`` is null if the source is no longer in the settings but still has items."""

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


class ChangeOut(Model):
    """One change. ``cursor`` is the place after it. ``time_s`` is when it was seen, ``changed_s`` when it
    happened, if the source says so. ``size`` and ``previous_size`` are bytes, ``change_size`` is how much of
    the content is new. ``content`` is there if it was
    asked for and the copy is kept; if it is not UTF-8, ``content_base64`` is there instead."""

    cursor: str
    kind: EventKind
    item: str
    source: str
    version: int
    time_s: float
    changed_s: Number
    size: int | None
    previous_size: int | None
    change_size: Number
    content: str | None = None
    content_base64: str | None = None


class ChangesOut(Model):
    """Changes in the order of their commits. ``cursor`` is the place after them, from which the next request
    continues; ``is_last`` is true if there were no further changes yet."""

    changes: list[ChangeOut]
    cursor: str
    is_last: bool


class NewestChangesOut(Model):
    """Changes, the newest first. With ``cursor`` as ``before``, the next request finds earlier ones; it is
    null if nothing is left. A page may be short or empty and still have a cursor."""

    changes: list[ChangeOut]
    cursor: str | None


class DiffLineOut(Model):
    """A line of a difference. ``kind`` "place" are words about lines that are not shown. ``number`` is the
    number of the line in its version, 0 if it has none."""

    kind: Literal["added", "removed", "same", "place"]
    number: int
    text: str


class DiffOut(Model):
    """The difference between two versions of an item's copy. ``words`` say what was compared, and why there
    are no ``lines``, if so. ``old`` and ``new`` are null if there are not two versions."""

    old: int | None
    new: int | None
    words: str
    lines: list[DiffLineOut]
    versions: list[VersionOut]


class SeriesOut(Model):
    """The numbers of the last day or hour that the charts draw. Each dictionary has columns of one length."""

    time_s: float
    course: dict[str, Column]
    rates: dict[str, Column]
    audits: dict[str, Column]
    minutes: dict[str, Column]
    budget_unit: Literal["requests", "seconds"]
    budget_per_minute: float
    target: Number
