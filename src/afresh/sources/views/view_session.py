"""What the view source needs from a database, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any, Protocol

from afresh.sources.secrets import Secret
from afresh.sources.sql.database_url import DatabaseKind, duckdb_path, sqlite_path
from afresh.sources.sql.errors import SqlError
from afresh.sources.views.catalogue import Catalogue, CatalogueRelation
from afresh.sources.views.named_views import catalogue_of
from afresh.sources.views.settings import ViewSettings


class ViewSession(Protocol):
    """A connection to the database of a view source. All methods may raise ``SqlError``, and are called in
    one thread, except ``interrupt``."""

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        """Return the tables and views of the database, at least those of ``names``, as they are now, at the
        time ``time_s``. A name that the database does not know is not populated."""

    def is_true(self, query: str) -> bool:
        """Return the truth that a query gives; see ``truth_of``."""

    def refresh(self, view: CatalogueRelation) -> int:
        """Refresh a materialised view. Return a number that identifies its new file."""

    def interrupt(self) -> None: ...
    def close(self) -> None: ...


def truth_of(rows: Sequence[Sequence[Any]]) -> bool:
    """Return the truth of the first value of a result: true or false, 1 or 0. NULL and no row mean false.

    >>> truth_of([(1,)]), truth_of([(None,)]), truth_of([])
    (True, False, False)
    >>> truth_of([("yes",)])
    Traceback (most recent call last):
    afresh.sources.sql.errors.SqlError: stale_when: gives 'yes', which is neither true nor false
    """
    value = rows[0][0] if rows else None
    if value is None or value in (True, False):
        return bool(value)
    raise SqlError(f"stale_when: gives {value!r:.50}, which is neither true nor false")


class NoDatabase:
    """A ``ViewSession`` for a source without a database: nothing is known of the tables."""

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        return catalogue_of(dict.fromkeys(names), (), "", time_s)

    def is_true(self, query: str) -> bool:
        raise SqlError(f"stale_when: no database answers {query!r:.50}: url is needed")

    def refresh(self, view: CatalogueRelation) -> int:
        raise SqlError(f"{view.name}: cannot be refreshed without a command or function: set refresh")

    def interrupt(self) -> None:
        """Do nothing, because no statement runs."""

    def close(self) -> None:
        """Do nothing, because there is no connection."""


def session_opener(
    address: Secret | None, kind: DatabaseKind | None, settings: ViewSettings
) -> Callable[[bool], ViewSession]:
    """Return a function that opens a session; its argument says whether the session only reads."""
    if address is None or kind is None:
        return lambda _: NoDatabase()
    if kind == "postgresql":
        postgres: Any = import_module("afresh.sources.views.postgres_views").PostgresViews
        return lambda reads: postgres(address, settings, read_only=reads)
    if kind == "sqlite":
        sqlite: Any = import_module("afresh.sources.views.sqlite_views").SqliteViews
        path = sqlite_path(address.reveal())
        return lambda _: sqlite(path, settings)
    if kind == "duckdb":
        duckdb: Any = import_module("afresh.sources.views.duckdb_views").DuckdbViews
        return lambda _: duckdb(duckdb_path(address.reveal()), settings)
    other: Any = import_module("afresh.sources.views.sqlalchemy_views").SqlalchemyViews
    return lambda _: other(address, settings)
