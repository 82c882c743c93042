"""Differences by lines: complete, in the format of difflib, and quick for texts that somebody made slow."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.values.changes import Change
from afresh.values.diffs import line_diff
from afresh.values.diffs.line_diff import line_opcodes, unified_lines

lines = st.lists(st.sampled_from([*"abcdefgh", "", "-x", "+x"]), max_size=40)


def check(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for tag, i1, i2, j1, j2 in line_opcodes(old, new):
        assert (at, len(made)) == (i1, j1)
        assert (tag == "equal") == (old[i1:i2] == new[j1:j2])
        assert tag == "equal" or {"delete": j1 == j2, "insert": i1 == i2}.get(tag, i1 < i2 and j1 < j2)
        made += new[j1:j2] if tag != "equal" else old[i1:i2]
        at = i2
    assert (at, made) == (len(old), new)


@given(lines, lines)
def test_short_texts_give_a_complete_difference(old: list[str], new: list[str]) -> None:
    check(old, new)


@given(lines, lines)
def test_long_texts_give_a_complete_difference(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(line_diff, "_MOST_COMPARED", 4)
        patched.setattr(line_diff, "_BETWEEN", 2)
        check(old, new)


@given(lines, lines)
def test_only_texts_that_differ_have_a_difference(old: list[str], new: list[str]) -> None:
    found = list(unified_lines(old, new, "a", "b"))
    assert found[:2] == (["--- a", "+++ b"] if old != new else [])


@given(lines, lines)
def test_the_format_is_that_of_difflib(head: list[str], tail: list[str]) -> None:
    """One line differs and is nowhere else: there is one way to say so, whatever else is repeated."""
    old, new = [*head, "old", *tail], [*head, "new", *tail]
    assert list(unified_lines(old, new, "a", "b")) == list(
        difflib.unified_diff(old, new, "a", "b", lineterm="")
    )


def test_one_line_in_many_is_found() -> None:
    old = [f"line {number}" for number in range(5_000)]
    new = [*old[:1_000], "other", *old[1_001:3_000], *old[3_002:], "end"]
    changed = [line for line in unified_lines(old, new, context=0) if line[0] in "+-"][2:]
    assert changed == ["-line 1000", "+other", "-line 3000", "-line 3001", "+end"]


class CountedLine(str):
    """A line that counts the looks at all of its kind, by hash or comparison, and allows ``most`` of them."""

    __slots__ = ()
    looks, most = 0, 0

    def __hash__(self) -> int:
        self.look()
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        self.look()
        return str.__eq__(self, other)

    @classmethod
    def look(cls) -> None:
        cls.looks += 1
        assert cls.looks <= cls.most, "the cost grows faster than the texts"


@pytest.mark.parametrize("repeated", [1, 20, 10_000])
def test_texts_that_difflib_compares_for_a_minute_take_a_moment(
    repeated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second line differs; of the others, each is there so many times. Counted is what makes the time:
    looks at lines, and the sizes of the parts that difflib gets, whose cost is up to the cube of their size.
    """
    kinds = 10_000 // repeated
    old, new = (
        [CountedLine(line) for number in range(10_000) for line in (f"{number % kinds}", f"{name}{number}")]
        for name in "ab"
    )
    parts = list[int]()

    class CountedMatcher(difflib.SequenceMatcher[str]):
        def __init__(self, junk: None, a: Sequence[str], b: Sequence[str]) -> None:
            parts.append(max(len(a), len(b)))
            super().__init__(junk, a, b)

    monkeypatch.setattr(CountedLine, "looks", 0)
    # When this was written, each line was looked at five times.
    monkeypatch.setattr(CountedLine, "most", 10 * (len(old) + len(new)))
    with monkeypatch.context() as patched:
        patched.setattr(line_diff, "SequenceMatcher", CountedMatcher)
        line_opcodes(old, new)
    assert max(parts, default=0) <= 500
    assert sum(parts) <= len(old)  # no line goes to difflib twice
    text = Change(
        "x", "web", "changed", 2, 0.0, "\n".join(new).encode(), previous="\n".join(old).encode()
    ).diff()
    assert text.count("\n+b") == 10_000
