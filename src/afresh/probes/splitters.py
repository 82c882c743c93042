"""Splits an attribute's text into keywords: words without stop words, or whole values between separators.

A tuple is a bag of keywords (Yang et al. 2010, §3). Titles are split into words, stop words removed; a list
of authors is split by its separator into whole names. Case and surrounding space do not matter to a search
box, so they do not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from afresh.values.errors import UsageError

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
        """The keywords of ``text``."""
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
        """The keywords of ``text``."""
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
