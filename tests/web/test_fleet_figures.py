"""In a fleet every worker's dashboard and metrics report the figures of all workers together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.servers.postgres import PostgresServer
from tests.stores.backends import schema_url
from tests.waiting import until
from tests.web.running import Running
from tests.web.serving import Client, dashboard

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.reporting.pulse import FIELDS, Pulse, read_course
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import PULSE

pytestmark = pytest.mark.waits

HOUSES = ("house_0", "house_1", "house_2", "house_3")
TABLES = """
    CREATE TABLE a (x int);
    CREATE TABLE b (x int);
    CREATE MATERIALIZED VIEW of_a AS SELECT count(*) FROM a;
    CREATE MATERIALIZED VIEW of_b AS SELECT count(*), pg_sleep(0.02)::text FROM b;
"""
COUNTERS = (
    "afresh_polls",
    "afresh_requests",
    "afresh_seconds",
    "afresh_source_seconds",
    "afresh_view_refreshes",
)


class Fleet:
    """Two workers on one PostgreSQL, over the views of four databases, with a dashboard each."""

    def __init__(self, server: PostgresServer, engines: list[Engine], clients: list[Client]) -> None:
        self.server, self.engines, self.clients = server, engines, clients

    def write(self) -> None:
        """Make the views of all databases stale."""
        for name in HOUSES:
            with psycopg.connect(self.server.url(name), autocommit=True) as connection:
                connection.execute("INSERT INTO a VALUES (1)")
                connection.execute("INSERT INTO b VALUES (1)")
                connection.execute("SELECT pg_stat_force_next_flush()")

    def figures(self, at: int) -> dict[str, float]:
        """What the metrics of a worker say; the samples of each counter together."""
        families = text_string_to_metric_families(self.clients[at].get("/metrics").text)
        return {
            family.name: sum(sample.value for sample in family.samples)
            for family in families
            if family.name in COUNTERS
        }

    def shows_polls(self, at: int, polls: int) -> bool:
        """Whether the metrics of a worker say so many polls."""
        return self.figures(at)["afresh_polls"] == polls

    def pulses(self) -> list[Pulse]:
        """The workers' own pulses."""
        state = self.engines[0].store.state
        packed = [state.get(name) for name in state.names() if name.startswith(PULSE)]
        return [Pulse(**json.loads(each)) for each in packed if each]

    def course_counts_both(self) -> bool:
        """Write, and return whether the time course has more polls than any worker made."""
        self.write()
        (polls,) = read_course(self.engines[0].store)[-1:, FIELDS.index("polls")]
        return bool(polls > max(pulse.polls for pulse in self.pulses()))

    def have_both_refreshed(self) -> bool:
        """Write, and return whether two workers have made polls."""
        self.write()
        return sum(pulse.polls > 0 for pulse in self.pulses()) == 2


@pytest.fixture
def fleet(own_postgres: PostgresServer, tmp_path: Path) -> Iterator[Fleet]:
    sources = ""
    for name in HOUSES:
        with psycopg.connect(own_postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(own_postgres.url(name), autocommit=True) as connection:
            connection.execute(TABLES.encode())
        sources += f"""
            [[source]]
            name = "{name}"
            kind = "view"
            url = "{own_postgres.url(name)}"
            look_every = "0.2s"
        """
    text = f"""
        [store]
        url = "{schema_url(own_postgres.url(), tmp_path)}"
        [budget]
        requests = "100/s"
        seconds = "30m/h"
        [run]
        claim = "2s"
        {sources}
    """
    with ExitStack() as stack:
        engines = [stack.enter_context(make_engine(parse_settings(text), tmp_path, seed=at)) for at in (1, 2)]
        clients = [stack.enter_context(dashboard(engine)) for engine in engines]
        yield Fleet(own_postgres, engines, clients)


def test_every_worker_reports_what_all_workers_did(fleet: Fleet) -> None:
    with Running(fleet.engines[0]), Running(fleet.engines[1]):
        until(fleet.have_both_refreshed, "both workers refresh views")
        until(lambda: fleet.figures(0) == fleet.figures(1), "both have read the same pulses")
        until(fleet.course_counts_both, "the time course has the polls of both")
    pulses = fleet.pulses()
    polls, seconds = sum(pulse.polls for pulse in pulses), sum(pulse.seconds for pulse in pulses)
    assert max(pulse.polls for pulse in pulses) < polls
    for at, engine in enumerate(fleet.engines):
        until(partial(fleet.shows_polls, at, polls), "the dashboard has read the last pulses")
        figures, run = fleet.figures(at), engine.status().run
        assert run is not None
        assert figures["afresh_polls"] == figures["afresh_view_refreshes"] == run.polls == polls
        assert figures["afresh_seconds"] == pytest.approx(seconds)
        assert figures["afresh_source_seconds"] == pytest.approx(seconds, rel=0.05)  # without readings
        assert run.seconds == pytest.approx(seconds)
        assert run.requests == sum(pulse.requests for pulse in pulses) == figures["afresh_requests"]
