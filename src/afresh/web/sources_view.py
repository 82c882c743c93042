"""The Sources page: how each source and its hosts are treated, what it learned, what is wrong, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from afresh.engine.engine import Engine
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.settings.tables import SourceTable
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.saved_hosts import HostReport, host_reports
from afresh.sources.http.saved_hosts import read_state as read_http_notes
from afresh.sources.search.saved_records import ScaleNote, read_state
from afresh.values.items import ItemQuery
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.web.watching import Look

_HOSTS, _QUERIES, _FAILING = 50, 20, 200
_SHOWN = ("name", "kind", "delay", "concurrency")
_SECRET = ("headers", "cookies", "proxy", "token", "password", "auth", "url", "dsn")


@dataclass(frozen=True, slots=True)
class HostView:
    """A politeness group: its items by status, how it is treated, and what it was found to do.

    ``delay_s`` is between two requests, what its robots.txt asks for included. ``problem`` says in words why
    the host is left alone, ``rests_until_s`` until when, after ``failures`` in a row; ``failing`` how many of
    its items fail, of those that were looked at, and ``failing_of`` what most of them fail of. ``validators``
    says what is held against its ETag and Last-Modified.
    """

    name: str
    items: int
    by_status: dict[str, int]
    delay_s: float | None = None
    robots: str = ""
    problem: str = ""
    failures: int = 0
    rests_until_s: float | None = None
    validators: tuple[str, ...] = ()
    failing: int = 0
    failing_of: str = ""


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query: its results on the server, how many of our records it was seen to bring, on which pages."""

    query: str
    total: float | None
    brings: int
    pages: int
    asked: int
    asked_s: float


@dataclass(frozen=True, slots=True)
class SearchView:
    """What a search source reached: records seen of those it has, by queries or only by look-ups."""

    records: int
    seen: int
    by_queries: int
    queries: int
    look_ups: int
    shown: list[QueryView]
    scales: list[ScaleNote]


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source; ``kind`` is ``None`` where items name a source that the settings no longer have.

    ``problem`` says why it cannot be listed or looked at; ``views`` are its items whose staleness is seen.
    """

    name: str
    kind: str | None
    delay_s: float | None
    concurrency: int | None
    items: int
    by_status: dict[str, int]
    spent: Spent
    hosts: list[HostView]
    more_hosts: int
    problem: str = ""
    views: list[WatchedItem] = field(default_factory=list)
    search: SearchView | None = None
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        """Whether more items may fail than were counted."""
        return sum(host.failing for host in self.hosts) >= _FAILING


def sources_view(engine: Engine, look: Look) -> list[SourceView]:
    """All sources of the settings, then those that only items name."""
    hosts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for count in engine.store.items.counts():
        hosts[count.source][count.group][count.status] += count.items
    tables = {table.settings.name: table for table in engine.settings.sources}
    return [
        _source(engine, look, name, tables.get(name), hosts[name])
        for name in dict.fromkeys([*tables, *hosts])
    ]


def _source(
    engine: Engine, look: Look, name: str, table: SourceTable | None, hosts: dict[str, Counter[str]]
) -> SourceView:
    total: Counter[str] = Counter()
    for states in hosts.values():
        total.update(states)
    settings = table.settings if table else None
    kind = settings.kind if settings else None
    notes = engine.store.state.get(SOURCE_STATE + name) or b""
    return SourceView(
        name=name,
        kind=kind,
        delay_s=settings.delay_s if settings else None,
        concurrency=table.concurrency if table else None,
        items=total.total(),
        by_status=dict(total),
        spent=sum((row.spent for row in look.ledger if row.source == name), NOTHING_SPENT),
        hosts=_hosts(look, name, table, hosts, notes if kind == "http" else b"", _failing(engine, name)),
        more_hosts=max(0, len(hosts) - _HOSTS),
        problem=next((one.problem for one in look.status.troubles if one.source == name), ""),
        views=[view for view in look.status.views if view.source == name],
        search=search_view(notes) if kind == "search" else None,
        facts=_facts(table),
    )


def _failing(engine: Engine, source: str) -> dict[str, Counter[str]]:
    """By host what its items fail of, and how many of each; of very many not all are counted."""
    query = ItemQuery(status="active", source=source, sort="failures", descending=True)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for item in engine.store.items.page(query, _FAILING).items:
        if item.failures:
            found[item.group][item.problem] += 1
    return found


def _hosts(
    look: Look,
    source: str,
    table: SourceTable | None,
    hosts: dict[str, Counter[str]],
    notes: bytes,
    failing: dict[str, Counter[str]],
) -> list[HostView]:
    """The hosts in trouble first, then those whose validators lie, whose items fail, that have the most."""
    known = read_http_notes(notes)
    untrusted = known.untrusted_hosts()
    rests = {rest.group: rest for name, rest in look.rests if name == source}
    problems = {group: rest.why or "asked to be left alone" for group, rest in rests.items()}
    order = {
        host: (host not in problems, host not in untrusted, host not in failing, -hosts[host].total(), host)
        for host in hosts
    }
    first = sorted(hosts, key=order.__getitem__)[:_HOSTS]
    reports = host_reports(known, first)
    delay_s = table.settings.delay_s if table else None
    found = []
    for host in first:
        report, rest = reports.get(host, HostReport()), rests.get(host, GroupBackoff(host, 0.0))
        found.append(
            HostView(
                host,
                hosts[host].total(),
                dict(hosts[host]),
                None if delay_s is None else max(delay_s, report.crawl_delay_s),
                report.robots,
                problems.get(host, ""),
                rest.failures,
                rest.until_s or None,
                report.validators,
                *_commonest(failing.get(host)),
            )
        )
    return found


def _commonest(failing: Counter[str] | None) -> tuple[int, str]:
    """How many items fail, and what most of them fail of."""
    return (failing.total(), failing.most_common(1)[0][0]) if failing else (0, "")


def search_view(notes: bytes) -> SearchView:
    """What a search source learned, the queries that bring the most first."""
    known = read_state(notes)
    queries = [
        QueryView(
            str(one),
            one.total,
            sum(map(len, one.pages.values())),
            len(one.pages),
            one.asked,
            one.asked_s,
        )
        for one in known.queries
    ]
    queries.sort(key=lambda one: (-one.brings, -one.asked, one.query))
    return SearchView(
        records=known.listed,
        seen=len(known.records),
        by_queries=known.found_by_queries,
        queries=len(queries),
        look_ups=known.look_ups,
        shown=queries[:_QUERIES],
        scales=[one for one in known.scales if one.totals],
    )


def _facts(table: SourceTable | None) -> dict[str, str]:
    """What the settings say beyond the defaults, but for what may be secret."""
    if table is None:
        return {}
    found = {}
    for key, info in type(table.settings).model_fields.items():
        value = getattr(table.settings, key)
        hidden = any(word in key for word in _SECRET) or not info.repr
        plain = isinstance(value, str | int) and not isinstance(value, bool)
        if plain and value != info.default and not hidden and key not in _SHOWN:
            found[key.replace("_", " ")] = str(value)
    if table.on_change:
        found["on change"] = "a hook is told"
    return found
