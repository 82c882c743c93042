"""Settings of a source of kind ``view``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from afresh.sources.settings import PositiveSeconds, Seconds, Texts
from afresh.sources.sql.database_url import POSTGRES, check_address
from afresh.sources.sql.settings import DatabaseSettings
from afresh.values.errors import UsageError

VIEW = "{view}"
"""The placeholder for the name of a view, in ``refresh`` and ``stale_when``."""

_LONGEST_RETRY_S = 300.0
_PATTERN = frozenset("*?[")
_DBT_REFRESH = ("dbt", "build", "--select", VIEW)


def _command_or_function(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


class ViewSettings(DatabaseSettings):
    """Settings of a source of kind ``view``. Items are views: materialised views of a PostgreSQL database, or
    any tables and models that ``refresh`` can rebuild.

    ``views`` are names or patterns (``sales.*``) of materialised views; if empty, all of them are items.
    ``depends_on`` names other views, each with the tables and views that it is computed from. ``dbt`` is the
    folder ``target`` of a dbt project, whose models are the views. ``refresh`` is
    a command, as a tuple of words, or ``module:function``. ``stale_when`` is a query or ``module:function``
    that says whether a view is stale, for all views or for each. ``count_writes`` allows triggers in a SQLite
    database. The change counters of the tables that the views depend on are read every ``look_every``
    seconds. A refresh waits up to ``lock_timeout`` seconds for its lock, and may take ``timeout`` seconds.
    ``target_lag`` is the longest lag of its views in seconds, and ``target_lags`` that of single views, by
    name or pattern; the first pattern that fits counts. A change is counted at most ``counter_lag`` seconds
    after its commit."""

    kind: Literal["view"] = "view"
    url: str = Field(default="", repr=False)
    views: Texts = ()
    depends_on: Mapping[str, Texts] = Field(default_factory=dict)
    dbt: str = ""
    refresh: Annotated[tuple[str, ...] | str | None, BeforeValidator(_command_or_function)] = None
    stale_when: str | Mapping[str, str] = ""
    count_writes: bool = False
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

    def unmatched_lags(self, views: Iterable[str]) -> list[str]:
        """Return the names and patterns of ``target_lags`` that fit none of ``views``.

        >>> own = ViewSettings(name="w", url="postgresql:///w", target_lags={"sales.*": "5m", "stok.*": "1h"})
        >>> own.unmatched_lags(["sales.daily", "stock.daily"])
        ['stok.*']
        """
        known = list(views)
        return [one for one in self.target_lags if not any(fnmatchcase(view, one) for view in known)]

    @property
    def listings_every_s(self) -> float | None:
        """The setting ``look_every``, because each listing reads the change counters."""
        return self.look_every

    @property
    def longest_retry_s(self) -> float:
        """Five minutes, because missing rights may be granted and locks released at any time."""
        return _LONGEST_RETRY_S

    @property
    def refresh_with(self) -> tuple[str, ...] | str | None:
        """The setting ``refresh``; by default ``dbt build`` for models of dbt. None means PostgreSQL."""
        return self.refresh if self.refresh is not None else _DBT_REFRESH if self.dbt else None

    @property
    def named_views(self) -> Mapping[str, tuple[str, ...]]:
        """The views that the settings name, each with its dependencies. A name in ``views`` that is not a
        pattern counts, unless it is a materialised view of PostgreSQL, which the catalogue lists."""
        named = {view: tuple(bases) for view, bases in self.depends_on.items()}
        if self.refresh_with is not None:
            named |= {name: () for name in self.views if name not in named and not _PATTERN & set(name)}
        return named

    def stale_question(self, view: str) -> str:
        """Return the query or function that says whether ``view`` is stale; empty if there is none.

        >>> ViewSettings(name="w", refresh=["make"], views=["v"], stale_when="a:b").stale_question("v")
        'a:b'
        """
        return self.stale_when if isinstance(self.stale_when, str) else self.stale_when.get(view, "")

    def selects(self, name: str) -> bool:
        """Return whether the materialised view with this name, written ``schema.view``, is an item.

        >>> ViewSettings(name="w", url="postgresql:///w", views=["sales.*"]).selects("stock.daily")
        False
        """
        if self.dbt:
            return not self.views or any(fnmatchcase(name, pattern) for pattern in self.views)
        if self.depends_on:
            return name in self.depends_on or any(fnmatchcase(name, pattern) for pattern in self.views)
        return not self.views or any(fnmatchcase(name, pattern) for pattern in self.views)

    def model_post_init(self, context: Any, /) -> None:
        del context
        if self.url:
            check_address(self.url, any_database=True)
        _ = self.recipe, self.open_windows
        self._check_refresh()
        self._check_questions()
        try:
            TopologicalSorter(self.depends_on).prepare()
        except CycleError as error:
            circle = " → ".join(reversed(error.args[1]))
            raise UsageError(f"depends_on: the views depend on each other in a circle: {circle}") from None

    def _check_refresh(self) -> None:
        if self.refresh == () or self.refresh == "":
            raise UsageError('refresh: empty: write ["program", "{view}"] or "module:function"')
        if isinstance(self.refresh, str) and ":" not in self.refresh:
            words = 'write a command as a list, ["program", "{view}"], or a function as "module:function"'
            raise UsageError(f"refresh: {self.refresh!r} is neither: {words}")
        is_postgres = self.url.startswith((*POSTGRES, "env:"))  # what the variable holds is checked later
        if self.refresh_with is None and not is_postgres:
            words = "only PostgreSQL has views that can be refreshed: say how, by a command or a function"
            raise UsageError(f"refresh: needed: {words}")
        if self.dbt and (self.depends_on or self.stale_when):
            raise UsageError(
                "dbt: its manifest says what models depend on: leave out depends_on and stale_when"
            )
        if not (self.url or self.named_views or self.dbt):
            raise UsageError("url: needed, or name the views in depends_on or views")

    def _check_questions(self) -> None:
        questions = self.stale_when.values() if isinstance(self.stale_when, Mapping) else [self.stale_when]
        if not self.url and any(is_query(question) for question in questions):
            raise UsageError("stale_when: a query needs url, the database that answers it")
        for view in self.stale_when if isinstance(self.stale_when, Mapping) else ():
            if view not in self.named_views and not self.selects(view):
                raise UsageError(f"stale_when: {view!r} is no view of this source")


def is_query(question: str) -> bool:
    """Return whether a ``stale_when`` is a query, and not a function ``module:function``.

    >>> is_query("SELECT true"), is_query("jobs:is_stale"), is_query("")
    (True, False, False)
    """
    return bool(question) and " " in question.strip()
