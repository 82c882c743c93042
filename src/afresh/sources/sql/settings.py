"""Settings of a source of kind ``sql``."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field

from afresh.sources.record_numbers import RecordNumbers
from afresh.sources.settings import PositiveSeconds, Seconds, Size, SourceSettings, Texts
from afresh.sources.sql.database_url import check_address
from afresh.values.errors import UsageError

_LIST_EVERY_S = 60.0


class DatabaseSettings(SourceSettings):
    """The settings of sources whose items are in a database. An item that is missing once counts as gone.
    ``url`` is ``sqlite:PATH``, ``postgresql://…``, an address of SQLAlchemy or a secret (``env:NAME``)."""

    url: str = Field(min_length=1, repr=False)
    missing_polls: int = Field(default=1, ge=1)
    missing_time: Seconds = 0.0

    @property
    def lists_items(self) -> bool:
        return True

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        check_address(self.url, any_database=True)


class SqlSettings(DatabaseSettings):
    """Settings of a source of kind ``sql``. Items are the rows of ``query``; its column ``key`` is their key.

    ``cursor`` is a column whose value grows with every change of a row (``updated_at``). It is read every
    ``listings_every`` seconds to find changed rows. A transaction may commit up to ``overlap`` seconds after
    it set the value. All rows are listed every ``full_every`` seconds, to find deleted rows. One statement
    reads up to ``bulk`` rows. Changes in ``ignore_columns`` are ignored. ``weight`` and ``rate`` are
    expressions of columns, for the importance and the expected changes per time of a new item."""

    kind: Literal["sql"] = "sql"
    query: str = Field(min_length=1)
    key: str = Field(min_length=1)
    cursor: str = ""
    overlap: Seconds = 300.0
    listings_every: PositiveSeconds | None = None
    full_every: PositiveSeconds = 3600.0
    bulk: int = Field(default=1000, ge=1, le=10_000)
    ignore_columns: Texts = ()
    max_rows: int = Field(default=10_000_000, ge=1)
    max_size: Size = 10_000_000
    weight: str = ""
    rate: str = ""

    @cached_property
    def numbers(self) -> RecordNumbers:
        return RecordNumbers.parse(self.weight, self.rate)

    @property
    def listings_every_s(self) -> float | None:
        """The seconds between two listings. With a cursor the default is 60, because few rows are read. None
        means that the setting of the run applies."""
        return self.listings_every or (_LIST_EVERY_S if self.cursor else None)

    @property
    def default_min_interval_s(self) -> float | None:
        """The time between two listings: more often, nothing is known of changes."""
        return self.listings_every_s

    @property
    def select(self) -> str:
        """The query in the form of a subquery, without a semicolon at its end."""
        return self.query.strip().removesuffix(";").rstrip()

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        if not self.select.lower().startswith(("select", "with", "table", "values", "(", "--", "/*")):
            raise UsageError(f"query: {self.query!r} is not a SELECT")
        _ = self.numbers  # raises an error if an expression is wrong
        for name in (self.key, self.cursor):
            if name in self.ignore_columns:
                raise UsageError(f"ignore_columns: {name!r} is the key or the cursor: leave it out")
