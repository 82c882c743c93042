"""The schema's history: numbered scripts, applied once each, all or none.

Whoever opens a store takes a lock of the database first, so that of several that start at once one
upgrades and the others find it done.
"""

from __future__ import annotations

from psycopg import sql

from afresh.stores.blocks import load_scripts
from afresh.stores.postgres.address import Address
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.values.errors import StoreCorruptError, StoreMissingError, StoreReadOnlyError, StoreVersionError

_SQL = load_blocks("migrations.sql")


def load_migrations() -> tuple[str, ...]:
    """The scripts of this package in order."""
    return load_scripts(__package__)


def make_ready(
    connection: Connection,
    address: Address,
    migrations: tuple[str, ...],
    *,
    create: bool,
    read_only: bool,
) -> None:
    """Make or upgrade the store, or say why not. Inside a transaction."""
    if not read_only:
        rows(connection, _SQL["lock"], {"schema": address.schema})
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
    if version is None and not _exists(connection, address):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    for number, script in enumerate(migrations[version or 0 :], (version or 0) + 1):
        connection.execute(script.encode())
        rows(connection, _SQL["applied"], {"number": number})


def _exists(connection: Connection, address: Address) -> bool:
    return bool(rows(connection, _SQL["schema"], {"schema": address.schema}))


def _version(connection: Connection, address: Address) -> int | None:
    """How many scripts have been applied; ``None`` where nothing is."""
    tables = {name for (name,) in rows(connection, _SQL["tables"], {"schema": address.schema})}
    if not tables:
        return None
    if not {"migration", "full_item", "pace"} <= tables:
        raise StoreCorruptError(f"{address.name} holds tables of another program, not a store of afresh")
    return int(rows(connection, _SQL["version"])[0][0])
