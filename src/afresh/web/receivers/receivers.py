"""Everything that this server receives from others: webhooks, and what hubs of feeds tell (WebSub)."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from fastapi import APIRouter

from afresh.engine.engine import Engine
from afresh.engine.receiving.hub_calls import HubCalls
from afresh.engine.receiving.webhooks import WebhookReceiver
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.secrets import Resolver
from afresh.web.receivers.hub_routes import add_hubs
from afresh.web.receivers.receiving_slots import ReceivingSlots
from afresh.web.receivers.webhook_routes import add_webhooks


class Receivers:
    """The routes of receivers (``router``), and the parser processes that read what is received, which run
    inside a ``with`` block. ``names`` are the host names under which others reach these routes."""

    def __init__(self, engine: Engine, secrets: Resolver) -> None:
        self._parsers = ParserPool(1)
        settings = engine.settings
        host = urlsplit(settings.web.callback).hostname
        self.names = () if host is None else (host,)
        self.router = APIRouter(include_in_schema=False)
        place = engine.store, engine.clock, settings, self._parsers
        slots = ReceivingSlots()
        add_webhooks(self.router, WebhookReceiver(*place, secrets), slots)
        add_hubs(self.router, HubCalls(*place), slots)

    def __enter__(self) -> Self:
        self._parsers.join()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parsers.leave()
