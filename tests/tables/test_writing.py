"""What is written reads back the same; what cannot be written leaves nothing behind."""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.tables.atomic_output import check_writable, write_bytes
from afresh.tables.columns import Column, Kind
from afresh.tables.reading import read_table
from afresh.tables.writing import TableWriter, write_table
from afresh.values.errors import OutputError, UsageError

ENDINGS = ["csv", "parquet", "jsonl", "csv.gz", "csv.zst", "jsonl.gz", "jsonl.zst", "parquet.gz"]
KINDS: dict[str, Kind] = {"item": "text", "x": "number", "n": "count", "ok": "flag", "at": "time"}
# JSON has no infinity: null stands for it, and the default of the column brings it back.
COLUMNS = [
    Column(name, kind, default=math.inf if name == "x" else None, finite=False)
    for name, kind in KINDS.items()
]

rows = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.floats(allow_nan=False),
    st.integers(0, 2**53),
    st.booleans(),
    st.floats(-1e12, 1e12),
)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(deadline=None)
@given(st.lists(rows, max_size=8))
def test_what_is_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, ending: str, table: list[tuple[str, float, int, bool, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.{ending}"
    item, x, n = [row[0] for row in table], [row[1] for row in table], [row[2] for row in table]
    ok, at = [row[3] for row in table], [row[4] for row in table]
    values = {
        "item": pa.array(item, pa.large_string()),
        "x": np.array(x, dtype=float),
        "n": np.array(n, dtype=np.int64),
        "ok": np.array(ok, dtype=bool),
        "at": np.array(at, dtype=float),
    }
    write_table(path, KINDS, values)
    if ending.startswith("jsonl"):
        if not table:
            assert path.stat().st_size < 30  # an empty file, or its compressed shell
            return
        x = [math.inf if math.isinf(number) else number for number in x]
    back = read_table(path, COLUMNS)
    assert back.text("item").tolist() == item
    assert back.numbers("x").tolist() == x
    assert back.counts("n").tolist() == n
    assert back.flags("ok").tolist() == ok
    assert back.times("at").tolist() == at


@pytest.mark.usefixtures("each_way")
def test_csv_is_plain_and_numbers_are_short(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    numbers = np.array([0.1, 1.0, 1e-7, 1 / 3, math.inf])
    item = ["a", "b,c", 'say "d"', "new\nline", "é"]
    write_table(path, {"item": "text", "f": "number"}, {"item": item, "f": numbers})
    assert path.read_text() == (
        'item,f\na,0.1\n"b,c",1\n"say ""d""",1e-7\n"new\nline",0.3333333333333333\né,inf\n'
    )


@pytest.mark.usefixtures("each_way")
def test_jsonl_says_null_for_what_is_not_a_number(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    values = {"item": ['"\\', "\x00\x1f\n"], "f": [math.inf, math.nan], "ok": [True, False]}
    write_table(path, {"item": "text", "f": "number", "ok": "flag"}, values)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"item": '"\\', "f": None, "ok": True},
        {"item": "\x00\x1f\n", "f": None, "ok": False},
    ]


def test_float32_is_stored_and_spelt_as_float32(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv"):
        write_table(tmp_path / name, {"f": "number"}, {"f": np.array([0.1], dtype=np.float32)})
    assert pq.read_schema(tmp_path / "a.parquet").field("f").type == pa.float32()
    assert (tmp_path / "a.csv").read_text() == "f\n0.1\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_follow_each_other(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"plan.{ending}"
    with TableWriter(path, {"item": "text", "f": "number"}) as writer:
        for start in (0, 30_000, 60_000):
            numbers = np.arange(start, start + 30_000, dtype=float)
            writer.write({"item": pa.array(numbers.astype(int)).cast(pa.string()), "f": numbers})
        assert not path.exists()
    table = read_table(path, [Column("item", "text"), Column("f", "number")], unique="item")
    assert np.array_equal(table.numbers("f"), np.arange(90_000))
    assert table.text("item")[89_999] == "89999"


def test_no_batch_at_all_is_a_table_without_rows(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet", "a.csv.gz"):
        with TableWriter(tmp_path / name, {"item": "text", "f": "number"}):
            pass
        assert read_table(tmp_path / name, [Column("f", "number", required=True)]).rows == 0


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_older_file_and_nothing_else(
    tmp_path: Path, ending: str, error: type[BaseException]
) -> None:
    path = tmp_path / f"plan.{ending}"
    path.write_bytes(b"older")

    def write_and_fail() -> None:
        with TableWriter(path, {"f": "number"}) as writer:
            writer.write({"f": np.arange(30_000.0)})
            raise error

    with pytest.raises(error):
        write_and_fail()
    gc.collect()  # what a library writes when it is collected would fail here
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [(path.name, b"older")]


@pytest.fixture
def small_limit() -> Iterator[None]:
    """No file may grow past 100 kB: the kernel refuses the write itself, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_space_left_is_said_and_nothing_left_behind(tmp_path: Path, ending: str) -> None:
    values = {"f": np.random.default_rng(0).random(30_000)}
    with pytest.raises(OutputError, match=rf"plan\.{ending}: no space left to write it$"):
        write_table(tmp_path / f"plan.{ending}", {"f": "number"}, values)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl.gz"])
def test_a_full_device_is_said(tmp_path: Path, ending: str) -> None:
    full = tmp_path / f"full.{ending}"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=rf"full.{ending}: no space left to write it"):
        write_table(full, {"f": "number"}, {"f": np.random.default_rng(0).random(9)})
    gc.collect()


@pytest.mark.usefixtures("each_way")
def test_devices_are_written_in_place(tmp_path: Path) -> None:
    (tmp_path / "null.csv").symlink_to("/dev/null")
    write_table(tmp_path / "null.csv", {"f": "number"}, {"f": [1.0]})
    assert stat.S_ISCHR((tmp_path / "null.csv").stat().st_mode)


def test_folders_that_are_not_there_or_not_ours_are_said(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path, problem in (
        (tmp_path / "plan" / "a.csv", r"no folder .*/plan: did you mean 'plans'\?"),
        (tmp_path / "x" / "y" / "a.csv", "no folder .*/x/y: make it first"),
        (tmp_path / "file" / "a.csv", ".*/file is a file, not a folder"),
    ):
        for write in (check_writable, lambda path: write_table(path, {"f": "number"}, {"f": [1.0]})):
            with pytest.raises(OutputError, match=rf"a\.csv: {problem}"):
                write(path)
    with pytest.raises(OutputError, match="is a folder, not a file"):
        write_bytes(tmp_path / "plans", b"")


def test_a_folder_without_permission_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    user = os.geteuid()
    if user == 0:  # root may write everywhere, so be nobody for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(OutputError, match="no permission to write"):
            write_bytes(tmp_path / "a.csv", b"")
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o700)


def test_checking_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "a.csv")
    check_writable("-")
    assert list(tmp_path.iterdir()) == []


def test_unknown_endings_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown ending '\.xlsx'"):
        TableWriter(tmp_path / "a.xlsx", {"f": "number"})
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_the_mode_stays_the_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_bytes(b"older")
    target.chmod(0o640)
    link.symlink_to(target)
    write_bytes(link, b"newer")
    assert link.is_symlink()
    assert target.read_bytes() == b"newer"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a.svg", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.svg").stat().st_mode) == 0o640


@pytest.mark.usefixtures("each_way")
def test_standard_output_is_csv(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_table("-", {"f": "number"}, {"f": [1.5]})
    assert capfdbinary.readouterr().out == b"f\n1.5\n"


PROGRAM = """
import sys, numpy as np
from afresh.tables.writing import TableWriter
from afresh.values.errors import OutputError
try:
    with TableWriter("-", {"f": "number"}) as writer:
        for _ in range(30):
            writer.write({"f": np.random.default_rng(0).random(20_000)})
except OutputError as error:
    sys.exit(str(error))
sys.stderr.write("went on")
"""


def test_a_reader_that_goes_away_ends_the_writing_quietly() -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b"went on"
    assert process.returncode == 0


def test_a_full_standard_output_is_said_once() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b"standard output: no space left to write it\n"
    assert done.returncode == 1
