"""Makes the server of the dashboard, for the commands that show one engine or a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.cli.engine import project
from afresh.cli.engine.settings_commands import check_web
from afresh.values.extras import require_extra

if TYPE_CHECKING:
    from fastapi import FastAPI

    from afresh.engine.engine import Engine
    from afresh.engine.settings.tables import WebTable
    from afresh.web.app import WebAccess
    from afresh.web.server import Server


def check_dashboard(sets: list[str] | None, more: Mapping[str, str]) -> None:
    """Raise ``UsageError`` if other machines could reach the dashboard and there is no token.

    Commands call this before they create or open the store."""
    from afresh.engine.app import read_folder

    require_extra("web", "the dashboard")
    check_web(read_folder(Path(), project.read_overrides(sets, more)))


def make_server(web: WebTable, make_app: Callable[[WebAccess], FastAPI]) -> Server:
    """Return a server for an application, which listens on the host and port of the settings."""
    from afresh.web.app import WebAccess
    from afresh.web.content_access import content_readers
    from afresh.web.reach import needs_token_to_read
    from afresh.web.server import Server, listen
    from afresh.web.token import find_token

    access = WebAccess(
        token=find_token(web.token, Path(), os.environ.get),
        names=(web.host, *web.names),
        read_token=needs_token_to_read(web.host, web.read_token),
        content=content_readers(web.host, web.content),
    )
    return Server(make_app(access), listen(web.host, web.port))


def make_engine_server(engine: Engine) -> Server:
    """Return a server for the project of one engine."""
    return make_server(engine.settings.web, partial(_engine_app, engine))


def _engine_app(engine: Engine, access: WebAccess) -> FastAPI:
    from afresh.web.app import make_app

    return make_app(
        engine,
        access.token,
        names=access.names,
        read_token=access.read_token,
        content=access.content,
        secrets=os.environ.get,
    )
