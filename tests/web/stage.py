"""A stage for the Sources page: hosts that lie or fail, views of PostgreSQL, records behind a search box.

An engine runs over them until it has learned what the tests look at. Then it is stopped, and the dashboard
shows its store by a clock that stands still: whoever looks twice sees the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from tests.engine.living import CLOCK
from tests.engine.warehouse import OF_A, TABLES
from tests.servers.search_site import SearchSite, search_source
from tests.sources.polling import SetClock
from tests.sources.searching import make_world
from tests.web.lying_hosts import BROKEN, CONSTANT, FUTURE, NOISY, SLOW, lying_hosts
from tests.web.serving import Client, dashboard

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.http.saved_hosts import read_state as read_http_notes
from afresh.sources.search.saved_records import read_state as read_search_notes

# The first round is long enough for a quiet machine, and each is longer than the one before. Together they
# last 200 s, the limit for a machine that is very busy.
_ROUND_S, _LONGER, _ROUNDS = 1.5, 1.25, 16
LIARS = (NOISY, FUTURE, CONSTANT)

SETTINGS = """
[budget]
requests = "150/s"
[plan]
audit_share = 0.0
[[source]]
name = "hosts"
delay = 0
allow_private = true
min_interval = 0
[[source]]
name = "views"
kind = "view"
url = "{postgres}"
look_every = "0.1s"
[[source]]
name = "lost"
kind = "sql"
url = "postgresql://127.0.0.1:1/none"
query = "SELECT id, x FROM a"
key = "id"
"""


@dataclass(frozen=True)
class Stage:
    """A dashboard over everything, whose time stands still, and what its API says of the sources."""

    web: Client
    now_s: float
    port: int
    records: int

    def source(self, name: str) -> dict[str, Any]:
        """One source."""
        found: list[dict[str, Any]] = self.web.get("/api/v1/sources").json()["sources"]
        return next(source for source in found if source["name"] == name)

    def host(self, name: str) -> dict[str, Any]:
        """One host."""
        hosts: list[dict[str, Any]] = self.source("hosts")["hosts"]
        return next(host for host in hosts if host["name"] == f"{name}:{self.port}")


class _Database:
    """A database of its own on a server that others use too."""

    def __init__(self, server_url: str) -> None:
        self._server_url, self._name = server_url, f"afresh_web_{uuid4().hex[:12]}"

    def url(self) -> str:
        """Where it is."""
        return urlsplit(self._server_url)._replace(path=f"/{self._name}").geturl()

    def __enter__(self) -> Self:
        _execute(self._server_url, f"CREATE DATABASE {self._name}")
        return self

    def __exit__(self, *_: object) -> None:
        _execute(self._server_url, f"DROP DATABASE {self._name} WITH (FORCE)")

    def run(self, *statements: str) -> None:
        """Run statements, whose rows are counted at once."""
        _execute(self.url(), *statements, "SELECT pg_stat_force_next_flush()")


def _execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def has_learned(engine: Engine, port: int, records: int) -> bool:
    """Whether there is everything to show that the tests look at."""
    kept = engine.store.state.get
    liars = read_http_notes(kept(SOURCE_STATE + "hosts") or b"").untrusted_hosts()
    seen = read_search_notes(kept(SOURCE_STATE + "papers") or b"").records
    views = {view.item: view for view in engine.status().views}
    refreshed = OF_A in views and views[OF_A].state == "fresh" and views[OF_A].rate_per_s > 0
    return liars >= {f"{host}:{port}" for host in LIARS} and len(seen) == records and refreshed


def _run(engine: Engine, for_s: float) -> None:
    """Run for a while, in a thread of its own: the browser's driver may have an event loop in this one.

    A view that was never refreshed by us is polled at once: left to itself that may come minutes later, for
    its tables change only once.
    """
    if engine.store.items.get(OF_A) is not None and all(
        view.state == "unknown" for view in engine.status().views
    ):
        engine.poll_now([OF_A])
    with ThreadPoolExecutor(1) as beside:
        beside.submit(engine.run, for_s=for_s).result()


@contextmanager
def open_stage(postgres_url: str, folder: Path) -> Iterator[Stage]:
    """Let an engine learn everything, then show what it left."""
    world = make_world(folder, lasts_s=600.0, begin_s=CLOCK.now_s())
    with (
        _Database(postgres_url) as database,
        lying_hosts() as port,
        SearchSite(world.papers, CLOCK.now_s) as site,
    ):
        settings = parse_settings(
            SETTINGS.format(postgres=database.url()) + search_source(site.url, world.relation)
        )
        database.run("SET client_min_messages = warning", TABLES)
        records = len(world.own)
        with make_engine(settings, folder, seed=1) as engine:
            engine.add(f"http://{host}:{port}/x" for host in (NOISY, FUTURE, CONSTANT, BROKEN, SLOW))
            _run(engine, _ROUND_S)
            database.run("INSERT INTO a VALUES (1, 1)")
            # What sources learned is kept when a run ends: so it runs again until that is enough.
            for number in range(_ROUNDS):
                _run(engine, _ROUND_S * _LONGER**number)
                if has_learned(engine, port, records):
                    break
            else:
                raise AssertionError("the engine did not learn what the tests look at")
        still = SetClock(CLOCK.now_s())
        with make_engine(settings, folder, clock=still, seed=1) as engine, dashboard(engine) as web:
            yield Stage(web, still.now_s(), port, records)
