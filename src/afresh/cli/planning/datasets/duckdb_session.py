"""DuckDB, where one machine's disk is enough but its memory is not: repeated keys, and logs split by item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from afresh.tables.dataset import DatasetPart
from afresh.tables.formats import format_of
from afresh.tables.object_paths import is_address
from afresh.values.errors import InputError, OutputError, UsageError
from afresh.values.formatting import one_line

MEMORY = "1500MB"  # of DuckDB; beyond it, DuckDB uses the disk


def import_duckdb() -> Any:
    """Return the module ``duckdb``; raise ``UsageError`` if it is not installed."""
    if find_spec("duckdb") is None:
        raise UsageError("--on duckdb needs DuckDB: pip install 'afresh[duckdb]'")
    import duckdb

    return duckdb


@contextmanager
def open_session(folder: Path | None = None) -> Iterator[Any]:
    """Yield a connection of DuckDB whose temporary files are in ``folder``, and are removed afterwards."""
    duckdb = import_duckdb()
    with TemporaryDirectory(prefix="afresh-duckdb-", dir=folder) as beside, duckdb.connect() as session:
        session.execute(f"SET memory_limit='{MEMORY}'")
        session.execute("SET temp_directory=?", [beside])
        session.execute("SET preserve_insertion_order=false")
        try:
            yield session
        except duckdb.OutOfMemoryException as error:
            raise OutputError(f"DuckDB: {one_line(error)}") from None
        except duckdb.IOException as error:
            raise OutputError(f"DuckDB, in {beside}: {one_line(error)}") from None


def refuse_repeated_items(parts: Sequence[DatasetPart]) -> None:
    """Raise ``InputError`` if an item is in two rows of the dataset, whatever their parts."""
    remote = next((part.path for part in parts if is_address(part.path)), None)
    if remote is not None:
        raise UsageError(f"--on duckdb reads local files only, not {remote}: use --on local or ray")
    scans = " UNION ALL ".join(f"SELECT {_ITEM} AS item FROM {_reader(part)}" for part in parts)
    with open_session() as session:
        found = session.execute(
            f"SELECT item, count(*) FROM ({scans}) GROUP BY item HAVING count(*) > 1 LIMIT 1"
        ).fetchone()
        if found is None:
            return
        where = [
            part.path
            for part in parts
            if session.execute(
                f"SELECT 1 FROM {_reader(part)} WHERE {_ITEM} = ? LIMIT 1", [found[0]]
            ).fetchone()
        ]
    files = " and ".join(where[:2])
    raise InputError(f"{str(found[0])!r} occurs {found[1]} times in {files}: it must be unique")


def partition_rows(batches: Iterator[Any], schema: Any, target: Path, by: str) -> None:
    """Write rows of Arrow as Parquet files in folders ``BY=VALUE`` of ``target``, one for each value of the
    column ``by``, whatever their order and number."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_batches(schema, batches)
    with open_session(target.parent) as session:
        session.register("given", reader)
        place = str(target).replace("'", "''")
        session.execute(f"COPY (SELECT * FROM given) TO '{place}' (FORMAT parquet, PARTITION_BY ({by}))")


_ITEM = "CAST(item AS VARCHAR)"


def _reader(part: DatasetPart) -> str:
    path = part.path.replace("'", "''")
    layout = format_of(part.name).layout
    if layout == "parquet":
        return f"read_parquet('{path}')"
    if layout == "jsonl":
        return f"read_json('{path}', format='newline_delimited')"
    return f"read_csv('{path}', header=true, all_varchar=true)"
