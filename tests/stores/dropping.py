"""Drops the schemas that tests made on a PostgreSQL server that outlives them."""

from __future__ import annotations

import sys

import psycopg
from psycopg import sql


def drop_schemas(server: str) -> None:
    """Drop the schemas of this server that tests of this process named, and those named after them."""
    backends = sys.modules.get("tests.stores.backends")  # not imported for runs that have no store
    names = [name for where, name in (backends.NAMED if backends else ()) if where == server]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        for name in names:
            for schema in (name, f"{name}_2"):
                connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
