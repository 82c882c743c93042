"""What the tests of web APIs share: a client with settings for loopback, and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.servers.api_site import ApiSite
from tests.sources.polling import SetClock

from afresh.sources.context import SourceContext
from afresh.sources.settings import read_settings
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.paging import PagedRequest
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.request_template import Endpoint
from afresh.sources.web_api.settings import WebApiSettings

Found = TypeVar("Found")
QUICK = {"delay": 0, "first_rest": 0.001, "longest_rest": 0.001, "allow_private": True}


def settings_of(**changes: Any) -> WebApiSettings:
    table = {"name": "api", "kind": "test", "key": "id", "respect_robots": False, **QUICK, **changes}
    return read_settings(WebApiSettings, table)


class Asker:
    """A client, and the list at ``path`` of a site."""

    def __init__(self, client: ApiClient, pages: PagedRequest) -> None:
        self.client, self.pages = client, pages

    async def page(self, number: int = 1) -> RecordsAnswer:
        return await self.client.page(self.pages, "all", {}, number, 10)


def ask(
    site: ApiSite,
    work: Callable[[Asker], Awaitable[Found]],
    *,
    path: str | dict[str, Any] = "/list?page={page}",
    clock: SetClock | None = None,
    secrets: dict[str, str] | None = None,
    **changes: Any,
) -> Found:
    """What the work with a client on the site brings. ``path`` may be a table with a body."""

    async def run() -> Found:
        settings = settings_of(**changes)
        context = SourceContext(clock=clock or SetClock(), resolver=(secrets or {}).get)
        client = ApiClient(settings, context)
        table = {"url": path} if isinstance(path, str) else path
        endpoint = Endpoint(**table | {"url": site.url + table["url"]})
        try:
            return await work(Asker(client, settings.list_request("list", endpoint, ["query"])))
        finally:
            await client.close()

    return asyncio.run(run())
