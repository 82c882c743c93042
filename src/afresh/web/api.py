"""The API, ``/api/v1``: everything that the pages show, and what changes things, with the bearer token."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from afresh.values.errors import UsageError, did_you_mean, one_of
from afresh.values.items import Item, ItemChange, ItemQuery, Sort
from afresh.values.items import Status as ItemStatus
from afresh.values.objective_names import OBJECTIVE_NAMES, OBJECTIVES_IN_WORDS
from afresh.values.units import parse_rate
from afresh.web import schemas as out
from afresh.web.believed import Belief
from afresh.web.context import Context
from afresh.web.item_view import ItemView
from afresh.web.now_view import series
from afresh.web.problems import Problem, ProblemError
from afresh.web.sources_view import sources_view
from afresh.web.token import is_token
from afresh.web.wording import plain

MOST_ITEMS = 200
Responses = dict[int | str, dict[str, Any]]
_READ: Responses = {status: {"model": Problem} for status in (400, 404, 413, 421, 422, 503)}
_WRITE: Responses = _READ | {status: {"model": Problem} for status in (401, 403, 409)}
KeyQuery = Annotated[str, Query(min_length=1, max_length=8192, description="The item's key: its address.")]
Objective = Annotated[str, Query(description=f"{OBJECTIVES_IN_WORDS}.")]
Text = Annotated[str, Query(max_length=500, description="Looked for anywhere in the key.")]
Name = Annotated[str | None, Query(max_length=500)]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS)]
Cursor = Annotated[str | None, Query(max_length=9000, description="From the page before, of the same query.")]
_ITEM_FIELDS = [
    "key",
    "source",
    "group",
    "status",
    "weight",
    "cost",
    "added_s",
    "polled_s",
    "changed_s",
    "due_s",
    "polls",
    "changes",
    "failures",
    "problem",
    "version",
]
_BEARER = HTTPBearer(auto_error=False, description="The token that 'afresh init' wrote to web.token.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]


def make_api(context: Context) -> APIRouter:
    """All routes."""
    router = APIRouter(prefix="/api/v1", dependencies=[Depends(_only_known)])
    _add_overview(router, context)
    _add_items(router, context)
    _add_copy(router, context)
    _add_plan(router, context)
    _add_writes(router, context, _token_check(context.token))
    return router


def _add_overview(router: APIRouter, context: Context) -> None:
    @router.get("/status", responses=_READ, summary="How the mirror does")
    def status() -> out.StatusOut:
        look = context.look()
        fields = {
            name: value for name, value in asdict(look.status).items() if name in out.StatusOut.model_fields
        }
        for name in ("freshness", "audited"):
            del fields[name]["level"]
        own = {"time_s": look.time_s, "state": look.state, "problem": look.problem}
        return out.StatusOut.model_validate(plain(fields | own))

    @router.get("/course", responses=_READ, summary="The last day as series")
    def course() -> out.SeriesOut:
        return out.SeriesOut.model_validate(series(context.look()))

    @router.get("/sources", responses=_READ, summary="Sources: hosts, views, queries, and what is wrong")
    def sources() -> out.SourcesOut:
        found = [plain(asdict(view)) for view in sources_view(context.engine, context.look())]
        return out.SourcesOut.model_validate({"sources": found})


def _add_items(router: APIRouter, context: Context) -> None:
    @router.get("/items", responses=_READ, summary="Items, searched, sorted and paged")
    def items(
        text: Text = "",
        status: ItemStatus | None = None,
        source: Name = None,
        group: Name = None,
        sort: Sort = "id",
        descending: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> out.ItemsOut:
        query = ItemQuery(text, status, source, group, sort, descending)
        page, beliefs, _ = context.page(query, limit, cursor)
        return out.ItemsOut(items=_items(page.items, beliefs), cursor=page.cursor)

    @router.get("/item", responses=_READ, summary="One item explained")
    def item(key: KeyQuery) -> out.ItemDetailOut:
        return _detail(context.item(key))


def _add_copy(router: APIRouter, context: Context) -> None:
    @router.get(
        "/copy",
        responses=_READ | {200: {"content": {"application/octet-stream": {}}}},
        response_class=Response,
        summary="The bytes of a copy, as a download",
    )
    def copy(key: KeyQuery, version: Annotated[int | None, Query(ge=1, le=2**31)] = None) -> Response:
        context.known(key)
        found = context.engine.get(key, version=version)
        if found is None:
            raise ProblemError(404, "there is no such copy", "its versions are listed with the item")
        # Never as what it claims to be: a page from elsewhere must not run under our name.
        headers = {"Content-Disposition": 'attachment; filename="copy"'}
        return Response(found.content, media_type="application/octet-stream", headers=headers)


def _add_plan(router: APIRouter, context: Context) -> None:
    @router.get("/plan", responses=_READ, summary="The plan over rates and over budgets")
    def plan(objective: Objective = "freshness") -> out.PlanOut:
        one_of("objective", objective, OBJECTIVE_NAMES)
        return out.PlanOut.model_validate(plain(asdict(context.plan(objective))))

    @router.get("/plan/at", responses=_READ, summary="What another budget would give")
    def plan_at(
        budget: Annotated[str, Query(max_length=40, description="Such as 2/s or 5000/d.")],
        objective: Objective = "freshness",
    ) -> out.OtherBudgetOut:
        one_of("objective", objective, OBJECTIVE_NAMES)
        found = context.other(objective, _budget(budget))
        return out.OtherBudgetOut.model_validate(plain(asdict(found)))


def _add_writes(router: APIRouter, context: Context, check: Callable[..., None]) -> None:
    engine, options = context.engine, {"responses": _WRITE, "dependencies": [Depends(check)]}

    @router.post("/items", **options, summary="Register items")  # type: ignore[arg-type]
    def add(wanted: out.AddIn) -> out.AddedOut:
        new = engine.add(wanted.keys, source=wanted.source, weight=wanted.weight)
        context.changed()
        return out.AddedOut(new=new)

    @router.patch("/item", **options, summary="Change an item's weight, pause or resume it")  # type: ignore[arg-type]
    def change(key: KeyQuery, wanted: out.ChangeIn) -> out.ItemOut:
        context.known(key)
        engine.set([key], ItemChange(weight=wanted.weight, status=wanted.status))
        context.changed()
        view = context.item(key)
        return _items([view.why.item], [view.belief])[0]

    @router.post("/item/poll", **options, summary="Poll an item as soon as may be")  # type: ignore[arg-type]
    def poll(key: KeyQuery) -> out.ItemOut:
        status = context.known(key).status
        if status != "active":
            raise ProblemError(409, f"the item is {status}: it is not polled", "resume it first")
        engine.poll_now([key])
        context.changed()
        view = context.item(key)
        return _items([view.why.item], [view.belief])[0]

    @router.post("/notices", **options, summary="A webhook: these items are said to have changed")  # type: ignore[arg-type]
    def notices(wanted: out.NoticesIn) -> out.NoticedOut:
        keys = list(dict.fromkeys(wanted.keys))
        unknown = engine.notice(keys)
        return out.NoticedOut(noticed=len(keys) - len(unknown), unknown=list(unknown))

    @router.put("/budget", **options, summary="Another budget, also for engines that run")  # type: ignore[arg-type]
    def budget(wanted: out.BudgetIn) -> out.BudgetOut:
        engine.ask_budget(_budget(wanted.requests))
        context.changed()
        return out.BudgetOut(requests_per_s=engine.current().budget.requests)


def _only_known(request: Request) -> None:
    """Refuse parameters that the route does not know: a slip of the pen must not pass as a wish."""
    names = [field.alias for field in request.scope["route"].dependant.query_params]
    for given in request.query_params:
        if given not in names:
            raise ProblemError(
                422, f"unknown parameter {given[:100]!r}{did_you_mean(given, names)}", "see /api/docs"
            )


def _token_check(token: str | None) -> Callable[..., None]:
    def check(given: Bearer) -> None:
        if token is None:
            raise ProblemError(403, "read only: the project has no token", "'afresh init' makes one")
        if given is None:
            raise ProblemError(401, "this needs the token", "Authorization: Bearer TOKEN; see web.token")
        if not is_token(given.credentials, token):
            raise ProblemError(401, "that is not the token", "see web.token in the project folder")

    return check


def _budget(text: str) -> float:
    requests = parse_rate(text)
    if not 1e-12 <= requests <= 1e9:
        raise UsageError(f"a budget of {text}: give more than none and less than 1e9/s")
    return requests


def _detail(view: ItemView) -> out.ItemDetailOut:
    return out.ItemDetailOut(
        item=_items([view.why.item], [view.belief])[0],
        reasons=list(view.why.reasons),
        threshold=_number(view.why.threshold),
        curves=None if view.curves is None else out.CurvesOut.model_validate(plain(asdict(view.curves))),
        polls=[
            out.PollOut(time_s=poll.time_s, elapsed_s=poll.elapsed_s, changed=poll.changed, audit=poll.audit)
            for poll in view.polls
        ],
        versions=[
            out.VersionOut(number=one.number, time_s=one.time_s, media_type=one.media_type, size=one.size)
            for one in view.versions
        ],
    )


def _items(items: Sequence[Item], beliefs: Sequence[Belief]) -> list[out.ItemOut]:
    pairs = zip(items, beliefs, strict=True)
    return [out.ItemOut.model_validate(plain(item_fields(*pair))) for pair in pairs]


def item_fields(item: Item, belief: Belief) -> dict[str, Any]:
    """One item as the API says it."""
    return {name: getattr(item, name) for name in _ITEM_FIELDS} | {
        "plan": belief.plan,
        "rate_per_s": belief.rate_per_s,
        "rate_low_per_s": belief.low_per_s,
        "rate_high_per_s": belief.high_per_s,
        "interval_s": belief.interval_s,
        "fresh": belief.fresh,
        "worth": belief.worth,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
