"""Differences of texts: what they show is true, and however large the texts are, it is little."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from afresh.web.reports.version_diff import compare_texts

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "one word", "two words"]), max_size=30)


@given(TEXTS, TEXTS)
def test_a_difference_leads_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    diff = compare_texts("\n".join(old), "\n".join(new))
    assert bool(diff.rows) == (old != new)
    for lines, kind, texts in (
        ([row.old for row in diff.rows], "removed", old),
        ([row.new for row in diff.rows], "added", new),
    ):
        numbers = [line.number for line in lines if line is not None and line.number]
        assert numbers == sorted(set(numbers))
        assert all(line.text == texts[line.number - 1] for line in lines if line is not None and line.number)
        assert {line.kind for line in lines if line is not None} <= {"same", "place", kind}
    kept = [line for at, line in enumerate(old, 1) if at not in changed(diff.lines, "removed")]
    assert kept == [line for at, line in enumerate(new, 1) if at not in changed(diff.lines, "added")]


def changed(lines: list, kind: str) -> set[int]:  # type: ignore[type-arg]
    return {line.number for line in lines if line.kind == kind}


def test_the_part_of_a_line_that_differs_is_marked() -> None:
    (removed, added) = compare_texts("price: 10 EUR", "price: 12 EUR").lines
    assert (removed.head, removed.mark, removed.tail) == ("price: 1", "0", " EUR")
    assert (added.mark, added.text) == ("2", "price: 12 EUR")
    (removed, _) = compare_texts("nothing in common", "X").lines
    assert removed.mark == ""


def test_a_page_without_line_breaks_is_broken_where_tags_end() -> None:
    page = "".join(f"<p>{number}</p>" for number in range(100))
    diff = compare_texts(page, page.replace("<p>50</p>", "<p>fifty</p>"))
    assert [(line.kind, line.text) for line in diff.lines if line.kind in ("added", "removed")] == [
        ("removed", "<p>50</p>"),
        ("added", "<p>fifty</p>"),
    ]
    assert [line.text for line in diff.lines if line.kind == "place"] == [
        "… 47 equal lines",
        "… 46 equal lines",
    ]


def test_large_texts_are_shown_in_part() -> None:
    many = "\n".join(map(str, range(100_000)))
    diff = compare_texts(many, many.replace("\n50000\n", "\nX\n"))
    assert (len(diff.rows), diff.limits) == (9, "")
    every_other = compare_texts(many, "\n".join(f"{n}{'x' * (n % 2)}" for n in range(100_000)))
    assert len(every_other.rows) == 400
    assert "400 lines" in every_other.limits
    cut = compare_texts("\n".join(f"a{n}" for n in range(3)), "\n".join(f"b{n}" for n in range(2000)))
    assert cut.limits != ""
    long = compare_texts("x" * 100_000 + "1" + "y" * 100_000, "x" * 100_000 + "2" + "y" * 100_000)
    assert [line.mark for line in long.lines] == ["1", "2"]
    assert all(len(line.text) < 2000 for line in long.lines)
