"""A clean place in the run's PostgreSQL for each test that needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from tests.servers.postgres import PostgresServer
from tests.sources.viewing import Warehouse

NUMBERS = count()
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")


@pytest.fixture(scope="session")
def one_database(postgres: PostgresServer) -> str:
    """The name of a database for one test of this process after the other: making one takes a second."""
    name = f"sources_{WORKER}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return name


@pytest.fixture
def database(postgres: PostgresServer, one_database: str) -> str:
    """The name of a database that is empty."""
    with psycopg.connect(postgres.url(one_database), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return one_database


@pytest.fixture
def schema_url(postgres: PostgresServer) -> str:
    """The address of a schema of the test's own, which is quicker to make than a database."""
    name = f"sources_{WORKER}_{next(NUMBERS)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}&options=-csearch_path%3D{name}"


@pytest.fixture
def warehouse(postgres: PostgresServer, database: str) -> Iterator[Warehouse]:
    """Three views over two tables, one of them over another."""
    found = Warehouse(postgres, database)
    yield found
    found.close()
