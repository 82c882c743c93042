"""What a source of pages keeps of its hosts, read again: by its successor, and for people."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from afresh.sources.http.robots import AGENT, restore_rules
from afresh.sources.http.trust import ValidatorRecord, ValidatorTrust, complaints
from afresh.sources.http.urls import host_group

NOTES = 1  # version of the notes
_ASKS = re.compile("crawl-delay|request-rate", re.IGNORECASE)  # reading them all would take long
RobotsNote = tuple[str, float, str, str, int]
"""Place, when it expires (Unix seconds), text, why barred, failures."""


@dataclass(frozen=True, slots=True)
class HttpState:
    """robots.txt files and the record of validators, of each host asked."""

    robots: tuple[RobotsNote, ...] = ()
    honesty: Mapping[str, ValidatorTrust] = field(default_factory=dict)

    def liars(self) -> set[str]:
        """The hosts with validators that are held against them."""
        return {host for host, honesty in self.honesty.items() if complaints(honesty)}


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host: what its robots.txt says in words, the delay that it asks for, what its validators did."""

    robots: str = ""
    crawl_delay_s: float = 0.0
    validators: tuple[str, ...] = ()


def read_state(packed: bytes) -> HttpState:
    """Notes as they were kept; of another version none.

    >>> read_state(b'{"v": 0, "robots": [1]}')
    HttpState(robots=(), honesty={})
    """
    known = json.loads(packed) if packed else {}
    if known.get("v") != NOTES:
        return HttpState()
    honesty = {
        host: ValidatorTrust(
            ValidatorRecord(*etag), ValidatorRecord(*modified), ValidatorRecord(*dated), *rest
        )
        for host, (etag, modified, dated, *rest) in known.get("honesty", {}).items()
    }
    return HttpState(tuple(tuple(note) for note in known.get("robots", ())), honesty)


def crawl_delays(known: HttpState) -> dict[str, float]:
    """By host the seconds between requests that its robots.txt asks for; those that ask for none left out.

    >>> crawl_delays(HttpState((("http://a.test/robots.txt", 9.0, "User-agent: *\\nCrawl-delay: 3", "", 0),)))
    {'a.test': 3.0}
    """
    asking = (note for note in known.robots if _ASKS.search(note[2]))
    found = {host_group(note[0]): _robots(note)[1] for note in asking}
    return {host: delay_s for host, delay_s in found.items() if delay_s > 0}


def host_reports(known: HttpState, hosts: Collection[str]) -> dict[str, HostReport]:
    """What is known of some hosts, for people."""
    robots = {host_group(note[0]): note for note in known.robots}
    return {
        host: HostReport(*_robots(robots.get(host)), complaints(known.honesty.get(host, ValidatorTrust())))
        for host in hosts
    }


def _robots(note: RobotsNote | None) -> tuple[str, float]:
    if note is None:
        return "", 0.0
    _, expires_s, text, barred, failures = note
    if barred:
        return barred, 0.0
    if not text:
        return "no robots.txt", 0.0
    rules = restore_rules(expires_s, text, barred, failures)
    return "robots.txt is followed", rules.crawl_delay_s(AGENT)
