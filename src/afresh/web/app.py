"""The web application of one engine or of a cluster: pages, API, live updates, metrics and health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from afresh.engine.engine import Engine
from afresh.engine.project_interface import ShardedProject
from afresh.engine.settings.tables import ContentReaders
from afresh.sources.context import no_secrets
from afresh.sources.secrets import Resolver
from afresh.values.errors import StoreError
from afresh.version import __version__
from afresh.web import assets
from afresh.web.api import make_api
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import ClusterData, DashboardData, ProjectData
from afresh.web.error_responses import add_error_handlers, error_response
from afresh.web.feed.atom_feed import add_atom_feed
from afresh.web.feed.change_pages import make_change_pages
from afresh.web.feed.feed_api import FeedWatch
from afresh.web.guard import RequestGuard
from afresh.web.live_updates import MOST_LISTENERS, LiveUpdates
from afresh.web.metrics import CONTENT_TYPE, expose_metrics
from afresh.web.pages import Pages, engine_pages, make_pages
from afresh.web.receivers.receivers import Receivers
from afresh.web.sharded.cluster_api import make_cluster_api
from afresh.web.sharded.cluster_pages import cluster_pages, make_cluster_pages

_DESCRIPTION = (
    "Everything that the dashboard shows and does. Requests that change something need the bearer token."
)


@dataclass(frozen=True, slots=True)
class WebAccess:
    """Who may use the application. ``token`` is that of the project; without one, changes are refused. With
    ``read_token``, reading needs it too. ``names`` are the host names that are accepted in requests, besides
    IP addresses and ``localhost``; ``receiver_names`` only for what ``/receive/`` receives. ``content`` says
    who may read the content of copies over the API. With ``checks_writes``, requests that change something
    are refused without the token before their body is read."""

    token: str | None = None
    names: tuple[str, ...] = ()
    read_token: bool = False
    content: ContentReaders = "everybody"
    receiver_names: tuple[str, ...] = ()
    checks_writes: bool = False


def make_app(
    engine: Engine,
    token: str | None,
    *,
    names: Iterable[str] = (),
    read_token: bool = False,
    content: ContentReaders = "everybody",
    secrets: Resolver = no_secrets,
) -> FastAPI:
    """Return the web application of one engine. ``secrets`` resolves the secrets of webhooks; see
    ``WebAccess`` for the other parameters."""
    data, receivers = DashboardData(engine, token), Receivers(engine, secrets)
    access = WebAccess(token, tuple(names), read_token, content, receivers.names, checks_writes=True)
    app = _make_app(data, engine_pages(data), access, make_api, make_pages, receivers)
    _add_routes(app, receivers.router)
    return app


def make_cluster_app(cluster: ShardedProject, access: WebAccess) -> FastAPI:
    """Return the web application of a cluster, which only reads."""
    data = ClusterData(cluster)
    return _make_app(data, cluster_pages(data), access, make_cluster_api, make_cluster_pages, nullcontext())


DataT = TypeVar("DataT", bound=ProjectData)


def _make_app(
    data: DataT,
    pages: Pages,
    access: WebAccess,
    make_api: Callable[[DataT, ContentAccess, FeedWatch], APIRouter],
    make_pages: Callable[[DataT, Pages, ContentAccess], APIRouter],
    beside: AbstractContextManager[object],
) -> FastAPI:
    """Return an application of these parts; ``beside`` is entered while it serves."""
    live, watch = LiveUpdates(data), FeedWatch(data.project.feed)
    watch.is_closing = lambda: live.is_closing()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with suppress(StoreError):  # The pages report the error, and try again.
            await run_in_threadpool(data.snapshots.get)  # so that the first page need not wait for it
        with beside:
            yield

    app = FastAPI(
        title="afresh",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(
        RequestGuard,
        names=access.names,
        read_token=access.token if access.read_token else None,
        receiver_names=access.receiver_names,
        write_token=access.token if access.checks_writes else None,
    )
    add_error_handlers(app, pages.render_error)
    content = ContentAccess(access.content, access.token)
    _add_routes(app, make_api(data, content, watch))
    add_atom_feed(app, data.project.feed, content)
    _add_routes(app, make_pages(data, pages, content))
    _add_routes(app, make_change_pages(data, pages, content))
    _add_monitoring(app, data, live)
    app.state.live = live
    return app


def _add_routes(app: FastAPI, router: APIRouter) -> None:
    """Add the routes of a router, whose prefix and dependencies they have already. ``include_router`` would
    build each of them once more: half of the time until a server answers."""
    app.router.routes.extend(router.routes)


def _add_monitoring(app: FastAPI, data: ProjectData, live: LiveUpdates) -> None:
    @app.get("/live", include_in_schema=False)
    async def events(charts: bool = False) -> Response:
        if live.listeners >= MOST_LISTENERS:
            return error_response(503, "too many pages listen already", "close some pages")
        response: StreamingResponse = live.stream_response(charts=charts)
        return response

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return PlainTextResponse(expose_metrics(data), media_type=CONTENT_TYPE)

    @app.get("/healthz", include_in_schema=False)
    async def health() -> Response:  # on the event loop, because all threads may be busy
        return JSONResponse({"ok": True})

    @app.get("/readyz", include_in_schema=False)
    def readiness() -> Response:
        try:
            data.project.check_store()
        except StoreError as error:
            return error_response(503, f"store lost: {error}", "it is looked for again by itself")
        return JSONResponse({"ok": True, "engine": data.snapshots.get().state})

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return assets.asset_response(name, request)
