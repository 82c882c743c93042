"""The example of a dbt project, ``examples/dbt_shop``: thirteen models over four raw tables in DuckDB, the
load that writes them, and dbt."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import duckdb
from examples.dbt_shop.load import EVENTS, MAKE, ORDERS, WRITES
from tests.interop.environments import ROOT

PROJECT = ROOT / "examples" / "dbt_shop"

TABLES = ("orders", "customers", "events", "prices")


class Shop:
    """A copy of the project in ``folder``, with its database. ``programs`` is the folder with dbt."""

    def __init__(self, folder: Path, programs: Path, *, orders: int = ORDERS, events: int = EVENTS) -> None:
        self.folder, self.database, self.programs = folder, folder / "shop.duckdb", programs
        shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROFILES_DIR": str(folder),
        }
        self.run_sql(MAKE.format(orders=orders, events=events))

    def run_sql(self, statements: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(self.database)) as connection:
            return connection.execute(statements).fetchall()

    def write(self, *tables: str) -> None:
        """Write one row to each of these raw tables."""
        for table in tables:
            self.run_sql(WRITES[table])

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
