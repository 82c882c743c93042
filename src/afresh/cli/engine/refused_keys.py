"""Says at once which of the added items no run will poll, because their addresses are not allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from afresh.cli.summary import print_note
from afresh.values.formatting import format_count

if TYPE_CHECKING:
    from afresh.engine.engine import Engine


class RefusedKeys:
    """Watches the keys that are added to ``source``, and remembers those that the settings refuse."""

    def __init__(self, engine: Engine, source: str | None) -> None:
        self._engine, self._source = engine, source
        self._count, self._first, self._problem = 0, "", ""

    def watch(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield ``keys`` as they are: a refused item is registered, for settings that allow it later."""
        for key in keys:
            problem = self._engine.refusal(key, source=self._source)
            if problem:
                self._count += 1
                self._first, self._problem = self._first or key, self._problem or problem
            yield key

    def report(self) -> None:
        """Print a note about the refused items, if there are any."""
        if self._count:
            more = f" and {format_count(self._count - 1, 'other item')}" if self._count > 1 else ""
            print_note(f"{self._first}{more} will not be polled: {self._problem}")
