"""The keywords of records (tuples): split texts into keywords, and index which records contain which keyword.

A record is a set of keywords (Yang et al. 2010, §3). A title is split into words, without stop words; a list
of authors is split by its separator into whole names. Upper case and surrounding space are ignored, as search
boxes do; but a keyword keeps its first spelling, in which servers are asked for it. Every query consists of
keywords of the local relation (§3.3, constraint 1), so other records (the server's, or those of a similar
collection) are indexed by the local keywords only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from afresh.probes.postings import Postings, SortedSet
from afresh.values.arrays import Ints
from afresh.values.errors import InputError, UsageError

# English words that are too common for a query.
_COMMON = """
a about after all also an and any are as at be been but by can could did do does for from had has
have he her his how i if in into is it its may more most no not of on one only or other our over she
should so some such than that the their them then there these they this those through to under up us
use using via was we were what when where which while who will with within without would you your
"""
STOP_WORDS = frozenset(_COMMON.split())
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class WordSplitter:
    """Splits a text into its distinct words, in lower case, without ``STOP_WORDS``.
    ``spellings`` returns these words as keys, and as values how the text spells them.

    >>> list(WordSplitter().spellings("The Anatomy of a Large-Scale Hypertextual Web Search Engine: web"))
    ['anatomy', 'large', 'scale', 'hypertextual', 'web', 'search', 'engine']
    """

    def spellings(self, text: str) -> dict[str, str]:
        words = _first_spellings(_WORD.findall(text))
        return {word: spelling for word, spelling in words.items() if word not in STOP_WORDS}


@dataclass(frozen=True, slots=True)
class ValueSplitter:
    """Splits a text at separators into distinct parts, in lower case, with single spaces.
    ``spellings`` returns these parts as keys, and as values how the text spells them.

    >>> ValueSplitter(";").spellings("Sina Zarrieß; Hector  Garcia-Molina;")
    {'sina zarriess': 'Sina Zarrieß', 'hector garcia-molina': 'Hector Garcia-Molina'}
    """

    separator: str

    def spellings(self, text: str) -> dict[str, str]:
        values = (" ".join(part.split()) for part in text.split(self.separator))
        return _first_spellings(value for value in values if value)


def _first_spellings(words: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(word.casefold(), word)
    return found


@dataclass(frozen=True, slots=True)
class KeywordAttribute:
    """The name of a column of texts, and the function that splits its texts into keywords."""

    name: str
    split: WordSplitter | ValueSplitter


def parse_keywords(text: str) -> KeywordAttribute:
    """Parse ``name:SEP`` (split the texts of the column at SEP) or ``name`` (split them into words).

    >>> parse_keywords("authors:;"), parse_keywords("title").name
    (KeywordAttribute(name='authors', split=ValueSplitter(separator=';')), 'title')
    >>> parse_keywords(":;")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --keywords ':;': give a column, as in title or authors:;
    """
    name, colon, separator = text.partition(":")
    if not name or (colon and not separator):
        raise UsageError(f"--keywords {text!r}: give a column, as in title or authors:;")
    return KeywordAttribute(name, ValueSplitter(separator) if colon else WordSplitter())


Texts: TypeAlias = Mapping[str, Sequence[str]]  # columns of texts by their names


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword; ``attribute`` is empty if the server searches all attributes at once. ``text`` ignores
    upper case. ``spelling`` is the keyword as a record has it, ``column`` the first column in which a record
    has it; both do not count when keywords are compared.

    >>> Keyword("authors", "zarriess", "Zarrieß").written, Keyword("", "web").written
    ('Zarrieß', 'web')
    """

    attribute: str
    text: str
    spelling: str = field(default="", compare=False)
    column: str = field(default="", compare=False)

    @property
    def written(self) -> str:
        """The keyword as a server is asked for it."""
        return self.spelling or self.text

    def __str__(self) -> str:
        """Return the keyword as people write it: ``authors="junghoo cho"``, ``title=web`` or ``web``."""
        text = f'"{self.text}"' if " " in self.text else self.text
        return f"{self.attribute}={text}" if self.attribute else text


@dataclass(frozen=True, eq=False)  # no slots, because ``cached_property`` stores its value in the instance
class KeywordIndex:
    """The keywords of each record (``by_tuple``), and the records with each keyword (``by_keyword``)."""

    keywords: tuple[Keyword, ...]
    by_tuple: Postings
    by_keyword: Postings

    @property
    def tuples(self) -> int:
        return self.by_tuple.height

    @cached_property
    def _holds(self) -> SortedSet:
        return SortedSet(_codes(self.by_tuple.row_ids(), self.by_tuple.members, self.by_tuple.width))

    def counts(self, sets: Ints) -> Ints:
        """Return how many records contain all keywords of each row of ``sets``; −1 stands for no keyword.
        Each record with the rarest keyword of a set is checked for the other keywords. So the work does not
        depend on the number of all records.

        >>> title = KeywordAttribute("title", WordSplitter())
        >>> index = index_relation({"title": ["web crawl", "web search", "web crawl"]}, [title])
        >>> index.counts(np.array([[0, -1], [0, 1]]))  # web; web and crawl
        array([3, 2])
        """
        return np.bincount(self.matches(sets)[0], minlength=len(sets))

    def matches(self, sets: Ints) -> tuple[Ints, Ints]:
        """Return two arrays (rows, records): record ``records[i]`` has all keywords of row ``rows[i]`` of
        ``sets``, in which −1 stands for no keyword."""
        sizes = np.where(sets >= 0, self.by_keyword.sizes[sets], np.iinfo(np.int64).max)
        shortest = np.take_along_axis(sets, sizes.argmin(axis=1)[:, None], axis=1)[:, 0]
        found_sets, found_tuples = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for part in _parts(self.by_keyword.sizes[shortest]):
            lists = self.by_keyword.take(shortest[part])
            owner, tuples = lists.row_ids() + part.start, lists.members
            for column in range(sets.shape[1]):
                other = sets[owner, column]
                good = (other < 0) | (other == shortest[owner])
                rest = np.flatnonzero(~good)
                good[rest] = self._holds(_codes(tuples[rest], other[rest], self.by_tuple.width))
                owner, tuples = owner[good], tuples[good]
            found_sets.append(owner)
            found_tuples.append(tuples)
        return np.concatenate(found_sets), np.concatenate(found_tuples)


def index_relation(
    texts: Texts, attributes: Sequence[KeywordAttribute], *, scoped: bool = True
) -> KeywordIndex:
    """Return the index of the local records; keywords are numbered in the sequence of their first occurrence.
    With ``scoped`` the server can search for a keyword in one column; otherwise it searches in all columns.

    >>> title = KeywordAttribute("title", WordSplitter())
    >>> index = index_relation({"title": ["web crawl", "web"]}, [title])
    >>> [str(word) for word in index.keywords], index.by_keyword.row(0)
    (['title=web', 'title=crawl'], array([0, 1]))
    """
    vocabulary: dict[tuple[str, str], int] = {}
    spellings: dict[tuple[str, str], tuple[str, str]] = {}
    rows = _rows(texts, attributes, vocabulary, scoped=scoped, spellings=spellings)
    keywords = tuple(Keyword(*key, *spellings[key]) for key in vocabulary)
    return _index(keywords, rows)


def index_corpus(
    relation: KeywordIndex, texts: Texts, attributes: Sequence[KeywordAttribute], *, scoped: bool = True
) -> KeywordIndex:
    """Return the index of other records by the keywords of ``relation``; their other words are ignored."""
    vocabulary = {(word.attribute, word.text): place for place, word in enumerate(relation.keywords)}
    rows = _rows(texts, attributes, vocabulary, scoped=scoped)
    return _index(relation.keywords, rows)


def _rows(
    texts: Texts,
    attributes: Sequence[KeywordAttribute],
    vocabulary: dict[tuple[str, str], int],
    *,
    scoped: bool,
    spellings: dict[tuple[str, str], tuple[str, str]] | None = None,
) -> list[list[int]]:
    """Return the keyword numbers of each record. With ``spellings``, new keywords are added to it, with
    spelling and column, and to ``vocabulary``."""
    lengths = {len(texts[attribute.name]) for attribute in attributes}
    if len(lengths) != 1:
        raise InputError(f"keyword columns of {sorted(lengths)} rows: give at least one, all of one length")
    rows: list[list[int]] = [[] for _ in range(lengths.pop())]
    for attribute in attributes:
        scope = attribute.name if scoped else ""
        for row, text in zip(rows, texts[attribute.name], strict=True):
            for word, spelling in attribute.split.spellings(text).items():
                key = (scope, word)
                if spellings is not None and key not in vocabulary:
                    vocabulary[key], spellings[key] = len(vocabulary), (spelling, attribute.name)
                if (place := vocabulary.get(key)) is not None:
                    row.append(place)
    return [sorted(set(row)) for row in rows]


def _index(keywords: tuple[Keyword, ...], rows: Sequence[Sequence[int]]) -> KeywordIndex:
    by_tuple = Postings.of_rows(rows, len(keywords))
    return KeywordIndex(keywords, by_tuple, by_tuple.transposed())


def _codes(tuples: Ints, keywords: Ints, width: int) -> Ints:
    """Return one integer for each pair of a record and a keyword, a number below ``width``."""
    return tuples * width + keywords


_PART = 1 << 22  # entries of posting lists that are processed at once, about a hundred megabytes


def _parts(sizes: Ints) -> list[slice]:
    """Return slices of consecutive lists that together contain about ``_PART`` entries each."""
    if not len(sizes):
        return []
    bins = np.cumsum(sizes) // _PART
    cuts = np.flatnonzero(np.diff(bins)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return [slice(low, high) for low, high in pairwise(edges)]
