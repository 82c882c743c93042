"""A PostgreSQL server for the tests that need one, and a new database in it for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from tests.servers.postgres import PostgresServer, running_postgres

NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The name of a database of the test's own."""
    name = f"sources_{next(NUMBERS)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def schema_url(postgres: PostgresServer) -> str:
    """The address of a schema of the test's own, which is quicker to make than a database."""
    name = f"sources_{next(NUMBERS)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}&options=-csearch_path%3D{name}"
