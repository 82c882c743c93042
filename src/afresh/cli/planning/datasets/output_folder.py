"""The folder of a result with one file per part, local or in an object store, and how far its writing is.

The file ``_afresh.json`` in the folder says which inputs and options the parts belong to, what was computed
before they were written, and whether all are written. A command that was interrupted continues: parts that
are there are kept. A part appears under its name only when it is whole."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from afresh.tables.atomic_output import remove_abandoned, write_bytes
from afresh.tables.object_errors import explain
from afresh.tables.object_paths import (
    is_address,
    open_filesystem,
    split_options,
    upload,
    without_file_scheme,
)
from afresh.values.errors import OutputError, UsageError
from afresh.values.leftovers import LEFTOVERS

_STATE = "_afresh.json"
WORK = "_work"
"""The folder for intermediate files within the folder of a result."""


@contextmanager
def part_file(target: str) -> Iterator[str]:
    """Yield the path to which the part ``target`` is to be written: itself, or a temporary file that is
    uploaded when the block ends without an error."""
    if not is_address(target):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        yield target
        return
    plain = split_options(target)[0]
    endings = "".join(PurePosixPath(plain).suffixes[-2:])
    path = Path(tempfile.gettempdir()) / f"afresh-{uuid.uuid4().hex}{endings}"
    with LEFTOVERS.path(path):
        try:
            yield str(path)
            upload(path, target)
        finally:
            path.unlink(missing_ok=True)


def digest_of(description: Mapping[str, Any]) -> str:
    """Return a name for inputs and options, which is another for any other inputs or options.

    >>> digest_of({"budget": 5.0}) == digest_of({"budget": 5.0}), digest_of({"a": 1}) == digest_of({"a": 2})
    (True, False)
    """
    return sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder for parts, as the user names it: a local path or an address. ``file://…`` becomes a local
    path, because only there a file that is being written has another name until it is whole."""

    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", without_file_scheme(self.path))

    def target(self, name: str) -> str:
        """Return the path or address of the part ``name``."""
        plain, options = split_options(self.path)
        return f"{plain.rstrip('/')}/{name}{options}"

    def begin(self, key: str) -> dict[str, Any] | None:
        """Prepare the folder for the parts that belong to ``key``. Return what was saved for this key, if an
        earlier command was interrupted or has finished; None if nothing was.

        Parts of another key are removed. Raise ``UsageError`` if the folder has files of other origin."""
        self._make()
        state = self._read_state()
        if state is not None and state["key"] == key:
            saved: dict[str, Any] = state["saved"]
            return saved
        present = set(self._files())
        known = set() if state is None else set(state["parts"])
        own = known if state is None else known | {name for name in present if name.startswith(f"{WORK}/")}
        foreign = sorted(present - own)
        if foreign:
            what = f"{foreign[0]} and {len(foreign) - 1} other files" if len(foreign) > 1 else foreign[0]
            shown = split_options(self.path)[0]
            raise UsageError(f"-o {shown}: holds {what}, which this command did not write: give a new folder")
        for name in sorted(present & known):
            self._remove(name)
        if state is not None:
            self.remove_work()
            self._remove(_STATE)
        return None

    def save(self, key: str, names: Sequence[str], saved: Mapping[str, Any]) -> None:
        """Save what was computed before the parts are written."""
        text = json.dumps({"key": key, "saved": saved, "parts": list(names)}, indent=1)
        if not is_address(self.path):
            write_bytes(self.target(_STATE), text.encode())
            return
        filesystem, path = open_filesystem(self.target(_STATE))
        try:
            with filesystem.open_output_stream(path) as stream:
                stream.write(text.encode())
        except OSError as error:
            raise self._error(error) from None

    def written(self) -> set[str]:
        """Return the names of the parts that are in the folder, and remove what killed commands left."""
        if not is_address(self.path):
            for folder in {Path(self.path), *(file.parent for file in Path(self.path).rglob("*"))}:
                remove_abandoned(folder)
        return set(self._files())

    def check_written(self, names: Sequence[str]) -> None:
        """Raise ``OutputError`` if one of the parts is not in the folder, as this machine sees it."""
        missing = sorted(set(names) - set(self._files()))
        if missing:
            problem = f"{missing[0]} was written, but not to this folder as this machine sees it"
            raise OutputError(
                f"{split_options(self.path)[0]}: {problem}: give a folder that all nodes share, or an address"
            )

    def remove_work(self) -> None:
        """Remove the folder with intermediate files, if there is one."""
        if not is_address(self.path):
            shutil.rmtree(self.target(WORK), ignore_errors=True)
            return
        filesystem, path = open_filesystem(self.target(WORK))
        try:
            filesystem.delete_dir(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._error(error) from None

    def _make(self) -> None:
        if is_address(self.path):
            return
        try:
            Path(self.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be made: {error.strerror or error}") from None

    def _read_state(self) -> dict[str, Any] | None:
        try:
            if is_address(self.path):
                filesystem, path = open_filesystem(self.target(_STATE))
                with filesystem.open_input_stream(path) as stream:
                    text = stream.read().decode()
            else:
                text = Path(self.target(_STATE)).read_text()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from None
        try:
            state: dict[str, Any] = json.loads(text)
        except ValueError:
            raise OutputError(f"{self.target(_STATE)}: is damaged: remove the folder") from None
        return state

    def _files(self) -> list[str]:
        if not is_address(self.path):
            folder = Path(self.path)
            names = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
            return [name for name in names if name != _STATE and not PurePosixPath(name).name.startswith(".")]
        from pyarrow.fs import FileSelector, FileType

        filesystem, path = open_filesystem(self.path)
        try:
            found = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        except OSError as error:
            raise self._error(error) from None
        first = len(path.rstrip("/")) + 1
        return [
            each.path[first:] for each in found if each.type == FileType.File and each.base_name != _STATE
        ]

    def _remove(self, name: str) -> None:
        if not is_address(self.path):
            Path(self.target(name)).unlink(missing_ok=True)
            return
        filesystem, path = open_filesystem(self.target(name))
        try:
            filesystem.delete_file(path)
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> OutputError:
        return OutputError(f"{split_options(self.path)[0]}: cannot be used: {explain(error)}")
