"""Settings of a source of kind ``view``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field

from afresh.sources.settings import PositiveSeconds, Seconds, Texts
from afresh.sources.sql.database_url import sqlite_path
from afresh.sources.sql.settings import DatabaseSettings
from afresh.values.errors import UsageError

_LONGEST_RETRY_S = 300.0


class ViewSettings(DatabaseSettings):
    """Settings of a source of kind ``view``. Items are the materialised views of a PostgreSQL database.

    ``views`` are names or patterns (``sales.*``); if empty, all materialised views are items. The change
    counters of the tables that the views depend on are read every ``look_every`` seconds. A refresh waits up
    to ``lock_timeout`` seconds for its lock, and may take ``timeout`` seconds. ``target_lag`` is the longest
    lag of its views in seconds, and ``target_lags`` that of single views, by name or pattern; the first
    pattern that fits counts. A change is counted at most ``counter_lag`` seconds after its commit."""

    kind: Literal["view"] = "view"
    views: Texts = ()
    look_every: PositiveSeconds = 5.0
    lock_timeout: PositiveSeconds = 5.0
    timeout: PositiveSeconds = 3600.0
    target_lag: PositiveSeconds | None = None
    target_lags: Mapping[str, PositiveSeconds] = Field(default_factory=dict)
    counter_lag: Seconds = 10.0

    @property
    def default_objective(self) -> str | None:
        """The age, by which no view is left out, however expensive its refresh is."""
        return "age"

    @property
    def detection_delay_s(self) -> float:
        """The time between two readings, and the time by which the change counters are behind."""
        return self.look_every + self.counter_lag

    def target_lag_s(self, key: str) -> float | None:
        """Return the target lag of the view ``key`` in seconds; None if it has none.

        >>> lags = {"target_lag": "1h", "target_lags": {"sales.*": "5m"}}
        >>> own = ViewSettings(name="w", url="postgresql:///w", **lags)
        >>> own.target_lag_s("sales.daily"), own.target_lag_s("stock.daily")
        (300.0, 3600.0)
        """
        for pattern, lag_s in self.target_lags.items():
            if fnmatchcase(key, pattern):
                return lag_s
        return self.target_lag

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
