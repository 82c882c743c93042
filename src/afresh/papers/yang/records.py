"""Records on which the experiments of Yang et al. 2010, §5.3, are run again: texts by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, eq=False)
class SearchRecords:
    """All records of a server: papers (title, authors) or movies (title, director, cast)."""

    name: str
    kind: Literal["papers", "movies"]
    texts: Mapping[str, Sequence[str]]

    def rows(self, places: Sequence[int]) -> dict[str, list[str]]:
        """Some of the records.

        >>> SearchRecords("made", "papers", {"title": ["a", "b"], "authors": ["x", "y"]}).rows([1])
        {'title': ['b'], 'authors': ['y']}
        """
        return {name: [column[place] for place in places] for name, column in self.texts.items()}

    @property
    def count(self) -> int:
        """How many records."""
        return len(self.texts["title"])
