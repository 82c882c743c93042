"""Reads the inputs of ``afresh probes``, indexes local, server and proxy records, and asks a live server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from afresh.cli.planning.probes_command import ProbeOptions, ServerOptions
from afresh.probes import keyword_index
from afresh.probes.keyword_index import KeywordAttribute, KeywordIndex, parse_keywords
from afresh.probes.rounds import ProbeAnswer, ServerStoppedError
from afresh.probes.update_models import expected_lag
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import (
    LocalRelation,
    TextColumns,
    check_keys,
    display_place,
    is_postgres,
    table_rows,
)
from afresh.sources.search.search_server import SearchServer, make_server
from afresh.sources.search.settings import SearchSettings
from afresh.sources.settings import read_settings
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.tables.columns import Column
from afresh.tables.reading import CheckedTable, check_rows, read_table
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError, UsageError
from afresh.values.units import number_or_nan

_LONGEST = 1_000_000  # characters of a keyword field; a longer field is a document, or a broken quote
_NARROW = 4  # how many keywords the query has that replaces a look-up by key
_RETRIES = 2
_FIRST_REST = "1s"  # short, because a user waits; a Retry-After header of the server still applies
_PATIENCE_S = 60.0  # the longest wait that the server may ask for


@dataclass(frozen=True, slots=True, eq=False)
class ProbeWorld:
    """The local records (``keys``, ``relation``) with the value of refreshing each, and the keyword indexes
    of the records of the server and of a proxy, None if not given. ``weighed`` is whether values were given;
    if not, all are 1."""

    keys: list[str]
    relation: KeywordIndex
    values: Float64s
    server_keys: list[str]
    server: KeywordIndex | None
    proxy: KeywordIndex | None
    weighed: bool = False

    @property
    def tuples(self) -> int:
        return len(self.keys)


def read_world(options: ProbeOptions, on_read: Callable[[float], None] = lambda _: None) -> ProbeWorld:
    """Read and index the files that the options name. A live server is not asked here. ``on_read`` is called
    with the share (0 to 1) of the work that is done."""
    key, scoped = options.key, not options.any_attribute
    columns = (options.weight, options.rate, options.elapsed)
    attributes = [parse_keywords(text) for text in options.keywords]
    if len({attribute.name for attribute in attributes}) < len(attributes):
        raise UsageError("--keywords: each column once")
    numbers = [name for name in columns if name is not None]
    table = _read(options.relation, key, attributes, numbers)
    on_read(0.1)
    own = keyword_index.index_relation(_texts(table, attributes), attributes, scoped=scoped)
    if table.rows and not own.keywords:
        names = ", ".join(attribute.name for attribute in attributes)
        raise InputError(f"no record has a keyword in {names}: name a column with words", path=table.path)
    indexed, server_keys = None, []
    if not options.is_live:
        remote = _read(options.server, key, attributes, [], unique=False)
        on_read(0.4)
        indexed = keyword_index.index_corpus(own, _texts(remote, attributes), attributes, scoped=scoped)
        server_keys = remote.text(key).tolist()
    on_read(0.7)
    sample = None
    if options.proxy is not None:
        like = _read(options.proxy, None, attributes, [], unique=False)
        sample = keyword_index.index_corpus(own, _texts(like, attributes), attributes, scoped=scoped)
    on_read(1.0)
    values = _values(table, columns)
    return ProbeWorld(table.text(key).tolist(), own, values, server_keys, indexed, sample, bool(numbers))


def is_in_database(place: str) -> bool:
    """Return whether ``place`` names a table of a database (and not a file).

    >>> is_in_database("papers.csv"), is_in_database("papers.db#papers")
    (False, True)
    """
    return "#" in place or is_postgres(place)


def _read(
    path: str,
    key: str | None,
    attributes: Sequence[KeywordAttribute],
    numbers: Sequence[str],
    unique: bool = True,
) -> CheckedTable:
    wanted = [] if key is None else [Column(key, "text", required=True, what="the record's key")]
    taken = {key}
    for attribute in attributes:
        if attribute.name not in taken:
            wanted.append(Column(attribute.name, "text", what="keywords", named_by_user=True))
            taken.add(attribute.name)
    wanted += [Column(name, "number", required=True, minimum=0) for name in numbers if name not in taken]
    if is_in_database(path):
        rows = table_rows(path, [column.name for column in wanted], os.environ.get)
        table = check_rows(display_place(path), wanted, rows)
    else:
        table = read_table(path, wanted, unique=key if unique else None)
    for column in wanted:
        if column.name not in table:
            read_table(path, [replace(column, required=True)])  # its error names the columns that there are
    if is_in_database(path) and key is not None and unique:
        check_keys(TextColumns(table.path, {key: table.text(key).tolist()}), key)
    for attribute in attributes:
        _refuse_long(table, attribute.name)
    return table


def _refuse_long(table: CheckedTable, name: str) -> None:
    lengths = table.text(name).lengths()
    if lengths.size and lengths.max() > _LONGEST:
        index = int(lengths.argmax())
        problem = f"holds {lengths[index]:,} characters: a keyword field has at most {_LONGEST:,}"
        raise table.fault(index, name, problem)


def _texts(table: CheckedTable, attributes: Sequence[KeywordAttribute]) -> dict[str, list[str]]:
    return {attribute.name: table.text(attribute.name).tolist() for attribute in attributes}


def _values(table: CheckedTable, columns: tuple[str | None, str | None, str | None]) -> Float64s:
    """Return the value of each record: weight · expected lag. A factor is 1 if its columns are not given.

    ``columns`` are the names of the columns (weight, rate, elapsed), None if not given."""
    weight, rate, elapsed = columns
    values = np.ones(table.rows) if weight is None else _column(table, weight)
    if rate is not None and elapsed is not None:
        values = values * expected_lag(_column(table, rate), _column(table, elapsed))
    return np.asarray(values, dtype=np.float64)


def _column(table: CheckedTable, name: str) -> Float64s:
    """Return the numbers of a column, also if it was read as text because it is the key or has keywords."""
    if isinstance(table.values[name], np.ndarray):
        return np.asarray(table.numbers(name), dtype=np.float64)
    found = np.empty(table.rows)
    for row, text in enumerate(table.text(name).tolist()):
        found[row] = number_or_nan(text)
        if not 0 <= found[row] < np.inf:
            raise table.fault(row, name, f"is {text!r}: must be a number of 0 or more")
    return found


class LiveServer:
    """A ``ProbeServer`` that sends requests to a live server, one at a time and with delays.

    When the server refuses a request, ``ServerStoppedError`` is raised, and ``trouble`` has the reason."""

    def __init__(self, options: ProbeOptions, world: ProbeWorld) -> None:
        given = {field.name: getattr(options, field.name) for field in fields(ServerOptions)}
        given["bulk"] = options.keys_at_once
        given |= {"name": "--server", "kind": "search", "scoped": not options.any_attribute}
        given["first_rest"] = _FIRST_REST
        self._settings, self._relation = read_settings(SearchSettings, given), world.relation
        self._rows = {key: row for row, key in enumerate(world.keys)}
        self.trouble = ""
        self._answered = False

    @property
    def page_size(self) -> int:
        """The results on a full page, as far as the server's answers show."""
        return self._server.page_size

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._server: SearchServer = self._runner.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._server.close())
        self._runner.close()

    async def _open(self) -> SearchServer:
        whole = LocalRelation(list(self._rows), self._relation, np.ones(len(self._rows)), self._rows)
        return make_server(self._settings, SourceContext(resolver=os.environ.get), whole)

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        """Return one page of the results of a query."""
        words = [self._relation.keywords[word] for word in keywords]
        found = self._runner.run(self._ask_with_retries(lambda: self._server.page(words, number)))
        return ProbeAnswer(found.total, _distinct_keys(found), is_last=found.has_more is False)

    def look_up_many(self, keys: Sequence[str]) -> ProbeAnswer:
        found = self._runner.run(self._ask_with_retries(lambda: self._server.look_up(keys)))
        return ProbeAnswer(found.total, _distinct_keys(found))

    def look_up(self, key: str) -> ProbeAnswer:
        """Request one record by its key. If the server cannot search by key, use the rarest keywords."""
        if not self._settings.finds_keys:
            words = self._relation.by_tuple.row(self._rows[key]).tolist()
            rarest = sorted(words, key=lambda word: self._relation.by_keyword.sizes[word])[:_NARROW]
            return self.page(rarest, 1) if rarest else ProbeAnswer(0, ())
        found = self._runner.run(self._ask_with_retries(lambda: self._server.look_up([key])))
        return ProbeAnswer(found.total, _distinct_keys(found))

    async def _ask_with_retries(self, ask: Callable[[], Awaitable[RecordsAnswer]]) -> RecordsAnswer:
        for attempt in range(_RETRIES + 1):
            found = await ask()
            self._answered |= found.busy or not found.problem
            if not found.problem:
                return found
            wait_s = found.retry_after_s or 0.0
            # If the server never answered before, its address may be wrong, so there are no retries.
            is_final = found.refused or not self._answered
            if is_final or attempt == _RETRIES or not 0 < wait_s <= _PATIENCE_S:
                break
            await asyncio.sleep(wait_s)
        self.trouble = found.problem
        raise ServerStoppedError(found.problem)


def _distinct_keys(found: RecordsAnswer) -> tuple[str, ...]:
    """Return the keys of the records of a page. Records that are equal in all fields count once."""
    distinct: list[KeyedRecord] = []
    for record in found.records:
        if record not in distinct:
            distinct.append(record)
    return tuple(record.key for record in distinct)
