"""SQLite as a source: a file opened for reading only."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from pathlib import Path

from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.session import KeyListing, Row, check_columns, gather_keys, most_rows, quoted
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.sql.sqlite_file import open_read_only, translate_errors

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


class SqliteSession:
    """See ``Session``. The database may be written by others meanwhile; nothing is written here."""

    def __init__(self, path: Path, settings: SqlSettings) -> None:
        self._settings = settings
        self._key, self._cursor = quoted(settings.key), quoted(settings.cursor)
        self._from = f"FROM (\n{settings.select}\n) AS q"
        self._connection = open_read_only(path)
        try:
            with translate_errors():
                self._connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
                self._connection.execute("PRAGMA query_only = 1")
                self._check()
        except SqlError:
            self._connection.close()
            raise

    def rows(self, keys: list[str]) -> list[Row]:
        """See ``Session``. A key is looked for as the text and, if it is one, as the number."""
        values: list[object] = [*keys, *(_as_number(key) for key in keys if _NUMBER.fullmatch(key))]
        marks = ",".join("?" * len(values))
        text = (
            f"SELECT CAST(q.{self._key} AS TEXT), q.* {self._from} "
            f"WHERE q.{self._key} IN ({marks}) LIMIT {most_rows(keys)}"
        )
        with translate_errors(), closing(self._connection.execute(text, values)) as cursor:
            names = [column[0] for column in cursor.description][1:]
            return [Row(row[0], tuple(zip(names, row[1:], strict=True))) for row in cursor]

    def newest(self) -> object:
        """See ``Session``."""
        with translate_errors():
            found = self._connection.execute(f"SELECT max(q.{self._cursor}) {self._from}").fetchone()
        return found[0]

    def listed(self, since: object) -> KeyListing:
        """See ``Session``."""
        settings = self._settings
        mark = f"CAST(q.{self._cursor} AS TEXT)" if settings.cursor else "''"
        later, values = (f"WHERE q.{self._cursor} >= ?", [since]) if since is not None else ("", [])
        text = (
            f"SELECT CAST(q.{self._key} AS TEXT), {mark} {self._from} {later} LIMIT {settings.max_rows + 1}"
        )
        with translate_errors(), closing(self._connection.execute(text, values)) as cursor:
            return gather_keys(cursor, settings.max_rows)

    def interrupt(self) -> None:
        """See ``Session``."""
        with suppress(SqlError), translate_errors():
            self._connection.interrupt()

    def close(self) -> None:
        """See ``Session``."""
        self._connection.close()

    def _check(self) -> None:
        with closing(self._connection.execute(f"SELECT q.* {self._from} LIMIT 0")) as cursor:
            check_columns([column[0] for column in cursor.description], self._settings)


def _as_number(key: str) -> float:
    try:
        number = int(key)
    except ValueError:
        return float(key)
    return number if -(2**63) <= number < 2**63 else float(key)
