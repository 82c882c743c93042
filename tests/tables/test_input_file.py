"""Where inputs come from: files by ending, compressed, standard input, pipes; and what is no input."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from afresh.tables import backend
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.reading import read_table, scan_table
from afresh.values import extras
from afresh.values.errors import InputError, UsageError
from afresh.values.zstd_frames import zstd

MakeFile = Callable[[str, bytes], str]
Columns = tuple[Column, ...]

CSV = b"item,rate\na,1\nb,2.5\n"
JSONL = b'{"item":"a","rate":1}\n{"item":"b","rate":2.5}\n'


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"item": ["a", "b"], "rate": [1.0, 2.5]}), out)
    return out.getvalue()


@cache
def _long_csv() -> bytes:
    return CSV + b"".join(b"x%d,%d\n" % (row, row * 7919 % 10007) for row in range(40_000))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("items.csv", CSV),
        ("ITEMS.CSV", CSV),
        ("items.csv.gz", gzip.compress(CSV, mtime=0)),
        ("items.csv.gz", gzip.compress(CSV[:12], mtime=0) + gzip.compress(CSV[12:], mtime=0)),
        ("items.csv.zst", zstd.compress(CSV)),
        ("items.jsonl", JSONL),
        ("items.jsonl.gz", gzip.compress(JSONL, mtime=0)),
        ("items.jsonl.zst", zstd.compress(JSONL)),
        ("items.jsonl.zst", zstd.compress(JSONL[:5]) + zstd.compress(JSONL[5:])),
    ],
)
@pytest.mark.usefixtures("each_way")
def test_the_ending_tells_the_format(make_file: MakeFile, items: Columns, name: str, data: bytes) -> None:
    assert read_table(make_file(name, data), items).numbers("rate").tolist() == [1, 2.5]


def test_parquet_needs_pyarrow(make_file: MakeFile, items: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_file("items.parquet", _parquet())
    assert read_table(path, items).numbers("rate").tolist() == [1, 2.5]
    monkeypatch.setattr(backend, "has_extra", lambda _: False)
    monkeypatch.setattr(extras, "has_extra", lambda _: False)
    with pytest.raises(UsageError, match=r"items.parquet: Parquet needs .*pip install 'afresh\[parquet\]'"):
        read_table(path, items)


@pytest.mark.parametrize(
    "data",
    [
        CSV,
        JSONL,
        _parquet(),
        gzip.compress(CSV, mtime=0),
        zstd.compress(JSONL),
        gzip.compress(_parquet()),
    ],
)
def test_standard_input_is_recognised_and_can_be_read_twice(
    monkeypatch: pytest.MonkeyPatch, items: Columns, data: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with InputFile("-") as source:
        first = [batch.numbers("rate").tolist() for batch in scan_table(source, items, unique="item")]
        second = [batch.text("item").tolist() for batch in scan_table(source, items[:1])]
    assert (first, second) == ([[1, 2.5]], [["a", "b"]])


@pytest.mark.usefixtures("each_way")
def test_a_wrong_cell_of_standard_input_is_named(monkeypatch: pytest.MonkeyPatch, items: Columns) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV + b"c,x\n")))
    with pytest.raises(InputError, match=r"^standard input, row 3 \(line 4\), column rate: is 'x'"):
        read_table("-", items)


def test_the_copy_of_standard_input_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, items: Columns
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for data in (CSV, b"", b"item,rat\n", gzip.compress(_parquet())[:-9]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        if data == CSV:
            with InputFile("-") as source:
                assert len(list(tmp_path.iterdir())) == 1
                read_table(source, items)
        else:
            with pytest.raises(InputError):
                read_table("-", items)
        assert list(tmp_path.iterdir()) == []


def test_a_format_can_be_said(make_file: MakeFile, monkeypatch: pytest.MonkeyPatch, items: Columns) -> None:
    assert read_table(make_file("items.txt", CSV), items, format="csv").rows == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV)))
    with pytest.raises(InputError, match="is not Parquet"):
        read_table("-", items, format="parquet")
    with pytest.raises(UsageError, match="unknown format 'excel': use csv, parquet or jsonl"):
        read_table(make_file("items.txt", CSV), items, format="excel")


@pytest.mark.usefixtures("each_way")
def test_a_named_pipe_is_read(tmp_path: Path, items: Columns) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CSV,))
    writer.start()
    assert read_table(pipe, items, unique="item").rows == 2
    writer.join()


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.csv.gz", gzip.compress(_long_csv())[:-20], "ends in the middle of its"),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)[:-9], "ends in the middle of its gzip data"),
        ("a.csv.zst", zstd.compress(_long_csv())[:-20], "ends in the middle of its"),
        ("a.jsonl.gz", gzip.compress(JSONL * 20_000, mtime=0)[:-20], "ends in the middle of its"),
        ("a.parquet.gz", gzip.compress(_parquet())[:-20], "ends in the middle of its gzip data"),
        ("a.csv.gz", b"\x1f\x8bnot really gzip at all", "cannot be read as gzip data"),
        ("a.csv.gz", CSV, "is not gzip data"),
        ("a.csv", gzip.compress(CSV, mtime=0), r"is gzip data: its name should end in \.gz"),
        ("a.csv", _parquet(), "is Parquet, but is named csv"),
        ("a.parquet", CSV, "is not Parquet"),
        ("a.csv.gz", b"", r"is empty \(0 bytes\)"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "is empty: needs a header line with item, rate"),
    ],
)
def test_half_written_and_misnamed_files_are_refused(
    make_file: MakeFile, items: Columns, name: str, data: bytes, problem: str
) -> None:
    with pytest.raises(InputError, match=rf"a\.[a-z.]*: {problem}"):
        read_table(make_file(name, data), items)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("items.json", r"unknown ending '\.json': did you mean '\.jsonl'\? Use \.csv, \.parquet or \.jsonl"),
        ("items.cvs", r"unknown ending '\.cvs': did you mean '\.csv'\?"),
        ("items.csv.zip", r"unknown ending '\.zip': did you mean '\.gz'\?"),
        ("items", "the name has no ending"),
    ],
)
def test_unknown_endings_are_refused_with_a_suggestion(
    make_file: MakeFile, items: Columns, name: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        read_table(make_file(name, CSV), items)


def test_what_is_not_there_is_said_with_what_is_near(
    make_file: MakeFile, items: Columns, tmp_path: Path
) -> None:
    make_file("items.csv", CSV)
    with pytest.raises(InputError, match=r"item\.csv: no such file: did you mean 'items\.csv'\?"):
        read_table(tmp_path / "item.csv", items)
    with pytest.raises(InputError, match=r"nowhere/items\.csv: no such file$"):
        read_table(tmp_path / "nowhere" / "items.csv", items)
    with pytest.raises(InputError, match="is a folder, not a file"):
        read_table(tmp_path, items)


def test_what_may_not_be_read_is_said(make_file: MakeFile, items: Columns) -> None:
    path = Path(make_file("items.csv", CSV))
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read everything, so be nobody for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=r"items\.csv: no permission to read it"):
            read_table(path, items)
    finally:
        os.seteuid(user)


def test_a_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch, items: Columns) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input: is closed"):
        read_table("-", items)


@pytest.mark.usefixtures("each_way")
def test_a_file_in_utf_16_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes("item,rate\na,1\n".encode("utf-16"))
    with pytest.raises(InputError, match="is not UTF-8"):
        read_table(path, [Column("item", "text", required=True), Column("rate", "number", required=True)])
