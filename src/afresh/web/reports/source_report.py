"""Collects the data of the Sources page: settings, learned properties and problems of sources and hosts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from afresh.engine.engine import Engine
from afresh.engine.settings.tables import SourceTable
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.http.saved_hosts import HostReport, host_reports
from afresh.sources.http.saved_hosts import read_state as read_http_state
from afresh.sources.search.saved_records import read_state as read_search_state
from afresh.values.items import ItemQuery
from afresh.values.outcome import NOTHING_SPENT
from afresh.web.schemas import HostOut, QueryOut, SearchOut, SeenOut, SourceOut
from afresh.web.snapshot_cache import StatusSnapshot

MOST_FAILING = 200  # how many failing items of a source are read at most
_HOSTS_SHOWN, _QUERIES_SHOWN = 50, 20
_SHOWN_ELSEWHERE = ("name", "kind", "delay", "concurrency")
_SECRET = ("headers", "cookies", "proxy", "token", "password", "auth", "url", "dsn")
CountsByStatus = Counter[str]


def report_sources(engine: Engine, snapshot: StatusSnapshot) -> list[SourceOut]:
    """Report the sources in the settings, then sources of items that the settings no longer have."""
    hosts: dict[str, dict[str, CountsByStatus]] = defaultdict(lambda: defaultdict(Counter))
    for count in engine.store.items.counts():
        hosts[count.source][count.group][count.status] += count.items
    tables = {table.settings.name: table for table in engine.settings.sources}
    return [
        _report_source(engine, snapshot, name, tables.get(name), hosts[name])
        for name in dict.fromkeys([*tables, *hosts])
    ]


def _report_source(
    engine: Engine,
    snapshot: StatusSnapshot,
    name: str,
    table: SourceTable | None,
    hosts: dict[str, CountsByStatus],
) -> SourceOut:
    total = sum(hosts.values(), Counter())
    settings = table.settings if table else None
    kind = settings.kind if settings else None
    state = engine.store.state.get(SOURCE_STATE + name) or b""
    spent = sum((row.spent for row in snapshot.ledger if row.source == name), NOTHING_SPENT)
    status = snapshot.status
    return SourceOut(
        name=name,
        kind=kind,
        delay_s=settings.delay_s if settings else None,
        concurrency=settings.polls_at_once if settings else None,
        items=total.total(),
        by_status=dict(total),
        spent=spent,
        hosts=_report_hosts(
            snapshot, name, table, hosts, state if kind == "http" else b"", _count_problems(engine, name)
        ),
        more_hosts=max(0, len(hosts) - _HOSTS_SHOWN),
        problem=next((trouble.problem for trouble in status.troubles if trouble.source == name), ""),
        views=[SeenOut.model_validate(view) for view in status.views if view.source == name],
        search=report_search(state) if kind == "search" else None,
        facts=_list_settings(table),
    )


def _count_problems(engine: Engine, source: str) -> defaultdict[str, Counter[str]]:
    """Count the failing items of each host by problem, but only the 200 items with most failures."""
    query = ItemQuery(status="active", source=source, sort="failures", descending=True)
    problems: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in engine.store.items.page(query, MOST_FAILING).items:
        if item.failures:
            problems[item.group][item.problem] += 1
    return problems


def _report_hosts(
    snapshot: StatusSnapshot,
    source: str,
    table: SourceTable | None,
    hosts: dict[str, CountsByStatus],
    state: bytes,
    problems: defaultdict[str, Counter[str]],
) -> list[HostOut]:
    """Report the hosts of a source, at most 50. Hosts in back-off come first, then hosts with untrusted
    validators, then hosts with failing items, then the others, those with most items first."""
    saved = read_http_state(state)
    untrusted = saved.untrusted_hosts()
    backoffs = {backoff.group: backoff for name, backoff in snapshot.backoffs if name == source}

    paces = {one.group: one.pace_per_s for one in snapshot.status.groups if math.isfinite(one.pace_per_s)}

    def order(host: str) -> tuple[bool, bool, bool, int, str]:
        return host not in backoffs, host not in untrusted, host not in problems, -hosts[host].total(), host

    shown = sorted(hosts, key=order)[:_HOSTS_SHOWN]
    reports, delay_s, found = host_reports(saved, shown), table.settings.delay_s if table else None, []
    for host in shown:
        report, backoff, failing = reports.get(host, HostReport()), backoffs.get(host), problems[host]
        found.append(
            HostOut(
                name=host,
                items=hosts[host].total(),
                by_status=dict(hosts[host]),
                delay_s=None if delay_s is None else max(delay_s, report.crawl_delay_s),
                pace_per_s=paces.get(host),
                robots=report.robots,
                problem=backoff.why or "asked to be left alone" if backoff else "",
                failures=backoff.failures if backoff else 0,
                rests_until_s=backoff.until_s if backoff else None,
                validators=list(report.validators),
                failing=failing.total(),
                failing_of=failing.most_common(1)[0][0] if failing else "",
            )
        )
    return found


def report_search(state: bytes) -> SearchOut:
    """Report what a search source has learned, from its saved state, with the most useful queries first."""
    saved = read_search_state(state)
    queries = [
        QueryOut(
            query=str(query),
            total=query.total,
            brings=sum(map(len, query.pages.values())),
            pages=len(query.pages),
            asked=query.asked,
            asked_s=query.asked_s,
        )
        for query in saved.queries
    ]
    queries.sort(key=lambda query: (-query.brings, -query.asked, query.query))
    return SearchOut(
        records=saved.listed,
        seen=len(saved.records),
        by_queries=saved.found_by_queries,
        queries=len(queries),
        look_ups=saved.look_ups,
        shown=queries[:_QUERIES_SHOWN],
        scales=[scale for scale in saved.scales if scale.totals],
    )


def _list_settings(table: SourceTable | None) -> dict[str, str]:
    """Return the settings of a source that differ from their defaults, except settings that may be secret."""
    if table is None:
        return {}
    found = {}
    for key, info in type(table.settings).model_fields.items():
        value = getattr(table.settings, key)
        is_hidden = any(word in key for word in _SECRET) or not info.repr or key in _SHOWN_ELSEWHERE
        is_simple = isinstance(value, str | int) and not isinstance(value, bool)
        if is_simple and value != info.default and not is_hidden:
            found[key.replace("_", " ")] = str(value)
    if table.on_change:
        found["on change"] = "a hook is told"
    return found
