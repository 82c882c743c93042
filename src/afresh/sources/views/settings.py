"""Settings of a source of kind ``view``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from afresh.sources.settings import PositiveSeconds, Texts
from afresh.sources.sql.database_url import sqlite_path
from afresh.sources.sql.settings import DatabaseSettings
from afresh.values.errors import UsageError

_LONGEST_RETRY_S = 300.0


class ViewSettings(DatabaseSettings):
    """Settings of a source of kind ``view``. Items are the materialised views of a PostgreSQL database.

    ``views`` are names or patterns (``sales.*``); if empty, all materialised views are items. The change
    counters of the tables that the views depend on are read every ``look_every`` seconds. A refresh waits up
    to ``lock_timeout`` seconds for its lock, and may take ``timeout`` seconds."""

    kind: Literal["view"] = "view"
    views: Texts = ()
    look_every: PositiveSeconds = 5.0
    lock_timeout: PositiveSeconds = 5.0
    timeout: PositiveSeconds = 3600.0

    @property
    def listings_every_s(self) -> float | None:
        """The setting ``look_every``, because each listing reads the change counters."""
        return self.look_every

    @property
    def longest_retry_s(self) -> float:
        """Five minutes, because missing rights may be granted and locks released at any time."""
        return _LONGEST_RETRY_S

    def selects(self, name: str) -> bool:
        """Return whether the materialised view with this name, written ``schema.view``, is an item.

        >>> ViewSettings(name="w", url="postgresql:///w", views=["sales.*"]).selects("stock.daily")
        False
        """
        return not self.views or any(fnmatchcase(name, pattern) for pattern in self.views)

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        if sqlite_path(self.url) is not None:
            raise UsageError("url: SQLite has no materialised views: write postgresql://… or env:NAME")
