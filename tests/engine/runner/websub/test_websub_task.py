"""A real hub on loopback: subscriptions are verified, renewed and ended; what it sends becomes notices."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.servers.websub_hub import Hub, call, serve_hub
from tests.waiting import until
from tests.web.running import Running

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.runner.websub.subscriptions import (
    HubLease,
    Subscription,
    next_request,
    read_lease,
    read_subscriptions,
)
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.capabilities import FormAnswer, find_capabilities
from afresh.sources.context import SourceContext
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.source import build_http_source
from afresh.web.app import make_app
from afresh.web.server import Server

SETTINGS = """
[web]
callback = "http://127.0.0.1:{port}"
[run]
listings_every = "{every}"
[[source]]
name = "web"
allow_private = true
respect_robots = false
delay = 0
feeds = ["{address}feed"]
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve_hub() as found:
        yield found


@contextmanager
def subscriber(hub: Hub, folder: Path, every: str = "1h") -> Iterator[tuple[Engine, Server]]:
    """An engine that runs, and its server at the address that hubs are told."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    settings = parse_settings(SETTINGS.format(port=port, address=hub.address, every=every))
    with (
        make_engine(settings, folder) as engine,
        Server(make_app(engine, None, read_token=False), listening) as server,
        Running(engine),
    ):
        yield engine, server


def test_what_a_hub_tells_is_polled_at_once(hub: Hub, tmp_path: Path) -> None:
    with subscriber(hub, tmp_path) as (engine, _):
        hub.wait_for(lambda: bool(hub.callbacks))
        (asked,) = hub.requests
        assert (asked["hub.mode"], asked["hub.topic"]) == ("subscribe", f"{hub.address}feed")
        (wanted,) = read_subscriptions(engine.store)
        lease = read_lease(engine.store, wanted.id)
        assert (lease.lease_s, lease.until_s) == (1000.0, lease.told_s + 1000.0)
        seen = engine.feed.cursor()
        assert hub.publish({"/p/2": "second"}) == [202]  # a new page
        for change in engine.feed.follow(seen, wait=True):
            if change.item == f"{hub.address}p/2":
                break
        assert hub.publish({"/p/1": "first, changed"}, "sha1") == [202]
        origins = {notice.origin for notice in engine.store.notices.open(0)}
        assert origins <= {"websub"}  # unless the poll has answered it already
        for change in engine.feed.follow(seen, wait=True):
            if (change.item, change.kind) == (f"{hub.address}p/1", "changed"):
                break


def test_only_a_verified_hub_with_the_right_signature_is_heard(hub: Hub, tmp_path: Path) -> None:
    hub.names_in_header = True
    with subscriber(hub, tmp_path) as (engine, server):
        hub.wait_for(lambda: bool(hub.callbacks))
        (callback,) = hub.callbacks
        body = hub.feed({"/p/9": "forged"})
        assert hub.send(callback, body, secret="guess") == 401
        assert call(callback, body)[0] == 401
        assert call(f"{server.address}receive/websub/unknown", body)[0] == 410
        topic = f"{hub.address}feed"
        for query in (
            f"hub.mode=unsubscribe&hub.topic={topic}&hub.challenge=x",  # we did not ask for its end
            "hub.mode=subscribe&hub.topic=http://other/&hub.challenge=x",
            f"hub.mode=subscribe&hub.topic={topic}",
            "",
        ):
            assert call(f"{callback}?{query}")[0] == 404
        assert hub.send(callback, b"<feed xmlns='http://www.w3.org/2005/Atom'/>") == 202
        assert hub.send(callback, b"<!DOCTYPE a [<!ENTITY b 'c'>]><feed/>") == 202  # not read: it is no feed
        assert engine.store.items.get(f"{hub.address}p/9") is None


def test_a_feed_that_names_no_hub_any_more_is_left(hub: Hub, tmp_path: Path) -> None:
    with subscriber(hub, tmp_path, every="0.2s") as (engine, _):
        hub.wait_for(lambda: bool(hub.callbacks))
        (callback,) = hub.callbacks
        hub.is_named = False
        hub.wait_for(lambda: not hub.callbacks)
        assert hub.requests[-1]["hub.mode"] == "unsubscribe"
        until(lambda: not read_subscriptions(engine.store))
        assert call(callback, b"")[0] == 410


def test_a_hub_that_refuses_is_asked_again_later(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def retry_wait_s() -> float:
        (wanted,) = read_subscriptions(engine.store)
        return wanted.next_s - wanted.asked_s

    hub.status = 500
    with subscriber(hub, tmp_path) as (engine, _):
        hub.wait_for(lambda: bool(hub.requests))
        until(lambda: 59.0 < retry_wait_s() < 100.0)  # and then after longer and longer waits
        until(lambda: "a hub does not take the subscription" in caplog.text)


@pytest.mark.parametrize("status", [307, 308])
def test_a_hub_that_has_moved_is_asked_at_its_new_place(hub: Hub, tmp_path: Path, status: int) -> None:
    hub.moved = status
    with subscriber(hub, tmp_path):
        hub.wait_for(lambda: bool(hub.callbacks))
        assert [form["hub.mode"] for form in hub.requests] == ["subscribe"]


def test_a_lease_is_renewed_before_it_ends(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.engine.receiving.hub_calls._LEAST_LEASE_S", 1.0)
    hub.lease_s = 3
    with subscriber(hub, tmp_path):
        hub.wait_for(lambda: len(hub.requests) >= 2)
        assert len({form["hub.callback"] for form in hub.requests}) == 1


def test_a_hub_that_denies_is_asked_later(hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hub.denies = True
    with subscriber(hub, tmp_path) as (engine, _):
        hub.wait_for(lambda: bool(hub.requests))
        (wanted,) = read_subscriptions(engine.store)
        until(lambda: read_lease(engine.store, wanted.id).problem == "denied: not here")
        until(lambda: "a hub denies the subscription to a feed" in caplog.text)


def test_a_hub_in_the_own_network_is_refused(hub: Hub) -> None:
    async def send() -> FormAnswer:
        settings = HttpSettings(kind="http", name="web", respect_robots=False)
        source = build_http_source(settings, SourceContext())
        sender = find_capabilities(source).forms
        assert sender is not None
        try:
            return await sender.send_form(f"{hub.address}hub", {"hub.mode": "subscribe"})
        finally:
            await source.close()

    answer = asyncio.run(send())
    assert answer.status is None
    assert "private" in answer.problem
    assert hub.requests == []


def test_a_denied_subscription_waits() -> None:
    asked = Subscription.begin("web", "f", "f", "h").before_request(HubLease(), 100.0)
    denied = HubLease(101.0, problem="denied: no")
    assert next_request(asked, denied, 600.0) is None
    assert next_request(asked, denied, 800.0) == "subscribe"


def test_a_hub_that_denies_again_and_again_is_asked_less_and_less_often() -> None:
    wanted, now_s, waits = Subscription.begin("web", "f", "f", "h"), 100.0, []
    lease = HubLease()
    for _ in range(12):
        wanted = wanted.before_request(lease, now_s)
        lease = HubLease(now_s + 1.0, problem="denied: no")
        waits.append(wanted.next_s - now_s)
        now_s = wanted.next_s
    assert waits == sorted(waits)
    assert waits[-1] == 86400.0
    assert wanted.before_request(HubLease(now_s, now_s + 1e3, 1e3), now_s).attempts == 1


def test_a_subscription_whose_end_no_hub_confirms_is_forgotten() -> None:
    lease = HubLease(101.0, 1e9, 1e9)
    wanted = Subscription.begin("web", "f", "f", "h").before_request(HubLease(), 100.0).ended()
    now_s, asked = 500.0, 0
    while (action := next_request(wanted, lease, now_s)) != "forget":
        if action == "unsubscribe":
            wanted, asked = wanted.before_request(HubLease(), now_s), asked + 1
        now_s += 60.0
    assert asked == 3


def test_nothing_is_asked_without_a_callback(hub: Hub, tmp_path: Path) -> None:
    text = SETTINGS.format(port=1, address=hub.address, every="1h")
    with make_engine(parse_settings(text.replace("callback", "#")), tmp_path) as engine:
        with Running(engine):
            until(lambda: engine.store.items.get(f"{hub.address}p/1"))
        assert read_subscriptions(engine.store) == []
    assert hub.requests == []
