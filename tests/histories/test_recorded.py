"""Histories in files: what is one, and how each thing that is not one is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from afresh.histories.recorded import item_indices, read_notices, read_recorded
from afresh.values.errors import InputError
from afresh.values.formatting import format_iso_time


@pytest.fixture(autouse=True)
def _folder_with_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("items.csv", "item\na\nb\nstill\n")


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_rows_in_any_order_are_sorted() -> None:
    write("c.csv", "item,time\nb,30\na,20\nb,10\na,10\n")
    found = read_recorded("c.csv", "items.csv", 0, 100)
    assert found.time.tolist() == [10, 10, 20, 30]
    assert found.item.tolist() == [0, 1, 0, 1]
    assert found.names.tolist() == ["a", "b", "still"]
    assert (found.start, found.end, found.group, found.remarks) == (0, 100, None, ())
    assert np.all(found.weight == 1)
    assert np.all(found.cost == 1)


def test_items_may_have_weight_cost_and_group() -> None:
    write("c.csv", "item,time\n")
    write("i.csv", "item,weight,cost,group\na,2,3,x\nb,,1,\n")
    found = read_recorded("c.csv", "i.csv", 0, 1)
    assert (found.weight.tolist(), found.cost.tolist(), found.group) == ([2, 1], [3, 1], ("x", ""))


def test_iso_times_and_compressed_files() -> None:
    with gzip.open("c.csv.gz", "wt") as file:
        file.write("item,time\na,1970-01-02\nb,1970-01-01T00:00:05Z\n")
    assert read_recorded("c.csv.gz", "items.csv", 0, 1e6).time.tolist() == [5, 86400]


def test_the_window_holds_its_end_but_not_its_start_where_every_copy_is_fresh() -> None:
    write("c.csv", "item,time\na,10\na,15\na,20\n")
    assert read_recorded("c.csv", "items.csv", 10, 20).time.tolist() == [15, 20]


def test_what_is_not_said_is_assumed_and_remarked() -> None:
    write("c.csv", "item,time\nb,86400\na,0\n")
    found = read_recorded("c.csv", None)
    assert (found.start, found.end) == (0, 86400)
    assert found.names.tolist() == ["b", "a"]
    assert found.item.tolist() == [0]
    assert found.remarks == (
        "without --items only the 2 items that change are known, and no others",
        "without --start the history starts at its first change, 1970-01-01T00:00:00Z",
        "without --end it ends at its last change, 1970-01-02T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("item,time\na,10\nstil,20\n", r"c\.csv, row 2 \(line 3\), column item: 'stil' is no item of i"),
        ("item,time\na,10\nstil,20\n", "did you mean 'still'"),
        (
            "item,time\na,10\nb,101\n",
            r"row 2 \(line 3\), column time: is 1970-01-01T00:01:41Z: after the end",
        ),
        ("item,time\na,-1\n", r"c\.csv, row 1 .*column time: is 1969-12-31T23:59:59Z: before the start"),
        ("item,time\na,\n", r"c\.csv, row 1 .*column time: is empty"),
        ("item,time\na,soon\n", r"c\.csv, row 1 .*column time: is 'soon'"),
        ("item,tme\na,1\n", r"c\.csv: no column 'time': did you mean 'tme'"),
    ],
)
def test_what_is_no_change_is_named_with_file_and_row(changes: str, words: str) -> None:
    write("c.csv", changes)
    with pytest.raises(InputError, match=words):
        read_recorded("c.csv", "items.csv", 0, 100)


def test_an_empty_window_is_refused() -> None:
    write("c.csv", "item,time\na,10\n")
    for start, end in ((20, 20), (20, 10)):
        with pytest.raises(
            InputError, match=r"c\.csv: the window is empty: it starts at 1970-01-01T00:00:20Z"
        ):
            read_recorded("c.csv", "items.csv", start, end)
    with pytest.raises(InputError, match="the window is empty"):
        read_recorded("c.csv", "items.csv")


def test_a_history_without_changes_needs_a_window() -> None:
    write("c.csv", "item,time\n")
    with pytest.raises(InputError, match="does not say when it starts"):
        read_recorded("c.csv", "items.csv", 0)
    assert read_recorded("c.csv", "items.csv", 0, 1).time.size == 0


def test_no_items_and_items_that_repeat_are_refused() -> None:
    write("c.csv", "item,time\n")
    write("none.csv", "item\n")
    with pytest.raises(InputError, match=r"none\.csv: has no rows"):
        read_recorded("c.csv", "none.csv", 0, 1)
    write("twice.csv", "item\na\nb\na\n")
    with pytest.raises(InputError, match=r"twice\.csv, row 3 .*'a' occurs twice, first in row 1"):
        read_recorded("c.csv", "twice.csv", 0, 1)


def test_further_events_are_checked_against_the_same_items_and_window() -> None:
    names = read_recorded(write("c.csv", "item,time\n"), "items.csv", 0, 100).names
    table = read_notices(write("n.csv", "item,time\nstill,3\na,2\n"), names, 0, 100)
    assert item_indices(table, names).tolist() == [2, 0]
    with pytest.raises(InputError, match=r"n\.csv, row 1 .*'z' is no item of the history"):
        read_notices(write("n.csv", "item,time\nz,3\n"), names, 0, 100)
    with pytest.raises(InputError, match=r"n\.csv, row 1 .*after the end"):
        read_notices(write("n.csv", "item,time\na,300\n"), names, 0, 100)


def test_moments_read_as_dates_where_there_is_a_calendar() -> None:
    assert format_iso_time(1735689600) == "2025-01-01T00:00:00Z"
    assert format_iso_time(1e18) == "1e+18"
