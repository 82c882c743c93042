"""Settings of a source of kind ``api``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Literal

from pydantic import Field

from afresh.sources.record_numbers import RecordNumbers
from afresh.sources.settings import PositiveSeconds, Seconds, Texts
from afresh.sources.web_api.answer_shape import AnswerShape
from afresh.sources.web_api.paging import PagedRequest
from afresh.sources.web_api.request_template import RequiredEndpoint
from afresh.sources.web_api.settings import WebApiSettings
from afresh.values.errors import UsageError


class ApiSettings(WebApiSettings):
    """Settings of a source of kind ``api``. Items are the records that the server lists at ``list``.

    Only records that fulfil ``where`` (a JMESPath condition) are items; ``fields`` are their content, all of
    the record by default. ``cursor`` is the place of a value that grows with every change of a record
    (``updated_at``). If ``list`` contains ``{cursor}``, only the records changed since then are requested,
    whenever that is worth more than other requests, and at least every ``listings_every`` seconds. A change
    may become visible up to ``overlap`` seconds after its cursor was set. All records are listed every
    ``full_every`` seconds, to find deleted ones; one reading has at most ``max_pages`` pages. ``weight`` and
    ``rate`` are expressions of fields, for the importance and the expected changes per time of a new item."""

    kind: Literal["api"] = "api"
    list: RequiredEndpoint = Field(repr=False)
    fields: Texts = ()
    where: str = ""
    cursor: str = ""
    overlap: Seconds = 300.0
    listings_every: PositiveSeconds = 60.0
    full_every: PositiveSeconds = 3600.0
    max_pages: int = Field(default=10_000, ge=1)
    page_size: int = Field(default=100, ge=1)
    missing_polls: int = Field(default=1, ge=1)
    missing_time: Seconds = 0.0
    weight: str = ""
    rate: str = ""

    @cached_property
    def numbers(self) -> RecordNumbers:
        return RecordNumbers.parse(self.weight, self.rate)

    @property
    def lists_items(self) -> bool:
        return True

    @property
    def listings_every_s(self) -> float | None:
        return self.listings_every

    @property
    def field_names(self) -> Collection[str]:
        return self.fields

    @property
    def shape(self) -> AnswerShape:
        return replace(super().shape, where=self.where, cursor=self.cursor)

    @property
    def pages(self) -> PagedRequest:
        """The requests for the pages of the list, without knowledge of tokens."""
        return self.list_request("list", self.list, ["cursor"])

    @property
    def lists_changes(self) -> bool:
        """Whether the server can list only the records that changed since a value of the cursor."""
        return bool(self.cursor) and "cursor" in self.pages.template.parts

    @property
    def keys_at_once(self) -> int:
        """How many records one request can look up by their keys; 0 if it can look up none."""
        if self.bulk_look_up is not None:
            return self.bulk
        return 1 if self.look_up is not None else 0

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        self.check_api()
        for name in self.numbers.columns:  # raises an error if an expression is wrong
            if self.fields and name not in self.fields:
                raise UsageError(f"weight, rate: {name!r} is not among fields = {', '.join(self.fields)}")
        if "cursor" in self.pages.template.parts and not self.cursor:
            raise UsageError("list: {cursor} needs cursor, the place of its value in a record (updated_at)")
