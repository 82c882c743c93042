"""Takes requests of webhooks: checks them, and makes notices for the items that they name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from afresh.engine.receiving.receiver_error import Received, ReceiverError
from afresh.engine.receiving.signatures import (
    Replays,
    is_signed,
    signed_time,
    signed_time_s,
)
from afresh.engine.settings.receiver_rules import WebhookRules
from afresh.engine.settings.tables import Settings
from afresh.sources.change_detection import compile_json_path
from afresh.sources.http.urls import resolve_link
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import UsageError, did_you_mean

MOST_KEYS, _LONGEST_KEY = 10_000, 8000
_WEB_SCHEMES = ("http://", "https://")


class WebhookReceiver:
    """Takes the requests of all webhooks of the settings. Any thread may call its methods."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, parsers: ParserPool, resolver: Resolver
    ) -> None:
        """Raise ``UsageError`` if a secret does not exist, or a webhook names an unknown source."""
        self._store, self._clock, self._parsers, self._replays = store, clock, parsers, Replays()
        self._rules = settings.web.webhook
        self._secrets = open_webhooks(settings, resolver)

    def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> Received:
        """Take a request for the webhook ``name``. Raise ``ReceiverError`` if it is refused."""
        rules = self._rules.get(name)
        if rules is None:
            raise ReceiverError(404, "there is no such webhook")
        given = headers.get(rules.header.lower(), "")
        self._check(name, rules, given, body)
        if rules.scheme == "token":  # it signs nothing, so the same body may come for another reason
            return self._take(name, rules, body)
        # A signature with a time holds so long before it, and so long after it.
        remember_s = rules.remember * (2.0 if rules.scheme == "timestamp" else 1.0)
        time = signed_time(given) if rules.scheme == "timestamp" else ""
        signed = name.encode(), time.encode(errors="replace"), body
        if not self._replays.is_new(self._clock.now_s(), remember_s, *signed):
            raise ReceiverError(409, "this request was received already")
        try:
            return self._take(name, rules, body)
        except BaseException:
            self._replays.forget(*signed)
            raise

    def _take(self, name: str, rules: WebhookRules, body: bytes) -> Received:
        keys = self._find_keys(name, rules, body)
        spellings = {key: {key, _as_address(key)} for key in keys}
        asked = sorted(set().union(*spellings.values()))
        items = self._store.items.find(asked, rules.source or None)
        self._store.notices.add([item.id for item in items], self._clock.now_s(), f"webhook:{name}")
        known = {item.key for item in items}
        missed = sum(known.isdisjoint(each) for each in spellings.values())
        return Received(len(keys) - missed, missed)

    def _check(self, name: str, rules: WebhookRules, given: str, body: bytes) -> None:
        now_s, secret = self._clock.now_s(), self._secrets[name].reveal()
        if not is_signed(given, secret, body, rules.scheme, rules.algorithm):
            raise ReceiverError(401, f"the signature in {rules.header} is missing or wrong")
        if rules.scheme == "timestamp":
            signed_s = signed_time_s(given)
            if signed_s is None or abs(now_s - signed_s) > rules.remember:
                raise ReceiverError(401, "the signature is too old, or of the future")

    def _find_keys(self, name: str, rules: WebhookRules, body: bytes) -> list[str]:
        arguments = rules.items, rules.template
        try:
            found = self._parsers.parse_here(find_keys, body, *arguments, party=f"webhook:{name}")
        except ParseBudgetError as error:
            raise ReceiverError(400, f"the body cannot be read: {error}") from None
        except ValueError as error:
            raise ReceiverError(400, str(error)) from None
        if len(found) > MOST_KEYS:
            raise ReceiverError(413, f"it names {len(found):,} items: at most {MOST_KEYS:,} at once")
        return found


def find_keys(body: bytes, path: str, template: str) -> list[str]:
    """Return the keys of items that a JSON body names; raise ``ValueError`` if it cannot be read.

    >>> find_keys(b'{"pages": [{"id": 7}, {"id": "a"}, {"id": null}]}', "pages[].id", "http://a.test/{}")
    ['http://a.test/7', 'http://a.test/a']
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    try:
        found = compile_json_path("items", path)(data)
    except Exception:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
        raise ValueError(f"{path!r} cannot be applied to this JSON") from None
    values = found if isinstance(found, list) else [found]
    texts = [str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    keys = (template.replace("{}", text) for text in texts)
    return list(dict.fromkeys(key for key in keys if 0 < len(key) <= _LONGEST_KEY))


def open_webhooks(settings: Settings, resolver: Resolver) -> dict[str, Secret]:
    """Return the secret of each webhook; raise ``UsageError`` if one is empty or does not exist, or a source
    does not exist."""
    found = {}
    for name, rules in settings.web.webhook.items():
        if rules.source and settings.source(rules.source) is None:
            near = did_you_mean(rules.source, [table.settings.name for table in settings.sources])
            raise UsageError(f"[web.webhook.{name}] source: there is no source {rules.source!r}{near}")
        setting = f"[web.webhook.{name}] secret"
        found[name] = resolve(setting, rules.secret, resolver)
        if not found[name].reveal().strip():  # everybody could sign with it
            raise UsageError(f"{setting}: {rules.secret} is empty")
    return found


def _as_address(key: str) -> str:
    """Return an address in the spelling in which links are followed; other keys as they are."""
    found = resolve_link(key, key) if key.startswith(_WEB_SCHEMES) else None
    return found or key
