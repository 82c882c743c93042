"""Compares two versions of an item's copy for people. Copies are shown as plain text, limited in size."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from afresh.engine.feed.content_forms import RAW, opened_form
from afresh.engine.project_interface import Project
from afresh.stores.store import Store
from afresh.values.errors import UnknownItemError, one_of
from afresh.values.stored import Copy, Version
from afresh.web import text_formats
from afresh.web.error_responses import RequestError
from afresh.web.reports.version_diff import VersionDiff, compare_texts

_MOST_BYTES = 500_000


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """Which versions of which item are compared; without numbers, the newest version with the one before.
    ``form`` is "raw", or "text" for their main texts. ``source`` may be None if only one has the key."""

    key: str
    source: str | None = None
    old: int | None = None
    new: int | None = None
    form: str = RAW


@dataclass(frozen=True, slots=True)
class CopyDiff:
    """The difference of two versions. ``versions`` are those that are kept, the newest first; ``old`` and
    ``new`` are the numbers of those that were compared (None: there are not two). ``words`` say what is
    compared, and why nothing is shown if the difference is empty."""

    versions: Sequence[Version]
    old: int | None
    new: int | None
    diff: VersionDiff
    words: str


class CopyComparer:
    """Compares versions of the copies of a project, one pair at a time, so that many who ask at once do not
    take all processors. Main texts are compared if the project has one ``store``, in which they are kept."""

    def __init__(self, project: Project, store: Store | None = None) -> None:
        self._project, self._store = project, store
        self.forms = (RAW,) if store is None else (RAW, "text")
        self._lock = threading.Lock()

    def compare(self, wanted: DiffRequest) -> CopyDiff:
        """Return the difference between two versions. Raise ``RequestError`` (404) if one is not kept."""
        one_of("form of content", wanted.form, self.forms)
        versions = self._versions(wanted)
        pair = _choose(versions, wanted)
        if pair is None:
            only_one = "There is one copy so far: nothing to compare it with."
            words = only_one if versions else "There is no copy yet."
            return CopyDiff(versions, None, None, VersionDiff(), words)
        old, new = pair
        with self._lock:
            before, after = self._texts(wanted, old, new)
            diff = VersionDiff() if before is None or after is None else compare_texts(before, after)
        words = f"From version {old.number} to {new.number}."
        if before is None or after is None:
            what = "copies are not text" if wanted.form == RAW else "copies have no main text"
            sizes = " and ".join(text_formats.format_bytes(one.size) for one in pair)
            return CopyDiff(versions, old.number, new.number, diff, f"{words} The {what} ({sizes}).")
        return CopyDiff(versions, old.number, new.number, diff, f"{words}{_say_limits(pair, diff, wanted)}")

    def _versions(self, wanted: DiffRequest) -> list[Version]:
        try:
            return self._project.versions(wanted.key, source=wanted.source)
        except UnknownItemError as error:
            raise RequestError(404, str(error), "add it first") from None

    def _texts(self, wanted: DiffRequest, old: Version, new: Version) -> list[str | None]:
        found: list[str | None] = []
        store = None if wanted.form == RAW else self._store
        with nullcontext() if store is None else opened_form(store, wanted.form) as text_of:
            for version in (old, new):
                copy = self._project.get(wanted.key, source=wanted.source, version=version.number)
                if copy is None:  # dropped since its versions were read
                    raise _not_kept(version.number)
                text = decode_text(copy) if text_of is None else text_of(copy)
                found.append(None if text is None else text[:_MOST_BYTES])
        return found


def decode_text(copy: Copy) -> str | None:
    """Return the beginning of a copy as text, or None if it is not text.

    >>> from afresh.values.stored import Version
    >>> version = Version(1, 1, 0.0, "", 2, b"", b"")
    >>> decode_text(Copy(version, b"ok")), decode_text(Copy(version, bytes(9)))
    ('ok', None)
    """
    head = copy.content[:_MOST_BYTES]
    if b"\0" in head:
        return None
    text = head.decode("utf-8", errors="replace")
    undecodable = text.count("\ufffd")
    return None if undecodable > 0.1 * len(text) + 1 else text


def _choose(versions: Sequence[Version], wanted: DiffRequest) -> tuple[Version, Version] | None:
    """Return the two versions to compare; None if they are not named and there are not two."""
    by_number = {version.number: version for version in versions}
    for number in (wanted.old, wanted.new):
        if number is not None and number not in by_number:
            raise _not_kept(number)
    if wanted.new is None and not versions:
        return None
    new = by_number[wanted.new] if wanted.new is not None else versions[0]
    earlier = [version for version in versions if version.number < new.number]
    if wanted.old is not None:
        return by_number[wanted.old], new
    return (earlier[0], new) if earlier else None


def _not_kept(number: int) -> RequestError:
    return RequestError(404, f"version {number} is not kept", "[store] versions says how many are")


def _say_limits(pair: Sequence[Version], diff: VersionDiff, wanted: DiffRequest) -> str:
    words = f" {diff.limits}" if diff.limits else ""
    if wanted.form == RAW and max(version.size for version in pair) > _MOST_BYTES:
        words += f" Only the first {text_formats.format_bytes(_MOST_BYTES)} are compared."
        return words if diff.rows else f"{words} They differ in a part that is not shown."
    return words if diff.rows else f"{words} Their lines are equal."
