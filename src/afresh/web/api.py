"""The API under ``/api/v1``. It returns everything that the pages show; changes need the bearer token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from afresh.values.errors import UsageError, did_you_mean, one_of
from afresh.values.items import ItemChange, ItemQuery, Sort
from afresh.values.items import Status as ItemStatus
from afresh.values.objective_names import OBJECTIVE_NAMES, OBJECTIVES_IN_WORDS
from afresh.values.units import parse_rate
from afresh.web import schemas
from afresh.web.adding_api import add_adding
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import DashboardData, ProjectData
from afresh.web.error_responses import Problem, RequestError
from afresh.web.feed.feed_api import FeedWatch, add_changes, add_search
from afresh.web.lending_api import add_leases
from afresh.web.reports.chart_series import compute_series
from afresh.web.reports.item_report import item_schema
from afresh.web.reports.source_report import report_sources
from afresh.web.token import is_token

MOST_ITEMS = 200
Responses = dict[int | str, dict[str, Any]]
READ: Responses = {status: {"model": Problem} for status in (400, 404, 409, 413, 421, 422, 503)}
_WRITE: Responses = READ | {status: {"model": Problem} for status in (401, 403)}
KeyQuery = Annotated[str, Query(min_length=1, max_length=8192, description="The item's key: its address.")]
SourceQuery = Annotated[
    str | None,
    Query(max_length=500, description="The item's source; needed if several sources have this key."),
]
ObjectiveQuery = Annotated[str, Query(description=f"{OBJECTIVES_IN_WORDS}.")]
Text = Annotated[str, Query(max_length=500, description="Looked for anywhere in the key.")]
Name = Annotated[str | None, Query(max_length=500)]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS)]
Cursor = Annotated[str | None, Query(max_length=9000, description="From the page before, of the same query.")]
_BEARER = HTTPBearer(auto_error=False, description="The token that 'afresh init' wrote to web.token.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]


def make_api(data: DashboardData, access: ContentAccess, watch: FeedWatch) -> APIRouter:
    """Return the routes. ``access`` decides who may read contents, ``watch`` waits for changes."""
    router = APIRouter(prefix="/api/v1", dependencies=[Depends(refuse_unknown_parameters)])
    add_common(router, data, access, watch)
    _add_sources(router, data)
    _add_plan(router, data)
    options = {"responses": _WRITE, "dependencies": [Depends(_token_check(data.token))]}
    add_adding(router, data, options)
    _add_item_changes(router, data, options)
    _add_other_changes(router, data, options)
    add_leases(router, data, options)
    return router


def add_common(router: APIRouter, data: ProjectData, access: ContentAccess, watch: FeedWatch) -> None:
    """Add the routes that read what every project has."""
    _add_overview(router, data)
    _add_items(router, data, access)
    add_changes(router, watch, data.project.feed, access, READ)
    add_search(router, data, access, READ)


def _add_overview(router: APIRouter, data: ProjectData) -> None:
    @router.get(
        "/status", response_model=schemas.StatusOut, responses=READ, summary="The state of the local copy"
    )
    def status() -> schemas.Model:
        snapshot = data.current_snapshot()
        own = {"time_s": snapshot.time_s, "state": snapshot.state, "problem": snapshot.problem}
        names = schemas.StatusOut.model_fields.keys() - own.keys()
        return schemas.StatusOut.model_validate(
            own | {name: getattr(snapshot.status, name) for name in names}
        )

    @router.get("/course", responses=READ, summary="The last day as series")
    def course() -> schemas.SeriesOut:
        return compute_series(data.current_snapshot())


def _add_sources(router: APIRouter, data: DashboardData) -> None:
    @router.get("/sources", responses=READ, summary="Sources: hosts, views, queries, and what is wrong")
    def sources() -> schemas.SourcesOut:
        return schemas.SourcesOut(sources=report_sources(data.engine, data.current_snapshot()))


def _add_items(router: APIRouter, data: ProjectData, access: ContentAccess) -> None:
    @router.get("/items", responses=READ, summary="Items, searched, sorted and paged")
    def items(
        text: Text = "",
        status: ItemStatus | None = None,
        source: Name = None,
        group: Name = None,
        sort: Sort = "id",
        descending: bool = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> schemas.ItemsOut:
        query = ItemQuery(text, status, source, group, sort, descending)
        found = data.page_items(query, limit, cursor)
        items = [item_schema(*pair) for pair in zip(found.page.items, found.estimates, strict=True)]
        return schemas.ItemsOut(items=items, cursor=found.page.cursor)

    @router.get("/item", responses=READ, summary="One item explained")
    def item(key: KeyQuery, source: SourceQuery = None) -> schemas.ItemDetailOut:
        return data.report_item(key, source).to_schema()

    @router.get(
        "/copy",
        responses=_WRITE | {200: {"content": {"application/octet-stream": {}}}},
        response_class=Response,
        summary="The bytes of a copy, as a download",
    )
    def copy(
        request: Request,
        key: KeyQuery,
        version: Annotated[int | None, Query(ge=1, le=2**31)] = None,
        source: SourceQuery = None,
    ) -> Response:
        access.check(request)
        found = data.read_copy(key, source, version)
        if found is None:
            raise RequestError(404, "there is no such copy", "its versions are listed with the item")
        # The copy's own media type is not sent, because a copied page must not run as a page of this server.
        headers = {"Content-Disposition": 'attachment; filename="copy"'}
        return Response(found.content, media_type="application/octet-stream", headers=headers)


def _add_plan(router: APIRouter, data: DashboardData) -> None:
    @router.get("/plan", responses=READ, summary="The plan over rates and over budgets")
    def plan(objective: ObjectiveQuery = "freshness") -> schemas.PlanOut:
        one_of("objective", objective, OBJECTIVE_NAMES)
        return data.report_plan(objective)

    @router.get("/plan/at", responses=READ, summary="What another budget would give")
    def plan_at(
        budget: Annotated[str, Query(max_length=40, description="Such as 2/s or 5000/d.")],
        objective: ObjectiveQuery = "freshness",
    ) -> schemas.OtherBudgetOut:
        one_of("objective", objective, OBJECTIVE_NAMES)
        return data.compare_budget(objective, _parse_budget(budget))


def _add_item_changes(router: APIRouter, data: DashboardData, options: dict[str, Any]) -> None:
    engine = data.engine

    @router.patch("/item", **options, summary="Change an item's weight, pause or resume it")
    def change(key: KeyQuery, wanted: schemas.ChangeIn, source: SourceQuery = None) -> schemas.ItemOut:
        name = data.find_item(key, source).source
        engine.set([key], ItemChange(weight=wanted.weight, status=wanted.status), source=name)
        data.forget()
        return data.report_item(key, name).to_schema().item

    @router.post("/item/poll", **options, summary="Poll an item as soon as possible")
    def poll(key: KeyQuery, source: SourceQuery = None) -> schemas.ItemOut:
        item = data.find_item(key, source)
        if item.status != "active":
            raise RequestError(409, f"the item is {item.status}: it is not polled", "resume it first")
        engine.poll_now([key], source=item.source)
        data.forget()
        return data.report_item(key, item.source).to_schema().item


def _add_other_changes(router: APIRouter, data: DashboardData, options: dict[str, Any]) -> None:
    engine = data.engine

    @router.post("/notices", **options, summary="A webhook: says that these items have changed")
    def notices(wanted: schemas.NoticesIn) -> schemas.NoticedOut:
        keys = list(dict.fromkeys(wanted.keys))
        unknown = engine.notice(keys, source=wanted.source)
        return schemas.NoticedOut(noticed=len(keys) - len(unknown), unknown=list(unknown))

    @router.put("/budget", **options, summary="Another budget, also for engines that run")
    def budget(wanted: schemas.BudgetIn) -> schemas.BudgetOut:
        engine.ask_budget(_parse_budget(wanted.requests))
        data.forget()
        return schemas.BudgetOut(requests_per_s=engine.current().budget.requests)


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a query parameter that the route does not have, so that a misspelt name is not ignored."""
    names = [field.alias for field in request.scope["route"].dependant.query_params]
    for given in request.query_params:
        if given not in names:
            raise RequestError(
                422, f"unknown parameter {given[:100]!r}{did_you_mean(given, names)}", "see /api/docs"
            )


def _token_check(token: str | None) -> Callable[..., None]:
    def check(given: Bearer) -> None:
        if token is None:
            raise RequestError(403, "read only: the project has no token", "'afresh init' makes one")
        if given is None:
            raise RequestError(401, "this needs the token", "Authorization: Bearer TOKEN; see web.token")
        if not is_token(given.credentials, token):
            raise RequestError(401, "that is not the token", "see web.token in the project folder")

    return check


def _parse_budget(text: str) -> float:
    requests = parse_rate(text)
    if not 1e-12 <= requests <= 1e9:
        raise UsageError(f"a budget of {text}: it must be more than 0 and at most 1e9/s")
    return requests
