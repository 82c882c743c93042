"""Views in the loop: looked at, refreshed where it gains, explained; and what goes wrong, in words."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from tests.engine.warehouse import OF_A, OF_B, OF_BOTH, House, until
from tests.servers.postgres import PostgresServer
from typer.testing import CliRunner

from afresh.cli.app import app
from afresh.engine.scheduler.poll_recorder import retry_rules
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import STALENESS_STATE
from afresh.values.items import ItemChange


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> str:
    """The name of a database for one test of this process after the other."""
    name = f"views_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        # This process may come back to the module after tests of others.
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return name


@pytest.fixture
def house(postgres: PostgresServer, database: str, tmp_path: Path) -> House:
    return House(postgres, tmp_path, database)


def test_views_are_found_refreshed_and_watched(house: House) -> None:
    async def script(house: House) -> None:
        await house.fresh()
        before = {key: house.item(key).polls for key in (OF_A, OF_B, OF_BOTH)}
        house.write("b")
        await until(lambda: house.item(OF_B).polls > before[OF_B])
        await house.fresh()
        assert house.item(OF_A).polls == before[OF_A]  # nothing below it moved
        house.write("a")
        await until(lambda: house.item(OF_A).polls > before[OF_A])
        await house.fresh()

    house.beside(script)
    assert all(view.cost_s > 0 for view in house.views().values())
    assert "fresh: nothing that it is made from changed" in house.words(OF_A)
    assert house.trouble() == ""


def test_a_single_round_refreshes_what_is_stale_and_nothing_else(house: House) -> None:
    with house.engine() as engine:
        assert engine.run(once=True).polls == 3
        assert engine.run(once=True).polls == 0
        house.write("b")
        found = engine.run(once=True)
        assert (found.polls, found.changes) == (2, 2)
        assert all(view.state == "fresh" for view in engine.status().views)


def test_what_was_seen_and_measured_outlives_the_process(house: House) -> None:
    with house.engine() as engine:
        engine.run(once=True)
        before = {view.item: view.cost_s for view in engine.status().views}
        assert engine.store.state.get(STALENESS_STATE + "house") is not None
    with house.engine() as engine:
        assert {view.item: view.cost_s for view in engine.status().views} == before
        assert engine.run(once=True).polls == 0  # fresh is still known to be


def test_target_lags_are_kept_checked_and_explained(house: House) -> None:
    house.run("CREATE MATERIALIZED VIEW slow AS SELECT count(*), pg_sleep(0.3)::text FROM b")
    by_view = 'target_lags = { "public.of_both" = "30m", "*.slow" = "0.35s" }'
    targets = f'counter_lag = "0.1s"\ntarget_lag = "1h"\n{by_view}'

    async def script(house: House) -> None:
        await house.fresh(OF_A, OF_B, OF_BOTH, "public.slow")

    house.beside(script, source=targets)
    with house.engine(budget='seconds = "36s/h"', source=targets) as engine:
        status = engine.status()
        assert status.target_lags is not None
        lags = {view.item: view.target_lag_s for view in status.views}
        assert lags == {OF_A: 1800.0, OF_B: 3600.0, OF_BOTH: 1800.0, "public.slow": 0.35}
        # 0.3 s of refreshing and 0.2 s until a change is seen do not fit into 0.35 s, whatever the budget is.
        (unfit,) = status.target_lags.unfit
        assert (unfit.item, unfit.missing_s) == ("public.slow", float("inf"))
        assert status.target_lags.needed_s < 36.0
        words = "; ".join(engine.why("public.slow").reasons)
        assert "its target lag does not fit the budget" in words
        assert "the objective of its source is age" in words


def test_a_view_over_a_busy_one_has_its_turn(house: House) -> None:
    """The lower view is stale again all the time; the upper one is refreshed all the same."""

    async def script(house: House) -> None:
        await house.fresh()
        before = house.item(OF_BOTH).polls

        def is_refreshed_thrice() -> bool:
            house.write("a")  # so that the lower view is stale again at each look
            return house.item(OF_BOTH).polls >= before + 3

        await until(is_refreshed_thrice)

    house.beside(script, budget='seconds = "720s/h"')


def test_a_longest_interval_is_kept_for_a_fresh_view(house: House) -> None:
    async def script(house: House) -> None:
        await house.fresh()
        with house.engine() as engine:
            engine.set([OF_B], ItemChange(max_interval_s=0.5))
        before = house.item(OF_B).polls
        await until(lambda: house.item(OF_B).polls > before + 1)

    house.beside(script)
    assert "at least every" in house.words(OF_B)


def test_seconds_that_were_not_used_have_a_reason(house: House) -> None:
    """All views are fresh, so that there is nothing to do: in a run that is long enough for the machine to
    begin, that is the main reason."""
    with house.engine(budget='seconds = "1800s/h"') as engine:
        engine.run(once=True)
        for for_s in (1.0, 4.0, 16.0, 64.0):
            engine.run(for_s=for_s)
            run = engine.status().run
            assert run is not None
            allowed_s = 0.5 * (run.time_s - run.started_s)
            assert run.seconds + sum(run.unspent_seconds.values()) == pytest.approx(allowed_s, rel=0.01)
            if run.unspent_seconds.get("nothing", 0.0) > allowed_s / 2:
                return
    raise AssertionError("other reasons, even in the longest run")


def test_seconds_of_refreshing_are_paid_off(house: House) -> None:
    house.run("CREATE MATERIALIZED VIEW slow AS SELECT x, pg_sleep(0.02)::text FROM b")
    house.write("b")

    async def script(house: House) -> None:
        await until(lambda: "public.slow" in house.views())
        while len(refreshed) < 4:
            house.write("b")
            polls = house.item("public.slow").polls
            await until(lambda: house.item("public.slow").polls > polls)  # noqa: B023
            refreshed.append(house.item("public.slow").polled_s or 0.0)

    refreshed: list[float] = []
    house.beside(script, budget='seconds = "6m/h"', source='views = ["public.slow"]')
    cost_s = house.views()["public.slow"].cost_s
    gaps_s = [later - sooner for sooner, later in pairwise(refreshed)]
    assert cost_s > 0.01
    assert min(gaps_s) > 5 * cost_s  # one part in ten, but for the first refreshes' share of the mean


def test_status_and_why_say_it_in_words_and_json(house: House) -> None:
    with house.engine() as engine:
        engine.run(once=True)
    (house.folder / "afresh.toml").write_text(
        f'[[source]]\nname = "house"\nkind = "view"\nurl = "{house.server.url(house.database)}"\n'
    )
    run = CliRunner().invoke
    shown = run(app, ["-C", str(house.folder), "status"])
    assert shown.exit_code == 0, shown.output
    assert "public.of_a" in shown.output
    assert "a refresh" in shown.output
    told = json.loads(run(app, ["-C", str(house.folder), "status", "--json"]).stdout)
    assert [view["item"] for view in told["views"]] == [OF_A, OF_B, OF_BOTH]
    assert {view["state"] for view in told["views"]} == {"fresh"}
    assert told["views"][0]["cost_s"] > 0
    assert {view["dispersion"] for view in told["views"]} == {None}  # nothing was counted yet
    because = json.loads(run(app, ["-C", str(house.folder), "why", OF_A, "--json"]).stdout)
    assert because["seen"]["state"] == "fresh"
    words = run(app, ["-C", str(house.folder), "why", OF_A]).output
    assert "none: it is fresh" in words
    assert "s a refresh" in words
    quoted = run(app, ["-C", str(house.folder), "why", '"public"."of_a"'])
    assert f"did you mean '{OF_A}'?" in str(quoted.exception)
    unknown = str(run(app, ["-C", str(house.folder), "why", "zzz"]).exception)
    assert "rows and views are found by 'afresh run'" in unknown
    assert "afresh add" not in unknown


def test_looks_that_see_nothing_new_are_not_written_down(house: House) -> None:
    def looks_and_memory() -> tuple[int, bytes | None]:
        with house.engine() as engine:
            spent, kept = (
                engine.store.ledger.total(0.0, 1e12),
                engine.store.state.get(STALENESS_STATE + "house"),
            )
        return spent.requests, kept

    async def script(house: House) -> None:
        await house.fresh()
        for _ in range(2):
            before = looks_and_memory()[0]
            await until(lambda: looks_and_memory()[0] >= before + 5)  # noqa: B023
            found.append(looks_and_memory()[1])

    found: list[bytes | None] = []
    house.beside(script)
    assert found[0] is not None
    assert found[0] == found[1]


# What goes wrong.


def test_a_wrong_password_is_said_and_the_right_one_goes_on(house: House) -> None:
    wrong = house.server.url(house.database, user="locked", password="wrong-word")

    async def script(house: House) -> None:
        await until(lambda: "the password is wrong" in house.trouble())

    house.beside(script, url=wrong)
    assert "wrong-word" not in house.trouble()
    with house.engine() as engine:
        engine.run(once=True)
        assert engine.status().troubles == ()
    assert len(house.views()) == 3


def test_a_view_that_failed_is_tried_again_within_five_minutes() -> None:
    text = """
        [run]
        retry_first = "60s"
        [[source]]
        name = "house"
        kind = "view"
        url = "postgresql:///house"
        [[source]]
        name = "web"
    """
    settings = parse_settings(text)
    assert retry_rules(settings, "house").longest_s == 300.0
    assert retry_rules(settings, "web").longest_s == 86400.0


def test_a_role_without_rights_is_refused_for_each_view(house: House) -> None:
    async def script(house: House) -> None:
        await until(lambda: len(house.views()) == 3)
        await until(lambda: "no rights" in house.item(OF_B).problem)

    house.run("GRANT USAGE ON SCHEMA public TO locked")
    theirs = house.server.url(house.database, user="locked", password="right")
    house.beside(script, url=theirs, retry_first="1h")  # so that the next try is still to come
    assert "no rights" in house.views()[OF_B].problem
    words = house.words(OF_B)
    assert "no rights" in words
    assert f"sooner after: afresh set {OF_B} --poll-now" in words


def test_a_view_dropped_while_running_is_gone_and_the_others_go_on(house: House) -> None:
    async def script(house: House) -> None:
        await house.fresh()
        house.run("DROP MATERIALIZED VIEW of_both")
        await until(lambda: house.item(OF_BOTH).status == "gone")
        house.write("b")
        await until(lambda: house.item(OF_B).changes > 0)
        await house.fresh(OF_A, OF_B)

    house.beside(script)
    assert "no such materialised view" in house.item(OF_BOTH).problem
    assert set(house.views()) == {OF_A, OF_B}


def test_a_view_altered_while_running_is_taken_up_as_it_is_now(house: House) -> None:
    async def script(house: House) -> None:
        await house.fresh()
        house.run("DROP MATERIALIZED VIEW of_b", "CREATE MATERIALIZED VIEW of_b AS SELECT max(x) AS n FROM a")
        polls = house.item(OF_B).polls
        house.write("a")
        await until(lambda: house.item(OF_B).polls > polls)
        await house.fresh(OF_B)

    house.beside(script)
    with house.engine() as engine:
        copy = engine.get(OF_B)
        assert copy is not None
        assert json.loads(copy.content)["bases"] == ["public.a"]


def test_a_base_truncated_while_running_makes_its_views_stale(house: House) -> None:
    async def script(house: House) -> None:
        house.write("b")
        await house.fresh()
        polls = house.item(OF_B).polls
        house.run("TRUNCATE b")
        await until(lambda: house.item(OF_B).polls > polls)
        await house.fresh()

    house.beside(script)
    assert house.rows("SELECT n FROM of_b") == [(0,)]


def test_a_connection_lost_while_running_is_made_anew(house: House) -> None:
    async def script(house: House) -> None:
        await house.fresh()
        house.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'afresh' AND datname = current_database()"
        )
        polls = house.item(OF_B).polls
        house.write("b")
        await until(lambda: house.item(OF_B).polls > polls)
        await house.fresh()

    house.beside(script)


def test_a_refresh_beyond_its_time_out_fails_alone(house: House) -> None:
    house.run("CREATE MATERIALIZED VIEW slow AS SELECT pg_sleep(30)::text FROM a WHERE x > 0")

    async def script(house: House) -> None:
        house.write("a")
        await until(lambda: "public.slow" in house.views())
        await until(lambda: "time-out" in house.item("public.slow").problem)
        await house.fresh()

    house.beside(script, source='timeout = "0.3s"')
    assert "time-out" in house.views()["public.slow"].problem
    assert "time-out" in house.words("public.slow")


def test_a_database_away_for_a_while_and_a_standby(own_postgres: PostgresServer, tmp_path: Path) -> None:
    house = House(own_postgres, tmp_path)

    async def script(house: House) -> None:
        await house.fresh()
        own_postgres.stop()
        await until(lambda: "no connection" in house.trouble())
        standby = own_postgres.folder / "data" / "standby.signal"
        standby.touch()
        own_postgres.start()
        await until(lambda: "the server is a standby, which cannot refresh views" in house.trouble())
        own_postgres.stop()
        standby.unlink()
        own_postgres.start()
        house.write("b")
        await until(lambda: house.trouble() == "")
        await house.fresh()

    house.beside(script)
    assert house.item(OF_B).changes > 0
