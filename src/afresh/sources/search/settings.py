"""Settings of a source of kind ``search``."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Literal

from pydantic import Field

from afresh.probes.keyword_index import KeywordAttribute, parse_keywords
from afresh.sources.change_detection import compile_json_path
from afresh.sources.http.settings import HttpSettings, WebSettings
from afresh.sources.settings import PositiveSeconds, Size, SourceSettings, Texts
from afresh.sources.sql.database_url import POSTGRES
from afresh.values.errors import UsageError

_WEB = ("http://", "https://")
_PAGE_PARTS = ("query", "page", "offset", "size")


class SearchSettings(WebSettings):
    """Settings of a source of kind ``search``. Items are the records of ``relation``, found on ``server``.

    ``relation`` is a CSV, Parquet or JSONL file, FILE.db#TABLE (SQLite), postgresql://…#TABLE or
    env:NAME#TABLE. It has a column ``key``, columns of ``keywords`` (``title``, ``authors:;``) and maybe a
    ``weight``. Each of the content ``fields`` has a measure of dissimilarity: ``absolute``, ``relative``,
    ``unequal`` or ``module:function``.

    ``server`` is a URL with ``{query}`` and ``{page}`` (or ``{offset}``), a database (``sqlite:PATH``,
    ``postgresql://…`` or ``env:NAME``) with a ``table``, or a file of records. For a web server, ``total``,
    ``rows``, ``key_path`` and ``paths`` are JSON paths that locate the number of all results, the list of
    records, and in each record its key and fields."""

    kind: Literal["search"] = "search"
    relation: str = Field(min_length=1, repr=False)
    key: str = Field(min_length=1)
    keywords: Texts = Field(min_length=1)
    fields: Mapping[str, str] = Field(default_factory=dict)
    weight: str = ""
    server: str = Field(min_length=1, repr=False)
    table: str = ""
    records_like: str = ""
    page_size: int = Field(default=10, ge=1)
    limit: int | None = Field(default=None, ge=1)
    scoped: bool = False
    look_up: str = Field(default="", repr=False)
    first_page: int = Field(default=1, ge=0)
    total: str = "total"
    rows: str = "results"
    key_path: str = ""
    paths: Mapping[str, str] = Field(default_factory=dict)
    term: str = ""
    joined_by: str = " "
    listings_every: PositiveSeconds = 60.0
    longest_rest: PositiveSeconds = 3600.0
    max_size: Size = 10_000_000

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
    def over_http(self) -> bool:
        return self.server.startswith(_WEB)

    @property
    def in_database(self) -> bool:
        return self.server.startswith(("sqlite:", "env:", *POSTGRES))

    @property
    def finds_keys(self) -> bool:
        """Whether the server can return a record by its key."""
        return bool(self.look_up) or not self.over_http

    @property
    def http(self) -> HttpSettings:
        """The settings of the HTTP client that sends requests to a web server."""
        own = WebSettings.model_fields.keys() - SourceSettings.model_fields.keys()
        return HttpSettings(
            **{name: getattr(self, name) for name in ("name", "timeout", *own)}, concurrency=1
        )

    def path_of(self, name: str) -> str:
        """Return the JSON path of the key or of a field in a record; by default the name itself."""
        given = self.key_path if name == self.key else self.paths.get(name, "")
        return given or f'"{name}"'

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names):
            raise UsageError("keywords: name each column once")
        for name in self.paths:
            if name not in self.fields:
                raise UsageError(f"paths: {name!r} is none of the fields")
        if self.over_http:
            self._check_web()
        elif self.in_database and not self.table:
            raise UsageError("table: name the server's table, as in table = 'papers'")

    def _check_web(self) -> None:
        parts = _template_parts("server", self.server, _PAGE_PARTS)
        if "query" not in parts:
            raise UsageError("server: needs {query}, as in https://example.org/search?q={query}&page={page}")
        if not parts & {"page", "offset"} and (self.limit is None or self.limit > self.page_size):
            words = "server: needs {page} or {offset}; if there is only one page, set limit"
            raise UsageError(f"{words} = {self.page_size}")
        if self.look_up and "key" not in _template_parts("look_up", self.look_up, ("key",)):
            raise UsageError("look_up: needs {key}, as in https://example.org/records/{key}")
        if self.look_up and not self.look_up.startswith(_WEB):
            raise UsageError("look_up: must be a web address, as in https://example.org/records/{key}")
        _template_parts("term", self.term, ("attribute", "text"))
        for setting in ("total", "rows", "key_path"):
            _check_path(setting, getattr(self, setting))
        for name, path in self.paths.items():
            _check_path(f"paths.{name}", path)


def _template_parts(setting: str, template: str, known: tuple[str, ...]) -> set[str]:
    try:
        found = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError:
        raise UsageError(f"{setting}: a single brace: write {{{{ for a brace itself") from None
    for name in found:
        if name not in known:
            wanted = ", ".join(f"{{{one}}}" for one in known)
            raise UsageError(f"{setting}: {{{name}}} is not known, only {wanted}")
    return found


def _check_path(setting: str, path: str) -> None:
    try:
        if path:
            compile_json_path(setting, path)
    except UsageError:
        raise UsageError(f"{setting}: {path!r} is not a JSON path such as data.results (JMESPath)") from None
