"""The one small part in which nearly all changes of a page lie."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.change_detection import Recipe, normalise
from afresh.sources.changing_part import find_changing_part

BODY = "<p>" + "words of a page " * 30 + "</p>"


def html(part: str, count: int = 5) -> list[bytes]:
    """Versions of a page, in which # is another number each time."""
    return [
        f"<html><body>{part.replace('#', str(7 * n + 11))}{BODY}</body></html>".encode() for n in range(count)
    ]


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ('<div class="clock">12:#</div>', 'drop = [".clock"]'),
        ("<span id=visitors>visitors: <b>#</b></span>", 'drop = ["#visitors"]'),
        ('<form><input class="token" value="#"></form>', 'drop = [".token"]'),
        ("<p>served by machine #</p>", 'ignore = ["served by machine [^,}<]*"]'),
    ],
)
def test_the_proposed_line_leaves_out_the_part_that_changes(part: str, line: str) -> None:
    versions = html(part)
    found = find_changing_part(versions, "text/html")
    assert found is not None
    assert (found.line, found.changes, found.of) == (line, 4, 4)
    recipe = Recipe(**{found.setting: (found.value,)})  # type: ignore[arg-type]
    assert len({normalise(version, "text/html", recipe) for version in versions}) == 1


def test_a_number_in_json_is_ignored_by_its_name() -> None:
    versions = [f'{{"rows": "{"x" * 80}", "time": {n}, "more": 1}}'.encode() for n in range(10, 15)]
    found = find_changing_part(versions, "application/json")
    assert found is not None
    assert re.sub(found.value, "", versions[0].decode()) == re.sub(found.value, "", versions[1].decode())


def test_a_page_of_one_line_is_not_noise() -> None:
    """Its line is all that it says, although only a few characters of it change."""
    assert (
        find_changing_part([f"this is page 29, version {n}".encode() for n in range(9)], "text/plain") is None
    )


def test_nothing_is_proposed_where_the_content_changes_too() -> None:
    versions = html('<div class="clock">12:#</div>')
    real = [version + b"<p>news</p>" * n for n, version in enumerate(versions)]
    assert find_changing_part(real, "text/html") is None
    assert find_changing_part(versions[:3], "text/html") is None  # two changes are too few
    one_real = [*versions[:4], versions[4] + b"<p>news</p>"]
    found = find_changing_part(one_real, "text/html")
    assert found is not None
    assert (found.changes, found.of) == (3, 4)


@given(st.lists(st.text(alphabet="<>/ab c=\"'#\n", max_size=60).map(str.encode), max_size=6))
def test_no_text_makes_it_fail(versions: list[bytes]) -> None:
    found = find_changing_part(versions, "text/html")
    assert found is None or found.changes >= 3
