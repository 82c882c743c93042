"""PostgreSQL as a source: a read-only session with a time-out."""

from __future__ import annotations

from afresh.sources.secrets import Secret
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.postgres_connection import PostgresConnection
from afresh.sources.sql.session import KeyListing, Row, check_columns, gather_keys, most_rows, quoted
from afresh.sources.sql.settings import SqlSettings


class PostgresSession:
    """See ``Session``. Keys are compared in the key's own type, so that an index on it serves."""

    def __init__(self, address: Secret, settings: SqlSettings) -> None:
        self._settings = settings
        self._key, self._cursor = quoted(settings.key), quoted(settings.cursor)
        # A percent sign would be taken for a place where a value goes.
        self._from = f"FROM (\n{settings.select}\n) AS q".replace("%", "%%")
        self._connection = PostgresConnection(
            address, timeout_s=settings.timeout, lock_s=settings.timeout, read_only=True
        )
        try:
            self._types = self._key_types()
        except SqlError:
            self._connection.close()
            raise

    def rows(self, keys: list[str]) -> list[Row]:
        """See ``Session``."""
        text = (
            f"SELECT q.{self._key}::text, q.* {self._from} "
            f"WHERE q.{self._key} = ANY (%s::text[]::{self._types[self._settings.key]}[]) "
            f"LIMIT {most_rows(keys)}"
        )
        names, rows = self._connection.table(text, (keys,))
        return [Row(row[0], tuple(zip(names[1:], row[1:], strict=True))) for row in rows]

    def newest(self) -> object:
        """See ``Session``."""
        return self._connection.rows(f"SELECT max(q.{self._cursor})::text {self._from}")[0][0]

    def listed(self, since: object) -> KeyListing:
        """See ``Session``."""
        settings = self._settings
        mark = f"q.{self._cursor}::text" if settings.cursor else "''"
        text = f"SELECT q.{self._key}::text, {mark} {self._from}"
        values: tuple[object, ...] = ()
        if since is not None:
            text += f" WHERE q.{self._cursor} >= %s::text::{self._types[settings.cursor]}"
            values = (since,)
        return gather_keys(
            self._connection.stream(f"{text} LIMIT {settings.max_rows + 1}", values), settings.max_rows
        )

    def interrupt(self) -> None:
        """See ``Session``."""
        self._connection.interrupt()

    def close(self) -> None:
        """See ``Session``."""
        self._connection.close()

    def _key_types(self) -> dict[str, str]:
        """The types of the key and the cursor, as SQL."""
        found = self._connection.columns(f"SELECT q.* {self._from} LIMIT 0")
        check_columns([name for name, _ in found], self._settings)
        wanted = [(name, code) for name, code in found if name in (self._settings.key, self._settings.cursor)]
        types = self._connection.rows(
            "SELECT format_type(oid, NULL) FROM unnest(%s::oid[]) WITH ORDINALITY AS t (oid, at) ORDER BY at",
            ([code for _, code in wanted],),
        )
        return {name: kind[0] for (name, _), kind in zip(wanted, types, strict=True)}
