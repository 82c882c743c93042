"""What an HTTP source saves about hosts. It is loaded after a restart, and shown on status pages."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field

from afresh.sources.http.hidden_changes import SeenChanges
from afresh.sources.http.robots import AGENT, RobotsNote, restore_rules
from afresh.sources.http.trust import SavedTrust
from afresh.sources.http.urls import host_group
from afresh.sources.http.validators import ValidatorRecord, ValidatorTrust

_VERSION = 1
_DELAY = re.compile("crawl-delay|request-rate", re.IGNORECASE)  # quicker than parsing every file


@dataclass(frozen=True, slots=True)
class HttpState:
    """What an HTTP source saves: robots.txt files, the trust in the validators of each host, the origins that
    redirect to another one of the same site (``aliases``), and how many pages of each class were found to
    need a browser (``render``)."""

    robots: tuple[RobotsNote, ...] = ()
    trust: SavedTrust = field(default_factory=SavedTrust)
    aliases: Mapping[str, str] = field(default_factory=dict)
    render: Mapping[str, tuple[float, float, bool | None]] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return the state as JSON. Version 0.1.0 saved the trust in other fields (``honesty``), which are
        no longer read: it is learned again."""
        hosts = {host: astuple(known) for host, known in self.trust.hosts.items()}
        seen = [(*key, *astuple(counts)) for key, counts in self.trust.seen.items()]
        known = {"v": _VERSION, "robots": self.robots, "trust": hosts, "seen": seen}
        more = {"aliases": dict(self.aliases), "render": dict(self.render)}
        return json.dumps(known | {name: each for name, each in more.items() if each}).encode()

    def untrusted_hosts(self) -> set[str]:
        return {host for host in self.trust.hosts if self.trust.complaints(host)}


@dataclass(frozen=True, slots=True)
class HostReport:
    """What the status page shows of a host. ``robots`` describes its robots.txt, ``crawl_delay_s`` is the
    delay in seconds that it asks for, and ``validators`` are the reasons why its validators are not used."""

    robots: str = ""
    crawl_delay_s: float = 0.0
    validators: tuple[str, ...] = ()


def read_state(packed: bytes) -> HttpState:
    """Read a saved state. Return an empty state if it has the format of another version.

    >>> read_state(b'{"v": 0, "robots": [1]}')
    HttpState(robots=(), trust=SavedTrust(hosts={}, seen={}), aliases={}, render={})
    """
    known = json.loads(packed) if packed else {}
    if known.get("v") != _VERSION:
        return HttpState()
    hosts = {
        host: ValidatorTrust(
            ValidatorRecord(*etag), ValidatorRecord(*modified), ValidatorRecord(*dated), problem
        )
        for host, (etag, modified, dated, problem) in known.get("trust", {}).items()
    }
    seen = {(name, key): SeenChanges(*counts) for name, key, *counts in known.get("seen", ())}
    render = {name: tuple(counts) for name, counts in known.get("render", {}).items()}
    notes = tuple(tuple(note) for note in known.get("robots", ()))
    return HttpState(notes, SavedTrust(hosts, seen), known.get("aliases", {}), render)


def crawl_delays(known: HttpState) -> dict[str, float]:
    """Return the delay between requests, in seconds, for each host whose robots.txt asks for one.

    >>> crawl_delays(HttpState((("http://a.test/robots.txt", 9.0, "User-agent: *\\nCrawl-delay: 3", "", 0),)))
    {'a.test': 3.0}
    """
    asking = (note for note in known.robots if _DELAY.search(note[2]))
    found = {host_group(note[0]): _describe_robots(note)[1] for note in asking}
    return {host: delay_s for host, delay_s in found.items() if delay_s > 0}


def host_reports(known: HttpState, hosts: Collection[str]) -> dict[str, HostReport]:
    robots = {host_group(note[0]): note for note in known.robots}
    return {
        host: HostReport(*_describe_robots(robots.get(host)), known.trust.complaints(host)) for host in hosts
    }


def _describe_robots(note: RobotsNote | None) -> tuple[str, float]:
    if note is None:
        return "", 0.0
    _, expires_s, text, unreadable, failures = note
    if unreadable:
        return unreadable, 0.0
    if not text:
        return "no robots.txt", 0.0
    rules = restore_rules(expires_s, text, unreadable, failures)
    return "robots.txt is followed", rules.crawl_delay_s(AGENT)
