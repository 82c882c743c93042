"""The keywords of tuples: how texts are split into them, and which tuples hold which.

A tuple is a bag of keywords (Yang et al. 2010, §3). Titles are split into words, stop words removed; a list
of authors is split by its separator into whole names. Case and surrounding space do not matter to a search
box, so they do not here. Every query is made of keywords of the local relation (§3.3, constraint 1), so a
corpus (the server's records, or a proxy's) is indexed by the local vocabulary alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from afresh.probes.postings import Postings, SortedSet
from afresh.values.arrays import Ints
from afresh.values.errors import InputError, UsageError

# Words too common to be worth a query, in the language of most search boxes.
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
    """Every word of the text once, in lower case, in order, without ``stop_words``.

    >>> WordSplitter()("The Anatomy of a Large-Scale Hypertextual Web Search Engine: web")
    ['anatomy', 'large', 'scale', 'hypertextual', 'web', 'search', 'engine']
    """

    stop_words: frozenset[str] = STOP_WORDS

    def __call__(self, text: str) -> list[str]:
        words = dict.fromkeys(_WORD.findall(text.casefold()))
        return [word for word in words if word not in self.stop_words]


@dataclass(frozen=True, slots=True)
class ValueSplitter:
    """Every value between separators once, in lower case, with single spaces.

    >>> ValueSplitter(";")("Junghoo Cho; Hector  Garcia-Molina;")
    ['junghoo cho', 'hector garcia-molina']
    """

    separator: str

    def __call__(self, text: str) -> list[str]:
        values = (" ".join(part.split()) for part in text.casefold().split(self.separator))
        return list(dict.fromkeys(value for value in values if value))


@dataclass(frozen=True, slots=True)
class KeywordAttribute:
    """A column whose text yields keywords, and how it is split."""

    name: str
    split: WordSplitter | ValueSplitter


def parse_keywords(text: str) -> KeywordAttribute:
    """``name:SEP`` splits the column by SEP into whole values, a bare ``name`` into words.

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


Texts: TypeAlias = Mapping[str, Sequence[str]]  # a column of texts by name


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword; ``attribute`` is empty where the server searches all attributes at once."""

    attribute: str
    text: str

    def __str__(self) -> str:
        """As people write it: ``authors="junghoo cho"``, ``title=web``, or the bare text."""
        text = f'"{self.text}"' if " " in self.text else self.text
        return f"{self.attribute}={text}" if self.attribute else text


@dataclass(frozen=True, eq=False)  # no slots: the table of pairs is made once, when first needed
class KeywordIndex:
    """The keywords of tuples, both ways round: tuple → keywords, and keyword → tuples."""

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
        """How many tuples hold all keywords of each set: |R(q)| of each row of ``sets``, −1 is no keyword.

        The shortest posting list of each set is walked and each of its tuples looked up for the others, so
        the work is the sum of the shortest lists, whatever the corpus.

        >>> title = KeywordAttribute("title", str.split)
        >>> index = index_relation({"title": ["web crawl", "web search", "web crawl"]}, [title])
        >>> index.counts(np.array([[0, -1], [0, 1]]))  # web; web and crawl
        array([3, 2])
        """
        return np.bincount(self.matches(sets)[0], minlength=len(sets))

    def matches(self, sets: Ints) -> tuple[Ints, Ints]:
        """(set, tuple) of every tuple that holds all keywords of a set, sets ascending."""
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
    """The index of the local relation: its keywords in the order in which they are met.

    ``scoped``: the server can be asked for a keyword in one attribute; else in any.

    >>> title = KeywordAttribute("title", str.split)
    >>> index = index_relation({"title": ["web crawl", "web"]}, [title])
    >>> [str(word) for word in index.keywords], index.by_keyword.row(0)
    (['title=web', 'title=crawl'], array([0, 1]))
    """
    vocabulary: dict[tuple[str, str], int] = {}
    rows = _rows(texts, attributes, vocabulary, scoped=scoped, grow=True)
    keywords = tuple(Keyword(attribute, text) for attribute, text in vocabulary)
    return _index(keywords, rows)


def index_corpus(
    relation: KeywordIndex, texts: Texts, attributes: Sequence[KeywordAttribute], *, scoped: bool = True
) -> KeywordIndex:
    """The tuples of another corpus under the keywords of ``relation``; its other words are of no use."""
    vocabulary = {(word.attribute, word.text): place for place, word in enumerate(relation.keywords)}
    rows = _rows(texts, attributes, vocabulary, scoped=scoped, grow=False)
    return _index(relation.keywords, rows)


def _rows(
    texts: Texts,
    attributes: Sequence[KeywordAttribute],
    vocabulary: dict[tuple[str, str], int],
    *,
    scoped: bool,
    grow: bool,
) -> list[list[int]]:
    lengths = {len(texts[attribute.name]) for attribute in attributes}
    if len(lengths) != 1:
        raise InputError(f"keyword columns of {sorted(lengths)} rows: give at least one, all of one length")
    rows: list[list[int]] = [[] for _ in range(lengths.pop())]
    for attribute in attributes:
        scope = attribute.name if scoped else ""
        for row, text in zip(rows, texts[attribute.name], strict=True):
            for word in attribute.split(text):
                key = (scope, word)
                place = vocabulary.setdefault(key, len(vocabulary)) if grow else vocabulary.get(key)
                if place is not None:
                    row.append(place)
    return [sorted(set(row)) for row in rows]


def _index(keywords: tuple[Keyword, ...], rows: Sequence[Sequence[int]]) -> KeywordIndex:
    by_tuple = Postings.of_rows(rows, len(keywords))
    return KeywordIndex(keywords, by_tuple, by_tuple.transposed())


def _codes(tuples: Ints, keywords: Ints, width: int) -> Ints:
    return tuples * width + keywords


_PART = 1 << 22  # list entries handled together: a hundred megabytes


def _parts(sizes: Ints) -> list[slice]:
    """Slices of consecutive lists that together hold about ``_PART`` entries."""
    if not len(sizes):
        return []
    bins = np.cumsum(sizes) // _PART
    cuts = np.flatnonzero(np.diff(bins)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return [slice(low, high) for low, high in pairwise(edges)]
