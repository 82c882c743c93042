"""Datasets: tables in many files, named by a folder or by a pattern such as ``items/*.parquet``.

Each file is a part. The name of a part is its path below the folder of the dataset, so that a result with one
file per part can repeat the names. Files whose names begin with a dot or an underscore are no parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from afresh.tables.formats import format_of
from afresh.tables.object_errors import explain
from afresh.tables.object_paths import is_address, open_filesystem, split_options
from afresh.values.errors import InputError, UsageError

_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """One file of a dataset: its local path or address, its name in the dataset, and its size in bytes.
    ``version`` changes when the file is written again: its time of modification."""

    path: str
    name: str
    size: int
    version: str


def is_dataset(path: str) -> bool:
    """Return whether ``path`` names a folder, or files by a pattern, and not a single file.

    >>> is_dataset("items/*.parquet"), is_dataset("items.parquet"), is_dataset("s3://bucket/items/")
    (True, False, True)
    """
    plain = split_options(path)[0]
    if is_address(path):
        return plain.endswith("/") or bool(_PATTERN.search(plain))
    return Path(path).is_dir() or (bool(_PATTERN.search(path)) and not Path(path).exists())


def find_parts(path: str) -> tuple[DatasetPart, ...]:
    """Return the parts of the dataset ``path`` (a folder, a pattern or a file), sorted by name.
    Raise ``InputError`` if there are none."""
    try:
        found = sorted(_address_parts(path) if is_address(path) else _local_parts(path), key=_name)
    except OSError as error:
        raise InputError(f"cannot be listed: {explain(error)}", path=split_options(path)[0]) from None
    if not found:
        problem = "has no files that end in .csv, .parquet or .jsonl (also .gz and .zst)"
        raise InputError(problem, path=split_options(path)[0])
    return tuple(found)


def _name(part: DatasetPart) -> str:
    return part.name


def _split_pattern(path: str) -> tuple[str, str]:
    """Return a tuple (folder, pattern): the folder that no wildcard is in, and the rest of the path.

    >>> _split_pattern("data/items/*.parquet"), _split_pattern("*.csv"), _split_pattern("/d/")
    (('data/items', '*.parquet'), ('.', '*.csv'), ('/d/', ''))
    """
    first = _PATTERN.search(path)
    if first is None:
        return path, ""
    folder, slash, _ = path[: first.start()].rpartition("/")
    return (folder or slash or "."), path[len(folder) + len(slash) :]


def _local_parts(path: str) -> Iterator[DatasetPart]:
    if Path(path).exists() and not Path(path).is_dir():
        folder, files = Path(path).parent, iter([Path(path)])
    else:
        base, pattern = _split_pattern(path)
        folder = Path(base)
        if not folder.is_dir():
            raise InputError("no such folder", path=base)
        files = folder.glob(pattern) if pattern else folder.rglob("*")
    for file in files:
        name = file.relative_to(folder).as_posix()
        if file.is_file() and _is_table(name):
            about = file.stat()
            yield DatasetPart(str(file), name, about.st_size, str(about.st_mtime_ns))


def _address_parts(address: str) -> Iterator[DatasetPart]:
    from pyarrow.fs import FileSelector, FileType

    plain, options = split_options(address)
    base, pattern = _split_pattern(plain)
    filesystem, folder = open_filesystem(base + options)
    about = filesystem.get_file_info(folder)
    if about.type == FileType.File:
        version = str(about.mtime_ns)
        yield DatasetPart(address, PurePosixPath(folder).name, int(about.size), version)
        return
    if about.type == FileType.NotFound:
        raise InputError("no such folder", path=base)
    depth = None if not pattern or "**" in pattern else pattern.count("/") + 1
    for each in filesystem.get_file_info(FileSelector(folder, recursive=depth != 1)):
        name = each.path[len(folder.rstrip("/")) :].lstrip("/")
        if each.type != FileType.File or not _is_table(name) or not _matches(name, pattern):
            continue
        path = f"{base.rstrip('/')}/{name}{options}"
        yield DatasetPart(path, name, int(each.size), str(each.mtime_ns))


def _matches(name: str, pattern: str) -> bool:
    """Return whether the name of a part matches a pattern, in which ``**`` stands for any folders.

    >>> _matches("a/b.csv", "*/*.csv"), _matches("a/b.csv", "*.csv"), _matches("a/b.csv", "**/*.csv")
    (True, False, True)
    """
    if not pattern:
        return True
    names, patterns = name.split("/"), pattern.split("/")
    if "**" in patterns:
        return fnmatchcase(names[-1], patterns[-1])
    pairs = zip(names, patterns, strict=False)
    return len(names) == len(patterns) and all(fnmatchcase(own, wanted) for own, wanted in pairs)


def _is_table(name: str) -> bool:
    if any(piece.startswith((".", "_")) for piece in name.split("/")):
        return False
    try:
        format_of(name)
    except UsageError:
        return False
    return True
