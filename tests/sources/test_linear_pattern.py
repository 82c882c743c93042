"""Patterns mean what they mean to Python, take linear time, and are refused if they cannot."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.sources.linear_pattern import compile_pattern
from afresh.sources.settings import SourceSettings, read_settings
from afresh.values.errors import UsageError

PATTERNS = [
    r"\d+ visitors",
    r"[\d.,]+",
    r"\w+",
    r"[^\w]",
    r"\W",
    r"\s+",
    r"\S",
    r"[\s-]x",
    r"(?i)É|[b-d]{,2}",
    r"a\Z",
    r"\u00e9",
    r"[]a]",
    r"[^]a]",
    r"[a[]",
    r"(?P<name>a|b)?c*",
    r"^a.c$",
    "",
]


@given(st.sampled_from(PATTERNS), st.text("aAbc1٣ é-.[]\u00a0x\u2009", max_size=12))
@example(r"\d+ visitors", "12 visitors ٣٣ visitors")
def test_what_is_removed_is_what_python_removes(pattern: str, text: str) -> None:
    expected = re.compile(pattern).sub("", text)
    assert compile_pattern("ignore", pattern).remove_from(text) == expected
    assert compile_pattern("ignore", pattern).occurs_in(text) is bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=a)b", "look-ahead"),
        ("(?!a)b", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", r"a back reference \\1"),
        ("(?P<n>a)(?P=n)", "back reference"),
        ("(?>a)", "an atomic group"),
        ("a++", "the repetition"),
        ("(", "not a regular expression"),
        ("(?:a{100}){100}", "repetition size"),
    ],
)
def test_what_cannot_be_matched_in_linear_time_is_refused_with_the_reason(pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compile_pattern("ignore", pattern)
    with pytest.raises(UsageError, match=f"source 'web': ignore: .*{words}"):
        read_settings(SourceSettings, {"kind": "x", "name": "web", "ignore": pattern})


@pytest.mark.timeout(60)  # Python's engine would take hours for the first and 22 seconds for the other
@pytest.mark.parametrize("pattern", ["(1+)+b", r"\d+ visitors online"])
def test_many_digits_are_read_once(pattern: str) -> None:
    digits = "1" * 80_000
    assert compile_pattern("ignore", pattern).remove_from(digits) == digits
