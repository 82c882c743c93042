"""A PostgreSQL server for the tests that need one, with a clean place in it for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from tests.servers.postgres import PostgresServer, running_postgres
from tests.sources.viewing import Warehouse

NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def one_database(postgres: PostgresServer) -> str:
    """The name of a database for one test after the other: making one takes a second."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE house")
    return "house"


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
    name = f"sources_{next(NUMBERS)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}&options=-csearch_path%3D{name}"


@pytest.fixture
def house(postgres: PostgresServer, database: str) -> Iterator[Warehouse]:
    """Three views over two tables, one of them over another."""
    found = Warehouse(postgres, database)
    yield found
    found.close()
