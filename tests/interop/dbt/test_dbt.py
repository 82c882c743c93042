"""afresh together with the real dbt, on a project of thirteen models in DuckDB under a write load."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.interop.dbt.shop import TABLES, Shop
from tests.interop.environments import ROOT

AFRESH = [sys.executable, "-m", "afresh"]
ABOVE = {
    "orders": {
        "orders_by_customer", "orders_daily", "revenue_daily", "top_customers", "funnel", "finance_report",
        "product_report",
    },
    "customers": {"customers_by_region"},
    "events": {"events_hourly", "sessions", "funnel", "retention", "product_report"},
    "prices": {"revenue_daily", "finance_report"},
}  # fmt: skip
"""The models that are made from each raw table."""


class Kept:
    """The project, kept by afresh."""

    def __init__(self, folder: Path, programs: Path, budget: str = "30m/h") -> None:
        self.shop = Shop(folder, programs)
        self.shop.dbt("build")
        self.afresh("init", ".")
        settings = folder / "afresh.toml"
        settings.write_text(settings.read_text().replace("[budget]", f'[budget]\nseconds = "{budget}"'))

    def afresh(self, *words: str, code: int = 0) -> str:
        done = self.shop.run([*AFRESH, *words])
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def due(self, *command: str, code: int = 0) -> set[str]:
        """The models that are due, by a new reading of the sources; with a command they are built."""
        self.shop.dbt("source", "freshness")
        return set(self.due_object(*command, code=code)["models"])

    def due_object(self, *command: str, code: int = 0) -> Any:
        """What is due by what is known already."""
        return json.loads(self.afresh("due", "--dbt", "--json", *command, code=code).splitlines()[0])


@pytest.fixture
def kept(tmp_path: Path, programs: Path) -> Kept:
    found = Kept(tmp_path, programs)
    found.shop.dbt("source", "freshness")
    found.afresh("add", "--dbt", "target/")
    return found


def test_exactly_the_stale_models_are_built_under_a_write_load(kept: Kept) -> None:
    draw = random.Random(5)
    assert kept.due() == set()
    for _ in range(2):
        written = draw.sample(TABLES, 2)
        kept.shop.write(*written)
        stale = set().union(*(ABOVE[table] for table in written))
        assert kept.due("--", "dbt", "--quiet", "build") == stale
        assert kept.due_object()["models"] == []
    orders = kept.shop.run_sql(
        "SELECT (SELECT count(*) FROM raw.orders), (SELECT sum(orders) FROM orders_daily)"
    )
    assert orders[0][0] == orders[0][1]


def test_failed_and_skipped_models_stay_due_until_they_are_repaired(kept: Kept) -> None:
    kept.shop.write("orders")
    broken = {"orders_by_customer", "top_customers", "finance_report"}
    text = (kept.shop.folder / "models" / "orders_by_customer.sql").read_text()
    kept.shop.model("orders_by_customer", "select broken from {{ ref('stg_orders') }}")
    assert kept.due("--", "dbt", "--quiet", "build", code=1) == ABOVE["orders"]
    assert set(kept.due_object()["models"]) == broken
    assert "broken" in kept.shop.run([*AFRESH, "why", "orders_by_customer"]).stdout
    kept.shop.model("orders_by_customer", text)
    kept.shop.dbt("build", "--select", "orders_by_customer+")  # somebody else runs it
    kept.afresh("observe", "--dbt", "target/")
    assert kept.due_object()["models"] == []


def test_the_budget_of_the_time_is_kept_by_whole_invocations(tmp_path: Path, programs: Path) -> None:
    """A fifth of a second of dbt an hour, also on a fast machine: one invocation uses it up, and the next one
    has to wait."""
    kept = Kept(tmp_path, programs, budget="0.2s/h")
    kept.shop.dbt("source", "freshness")
    kept.afresh("add", "--dbt", "target/")
    kept.shop.write("customers")
    assert kept.due("--", "dbt", "--quiet", "build") == set()  # the first build is being paid off
    assert kept.due_object()["stale"] == 1


def test_the_database_shows_what_changed_without_source_freshness(tmp_path: Path, programs: Path) -> None:
    kept = Kept(tmp_path, programs)
    with (tmp_path / "afresh.toml").open("a") as file:
        file.write('[[source]]\nname = "models"\nkind = "view"\ndbt = "target"\nurl = "duckdb:shop.duckdb"\n')
    kept.afresh("due", "--dbt", "--", "dbt", "--quiet", "build")  # nothing is known of the first build
    assert kept.due_object()["models"] == []
    kept.shop.write("prices", "customers")
    assert set(kept.due_object()["models"]) == ABOVE["prices"] | ABOVE["customers"]
    kept.afresh("run", "--once")  # it refreshes by dbt build
    assert kept.due_object()["models"] == []


def test_the_benchmark_runs() -> None:
    """Its figures need minutes; here it only runs."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", "dbt_models", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
