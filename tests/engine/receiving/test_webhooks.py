"""Webhooks become notices of an origin of their own, and what is not right is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator

import pytest
from tests.sources.polling import SetClock

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.receiving.receiver_error import ReceiverError
from afresh.engine.receiving.webhooks import WebhookReceiver, find_keys
from afresh.engine.settings.describing import settings_as_dict
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.context import no_secrets
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import StoreError, UsageError

PAGE = "https://example.org/p/1"
NOW = 1_000_000_000  # of the clock
SETTINGS = """
[web.webhook.shop]
secret = "env:SHOP"
items = "pages[].id"
template = "https://example.org/p/{}"
[web.webhook.pay]
secret = "another"
items = "url"
header = "Stripe-Signature"
scheme = "timestamp"
source = "web"
[[source]]
name = "web"
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    with make_engine(parse_settings(SETTINGS), store=MemoryStore(), clock=SetClock()) as found:
        found.add([PAGE, "https://example.org/"])
        yield found


@pytest.fixture
def receiver(engine: Engine) -> Iterator[WebhookReceiver]:
    with ParserPool(1).joined() as parsers:
        yield WebhookReceiver(engine.store, engine.clock, engine.settings, parsers, {"SHOP": "hush"}.get)


def signed(body: bytes, secret: str = "hush") -> dict[str, str]:
    return {"x-hub-signature-256": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


def timed(body: bytes, time_s: float) -> dict[str, str]:
    time = f"{time_s:.0f}"
    digest = hmac.new(b"another", time.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={time},v1={digest}"}


def refusal(receiver: WebhookReceiver, name: str, headers: dict[str, str], body: bytes) -> int:
    with pytest.raises(ReceiverError) as error:
        receiver.receive(name, headers, body)
    return error.value.status


def test_a_webhook_becomes_notices_of_its_own_origin(engine: Engine, receiver: WebhookReceiver) -> None:
    body = json.dumps({"pages": [{"id": 1}, {"id": "nowhere"}, {"id": None}]}).encode()
    found = receiver.receive("shop", signed(body), body)
    assert (found.noticed, found.unknown) == (1, 1)
    (item,) = engine.store.items.find([PAGE])
    (notice,) = engine.store.notices.open(0)
    assert (notice.item_id, notice.origin) == (item.id, "webhook:shop")


def test_an_address_is_known_in_other_spellings(engine: Engine, receiver: WebhookReceiver) -> None:
    body = b'{"url": "https://example.org/#top"}'
    found = receiver.receive("pay", timed(body, engine.clock.now_s()), body)
    assert (found.noticed, found.unknown) == (1, 0)
    assert [notice.origin for notice in engine.store.notices.open(0)] == ["webhook:pay"]


def test_what_is_not_right_is_refused(engine: Engine, receiver: WebhookReceiver) -> None:
    body, now_s = b'{"pages": []}', engine.clock.now_s()
    assert refusal(receiver, "nobody", signed(body), body) == 404
    assert refusal(receiver, "shop", {}, body) == 401
    assert refusal(receiver, "shop", signed(body, "guess"), body) == 401
    assert refusal(receiver, "shop", signed(body), b'{"pages": [1]}') == 401
    assert refusal(receiver, "shop", signed(b"no JSON"), b"no JSON") == 400
    deep = b'{"pages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert refusal(receiver, "shop", signed(deep), deep) == 400
    many = json.dumps({"pages": [{"id": number} for number in range(10_001)]}).encode()
    assert refusal(receiver, "shop", signed(many), many) == 413
    assert refusal(receiver, "pay", timed(body, now_s - 301), body) == 401
    assert refusal(receiver, "pay", timed(body, now_s + 301), body) == 401
    assert list(engine.store.notices.open(0)) == []


def test_a_request_that_comes_again_is_refused(engine: Engine, receiver: WebhookReceiver) -> None:
    body = b'{"pages": [{"id": 1}]}'
    receiver.receive("shop", signed(body), body)
    assert refusal(receiver, "shop", signed(body), body) == 409
    assert len(engine.store.notices.open(0)) == 1


def test_a_recorded_request_is_refused_in_every_spelling_of_its_signature(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    body, now_s = b'{"pages": [{"id": 1}]}', engine.clock.now_s()
    (name, text), *_ = signed(body).items()
    receiver.receive("shop", {name: text}, body)
    digest = text.partition("=")[2]
    for other in (digest, digest.upper(), f" {text}", f"SHA256={digest}"):
        assert refusal(receiver, "shop", {name: other}, body) == 409
    (name, text), *_ = timed(body, now_s).items()
    receiver.receive("pay", {name: text}, body)
    for other in (f"{text},v0=1", f"v1=00,{text}", text.replace(",", ", "), text.upper().replace("T=", "t=")):
        assert refusal(receiver, "pay", {name: other.replace("V1", "v1")}, body) == 409


def test_a_request_of_the_future_is_remembered_as_long_as_its_signature_holds(engine: Engine) -> None:
    body, clock = b'{"url": "https://example.org/"}', SetClock()
    receiver = WebhookReceiver(
        engine.store, clock, engine.settings, ParserPool(1), {"SHOP": "hush"}.get
    )  # fmt: skip
    headers = timed(body, clock.time_s + 290.0)
    receiver.receive("pay", headers, body)
    clock.time_s += 400.0
    assert refusal(receiver, "pay", headers, body) == 409


def test_a_request_that_could_not_be_processed_may_come_again(
    engine: Engine, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    body = b'{"pages": [{"id": 1}]}'
    with monkeypatch.context() as patched:
        patched.setattr(engine.store.notices, "add", full)
        with pytest.raises(StoreError):
            receiver.receive("shop", signed(body), body)
    assert receiver.receive("shop", signed(body), body).noticed == 1
    assert refusal(receiver, "shop", signed(body), body) == 409


def _hmac(body: bytes) -> bytes:
    return hmac.new(b"hush", body, hashlib.sha256).digest()


# Requests as the documentation of each sender describes them: header, signature, body, path of the keys.
SENDERS: dict[str, tuple[str, str, Callable[[bytes], str], object, str]] = {
    "github": (
        "hex",
        "X-Hub-Signature-256",
        lambda body: f"sha256={_hmac(body).hex()}",
        {"commits": [{"added": [], "modified": ["p/1"], "removed": ["p/2"]}]},
        "commits[].[added, modified, removed][][]",
    ),
    "shopify": (
        "base64",
        "X-Shopify-Hmac-SHA256",
        lambda body: base64.b64encode(_hmac(body)).decode(),
        {"id": 788, "handle": "p/1"},
        "handle",
    ),
    "stripe": (
        "timestamp",
        "Stripe-Signature",
        lambda body: f"t={NOW},v1=00,v1={_hmac(f'{NOW}.'.encode() + body).hex()},v0=11",
        {"data": {"object": {"id": "p/1"}}},
        "data.object.id",
    ),
    "gitlab": (
        "token",
        "X-Gitlab-Token",
        lambda _: "hush",
        {"commits": [{"modified": ["p/1"]}]},
        "*[].modified[]",
    ),
}


@pytest.mark.parametrize("sender", SENDERS)
def test_requests_of_well_known_senders_are_understood(sender: str) -> None:
    scheme, header, sign, data, path = SENDERS[sender]
    settings = parse_settings(
        f"[web.webhook.{sender}]\nsecret = 'hush'\nitems = '{path}'\nscheme = '{scheme}'\n"
        f"header = '{header}'\ntemplate = 'https://example.org/{{}}'\n"
    )
    body = json.dumps(data).encode()
    with (
        ParserPool(1).joined() as parsers,
        make_engine(settings, store=MemoryStore(), clock=SetClock(NOW)) as engine,
    ):
        engine.add([PAGE])
        receiver = WebhookReceiver(engine.store, engine.clock, settings, parsers, no_secrets)
        assert refusal(receiver, sender, {header.lower(): sign(b"forged") + "x"}, body) == 401
        assert receiver.receive(sender, {header.lower(): sign(body)}, body).noticed == 1


def test_only_texts_and_numbers_are_keys() -> None:
    assert find_keys(b'{"a": [1, true, null, {"b": 1}, "", "x", "x"]}', "a", "{}") == ["1", "x"]
    assert find_keys(b"[]", "a.b", "{}") == []
    assert find_keys(json.dumps({"a": "x" * 9000}).encode(), "a", "{}") == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("items = 'pages['", "not a JMESPath"),
        ("items = 'a'\nsecret = ''", "secret"),
        ("items = 'a'\nheader = 'a b'", "HTTP header"),
        ("items = 'a'\ntemplate = 'x'", "contain {} once"),
        ("items = 'a'\nscheme = 'rot13'", "scheme"),
        ("items = 'a'\nitmes = 'a'", "itmes"),
    ],
)
def test_wrong_settings_are_named(wrong: str, words: str) -> None:
    given = wrong if "secret" in wrong else f"secret = 'x'\n{wrong}"
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        parse_settings(f"[web.webhook.shop]\n{given}\n")


def test_a_missing_secret_or_source_is_named_and_no_secret_is_shown(engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"shop\] secret: the environment has no variable SHOP"):
        WebhookReceiver(engine.store, engine.clock, engine.settings, ParserPool(1), no_secrets)
    for empty in ("", " "):
        with pytest.raises(UsageError, match=r"shop\] secret: env:SHOP is empty"):
            WebhookReceiver(engine.store, engine.clock, engine.settings, ParserPool(1), {"SHOP": empty}.get)
    elsewhere = parse_settings("[web.webhook.a]\nsecret = 'x'\nitems = 'a'\nsource = 'wbe'\n")
    with pytest.raises(UsageError, match="did you mean 'web'"):
        WebhookReceiver(engine.store, engine.clock, elsewhere, ParserPool(1), no_secrets)
    assert "another" not in str(settings_as_dict(engine.settings))
    assert "another" not in repr(engine.settings.web)
    with pytest.raises(UsageError, match="name a webhook"):
        parse_settings("[web.webhook.'a b']\nsecret = 'x'\nitems = 'a'\n")
