"""Databases that SQLAlchemy reaches, as the place of views: they answer ``stale_when``, and count nothing."""

from __future__ import annotations

from collections.abc import Collection

from afresh.sources.secrets import Secret
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sqlalchemy_connection import SqlalchemyConnection
from afresh.sources.views.catalogue import Catalogue, CatalogueRelation
from afresh.sources.views.named_views import catalogue_of
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.view_session import truth_of


class SqlalchemyViews(SqlalchemyConnection):
    """A ``ViewSession`` for any database that SQLAlchemy reaches."""

    def __init__(self, address: Secret, settings: ViewSettings) -> None:
        super().__init__(address, timeout_s=settings.timeout)

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        return catalogue_of(dict.fromkeys(names), (), "", time_s)

    def is_true(self, query: str) -> bool:
        return truth_of(self.table(query)[1])

    def refresh(self, view: CatalogueRelation) -> int:
        raise SqlError(f"{view.name}: cannot be refreshed without a command or function: set refresh")
