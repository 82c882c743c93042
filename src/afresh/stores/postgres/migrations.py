"""Applies the migrations of the PostgreSQL schema: numbered scripts, each applied once.

A process that opens a store first takes a lock in the database. If several processes start at the same time,
one of them upgrades the store, and the others then find the store upgraded.
"""

from __future__ import annotations

from psycopg import sql

from afresh.stores.postgres.connection import Connection, PostgresAddress, fetch_rows
from afresh.stores.sql.dialect import load_statements
from afresh.values.errors import StoreCorruptError, StoreMissingError, StoreReadOnlyError, StoreVersionError

_SQL = load_statements(__package__, "migrations")


def migrate(
    connection: Connection,
    address: PostgresAddress,
    migrations: tuple[str, ...],
    *,
    create: bool,
    read_only: bool,
) -> None:
    """Create or upgrade the store in the transaction of ``connection``; raise ``StoreError`` if that cannot
    be done. ``migrations`` are all scripts, the oldest first."""
    if not read_only:
        fetch_rows(connection, _SQL["lock"], {"schema": address.schema})
    version = _version(connection, address)
    if version is None and (read_only or not create):
        raise StoreMissingError(f"there is no store at {address.name}")
    if version is not None and version > len(migrations):
        raise StoreVersionError(
            f"{address.name} was written by a newer afresh (schema {version}, known up to {len(migrations)}):"
            " upgrade afresh"
        )
    if version == len(migrations):
        return
    if read_only:
        raise StoreReadOnlyError(f"{address.name} needs an upgrade: open it once for writing")
    if version is None and not fetch_rows(connection, _SQL["schema"], {"schema": address.schema}):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    for number, script in enumerate(migrations[version or 0 :], (version or 0) + 1):
        connection.execute(script.encode())
        fetch_rows(connection, _SQL["applied"], {"number": number})


def _version(connection: Connection, address: PostgresAddress) -> int | None:
    """Return how many scripts have been applied, or None if there is no store."""
    tables = {name for (name,) in fetch_rows(connection, _SQL["tables"], {"schema": address.schema})}
    if not tables:
        return None
    if not {"migration", "full_item", "pace"} <= tables:
        raise StoreCorruptError(f"{address.name} holds tables of another program, not a store of afresh")
    return int(fetch_rows(connection, _SQL["version"])[0][0])
