"""The SQL statements of the ``sql`` source for any database that SQLAlchemy reaches."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from afresh.sources.secrets import Secret
from afresh.sources.sql.connections import KeyedRecord, keyed_records
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import KeyListing, check_columns, gather_keys, row_limit
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.sql.sqlalchemy_connection import SqlalchemyConnection

if TYPE_CHECKING:
    from sqlalchemy import Select, Subquery

_PARSERS: Mapping[type, Callable[[str], object]] = MappingProxyType(
    {
        int: int,
        float: float,
        Decimal: Decimal,
        uuid.UUID: uuid.UUID,
        datetime.datetime: datetime.datetime.fromisoformat,
        datetime.date: datetime.date.fromisoformat,
    }
)
"""How the text of a key becomes a value of the type of its column, so that an index serves."""

_INVALID_KEY = "22P02"


class SqlalchemySession(SqlalchemyConnection):
    """A connection with the statements of the source. All methods may raise ``SqlError``."""

    def __init__(self, address: Secret, settings: SqlSettings) -> None:
        super().__init__(address, timeout_s=settings.timeout)
        self._settings = settings
        try:
            self._query = self._subquery()
        except SqlError:
            self.close()
            raise
        self._parse: Callable[[str], object] | None = None

    def rows(self, keys: list[str]) -> list[KeyedRecord]:
        """Return the rows with these keys, in any sequence, at most ``row_limit(keys)`` rows."""
        from sqlalchemy import select

        key = self._query.c[self._settings.key]
        values = [self._key_value(text) for text in keys]
        statement = select(key.label("afresh_key"), self._query).where(key.in_(values))
        return keyed_records(self.table(statement.limit(row_limit(keys))))

    def newest(self) -> object:
        """Return the highest value of the cursor column, or None if there is none."""
        from sqlalchemy import func, select

        return self.table(select(func.max(self._query.c[self._settings.cursor])))[1][0][0]

    def list_keys(self, since: object) -> KeyListing:
        """Return the keys of the rows whose cursor value is at least ``since``; of all rows if it is None."""
        from sqlalchemy import literal, select

        settings, columns = self._settings, self._query.c
        mark = columns[settings.cursor] if settings.cursor else literal("")
        statement: Select[Any] = select(
            columns[settings.key], mark, *(columns[name] for name in settings.numbers.columns)
        )
        if since is not None:
            statement = statement.where(columns[settings.cursor] >= since)
        with closing(self.stream(statement.limit(settings.max_rows + 1))) as rows:  # type: ignore[type-var]
            found = (
                (_key_text(key), mark if mark is None else str(mark), *further)
                for key, mark, *further in rows
            )
            return gather_keys(found, settings.max_rows)

    def _subquery(self) -> Subquery:
        """Return the query of the settings as a subquery with the columns that it really has."""
        from sqlalchemy import column, literal_column, select, text

        # SQLAlchemy takes :name for a parameter.
        query = text(self._settings.select.replace(":", "\\:"))
        probe: Select[Any] = (
            select(literal_column("*")).select_from(query.columns().subquery("q")).where(text("1 = 0"))
        )
        names = self.table(probe)[0]
        check_columns(names, self._settings)
        return query.columns(*(column(name) for name in names)).subquery("q")

    def _key_value(self, text: str) -> object:
        """Return the key as a value of the type of its column, which the first row shows."""
        from sqlalchemy import select

        if self._parse is None:
            found = self.table(select(self._query.c[self._settings.key]).limit(1))[1]
            self._parse = _PARSERS.get(type(found[0][0]), str) if found else None
        try:
            return self._parse(text) if self._parse is not None else text
        except (ValueError, InvalidOperation):
            words = f"the key is no value of the key's type: {text!r:.50}"
            raise SqlError(words, state=_INVALID_KEY) from None


def _key_text(value: object) -> object:
    """Return the text of a key; None and bytes stay, so that they are counted and refused."""
    return value if value is None or isinstance(value, bytes) else str(value)
