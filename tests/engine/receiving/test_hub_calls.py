"""What a verified hub may cause: nothing is taken twice, and feeds are not read without end."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator

import pytest
from tests.sources.polling import SetClock

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.receiving.hub_calls import HubCalls
from afresh.engine.receiving.receiver_error import Received
from afresh.engine.runner.websub.subscriptions import HubLease, Subscription
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import LISTED_AT
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.sqlite.memory_store import MemoryStore

FEED = "http://a.test/feed"
ENTRY = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id><title>t</title>
    <link href="http://a.test/1"/></entry></feed>"""
NO_ENTRY = b'<feed xmlns="http://www.w3.org/2005/Atom"/>'


class VerifiedHub:
    """A hub with a subscription of the source ``web`` that it has verified."""

    def __init__(self, engine: Engine, clock: SetClock, parsers: ParserPool) -> None:
        self._calls = HubCalls(engine.store, clock, engine.settings, parsers)
        self._wanted = Subscription.begin("web", FEED, FEED, "http://hub.test/")
        self._wanted.save(engine.store)
        HubLease(clock.time_s, clock.time_s + 1e6, 1e6).save(engine.store, self._wanted.id)

    def send(self, body: bytes, method: str = "sha256") -> Received:
        digest = hmac.new(self._wanted.secret.encode(), body, getattr(hashlib, method)).hexdigest()
        return self._calls.receive(self._wanted.id, {"x-hub-signature": f"{method}={digest}"}, body)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with make_engine(parse_settings('[[source]]\nname = "web"\n'), store=MemoryStore()) as found:
        yield found


def test_what_comes_again_is_not_taken_again(engine: Engine) -> None:
    clock = SetClock()
    with ParserPool(1).joined() as parsers:
        hub = VerifiedHub(engine, clock, parsers)
        assert hub.send(ENTRY).born == 1
        clock.time_s += 200.0
        for method in ("sha256", "sha1", "sha512"):
            assert hub.send(ENTRY, method) == Received(0, 0)


def test_a_hub_that_names_no_entries_lets_the_feed_be_read_once_a_minute(engine: Engine) -> None:
    clock, state = SetClock(1000.0), engine.store.state
    with ParserPool(1).joined() as parsers:
        hub = VerifiedHub(engine, clock, parsers)
        state.set({LISTED_AT + "web": b"9999.0 abc"})
        hub.send(NO_ENTRY)
        assert state.get(LISTED_AT + "web") is None  # at once
        state.set({LISTED_AT + "web": b"9999.0 abc"})  # it was read
        clock.time_s += 1.0
        for number in range(5):
            hub.send(NO_ENTRY + b" " * number)
            assert state.get(LISTED_AT + "web") == b"1060.0"  # later, but not never
        clock.time_s += 200.0
        hub.send(NO_ENTRY)
        assert state.get(LISTED_AT + "web") is None
