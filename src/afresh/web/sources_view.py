"""The Sources page: what each source is, its hosts, what it costs, and what is wrong, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from afresh.engine.engine import Engine
from afresh.engine.settings import SourceTable
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.web.watching import Look

_HOSTS = 50
_SHOWN = ("name", "kind", "delay", "concurrency")
_SECRET = ("headers", "cookies", "proxy", "token", "password", "auth", "url", "dsn")


@dataclass(frozen=True, slots=True)
class HostView:
    """A politeness group: its items by status, a word of those that fail, and until when it is left alone."""

    name: str
    items: int
    by_status: dict[str, int]
    problem: str = ""
    rests_until_s: float | None = None


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source; ``kind`` is ``None`` where items name a source that the settings no longer have."""

    name: str
    kind: str | None
    delay_s: float | None
    concurrency: int | None
    items: int
    by_status: dict[str, int]
    spent: Spent
    hosts: list[HostView]
    more_hosts: int
    facts: dict[str, str] = field(default_factory=dict)


def sources_view(engine: Engine, look: Look) -> list[SourceView]:
    """All sources of the settings, then those that only items name."""
    hosts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for count in engine.store.items.counts():
        hosts[count.source][count.group][count.status] += count.items
    spent: dict[str, Spent] = {}
    for row in look.ledger:
        spent[row.source] = spent.get(row.source, NOTHING_SPENT) + row.spent
    problems = {(item.source, item.group): item.problem for item in reversed(look.failing)}
    rests = {(name, rest.group): rest for name, rest in look.rests}
    problems |= {place: rest.why or "asked to be left alone" for place, rest in rests.items()}
    until_s = {place: rest.until_s for place, rest in rests.items()}
    tables = {table.settings.name: table for table in engine.settings.sources}
    return [
        _source(name, tables.get(name), hosts[name], spent.get(name, NOTHING_SPENT), problems, until_s)
        for name in dict.fromkeys([*tables, *hosts])
    ]


def _source(
    name: str,
    table: SourceTable | None,
    hosts: dict[str, Counter[str]],
    spent: Spent,
    problems: dict[tuple[str, str], str],
    until_s: dict[tuple[str, str], float],
) -> SourceView:
    total: Counter[str] = Counter()
    for states in hosts.values():
        total.update(states)
    shown = sorted(hosts, key=lambda host: ((name, host) not in problems, -hosts[host].total(), host))
    settings = table.settings if table else None
    return SourceView(
        name=name,
        kind=settings.kind if settings else None,
        delay_s=getattr(settings, "delay", None),
        concurrency=table.concurrency if table else None,
        items=total.total(),
        by_status=dict(total),
        spent=spent,
        hosts=[
            HostView(
                host,
                hosts[host].total(),
                dict(hosts[host]),
                problems.get((name, host), ""),
                until_s.get((name, host)),
            )
            for host in shown[:_HOSTS]
        ],
        more_hosts=max(0, len(shown) - _HOSTS),
        facts=_facts(table),
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
