"""The search site in virtual time: the engine's requests are answered from memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from fastapi import Response
from fastapi.responses import JSONResponse
from tests.servers.search_site import Fts5Finder, SearchSite
from tests.virtual_time import VirtualTime

from afresh.sources.http.fetcher import Reply, Request


@dataclass
class VirtualSearchSite(SearchSite):
    """A ``SearchSite`` that is a fetcher (see ``sources/http/fetcher.py``) instead of a server."""

    time: VirtualTime = field(default_factory=VirtualTime)
    url = "http://search.test"

    def __enter__(self) -> Self:
        self.searches(self.finder or Fts5Finder(self.papers))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._found.close()

    async def check_url(self, url: str) -> None:
        """Every address may be asked."""
        del url

    async def fetch(self, request: Request) -> Reply:
        """The answer that the server would give."""
        found = self._answer(request.url)
        headers = {name.lower(): value for name, value in found.headers.items()}
        return Reply(found.status_code, headers, bytes(found.body), len(found.body))

    async def close(self) -> None:
        """There is nothing to close."""

    def _answer(self, url: str) -> Response:
        parts = urlsplit(url)
        values = dict(parse_qsl(parts.query))
        if parts.path == "/search":
            odd = self.trouble("/search", values) if self.trouble else None
            return odd or JSONResponse(self.search(values["q"], int(values.get("page", "1"))))
        key = unquote(parts.path.removeprefix("/papers/"))
        odd = self.trouble("/papers", {"key": key}) if self.trouble else None
        found = None if odd else self.paper(key)
        return odd or JSONResponse(found or {"error": "no such paper"}, 200 if found else 404)
