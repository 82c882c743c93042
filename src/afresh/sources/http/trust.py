"""How far the validators of each host are trusted. This is learned from every response of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

from afresh.sources.change_detection import Comparison
from afresh.sources.http.client import FinalResponse
from afresh.sources.http.hidden_changes import NO_CHANGES, RAREST, HiddenShare, SeenChanges, path_class
from afresh.sources.http.statuses import http_date_s
from afresh.sources.http.urls import host_group
from afresh.sources.http.validators import (
    CONDITIONS,
    LIED,
    LOOKED,
    SHOWN,
    ValidatorTrust,
    record_content,
    record_date,
    sendable_validators,
)
from afresh.values.lease import Lease

K = TypeVar("K")
V = TypeVar("V")

_MOST_HOSTS = 100_000  # and as many classes of pages
_MOST_SAVED = 10_000
_NAMES = {"etag": "ETag", "last-modified": "Last-Modified"}


@dataclass(frozen=True, slots=True)
class SavedTrust:
    """The trust in the validators of hosts: ``hosts`` by host, and ``seen``, the changes that polls without
    validators saw, by a tuple (name of the validator, host or class of pages)."""

    hosts: Mapping[str, ValidatorTrust] = field(default_factory=dict)
    seen: Mapping[tuple[str, str], SeenChanges] = field(default_factory=dict)

    def share(self, name: str, host: str, pages: str) -> HiddenShare:
        """Return the share of changes that the validator ``name`` hides in a class of ``pages``."""
        of_host = self.seen.get((name, host), NO_CHANGES)
        return HiddenShare.of(self.seen.get((name, pages), NO_CHANGES), of_host)

    def check_probabilities(self, lease: Lease, url: str) -> dict[str, float]:
        """Return the names of the validators that are trusted in requests for the item of ``lease`` to
        ``url``, each with the probability with which it should be left out as a check."""
        host, pages = host_group(url), path_class(url)
        distrusted = {*self.hosts.get(host, ValidatorTrust()).noisy(), *_names(lease, LIED)}
        proven, found = _names(lease, SHOWN), {}
        for name in CONDITIONS:
            share = self.share(name, host, pages)
            if name not in distrusted and (name in proven or share.is_tolerable):
                found[name] = RAREST if name in proven else share.check_probability
        return found

    def complaints(self, host: str) -> tuple[str, ...]:
        """Return what is wrong with the validators of a host, as texts; empty if all are used.

        >>> SavedTrust(seen={("etag", "a.test"): SeenChanges(hidden=3)}).complaints("a.test")
        ('its ETag stays while the content changes: no longer sent',)
        """
        found = []
        trust = self.hosts.get(host, ValidatorTrust())
        for name, header in _NAMES.items():
            seen = self.seen.get((name, host), NO_CHANGES)
            if not HiddenShare.of(seen, NO_CHANGES).is_tolerable:
                found.append(f"its {header} stays while the content changes: no longer sent")
            elif name in trust.noisy():
                found.append(f"its {header} changes while the content does not: no longer sent")
            elif seen.hidden >= 0.5:
                words = f"its {header} stays on some pages while the content changes"
                found.append(f"{words}: no longer sent for these")
        if trust.dated.is_wrong:
            found.append(f"its Last-Modified is {trust.date_problem or 'wrong'}: not believed as a date")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ContentLesson:
    """What a response with content taught. ``shown`` and ``lied`` are the names of the validators that showed
    or hid a change of this item, now or earlier. ``verified_s`` is the time of the last response with
    content, if responses since then were lies, else None. ``believes_date`` says whether Last-Modified is
    used as the time of a change."""

    shown: tuple[str, ...] = ()
    lied: tuple[str, ...] = ()
    verified_s: float | None = None
    believes_date: bool = True


def draw_number(lease: Lease) -> float:
    """Return a number from 0 to 1 that is different for each lease, as if drawn at random."""
    digest = blake2b(f"{lease.item_id} {lease.token}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class HostTrust:
    """The trust in the validators of each host. An unknown host is trusted. ``draw`` returns a random number
    from 0 to 1 for each lease, which decides whether its poll is a check."""

    def __init__(self, draw: Callable[[Lease], float] = draw_number) -> None:
        self._draw = draw
        self._hosts: dict[str, ValidatorTrust] = {}
        self._seen: dict[tuple[str, str], SeenChanges] = {}
        self._known = SavedTrust(self._hosts, self._seen)

    def save(self) -> SavedTrust:
        """Return what is known of the hosts and classes that were added last."""
        hosts = dict(list(self._hosts.items())[-_MOST_SAVED:])
        return SavedTrust(hosts, dict(list(self._seen.items())[-_MOST_SAVED:]))

    def load(self, saved: SavedTrust) -> None:
        """Add what an earlier process learned, except of hosts that are known already."""
        known = {*self._hosts, *(key for _, key in self._seen)}
        for host, trust in saved.hosts.items():
            self._hosts.setdefault(host, trust)
        for (name, key), seen in saved.seen.items():
            if key not in known:
                self._seen[name, key] = seen

    def conditions(
        self, lease: Lease, url: str, recipe: str, *, conditional: bool, near_duplicate: float | None = None
    ) -> dict[str, str]:
        """Return the conditional headers of a request; none if it is drawn as a check or ``conditional`` is
        False. ``recipe`` is the fingerprint of the item's recipe."""
        validators = sendable_validators(lease, url, recipe, near_duplicate) if conditional else {}
        if not validators:
            return {}
        checks = self._known.check_probabilities(lease, url)
        checks = {name: checks[name] for name in validators if name in checks}
        if not checks or self._draw(lease) < max(checks.values()):
            return {}
        return {CONDITIONS[name]: validators[name] for name in checks}

    def believes_dates(self, url: str) -> bool:
        """Return whether Last-Modified is used as the time of a change."""
        host = host_group(url)
        trust, seen = self._hosts.get(host), self._seen.get(("last-modified", host))
        is_right = trust is None or not trust.dated.is_wrong
        return is_right and (seen is None or HiddenShare.of(seen, NO_CHANGES).is_tolerable)

    def learn_from_content(
        self,
        lease: Lease,
        response: FinalResponse,
        validators: Mapping[str, str],
        found: Comparison,
        now_s: float,
    ) -> ContentLesson:
        """Compare the validators of the copy with those of new content, and return what follows."""
        host, url = host_group(response.url), response.url
        trust = self._hosts.get(host, ValidatorTrust())
        has_copy = found.comparable and lease.content_hash is not None
        looked_s = float(lease.validators[LOOKED]) if LOOKED in lease.validators else None
        copied_s = (lease.polled_s if looked_s is None else looked_s) if has_copy else None
        shown, lied = _names(lease, SHOWN), _names(lease, LIED)
        if has_copy:
            same_url = lease.validators.get("url", lease.key) == validators.get("url", lease.key)
            before = lease.validators if same_url else {}
            trust = record_content(trust, before, validators, changed=found.differs)
            for name, header in CONDITIONS.items():
                if name not in before or name not in validators or name in lied:
                    continue
                hid = found.differs and before[name] == validators[name]
                if hid:
                    lied, shown = (*lied, name), tuple(one for one in shown if one != name)
                elif header in response.headers or name in shown:
                    continue
                elif found.differs:
                    shown = (*shown, name)
                self._count(name, url, changed=found.differs, is_hidden=hid)
        modified_s = http_date_s(validators.get("last-modified"))
        if modified_s is not None:
            trust = record_date(trust, modified_s, now_s, copied_s=copied_s, changed=found.differs)
        self._hosts[host] = trust
        _limit(self._hosts)
        is_lie = len(lied) > len(_names(lease, LIED))
        believes_date = "last-modified" not in lied and self.believes_dates(url)
        return ContentLesson(shown, lied, looked_s if is_lie else None, believes_date)

    def _count(self, name: str, url: str, *, changed: bool, is_hidden: bool) -> None:
        for key in (host_group(url), path_class(url)):
            seen = self._seen.get((name, key), NO_CHANGES)
            self._seen[name, key] = seen.count(changed=changed, is_hidden=is_hidden)
        _limit(self._seen)


def _names(lease: Lease, note: str) -> tuple[str, ...]:
    """Return the names of validators in a note that is stored with the copy."""
    names = lease.validators.get(note)
    return tuple(names.split()) if names else ()


def _limit(known: dict[K, V]) -> None:
    if len(known) > _MOST_HOSTS:
        del known[next(iter(known))]  # what is known longest; it is learned again
