"""``afresh serve``: the dashboard and the API over a project, whether or not an engine runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.engine_project import Sets, open_project, overrides_of
from afresh.cli.interruption import INTERRUPTION

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.web.server import Server


def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="Where to listen; by default this machine alone."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Which port; 0 takes any that is free.")
    ] = None,
    sets: Sets = None,
) -> None:
    """Show the mirror in a browser, and answer the API, until stopped."""
    given = {"web.host": host, "web.port": None if port is None else str(port)}
    more = {key: value for key, value in given.items() if value is not None}
    check_web(sets, more)
    with open_project(sets, more, reading=True) as engine:
        server = make_server(engine)
        with INTERRUPTION.stopping_by(server.stop):
            typer.echo(f"dashboard at {server.address} (Ctrl-C to stop)", err=True)
            server.run()
        INTERRUPTION.check()


def check_web(sets: list[str] | None, more: Mapping[str, str]) -> None:
    """Refuse to listen where it must not, before anything is made or opened."""
    from afresh.engine.app import read_folder
    from afresh.web.server import check_reach
    from afresh.web.token import find_token

    web = read_folder(Path(), overrides_of(sets, more)).web
    check_reach(web.host, find_token(web.token, Path(), os.environ.get))


def make_server(engine: Engine) -> Server:
    """A server for an engine's project as its ``[web]`` settings say, already listening."""
    from afresh.web.app import make_app
    from afresh.web.server import Server, listen
    from afresh.web.token import find_token

    web = engine.settings.web
    token = find_token(web.token, Path(), os.environ.get)
    return Server(make_app(engine, token, names=(web.host, *web.names)), listen(web.host, web.port))
