"""A dashboard in a thread, over a store with a few items, and plain requests to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sources.polling import SetClock

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.context import NewFetcher, network_fetcher
from afresh.values.clock import Clock
from afresh.web.app import make_app
from afresh.web.server import Server, listen

NOW_S = SetClock().now_s()
TOKEN = "a-token-for-tests-0123456789"
HOSTILE = "https://example.org/<script>alert('x')</script>?a=\"b\"&c"
PLAIN = "https://example.org/plain"
SETTINGS = """
[budget]
requests = "2/s"
price_per_request = 0.001
[[source]]
name = "web"
min_interval = 0
"""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """As text."""
        return self.body.decode()

    def json(self) -> Any:
        """As JSON."""
        return json.loads(self.body)

    def problem(self) -> str:
        """The message of an error of the one shape."""
        found = self.json()
        assert set(found) == {"error"}
        assert set(found["error"]) == {"code", "message", "hint"}
        return str(found["error"]["message"])


class Client:
    """Asks one server; every request on a connection of its own."""

    def __init__(self, server: Server, engine: Engine) -> None:
        self.address, self.engine = server.address, engine
        self.host = server.address.removeprefix("http://").rstrip("/")

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """One request; ``body`` goes as JSON, ``raw`` as it is."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        payload = raw
        if body is not None:
            payload = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path, payload, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """A plain look."""
        return self.ask("GET", path, headers=headers)


def filled(engine: Engine) -> None:
    """A few items with copies that changed, one of them hostile, one that was never polled."""
    engine.add([PLAIN, HOSTILE, *(f"https://example.org/{number:03}" for number in range(120))])
    engine.add(["https://other.example/never"], weight=2.5)
    now_s = engine.clock.now_s()
    for age_s, content in ((300.0, b"first\nline"), (200.0, b"first\n<img src=x onerror=alert(1)>")):
        engine.observe(
            Reported(key, now_s - age_s, content=content, media_type="text/html") for key in (PLAIN, HOSTILE)
        )
    engine.observe(
        Reported(f"https://example.org/{number:03}", now_s - age_s, changed=number % 3 == 0)
        for number in range(100)
        for age_s in (2000.0, 1000.0, 10.0)
    )


def engine_of(
    folder: Path,
    more: str = "",
    clock: Clock | None = None,
    new_fetcher: NewFetcher = network_fetcher,
) -> Engine:
    """An engine over a store in ``folder``; its time stands still unless another clock is given."""
    settings = parse_settings(SETTINGS + more)
    return make_engine(settings, folder, clock=clock or SetClock(), seed=1, new_fetcher=new_fetcher)


def two_shops(folder: Path) -> Engine:
    """An engine whose two further sources both have an item with the key 17, and whose ``web`` has none."""
    shops = "".join(
        f'[[source]]\nname = "{name}"\nkind = "python"\ncall = "builtins:ascii"\n' for name in "ab"
    )
    engine = engine_of(folder, shops)
    for name in "ab":
        engine.add(["17"], source=name)
    return engine


@contextmanager
def dashboard(engine: Engine, token: str | None = TOKEN, *, read_token: bool = False) -> Iterator[Client]:
    """The dashboard of an engine, on any free port."""
    with Server(make_app(engine, token, read_token=read_token), listen("127.0.0.1", 0)) as server:
        yield Client(server, engine)
