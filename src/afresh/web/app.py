"""The web application of one engine: pages, API, live updates, metrics, health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from afresh.engine.engine import Engine
from afresh.values.errors import StoreError
from afresh.version import __version__
from afresh.web import assets
from afresh.web.api import make_api
from afresh.web.context import Context
from afresh.web.guard import Guard
from afresh.web.live import MOST_LISTENERS, Live
from afresh.web.metrics import CONTENT_TYPE, exposition
from afresh.web.openapi30 import older
from afresh.web.pages import Pages, make_pages
from afresh.web.problems import problem, say_problems

_ABOUT = "Everything that the dashboard shows and does. What changes something needs the bearer token."


def make_app(engine: Engine, token: str | None, *, names: Iterable[str] = ()) -> FastAPI:
    """The application; ``names`` are host names, beside addresses and ``localhost``, that it answers to."""
    context = Context(engine, token)
    live = Live(context)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with suppress(StoreError):  # the pages say so, and look again
            await run_in_threadpool(context.watcher.look)  # the first look, so that no page waits for it
        yield

    app = FastAPI(
        title="afresh",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Guard, names=tuple(names))
    pages = Pages(context)
    say_problems(app, lambda error: pages.failed("/", error))
    app.include_router(make_api(context))
    app.include_router(make_pages(context, pages))
    _add_watching(app, context, live)
    app.state.live = live
    return app


def _add_watching(app: FastAPI, context: Context, live: Live) -> None:
    """Live updates, metrics, health and files: none of them part of the API's description."""

    @app.get("/live", include_in_schema=False)
    async def events(charts: bool = False) -> Response:
        if live.listeners >= MOST_LISTENERS:
            return problem(503, "too many listen already", "close some pages")
        found: StreamingResponse = live.response(charts=charts)
        return found

    @app.get("/api/docs/openapi.json", include_in_schema=False)
    def older_description() -> Response:
        return JSONResponse(older(app.openapi()))

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return PlainTextResponse(exposition(context), media_type=CONTENT_TYPE)

    @app.get("/healthz", include_in_schema=False)
    def healthy() -> Response:
        return JSONResponse({"ok": True})

    @app.get("/readyz", include_in_schema=False)
    def ready() -> Response:
        try:
            context.engine.store.state.names()
        except StoreError as error:
            return problem(503, f"store lost: {error}", "it is looked for again by itself")
        return JSONResponse({"ok": True, "engine": context.watcher.look().state})

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return assets.answer(name, request)
