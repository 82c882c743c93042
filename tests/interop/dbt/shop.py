"""A dbt project of thirteen models over four raw tables in DuckDB, the load that writes them, and dbt."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import duckdb

PROJECT = Path(__file__).parent / "project"
TABLES = ("orders", "customers", "events", "prices")
_MAKE = """
    CREATE SCHEMA raw;
    CREATE TABLE raw.orders AS SELECT range AS id, range * 7 % 1000 AS customer_id, range % 50 AS product_id,
        range % 97 + 1.5 AS amount, TIMESTAMP '2026-01-01' + to_minutes(range) AS ordered_at,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range({orders});
    CREATE TABLE raw.customers AS SELECT range AS id, ['de', 'fr', 'us'][1 + range % 3] AS country,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range(1000);
    CREATE TABLE raw.events AS SELECT range AS id, range * 13 % 1000 AS customer_id,
        ['view', 'buy'][1 + range % 2] AS kind, TIMESTAMP '2026-01-01' + to_minutes(range) AS happened_at,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range({events});
    CREATE TABLE raw.prices AS SELECT range AS product_id, range / 10 AS price,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range(50);
"""
_WRITES = {
    "orders": "INSERT INTO raw.orders SELECT max(id) + 1, 1, 1, 9.5, now()::TIMESTAMP, now() FROM raw.orders",
    "customers": "INSERT INTO raw.customers SELECT max(id) + 1, 'de', now() FROM raw.customers",
    "events": "INSERT INTO raw.events SELECT max(id) + 1, 1, 'buy', now()::TIMESTAMP, now() FROM raw.events",
    "prices": "UPDATE raw.prices SET price = price * 1.01, loaded_at = now()",
}


class Shop:
    """A copy of the project in ``folder``, with its database. ``programs`` is the folder with dbt."""

    def __init__(self, folder: Path, programs: Path, *, orders: int = 20_000, events: int = 50_000) -> None:
        self.folder, self.database, self.programs = folder, folder / "shop.duckdb", programs
        shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROFILES_DIR": str(folder),
        }
        self.run_sql(_MAKE.format(orders=orders, events=events))

    def run_sql(self, statements: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(self.database)) as connection:
            return connection.execute(statements).fetchall()

    def write(self, *tables: str) -> None:
        """Write one row to each of these raw tables."""
        for table in tables:
            self.run_sql(_WRITES[table])

    def dbt(self, *words: str, fails: bool = False) -> None:
        """Run dbt, which must succeed, or fail if ``fails``."""
        done = self.run(["dbt", "--quiet", *words])
        assert (done.returncode != 0) == fails, done.stdout + done.stderr

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder of the project, with dbt on its path."""
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def model(self, name: str, text: str) -> None:
        """Give a model another definition."""
        (self.folder / "models" / f"{name}.sql").write_text(text)
