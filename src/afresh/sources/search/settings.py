"""Settings of a source of kind ``search``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from afresh.probes.keyword_index import KeywordAttribute, parse_keywords
from afresh.sources.record_expression import RecordExpression
from afresh.sources.settings import PositiveSeconds, Texts
from afresh.sources.sql.database_url import POSTGRES
from afresh.sources.web_api.answer_shape import AnswerShape
from afresh.sources.web_api.paging import PagedRequest
from afresh.sources.web_api.request_template import WEB, Endpoint, template_parts
from afresh.sources.web_api.settings import WebApiSettings
from afresh.values.errors import UsageError

_PHRASE = '"{text}"'


class SearchSettings(WebApiSettings):
    """Settings of a source of kind ``search``. Items are the records of ``relation``, found on ``server``.

    ``relation`` is a CSV, Parquet or JSONL file, FILE.db#TABLE (SQLite), postgresql://…#TABLE or
    env:NAME#TABLE. It has a column ``key`` and columns of ``keywords`` (``title``, ``authors:;``). ``weight``
    is a column or an expression of columns, and so is ``rate``, the expected changes per time of a record
    (``citations / 4 / y``). Each of the content ``fields`` has a measure of dissimilarity: ``absolute``,
    ``relative``, ``unequal`` or ``module:function``.

    ``server`` is a URL, or a table with a URL and a body, with ``{query}`` and ``{page}``, ``{offset}`` or
    ``{next}``; a database (``sqlite:PATH``, ``postgresql://…`` or ``env:NAME``) with a ``table``; or a file
    of records. ``{column}`` stands for the keywords of one column, which ``{query}`` then does not contain.
    A keyword of several words is written as ``phrase`` says, each keyword of ``{query}`` as ``term``. Records
    of the server that fulfil ``adopt`` (a JMESPath condition) become items too, when a query brings them."""

    kind: Literal["search"] = "search"
    relation: str = Field(min_length=1, repr=False)
    keywords: Texts = Field(min_length=1)
    fields: Mapping[str, str] = Field(default_factory=dict)
    weight: str = ""
    rate: str = ""
    server: Annotated[str, Field(min_length=1)] | Endpoint = Field(repr=False)
    table: str = ""
    records_like: str = ""
    limit: int | None = Field(default=None, ge=1)
    scoped: bool = False
    term: str = ""
    phrase: str = _PHRASE
    joined_by: str = " "
    adopt: str = ""
    listings_every: PositiveSeconds = 60.0

    @property
    def lists_items(self) -> bool:
        return True

    @property
    def listings_every_s(self) -> float | None:
        return self.listings_every

    @property
    def attributes(self) -> tuple[KeywordAttribute, ...]:
        """The columns of keywords, each with the character that separates its keywords."""
        return tuple(parse_keywords(text) for text in self.keywords)

    @property
    def weight_expression(self) -> RecordExpression | None:
        return RecordExpression.parse("weight", self.weight) if self.weight else None

    @property
    def rate_expression(self) -> RecordExpression | None:
        return RecordExpression.parse("rate", self.rate, per_time=True) if self.rate else None

    @property
    def place(self) -> str:
        """The address of the server, or the path of its file."""
        return self.server.url if isinstance(self.server, Endpoint) else self.server

    @property
    def over_http(self) -> bool:
        return self.place.startswith(WEB)

    @property
    def in_database(self) -> bool:
        return self.place.startswith(("sqlite:", "env:", *POSTGRES))

    @property
    def finds_keys(self) -> bool:
        """Whether the server can return a record by its key."""
        return self.look_up is not None or self.bulk_look_up is not None or not self.over_http

    @property
    def keys_at_once(self) -> int:
        """How many records one request can look up by their keys."""
        return self.bulk if self.bulk_look_up is not None and self.over_http else 1

    @property
    def field_names(self) -> Collection[str]:
        return self.fields

    @property
    def shape(self) -> AnswerShape:
        texts = {attribute.name: self.path_of(attribute.name) for attribute in self.attributes}
        return replace(super().shape, adopt=self.adopt, texts=texts if self.adopt else {})

    @property
    def own_columns(self) -> list[str]:
        """The columns of keywords that have a placeholder of their own in requests."""
        names = [attribute.name for attribute in self.attributes]
        return [name for name in names if name in self.query_request.template.parts]

    @property
    def query_request(self) -> PagedRequest:
        """The requests for the pages of results of a query, without knowledge of tokens."""
        endpoint = self.server if isinstance(self.server, Endpoint) else Endpoint(url=self.server)
        known = ["query", *(attribute.name for attribute in self.attributes)]
        return self.list_request("server", endpoint, known)

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names):
            raise UsageError("keywords: name each column once")
        if self.adopt and not self.over_http:
            raise UsageError("adopt: only records of a web server can be adopted")
        _ = self.weight_expression, self.rate_expression  # raise an error if they are wrong
        if self.over_http:
            self._check_web()
        elif self.in_database and not self.table:
            raise UsageError("table: name the server's table, as in table = 'papers'")

    def _check_web(self) -> None:
        self.check_api()
        pages = self.query_request
        parts = pages.template.parts
        own = self.own_columns
        if "query" not in parts and not own:
            raise UsageError("server: needs {query}, as in https://example.org/search?q={query}&page={page}")
        if own and not self.scoped:
            raise UsageError(f"server: {{{own[0]}}} asks for keywords of one column, so set scoped = true")
        if "query" not in parts and len(own) < len(self.attributes):
            missing = [one.name for one in self.attributes if one.name not in own]
            raise UsageError(
                f"server: keywords of {missing[0]!r} have no place: add {{query}} or {{{missing[0]}}}"
            )
        if pages.way == "single" and (self.limit is None or self.limit > self.page_size):
            words = "server: needs {page} or {offset}, or next; if there is only one page, set limit"
            raise UsageError(f"{words} = {self.page_size}")
        template_parts("term", self.term, ("attribute", "text"))
        if "text" not in template_parts("phrase", self.phrase, ("text",)):
            raise UsageError("phrase: needs {text}, as in ({text})")
