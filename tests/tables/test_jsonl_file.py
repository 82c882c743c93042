"""JSONL: one object per line, the columns in any order, null for what is not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from afresh.tables.columns import Column
from afresh.tables.reading import read_table
from afresh.values.errors import InputError

pytestmark = pytest.mark.usefixtures("each_way")
MakeFile = Callable[[str, bytes], str]
Columns = tuple[Column, ...]
ROW_2 = "items.jsonl, row 2 (line 2)"
RIGHT_RATE = "must be a finite number of 0 or more (changes per day)"


def test_reads_objects_in_any_order_with_gaps_and_nulls(make_file: MakeFile, items: Columns) -> None:
    data = (
        b'{"item":"a","rate":1}\n\n{"rate":2.5,"item":"b","weight":null,"other":[1,{}]}\n'
        b'{"item":"c","rate":0,"weight":3,"max_frequency":null}\n'
    )
    table = read_table(make_file("items.jsonl", data), items, unique="item")
    assert table.text("item").tolist() == ["a", "b", "c"]
    assert table.numbers("rate").tolist() == [1, 2.5, 0]
    assert table.numbers("weight").tolist() == [1, 1, 3]
    assert table.numbers("max_frequency").tolist() == [math.inf] * 3
    assert "weight" in table  # though the first object does not have it
    assert "group" not in table


def test_kinds_may_differ_from_line_to_line(make_file: MakeFile, items: Columns) -> None:
    data = (
        b'{"item":1,"rate":1,"time":0,"changed":true}\n'
        b'{"item":"b","rate":"2.5","time":"1970-01-02","changed":0}\n'
    )
    table = read_table(make_file("items.jsonl", data), items)
    assert table.text("item").tolist() == ["1", "b"]
    assert table.numbers("rate").tolist() == [1, 2.5]
    assert table.times("time").tolist() == [0, 86400]
    assert table.flags("changed").tolist() == [True, False]


def test_a_change_of_kind_late_in_a_large_file_loses_no_row(make_file: MakeFile, items: Columns) -> None:
    count, padding = 45_000, "x" * 200  # the last line is in the reader's third block
    lines = [f'{{"item":{row},"rate":{row},"note":"{padding}"}}\n' for row in range(count)]
    lines[-1] = f'{{"item":"last","rate":{count - 1}}}\n'
    table = read_table(make_file("items.jsonl", "".join(lines).encode()), items, unique="item")
    assert np.array_equal(table.numbers("rate"), np.arange(count))
    assert table.text("item")[count - 1] == "last"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\n", "items.jsonl: is empty: needs one JSON object per line"),
        (b'{"item":"a"}\n', "items.jsonl: no column 'rate'. It has item"),
        (
            b'{"item":"a","rate":1}\n{"item":"b"}\n',
            f"items.jsonl, row 2 (line 2), column rate: is empty: {RIGHT_RATE}",
        ),
        (
            b'{"item":"a","rate":1}\n\n{"item":"b","rate":"x"}\n',
            f"items.jsonl, row 2 (line 3), column rate: is 'x': {RIGHT_RATE}",
        ),
        (b'{"item":"a","rate":-1}\n', f"items.jsonl, row 1 (line 1), column rate: is -1: {RIGHT_RATE}"),
        (b'{"item":"a","rate":NaN}\n', f"items.jsonl, row 1 (line 1), column rate: is nan: {RIGHT_RATE}"),
        (b'{"item":"a","rate":1e400}\n', f"items.jsonl, row 1 (line 1), column rate: is inf: {RIGHT_RATE}"),
        (b'{"item":"a","rate":true}\n', f"items.jsonl, row 1 (line 1), column rate: is 'true': {RIGHT_RATE}"),
        (
            b'{"item":"a","rate":[1]}\n',
            "items.jsonl, row 1 (line 1), column rate: is '[1]': must be one value",
        ),
        (
            b'{"item":"a","rate":1}\n{"item":"b","rate":"x","n":' + b"9" * 5_000 + b"}\n",
            f"{ROW_2}: has a number with too many digits",
        ),
        (b"[1, 2]\n", "items.jsonl, row 1 (line 1): is '[1, 2]': must be a JSON object"),
        (
            b'{"item":"a","rate":1}\n{"item":"b","ra',
            f"{ROW_2}: is not a JSON object: Unterminated string starting at character 13 (half-written?)",
        ),
        (
            b'{"item":"a","item":"b","rate":1}\n',
            "items.jsonl, row 1 (line 1): is not a JSON object: 'item' occurs twice",
        ),
        (
            b'{"item":"a","rate":1}\n{"item":"\xe9","rate":1}\n',
            "items.jsonl, row 2 (line 2), column item: is not UTF-8: save the file as UTF-8",
        ),
        (
            b'{"item":"\xe9","rate":1}\n',
            "items.jsonl, row 1 (line 1), column item: is not UTF-8: save the file as UTF-8",
        ),
        (b'["\xe9"]\n', "items.jsonl, row 1 (line 1): is not UTF-8: save the file as UTF-8"),
        (
            b'{"item":"a","rate":1}\n{"item":"a","rate":2}\n',
            f"{ROW_2}, column item: 'a' occurs twice, first in row 1: it must be unique",
        ),
        (
            b'{"item":"a","rate":1,"wieght":2}\n',
            "items.jsonl, column wieght: is unknown: did you mean 'weight'?",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    make_file: MakeFile, items: Columns, data: bytes, problem: str
) -> None:
    path = make_file("items.jsonl", data)
    with pytest.raises(InputError) as raised:
        read_table(path, items, unique="item")
    assert str(raised.value) == str(Path(path).with_name(problem))


def test_a_column_of_any_kind_takes_every_value_as_text(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": 7, "tags": ["a", "é"]}\n{"id": 1.50, "tags": true}\n{"id": "x"}\n')
    table = read_table(path, [Column("id", "any"), Column("tags", "any")])
    assert table.text("id").tolist() == ["7", "1.5", "x"]
    assert table.text("tags").tolist() == ['["a", "é"]', "true", ""]
