"""Files in object stores: addresses such as ``s3://bucket/items.parquet`` are read and written by pyarrow.

Credentials, region and endpoint are those that the object store's own tools use (for S3 the variables
``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``); they can also be part
of the address, such as ``s3://bucket/items?endpoint_override=localhost:9000&scheme=http``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from afresh.tables.object_errors import explain
from afresh.values.errors import InputError, OutputError, UsageError
from afresh.values.formatting import one_line

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "file")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://")


def is_address(path: str) -> bool:
    """Return whether ``path`` is an address in an object store (or ``file://…``), not a local path.

    >>> is_address("s3://bucket/items.parquet"), is_address("items.parquet")
    (True, False)
    """
    return _ADDRESS.match(path) is not None


def without_file_scheme(path: str) -> str:
    """Return the local path that an address ``file://…`` names; anything else stays as it is.

    >>> without_file_scheme("file:///srv/plan"), without_file_scheme("s3://bucket/plan")
    ('/srv/plan', 's3://bucket/plan')
    """
    return open_filesystem(path)[1] if path.startswith("file://") else path


def split_options(address: str) -> tuple[str, str]:
    """Return a tuple (address without options, options), where the options begin with a question mark.

    >>> split_options("s3://bucket/items?region=eu-central-1")
    ('s3://bucket/items', '?region=eu-central-1')
    """
    # In a name before the first "=" a question mark stands for any letter, as in part-?.parquet.
    found = re.search(r"\?[a-z_]+=[^/]*$", address) if is_address(address) else None
    return (address, "") if found is None else (address[: found.start()], address[found.start() :])


def open_filesystem(address: str) -> tuple[Any, str]:
    """Return a tuple (file system of pyarrow, path in it) for an address.

    >>> open_filesystem("ftp://host/a.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: ftp://host/a.csv: unknown kind of address 'ftp'. One of s3, gs, ...
    """
    scheme = address.partition("://")[0]
    if scheme not in SCHEMES:
        kinds = ", ".join(SCHEMES)
        raise UsageError(f"{address}: unknown kind of address {scheme!r}. One of {kinds}")
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        filesystem, path = FileSystem.from_uri(address)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{address}: cannot be used as an address: {one_line(error)}") from None
    return filesystem, path


def open_random_access(address: str) -> Any:
    """Return the file at ``address`` for reading at any position; raise OSError if it cannot be read."""
    filesystem, path = open_filesystem(address)
    return filesystem.open_input_file(path)


def size_of(address: str) -> int:
    """Return the number of bytes of the file at ``address``; raise ``InputError`` if there is none."""
    from pyarrow.fs import FileType

    filesystem, path = open_filesystem(address)
    try:
        found = filesystem.get_file_info(path)
    except OSError as error:
        raise InputError(f"cannot be read: {explain(error)}", path=split_options(address)[0]) from None
    if found.type != FileType.File:
        problem = "is a folder, not a file" if found.type == FileType.Directory else "no such file"
        raise InputError(problem, path=split_options(address)[0])
    return int(found.size)


def upload(source: Path, address: str) -> None:
    """Write the local file ``source`` to ``address``; in an object store it appears whole or not at all."""
    from pyarrow.fs import LocalFileSystem, copy_files

    filesystem, path = open_filesystem(address)
    try:
        copy_files(str(source), path, source_filesystem=LocalFileSystem(), destination_filesystem=filesystem)
    except OSError as error:
        raise OutputError(f"{split_options(address)[0]}: cannot be written: {explain(error)}") from None
