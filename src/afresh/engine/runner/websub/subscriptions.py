"""Subscriptions at hubs (WebSub, W3C Recommendation of 2018), as they are kept in the store.

Each has two records, each written by one side only: the run that sends requests to the hub writes the
``Subscription``, and the server that the hub calls writes the ``HubLease``. The run decides by both what is
to be done next (``next_request``).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from afresh.engine.state_names import HUB_LEASES, HUB_SUBSCRIPTIONS
from afresh.stores.store import Store
from afresh.values.backoff import Backoff

HubRequest: TypeAlias = Literal["subscribe", "unsubscribe", "forget"]
CALLBACK_PATH = "/receive/websub/"
WANTED_LEASE_S = 10 * 86400.0  # the recommendation's example of a long lease; the hub decides
_RENEWED_AT = 0.8  # of the lease
_ANSWERS_WITHIN_S = 600.0  # a hub that has taken a request asks us within this time whether it is ours
_RETRIES = Backoff(first_s=60.0, longest_s=86400.0)
_MOST_FAREWELLS = 3  # requests to end a subscription; then it is left to end by itself


@dataclass(frozen=True, slots=True)
class Subscription:
    """A wish to be told by ``hub`` what the feed ``topic`` publishes, which ``source`` reads at ``feed``.
    ``id`` is part of the address that the hub calls, so nobody else must know it; ``secret`` signs what the
    hub sends. If it ``is_ended``, it is to be undone. The last request was sent at ``asked_s`` (0: none), the
    next one may be sent at ``next_s``, after ``attempts`` without success."""

    id: str
    source: str
    feed: str
    topic: str
    hub: str
    secret: str
    is_ended: bool = False
    asked_s: float = 0.0
    next_s: float = 0.0
    attempts: int = 0

    @classmethod
    def begin(cls, source: str, feed: str, topic: str, hub: str) -> Subscription:
        return cls(secrets.token_urlsafe(24), source, feed, topic, hub, secrets.token_urlsafe(32))

    def save(self, store: Store) -> None:
        store.state.set({HUB_SUBSCRIPTIONS + self.id: json.dumps(asdict(self)).encode()})

    def before_request(self, lease: HubLease, now_s: float) -> Subscription:
        """Return it as it is saved before a request: the hub may call back before it answers. A request that
        the hub denied counts as one without success."""
        is_granted = lease.told_s >= self.asked_s > 0 and not lease.problem
        attempts = 1 if is_granted else self.attempts + 1
        wait_s = max(_ANSWERS_WITHIN_S, _RETRIES.wait_s(attempts))
        return replace(self, asked_s=now_s, next_s=now_s + wait_s, attempts=attempts)

    def after_failure(self, now_s: float) -> Subscription:
        return replace(self, next_s=now_s + _RETRIES.wait_s(self.attempts))

    def ended(self) -> Subscription:
        return replace(self, is_ended=True, next_s=0.0, attempts=0)


@dataclass(frozen=True, slots=True)
class HubLease:
    """What the hub of a subscription has told us at ``told_s``: until when it tells us changes, after a
    lease of ``lease_s`` seconds, or why it refused (``problem``)."""

    told_s: float = 0.0
    until_s: float = 0.0
    lease_s: float = 0.0
    problem: str = ""

    def save(self, store: Store, subscription_id: str) -> None:
        store.state.set({HUB_LEASES + subscription_id: json.dumps(asdict(self)).encode()})


def next_request(wanted: Subscription, lease: HubLease, now_s: float) -> HubRequest | None:
    """Return what is to be done about a subscription now: ask the hub for it, or for its end, or forget it.

    >>> new = Subscription.begin("web", "http://a.test/feed", "http://a.test/feed", "http://hub.test/")
    >>> next_request(new, HubLease(), 100.0)
    'subscribe'
    >>> asked = new.before_request(HubLease(), 100.0)
    >>> next_request(asked, HubLease(), 101.0), next_request(asked, HubLease(), 1000.0)
    (None, 'subscribe')
    >>> held = HubLease(101.0, 1101.0, 1000.0)
    >>> next_request(asked, held, 900.0), next_request(asked, held, 902.0)
    (None, 'subscribe')
    >>> next_request(asked.ended(), held, 500.0), next_request(asked.ended(), held, 1102.0)
    ('unsubscribe', 'forget')
    """
    if wanted.is_ended:
        is_over = lease.until_s <= now_s or wanted.attempts >= _MOST_FAREWELLS
        return "forget" if is_over else "unsubscribe" if now_s >= wanted.next_s else None
    is_answered = lease.told_s >= wanted.asked_s > 0
    if is_answered and not lease.problem:
        return "subscribe" if now_s >= lease.told_s + _RENEWED_AT * lease.lease_s else None
    return "subscribe" if now_s >= wanted.next_s else None


def request_fields(wanted: Subscription, mode: HubRequest, callback: str) -> dict[str, str]:
    """Return the fields of a request to the hub. ``callback`` is the public address of our server."""
    fields = {
        "hub.mode": mode,
        "hub.topic": wanted.topic,
        "hub.callback": f"{callback}{CALLBACK_PATH}{wanted.id}",
    }
    if mode == "subscribe":
        fields |= {"hub.lease_seconds": f"{WANTED_LEASE_S:.0f}", "hub.secret": wanted.secret}
    return fields


def read_subscription(store: Store, subscription_id: str) -> Subscription | None:
    packed = store.state.get(HUB_SUBSCRIPTIONS + subscription_id)
    return None if packed is None else Subscription(**json.loads(packed))


def read_subscriptions(store: Store) -> list[Subscription]:
    names = [name for name in store.state.names() if name.startswith(HUB_SUBSCRIPTIONS)]
    found = (read_subscription(store, name.removeprefix(HUB_SUBSCRIPTIONS)) for name in names)
    return [each for each in found if each is not None]


def read_lease(store: Store, subscription_id: str) -> HubLease:
    packed = store.state.get(HUB_LEASES + subscription_id)
    return HubLease() if packed is None else HubLease(**json.loads(packed))


def forget_subscriptions(store: Store, ids: Iterable[str]) -> None:
    store.state.set({name + each: None for each in ids for name in (HUB_SUBSCRIPTIONS, HUB_LEASES)})
