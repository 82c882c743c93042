"""The part of the API for crawlers: they lease items, fetch them themselves, and report what they found."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from afresh.engine.json_rows import LeaseRows, answer_row, parse_report
from afresh.engine.lending import LeaseKey
from afresh.values.errors import InputError, UsageError
from afresh.values.reported import ReportAnswer, Reported, ReportResult
from afresh.values.units import parse_duration
from afresh.web.dashboard_data import DashboardData
from afresh.web.error_responses import RequestError
from afresh.web.schemas import Key, Model, Number

MOST_ROWS = 1000
"""How many items can be leased, or reported, by one request."""

_Token = Annotated[int, Field(ge=-(2**63), lt=2**63, description="The number that came with the lease.")]
_Duration = Annotated[str, Field(max_length=40, description="Such as 90s, 10m or 2h; at most 7 days.")]


class LeasesIn(Model):
    """Which leases are wanted: at most ``count`` items, of one source or of all, for ``duration``. With
    ``ahead``, also requests that the budget allows only within that time."""

    count: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 100
    source: Annotated[str | None, Field(max_length=500)] = None
    duration: _Duration = "10m"
    ahead: _Duration = "0s"


class LeaseOut(Model):
    """An item that is lent. Its request starts at ``not_before`` or later. ``validators`` are for a
    conditional request; ``last_poll`` is null before the first poll. Times are Unix seconds."""

    item: str
    source: str
    group: str
    weight: float
    last_poll: Number
    lease: int
    until: float
    not_before: float
    validators: dict[str, str]


class LeasesOut(Model):
    """The leases, the best first, and after how many seconds more can be given; 0 if all were given."""

    leases: list[LeaseOut]
    retry_after: float


class HeldLease(Model):
    """A lease that was given: the key of its item, and its number. ``source`` is needed if several sources
    have an item with this key."""

    item: Key
    lease: _Token
    source: Annotated[str | None, Field(max_length=500)] = None

    def to_key(self) -> LeaseKey:
        return LeaseKey(self.item, self.lease, self.source)


class HeldLeasesIn(Model):
    """Leases to be released."""

    leases: Annotated[list[HeldLease], Field(min_length=1, max_length=MOST_ROWS)]


class ExtendedLeasesIn(HeldLeasesIn):
    """Leases to be extended: they end ``duration`` from now, unless they end later."""

    duration: _Duration = "10m"


class HeldLeasesOut(Model):
    """How many of the leases were held, and the keys of the items whose lease had ended."""

    held: int
    ended: list[str]


class ObservationIn(Model):
    """One poll that was made. It has ``content`` (or ``content_base64``), ``changed``, or a ``status`` or
    ``failure`` without content. ``count`` is the number of changes since the last poll, ``modified`` the time
    of the last one. ``source`` is needed if several sources have an item with this key. Other fields are
    ignored. A row with a wrong field is refused alone."""

    model_config = ConfigDict(extra="allow")

    item: str
    source: str | None = None
    lease: int | None = None
    time: float | str | None = None
    changed: bool | None = None
    content: str | None = None
    content_base64: str | None = None
    media_type: str | None = None
    count: int | None = None
    modified: float | str | None = None
    status: int | None = None
    failure: str | None = None
    retry_after: float | None = None
    bytes: int | None = None
    seconds: float | None = None
    etag: str | None = None
    last_modified: str | None = None
    url: str | None = None


_Rows = Annotated[
    list[Any],
    Field(
        min_length=1,
        max_length=MOST_ROWS,
        json_schema_extra={"items": ObservationIn.model_json_schema() | {"title": "Observation"}},
    ),
]


class ObservationsIn(Model):
    """Polls that were made, each of them an object."""

    observations: _Rows


class AnswerOut(Model):
    """What became of one poll. ``problem`` says in words why it was not recorded. ``changed`` is null if the
    poll failed; ``next_poll`` is null if the item will not be polled again."""

    item: str
    lease: int | None
    result: ReportResult
    problem: str
    changed: bool | None
    status: str
    next_poll: Number


class ObservationsOut(Model):
    """The answer to each poll, in the order of the request, and how many polls were recorded or known."""

    recorded: int
    known: int
    answers: list[AnswerOut]


def add_leases(router: APIRouter, data: DashboardData, options: dict[str, Any]) -> None:
    lending = data.engine.lending

    @router.post("/leases", **options, summary="Lease items, to fetch them yourself")
    def lease(wanted: LeasesIn) -> LeasesOut:
        duration_s, ahead_s = _parse_duration(wanted.duration), _parse_duration(wanted.ahead)
        lent = lending.lend(wanted.count, duration_s, wanted.source, ahead_s=ahead_s)
        rows = LeaseRows(data.engine.store, data.engine.settings)
        leases = [LeaseOut(**rows.row(each)) for each in lent.leases]
        return LeasesOut(leases=leases, retry_after=lent.retry_after_s)

    @router.post("/leases/extend", **options, summary="Let leases end later")
    def extend(wanted: ExtendedLeasesIn) -> HeldLeasesOut:
        held = [each.to_key() for each in wanted.leases]
        ended = lending.extend(held, _parse_duration(wanted.duration))
        return HeldLeasesOut(held=len(held) - len(ended), ended=list(ended))

    @router.post("/leases/release", **options, summary="Give leases back without a poll")
    def release(wanted: HeldLeasesIn) -> HeldLeasesOut:
        held = [each.to_key() for each in wanted.leases]
        ended = lending.release(held)
        return HeldLeasesOut(held=len(held) - len(ended), ended=list(ended))

    @router.post("/observations", **options, summary="Report polls that you made")
    def observe(wanted: ObservationsIn) -> ObservationsOut:
        now_s = data.engine.clock.now_s()
        parsed = [_parse_row(row, now_s, number) for number, row in enumerate(wanted.observations, 1)]
        found = lending.record([row for row in parsed if isinstance(row, Reported)], skip_invalid=True)
        data.forget()
        later = iter(found.answers)
        answers = [next(later) if isinstance(row, Reported) else row for row in parsed]
        rows = [AnswerOut(**answer_row(answer)) for answer in answers]
        return ObservationsOut(recorded=found.taken, known=found.known, answers=rows)


def _parse_row(row: object, now_s: float, number: int) -> Reported | ReportAnswer:
    """Return the poll that a row reports, or the answer to a row that is wrong."""
    try:
        return parse_report(row, now_s)
    except InputError as error:
        item = row.get("item") if isinstance(row, dict) else None
        token = row.get("lease") if isinstance(row, dict) else None
        key, problem = item if isinstance(item, str) else "", f"row {number}: {error.problem}"
        return ReportAnswer(key, token if type(token) is int else None, "invalid", problem)


def _parse_duration(text: str) -> float:
    try:
        return parse_duration(text)
    except UsageError as error:
        raise RequestError(422, f"duration: {error}", "give a duration such as 10m") from None
