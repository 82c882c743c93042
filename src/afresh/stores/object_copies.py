"""Copies in an object store or a folder: the compressed bytes of each content, under its hash.

    s3://bucket/prefix/0e/0e5751c026e543b2….zst

An object is written before the row that names it, and it never changes. So equal contents are one object,
and a writer that is killed leaves at most an object that no row names. ``SqlUpkeep.delete_unnamed_copies``
deletes such objects after a grace period. A prefix belongs to one store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from afresh.tables.object_errors import answer_in, explain, refusal_of
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreMissingError,
    StoreReadOnlyError,
    UsageError,
)
from afresh.values.printable_text import hide_credentials

IN_OBJECTS = b""
"""What a row has instead of the compressed bytes, which are never empty, if they are an object."""

DAY_S = 86400.0
_AT_ONCE = 16  # objects that are written or read at the same time
_NAME = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.zst")
_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")
_PATIENCE = timedelta(seconds=30)


class ObjectCopies:
    """The objects below an address such as ``s3://bucket/prefix`` or ``file:copies``. Every method may be
    called from several threads. Failures are raised as ``StoreError``; the same call may succeed later.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     objects = ObjectCopies(f"file:{folder}")
    ...     objects.put({bytes(32): b"packed"})
    ...     objects.get(bytes(32))
    b'packed'
    """

    def __init__(self, address: str, *, base: Path = Path(), grace_s: float = DAY_S) -> None:
        """``base`` is the folder in which the relative path of ``file:PATH`` begins. ``grace_s`` is for how
        long an object stays that no row names any more."""
        if find_spec("obstore") is None:
            raise UsageError("[store] copies needs obstore: pip install 'afresh[objects]'")
        self.address, self.grace_s = address, grace_s
        self._store = _open(address, base)

    def put(self, contents: Mapping[bytes, bytes]) -> None:
        """Write the compressed bytes of contents, by their hashes. All are there when the method returns."""
        self._each(lambda item: self._call("put", _name(item[0]), item[1]), contents.items())

    def get(self, digest: bytes) -> bytes:
        """Return the compressed bytes of a content; raise ``StoreCorruptError`` if it is not there."""
        return bytes(self._call("get", _name(digest)).bytes())

    def delete(self, digests: Iterable[bytes]) -> None:
        """Delete objects; those that are not there are ignored."""
        names = [_name(digest) for digest in digests]
        if names:
            self._call("delete", names)

    def pages(self) -> Iterator[dict[bytes, float]]:
        """Yield all objects in parts: the Unix time at which each was written, by its hash."""
        import obstore

        pages = iter(self._call("list", chunk_size=1000))
        while True:
            try:
                page = next(pages, None)
            except (obstore.exceptions.BaseError, OSError) as error:
                raise self._error(error, "list") from None
            if page is None:
                return
            found = ((_NAME.search(entry["path"]), entry["last_modified"]) for entry in page)
            yield {bytes.fromhex(name[1]): written.timestamp() for name, written in found if name}

    def _each(self, work: Any, items: Iterable[Any]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(work, items):
                pass

    def _call(self, name: str, *given: Any, **more: Any) -> Any:
        import obstore

        try:
            return getattr(obstore, name)(self._store, *given, **more)
        except (obstore.exceptions.BaseError, OSError) as error:
            if name == "delete" and isinstance(error, obstore.exceptions.NotFoundError | FileNotFoundError):
                return None
            raise self._error(error, name) from None

    def _error(self, error: Exception, doing: str) -> StoreError:
        """Return the error to raise for one of obstore, whose only description is often its text."""
        import obstore

        kinds, text, refusal = obstore.exceptions, answer_in(error), refusal_of(error)
        where = f"the copies in {hide_credentials(self.address)}"
        if isinstance(error, kinds.NotFoundError | FileNotFoundError) and doing == "get":
            return StoreCorruptError(f"{where}: an object is missing: {text}")
        if isinstance(error, kinds.NotFoundError | FileNotFoundError):
            return StoreMissingError(f"{where}: there is no such bucket or folder: {text}")
        if refusal == "no space is left":
            return StoreFullError(f"{where}: no space is left: {text}")
        if refusal or isinstance(error, kinds.PermissionDeniedError | kinds.UnauthenticatedError):
            return StoreReadOnlyError(f"{where}: access is denied: {text}")
        return StoreError(f"{where}: {doing} failed: {text}")


def bytes_of_content(data: bytes, digest: bytes, objects: ObjectCopies | None, store: str) -> bytes:
    """Return the compressed bytes of a content: ``data`` of its row, or its object."""
    if data != IN_OBJECTS:
        return data
    if objects is None:
        raise StoreMissingError(f"{store}: copies are in an object store: set [store] copies to its address")
    return objects.get(digest)


def _open(address: str, base: Path) -> Any:
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore, from_url

    scheme, colon, rest = address.partition(":")
    if not colon or scheme not in _SCHEMES or not rest.strip("/"):
        kinds = ", ".join(_SCHEMES)
        shown = hide_credentials(address)
        raise UsageError(f"[store] copies {shown!r}: give s3://BUCKET/PREFIX or file:FOLDER. One of {kinds}")
    try:
        if scheme == "file":
            return LocalStore(base / (rest.removeprefix("//") if rest.startswith("//") else rest), mkdir=True)
        retries: Any = {"max_retries": 3, "retry_timeout": _PATIENCE}
        # Plain HTTP is used only if the user's endpoint begins with http://.
        options: Any = {"timeout": _PATIENCE, "connect_timeout": timedelta(seconds=10), "allow_http": True}
        return from_url(address, retry_config=retries, client_options=options)
    except (BaseError, OSError, ValueError) as error:
        problem = hide_credentials(f"the copies in {address} cannot be opened: {explain(error)}")
        raise StoreMissingError(problem) from None


def _name(digest: bytes) -> str:
    text = digest.hex()
    return f"{text[:2]}/{text}.zst"
