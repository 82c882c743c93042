"""With pyarrow and without it, a file is read as the same values and written as the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.tables import backend
from afresh.tables.arrow import arrow_cells
from afresh.tables.arrow.arrow_texts import arrow_texts
from afresh.tables.arrow.sinks import ArrowTextSink, stored_schema
from afresh.tables.cells import BadCell
from afresh.tables.columns import Column, Kind
from afresh.tables.formats import Layout
from afresh.tables.plain import plain_cells
from afresh.tables.plain.sink import PlainSink
from afresh.tables.reading import read_table
from afresh.tables.text_columns import Texts, join_encoded, join_texts, listed_texts, positions_in
from afresh.tables.writing import write_table

KINDS: dict[str, Kind] = {"item": "text", "x": "number", "n": "count", "ok": "flag", "at": "time"}
finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))


def _checked(module: object, column: Column, cells: object) -> object:
    try:
        values = module.check_cells(column, cells)  # type: ignore[attr-defined]
    except BadCell as bad:
        return bad.index, bad.problem
    return [None if value != value else value for value in values.tolist()]


cell = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["", " ", "\u00a0", " 1 ", "+1", "1_0", "١", "inf", "nan", "1e999", "1.", ".5", "0x1", "1,5"]
    ),
    st.sampled_from(["yes", "No", "TRUE", "0", "1", "maybe", "a"]),
    st.sampled_from(["1970-01-02", "1970-01-01T01:00:01.5Z", "1970-01-01 00:00", "2026-13-01", "soon"]),
    texts,
)


@settings(deadline=None)
@given(
    st.lists(cell, max_size=5),
    st.sampled_from(["text", "any", "number", "count", "time", "flag"]),
    st.booleans(),
)
def test_cells_have_the_same_values_and_faults(cells: list[str], kind: Kind, required: bool) -> None:
    column = Column("x", kind, required=required, maximum=1e6 if kind == "number" else np.inf)
    arrow = _checked(arrow_cells, column, pa.array(cells, pa.large_string()))
    assert _checked(plain_cells, column, cells) == arrow


row = st.tuples(
    st.none() | texts,
    st.none() | st.floats(),
    st.none() | st.integers(-(2**53), 2**53),
    st.none() | st.booleans(),
    st.none() | st.floats(-1e12, 1e12),
)


@settings(deadline=None)
@given(st.lists(row, min_size=1, max_size=5), st.sampled_from(["csv", "jsonl"]))
def test_rows_are_written_as_the_same_bytes(rows: list[tuple[object, ...]], layout: Layout) -> None:
    batch = dict(zip(KINDS, map(list, zip(*rows, strict=True)), strict=True))
    arrow, plain = io.BytesIO(), io.BytesIO()
    ArrowTextSink(layout, arrow, stored_schema(KINDS, batch)).write(batch)
    PlainSink(layout, plain, KINDS).write(batch)
    assert plain.getvalue() == arrow.getvalue()


@given(st.lists(st.floats(width=32), min_size=1), st.sampled_from(["csv", "jsonl"]))
def test_float32_has_its_own_shortest_form(numbers: list[float], layout: Layout) -> None:
    batch = {"x": np.array(numbers, dtype=np.float32)}
    arrow, plain = io.BytesIO(), io.BytesIO()
    ArrowTextSink(layout, arrow, stored_schema({"x": "number"}, batch)).write(batch)
    PlainSink(layout, plain, {"x": "number"}).write(batch)
    assert plain.getvalue() == arrow.getvalue()


def test_masked_numbers_are_empty() -> None:
    batch = {"x": np.ma.masked_invalid([1.0, np.nan])}
    for sink in (ArrowTextSink, PlainSink):
        out = io.BytesIO()
        last = stored_schema({"x": "number"}, batch) if sink is ArrowTextSink else {"x": "number"}
        sink("csv", out, last).write(batch)  # type: ignore[arg-type]
        assert out.getvalue() == b"x\n1\n\n"


@pytest.mark.parametrize("make", [arrow_texts, listed_texts])
@given(names=st.lists(st.text("abé", max_size=2), max_size=9), split=st.integers(0, 9))
def test_columns_of_text_do_the_same(make: type[Texts], names: list[str], split: int) -> None:
    column: Texts = make(names)  # type: ignore[call-arg]
    distinct = list(dict.fromkeys(names))
    encoded = column.encode()
    assert (len(column), column.tolist(), list(column)) == (len(names), names, names)
    assert encoded.labels.tolist() == distinct
    assert encoded.code.tolist() == [distinct.index(name) for name in names]
    assert encoded.decode().tolist() == names
    assert column.lengths().tolist() == [len(name) for name in names]
    backwards = np.arange(len(names))[::-1]
    assert column.take(backwards).tolist() == names[::-1]
    assert [column[row] for row in range(len(names))] == names
    parts: Sequence[Texts] = [make(names[:split]), make(names[split:])]  # type: ignore[call-arg]
    assert join_texts(parts).tolist() == names
    assert join_encoded([part.encode() for part in parts]).decode().tolist() == names
    assert positions_in(make(["a", "b"]), column).tolist() == [  # type: ignore[call-arg]
        {"a": 0, "b": 1}.get(name, -1) for name in names
    ]


@contextmanager
def _without_pyarrow() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "has_extra", lambda _: False)
        yield


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.zst"])
@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(
        st.tuples(texts.filter(str.strip), st.floats(allow_nan=False, allow_infinity=False)), max_size=8
    )
)
def test_what_one_way_writes_the_other_reads(
    tmp_path_factory: pytest.TempPathFactory, ending: str, rows: list[tuple[str, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"both.{ending}"
    columns = [Column("item", "text"), Column("x", "number")]
    values = {"item": [name for name, _ in rows], "x": [number for _, number in rows]}
    write_table(path, {"item": "text", "x": "number"}, values)
    if not rows and ending.startswith("jsonl"):
        return  # an empty file has no columns
    with _without_pyarrow():
        plain = read_table(path, columns)
        write_table(path, {"item": "text", "x": "number"}, values)
    arrow = read_table(path, columns)
    for table in (plain, arrow):
        assert (table.text("item").tolist(), table.numbers("x").tolist()) == (values["item"], values["x"])
