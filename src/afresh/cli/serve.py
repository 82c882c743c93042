"""``afresh serve``: the dashboard and the API over a project, whether or not an engine runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.engine_project import Sets, open_project

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
    more = {"web.host": host, "web.port": None if port is None else str(port)}
    with open_project(sets, {key: value for key, value in more.items() if value is not None}) as engine:
        server = make_server(engine)
        typer.echo(f"dashboard at {server.address} (Ctrl-C to stop)", err=True)
        server.run()


def make_server(engine: Engine) -> Server:
    """A server for an engine's project as its ``[web]`` settings say, already listening."""
    from afresh.web.app import make_app
    from afresh.web.server import Server, check_reach, listen
    from afresh.web.token import find_token

    web = engine.settings.web
    token = find_token(web.token, Path(), os.environ.get)
    check_reach(web.host, token)
    return Server(make_app(engine, token, names=(web.host, *web.names)), listen(web.host, web.port))
