"""CSV as the world writes it, and everything that can be wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from afresh.tables.columns import Column
from afresh.tables.reading import read_table, scan_table
from afresh.values.errors import InputError

pytestmark = pytest.mark.usefixtures("each_way")
MakeFile = Callable[[str, bytes], str]
Columns = tuple[Column, ...]


@pytest.mark.parametrize(
    "data",
    [
        b"item,rate\na,1\nb,2.5\n",
        b"item,rate\na,1\nb,2.5",
        b"\xef\xbb\xbfitem,rate\na,1\nb,2.5\n",
        b"item,rate\r\na,1\r\nb,2.5\r\n",
        b"\n\nitem,rate\n\na,1\n\nb,2.5\n\n\n",
        b" item , rate\na, 1\nb, 2.5 \n",
        b'"item","rate"\n"a","1"\n"b","2.5"\n',
        b"item;rate\na;1\nb;2.5\n",
        b"item\trate\na\t1\nb\t2.5\n",
        b"rate,comment,item\n1,x,a\n+2.5,,b\n",
        b"item,rate\na,1e0\nb,25e-1\n",
    ],
)
def test_reads_the_same_two_rows_however_they_are_written(
    make_file: MakeFile, items: Columns, data: bytes
) -> None:
    table = read_table(make_file("items.csv", data), items, unique="item")
    assert table.text("item").tolist() == ["a", "b"]
    assert table.numbers("rate").tolist() == [1.0, 2.5]
    assert (table.rows, table.share, "weight" in table) == (2, 1.0, False)


def test_quoted_commas_quotes_and_newlines_stay_in_their_cell(make_file: MakeFile, items: Columns) -> None:
    path = make_file("items.csv", b'item,rate\n"a, ""b""\nc",1\n"d",2\n')
    assert read_table(path, items).text("item").tolist() == ['a, "b"\nc', "d"]


def test_empty_cells_and_absent_columns_take_their_default(make_file: MakeFile, items: Columns) -> None:
    header = b"item,rate,weight,max_frequency,changed,time,group\n"
    table = read_table(make_file("items.csv", header + b"a,1,,,,,\nb,2,3,inf,yes,7,g\n"), items)
    assert table.numbers("weight").tolist() == [1, 3]
    assert table.numbers("max_frequency").tolist() == [math.inf, math.inf]
    assert table.flags("changed").tolist() == [False, True]
    assert math.isnan(table.times("time")[0])
    assert table.text("group").tolist() == ["none", "g"]
    assert table.counts("size").tolist() == [1, 1]
    assert table.counts("size").dtype == np.int64
    assert table.given == {"item", "rate", "weight", "max_frequency", "changed", "time", "group"}


def test_absent_text_is_the_default_too(make_file: MakeFile, items: Columns) -> None:
    assert read_table(make_file("a.csv", b"item,rate\na,1\n"), items).text("group").tolist() == ["none"]


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["0", "1.5"], [0, 1.5]),
        (["1970-01-02", "1970-01-01"], [86400, 0]),
        (["1970-01-01T00:01:00", "1970-01-01 00:00:00.25"], [60, 0.25]),
        (["1970-01-01T00:00:00Z", "1970-01-01T01:00:00+02:00"], [0, -3600]),
        (["7", "1970-01-02", "1970-01-01T01:00:00+0100", "19700101T000001Z"], [7, 86400, 0, 1]),
    ],
)
def test_times_are_unix_seconds_or_iso_8601_in_utc(
    make_file: MakeFile, items: Columns, cells: list[str], seconds: list[float]
) -> None:
    rows = "".join(f"{row},1,{cell}\n" for row, cell in enumerate(cells))
    table = read_table(make_file("polls.csv", f"item,rate,time\n{rows}".encode()), items)
    assert table.times("time").tolist() == seconds


def test_flags_are_read_in_any_spelling(make_file: MakeFile, items: Columns) -> None:
    cells = ["0", "1", "true", "False", "YES", "no", " 1 "]
    rows = "".join(f"{row},1,{cell}\n" for row, cell in enumerate(cells))
    table = read_table(make_file("polls.csv", f"item,rate,changed\n{rows}".encode()), items)
    assert table.flags("changed").tolist() == [False, True, True, False, True, False, True]


@pytest.mark.parametrize("data", [b"item,rate\n", b"item,rate", b"item,rate\r\n\r\n"])
def test_a_header_alone_is_an_empty_table(make_file: MakeFile, items: Columns, data: bytes) -> None:
    table = read_table(make_file("items.csv", data), items, unique="item")
    assert (table.rows, table.numbers("rate").size, table.text("item").tolist()) == (0, 0, [])


RIGHT_RATE = "must be a finite number of 0 or more (changes per day)"
RIGHT_TIME = "must be Unix seconds or an ISO 8601 time such as 2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "items.csv: is empty (0 bytes)"),
        (b"\n \n", "items.csv: no column 'item'. It has ''"),
        (b"\n\n", "items.csv: is empty: needs a header line with item, rate"),
        (b"item,rat\na,1\n", "items.csv: no column 'rate': did you mean 'rat'? It has item, rat"),
        (b"item,RATE\na,1\n", "items.csv: no column 'rate': did you mean 'RATE'? It has item, RATE"),
        (b"x\n1\n", "items.csv: no column 'item'. It has x"),
        (b"item,rate,wieght\na,1,2\n", "items.csv, column wieght: is unknown: did you mean 'weight'?"),
        (b"item,rate,rate\na,1,2\n", "items.csv, column rate: occurs twice in the header: keep one"),
        (b"item,rate\na,1\nb,-3\n", f"items.csv, row 2 (line 3), column rate: is -3: {RIGHT_RATE}"),
        (b"item,rate\na,nan\n", f"items.csv, row 1 (line 2), column rate: is nan: {RIGHT_RATE}"),
        (b"item,rate\na,inf\n", f"items.csv, row 1 (line 2), column rate: is inf: {RIGHT_RATE}"),
        (b"item,rate\na,1e999\n", f"items.csv, row 1 (line 2), column rate: is inf: {RIGHT_RATE}"),
        (b"item,rate\na,1\n\nb,fast\n", f"items.csv, row 2 (line 4), column rate: is 'fast': {RIGHT_RATE}"),
        (b"item;rate\na;1,5\n", f"items.csv, row 1 (line 2), column rate: is '1,5': {RIGHT_RATE}"),
        (b"item,rate\na,1\nb, \n", f"items.csv, row 2 (line 3), column rate: is empty: {RIGHT_RATE}"),
        (b"item,rate\n,1\n", "items.csv, row 1 (line 2), column item: is empty: must be text"),
        (b'item,rate\n"x\ny",1\nb,-1\n', f"items.csv, row 2 (line 4), column rate: is -1: {RIGHT_RATE}"),
        (b"item,rate\na,1\nb,2,3\n", "items.csv, row 2 (line 3): has 3 cells, the header has 2"),
        (b"item,rate\na,1\n\n\nb\n", "items.csv, row 2 (line 5): has 1 cell, the header has 2"),
        (b'item,rate\n"a,1\nb,2\n', "items.csv, row 1 (line 2): a quote opened here is never closed"),
        (
            b"item,rate\na,1\n\xe9t\xe9,1\n",
            "items.csv, row 2 (line 3), column item: is not UTF-8: save the file as UTF-8",
        ),
        (
            b"item,rate,size\na,1,2\nb,1,1.5\n",
            "items.csv, row 2 (line 3), column size: is 1.5: must be a whole number of 1 or more",
        ),
        (
            b"item,rate,changed\na,1,maybe\n",
            "items.csv, row 1 (line 2), column changed: is 'maybe': must be 0 or 1 (or true, false, yes, no)",
        ),
        (
            b"item,rate,time\na,1,5\nb,1,2026-13-01\n",
            f"items.csv, row 2 (line 3), column time: is '2026-13-01': {RIGHT_TIME}",
        ),
        (
            b"item,rate\na,1\nb,2\nc,1\nb,3\na,4\n",
            "items.csv, row 4 (line 5), column item: 'b' occurs twice, first in row 2: it must be unique",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    make_file: MakeFile, items: Columns, data: bytes, problem: str
) -> None:
    path = make_file("items.csv", data)
    with pytest.raises(InputError) as raised:
        read_table(path, items, unique="item")
    assert str(raised.value) == str(Path(path).with_name(problem))


def test_columns_of_others_are_ignored(make_file: MakeFile, items: Columns) -> None:
    path = make_file("items.csv", b"item,rate,site,height,frequency,note\na,1,x,2,3,\n")
    assert read_table(path, items).given == {"item", "rate"}


def test_a_misspelling_of_a_column_that_is_there_is_ignored(make_file: MakeFile, items: Columns) -> None:
    path = make_file("items.csv", b"item,rate,weight,weights\na,1,2,3\n")
    assert read_table(path, items).numbers("weight").tolist() == [2]


def test_batches_cover_all_rows_in_order_and_name_rows_of_the_whole_file(
    make_file: MakeFile, items: Columns
) -> None:
    rows = [f"i{row},{row}" for row in range(1000)]
    path = make_file("items.csv", "\n".join(["item,rate", *rows]).encode())
    batches = list(scan_table(path, items, batch_rows=300))
    assert [batch.rows for batch in batches] == [300, 300, 300, 100]
    assert [batch.first_row for batch in batches] == [0, 300, 600, 900]
    assert np.concatenate([batch.numbers("rate") for batch in batches]).tolist() == list(range(1000))
    assert str(batches[2].fault(5, "group", "is unknown")).endswith(
        "row 606 (line 607), column group: is unknown"
    )
    rows[700] = "i700,x"
    path = make_file("items.csv", "\n".join(["item,rate", *rows]).encode())
    with pytest.raises(InputError, match=r"row 701 \(line 702\), column rate: is 'x'"):
        list(scan_table(path, items, batch_rows=300))


def test_blocks_of_a_large_file_join_without_a_seam(make_file: MakeFile, items: Columns) -> None:
    count = 150_000  # several of the reader's blocks
    body = "".join(f'"item, number {row}\nof many, padded to be long",{row}\n' for row in range(count))
    table = read_table(make_file("items.csv", f"item,rate\n{body}".encode()), items, unique="item")
    assert table.rows == count
    assert np.array_equal(table.numbers("rate"), np.arange(count))


def test_a_fault_late_in_a_file_with_quotes_names_its_own_line(make_file: MakeFile, items: Columns) -> None:
    body = "".join(f'"{row}\n",1\n' for row in range(2000))
    path = make_file("items.csv", f"item,rate\n{body}last,-1\n".encode())
    with pytest.raises(InputError, match=r"row 2001 \(line 4002\), column rate: is -1"):
        read_table(path, items)


def test_a_cell_of_any_kind_may_be_longer_than_a_usual_block(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    long = "x" * 9_000_000
    path.write_text(f"id,text\n1,a\n2,{long}\n3,b\n")
    table = read_table(path, [Column("id", "any"), Column("text", "any")])
    assert table.text("text").tolist() == ["a", long, "b"]
