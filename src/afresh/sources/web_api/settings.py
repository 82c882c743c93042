"""The settings that sources of the kinds ``search`` and ``api`` share: requests, paging, access, answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import Field

from afresh.sources.http.settings import HttpSettings, WebSettings
from afresh.sources.settings import PositiveSeconds, Size, SourceSettings
from afresh.sources.web_api.access import OAuthSettings
from afresh.sources.web_api.answer_shape import AnswerFormat, AnswerShape, KeyCase
from afresh.sources.web_api.paging import HEADER, PAGE_PARTS, PagedRequest, PageNumbers, paging_way
from afresh.sources.web_api.request_template import Endpoint, OptionalEndpoint, RequestTemplate
from afresh.values.errors import UsageError


class WebApiSettings(WebSettings):
    """Settings of sources that ask a web API for records.

    ``look_up`` requests one record by ``{key}``, ``bulk_look_up`` up to ``bulk`` records by ``{keys}``, which
    are joined by ``keys_joined_by`` outside of JSON. ``next``, ``first_page`` and ``first_next`` say how
    pages follow each other (``paging``). ``answer``, ``total``, ``rows``, ``record``, ``key_path``, ``paths``
    and the patterns say where an answer has what (``answer_shape``). ``parameters`` are sent in the query of
    every request; they, ``oauth`` and what ``sign`` adds are secrets (``access``)."""

    key: str = Field(min_length=1)
    page_size: int = Field(default=10, ge=1)
    first_page: int = Field(default=1, ge=0)
    next: str = ""
    first_next: str = ""
    look_up: OptionalEndpoint = Field(default=None, repr=False)
    bulk_look_up: OptionalEndpoint = Field(default=None, repr=False)
    bulk: int = Field(default=50, ge=1, le=10_000)
    keys_joined_by: str = "|"
    answer: AnswerFormat = "json"
    total: str = "total"
    total_pattern: str = ""
    rows: str = "results"
    record: str = ""
    key_path: str = ""
    key_pattern: str = ""
    key_case: KeyCase = ""
    paths: Mapping[str, str] = Field(default_factory=dict)
    patterns: Mapping[str, str] = Field(default_factory=dict)
    parameters: Mapping[str, str] = Field(default_factory=dict, repr=False)
    oauth: OAuthSettings | None = Field(default=None, repr=False)
    sign: str = ""
    longest_rest: PositiveSeconds = 3600.0
    max_size: Size = 10_000_000

    @property
    def http(self) -> HttpSettings:
        """The settings of the HTTP client that sends the requests."""
        own = WebSettings.model_fields.keys() - SourceSettings.model_fields.keys()
        return HttpSettings(
            **{name: getattr(self, name) for name in ("name", "timeout", "time_zone", *own)}, concurrency=1
        )

    @property
    def field_names(self) -> Collection[str]:
        """The names of the fields that are the content of a record; none if the whole record is."""
        return ()

    @property
    def shape(self) -> AnswerShape:
        """Where an answer has its records and everything else."""
        return AnswerShape(
            format=self.answer,
            rows=self.rows,
            record=self.record,
            total=self.total,
            total_pattern=self.total_pattern,
            next="" if self.next.startswith(HEADER) else self.next,
            key=self.path_of(self.key),
            key_pattern=self.key_pattern,
            key_case=self.key_case,
            fields={name: self.path_of(name) for name in self.field_names},
            patterns=self.patterns,
        )

    @property
    def access_fingerprint(self) -> str:
        """See ``SourceSettings``. The text contains names of headers and parameters, not their values."""
        names = [*sorted(self.headers), *sorted(self.cookies), *sorted(self.parameters)]
        own = self.oauth and (self.oauth.token_url, self.oauth.scope), self.sign, bool(self.proxy), *names
        return repr((self.allow_private, self.respect_robots, self.user_agent, *own))

    def path_of(self, name: str) -> str:
        """Return the place of the key or of a field in a record. By default it is the name itself: in HTML
        the class of this name, in XML the element."""
        given = self.key_path if name == self.key else self.paths.get(name, "")
        usual = {"json": f'"{name}"', "html": f".{name}", "xml": name}
        return given or usual[self.answer]

    def list_request(self, setting: str, endpoint: Endpoint, known: Collection[str]) -> PagedRequest:
        """Return the requests for the pages of a list. ``known`` are the placeholders that it may contain
        besides those of paging."""
        template = RequestTemplate(setting, endpoint, [*known, *PAGE_PARTS])
        way = paging_way(template.parts, self.next)
        if way != "token" and "next" in template.parts:
            raise UsageError(f"{setting}: {{next}} needs next, the place of the token in an answer")
        numbers = PageNumbers(self.first_page, self.first_next, self.page_size)
        return PagedRequest(template, way, numbers)

    @property
    def look_up_request(self) -> RequestTemplate | None:
        if self.look_up is None:
            return None
        found = RequestTemplate("look_up", self.look_up, ["key"])
        if "key" not in found.parts:
            raise UsageError("look_up: needs {key}, as in https://example.org/records/{key}")
        return found

    @property
    def bulk_request(self) -> RequestTemplate | None:
        if self.bulk_look_up is None:
            return None
        known = ["keys", "size"]
        found = RequestTemplate("bulk_look_up", self.bulk_look_up, known, joined_by=self.keys_joined_by)
        if "keys" not in found.parts:
            raise UsageError("bulk_look_up: needs {keys}, as in https://example.org/records?ids={keys}")
        return found

    def check_api(self) -> None:
        """Raise ``UsageError`` for a mistake in the settings of a web API."""
        self.shape.check()
        _ = self.look_up_request, self.bulk_request
        known = {*self.field_names, *self.shape.texts}
        for setting in ("paths", "patterns"):
            for name in getattr(self, setting):
                if name not in known:
                    raise UsageError(f"{setting}: {name!r} is none of the fields")
