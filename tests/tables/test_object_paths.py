"""Files at addresses, here of the local file system, read and written like others."""

from __future__ import annotations

from pathlib import Path

import pytest

from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.object_paths import size_of, split_options, upload
from afresh.tables.reading import read_table
from afresh.values.errors import InputError, OutputError, UsageError


def test_a_table_at_an_address_is_read_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,1\n")
    with InputFile(f"file://{tmp_path}/items.csv") as source:
        table = read_table(source, [Column("rate", "number")])
        assert source.share_read() == 1.0
    assert table.numbers("rate").tolist() == [1.0]
    with pytest.raises(InputError, match=r"file://.*/none.csv: no such file"):
        InputFile(f"file://{tmp_path}/none.csv")
    with pytest.raises(InputError, match="is a folder, not a file"):
        size_of(f"file://{tmp_path}")


def test_an_upload_appears_whole(tmp_path: Path) -> None:
    (tmp_path / "part").write_text("rows")
    upload(tmp_path / "part", f"file://{tmp_path}/copy")
    assert (tmp_path / "copy").read_text() == "rows"
    with pytest.raises(OutputError, match=r"nowhere/copy: cannot be written"):
        upload(tmp_path / "part", f"file://{tmp_path}/nowhere/copy")


def test_options_are_no_part_of_the_name() -> None:
    assert split_options("s3://b/part-?.csv") == ("s3://b/part-?.csv", "")
    assert split_options("s3://b/x.csv?scheme=http&region=eu")[0] == "s3://b/x.csv"
    with pytest.raises(UsageError, match="cannot be used as an address"):
        size_of("file://host/items.csv")
