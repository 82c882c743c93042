"""Recipes select what counts, the hash decides whether it changed, similarity is an estimate."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.change_detection import (
    Recipe,
    compare_content,
    content_hash,
    normalise,
)
from afresh.sources.similarity import similarity, sketch
from afresh.values.errors import UsageError

TYPES = [
    "",
    "text/html",
    "text/html; charset=utf-8",
    "text/html; charset=x-klingon",
    "application/json",
    "\x00",
]

RECIPES = [
    Recipe(),
    Recipe(text_only=True),
    Recipe(selectors=("p", "div > a")),
    Recipe(drop=("footer",), ignore=(r"\d+",), ignore_blanks=True),
    Recipe(json_path="a.b[0]"),
    Recipe(json_path="sum(@)"),
]


@given(st.binary(max_size=500), st.sampled_from(TYPES), st.sampled_from(RECIPES))
@settings(deadline=None)
def test_normalising_never_fails_and_is_deterministic(
    content: bytes, media_type: str, recipe: Recipe
) -> None:
    assert normalise(content, media_type, recipe) == normalise(content, media_type, recipe)


def test_json_is_the_same_whatever_the_order_of_its_keys() -> None:
    recipe = Recipe(json_path="items[*].{id: id, price: price}")
    one = {"time": 1, "items": [{"id": 1, "price": 2, "seen": 7}]}
    two = {"items": [{"price": 2, "seen": 8, "id": 1}], "time": 2}
    dear = {"items": [{"price": 3, "seen": 8, "id": 1}]}
    normals = [normalise(json.dumps(x).encode(), "application/json", recipe) for x in (one, two, dear)]
    assert normals[0] == normals[1] == b'[{"id":1,"price":2}]'
    assert normals[2] != normals[0]


def test_deeply_nested_json_is_taken_as_text() -> None:
    bomb = b"[" * 100_000
    assert normalise(bomb, "application/json", Recipe(json_path="a")) == bomb


def test_only_what_is_selected_counts() -> None:
    page = b"<nav>today: 7</nav><main><p>price 3</p><p>hits 1234</p></main><script>x=1</script>"
    other = page.replace(b"today: 7", b"today: 8").replace(b"1234", b"1235").replace(b"x=1", b"x=2")
    recipe = Recipe(selectors=("main",), ignore=(r"hits \d+",))
    assert normalise(page, "text/html", recipe) == normalise(other, "text/html", recipe)
    dear = page.replace(b"price 3", b"price 4")
    assert normalise(page, "text/html", recipe) != normalise(dear, "text/html", recipe)


def test_text_only_sees_no_markup() -> None:
    one = b"<div class=a><b>Hello</b>  world<script>1</script></div>"
    two = b"<section><i id=q>Hello</i> world</section><style>p{}</style>"
    recipe = Recipe(text_only=True)
    assert normalise(one, "text/html", recipe) == normalise(two, "text/html", recipe) == b"Hello world"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ignore": ("(",)}, "is not a regular expression"),
        ({"selectors": ("p[",)}, "is not a CSS selector"),
        ({"json_path": "a["}, "is not a JMESPath expression"),
        ({"json_path": "a", "text_only": True}, "exclude each other"),
    ],
)
def test_recipes_are_checked_when_made(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        Recipe(**changes)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 400))
@settings(deadline=None, max_examples=60)
def test_similarity_is_the_jaccard_similarity_of_shingles(left: int, both: int, right: int) -> None:
    # Words that occur once: a run of n words has n − 2 shingles, and the runs share those of the middle.
    words = [f"w{i}" for i in range(left + both + right)]
    one, two = words[: left + both], words[left:]
    shared = max(0, both - 2)
    total = max(1, len(one) - 2) + max(1, len(two) - 2) - shared
    if len(one) >= 3 and len(two) >= 3:
        true = shared / total
        found = similarity(sketch(" ".join(one).encode()), sketch(" ".join(two).encode()))
        assert found == pytest.approx(true, abs=5 * (max(true * (1 - true), 0.01) / 256) ** 0.5)


def test_sketches_are_kept_with_copies_so_they_never_change() -> None:
    assert sketch(b"the quick brown fox jumps over the lazy dog")[:16] == "G3H$#rUSZDMQJRo^"


def test_small_steps_add_up_to_a_change() -> None:
    words = [f"w{i}" for i in range(500)]
    first = compare_content(
        " ".join(words).encode(), "", Recipe(), held_hash=None, held_notes={}, near_duplicate=0.9
    )
    held_hash, notes = first.normal_hash, first.notes
    changed_at = []
    for step in range(60):
        words[step * 8] = f"new{step}"
        text = " ".join(words).encode()
        found = compare_content(text, "", Recipe(), held_hash=held_hash, held_notes=notes, near_duplicate=0.9)
        assert found.differs
        if found.changed:
            changed_at.append(step)
            held_hash = found.normal_hash
        notes = found.notes
    # 3 of 498 shingles go with each step: 1 − 0.9 is passed after about nine.
    assert 4 <= changed_at[0] <= 14
    assert len(changed_at) >= 3


def test_another_recipe_makes_copies_incomparable() -> None:
    old = compare_content(b"<p>1</p>", "text/html", Recipe(), held_hash=None, held_notes={})
    new = compare_content(
        b"<p>1</p>", "text/html", Recipe(text_only=True), held_hash=old.normal_hash, held_notes=old.notes
    )
    assert (old.comparable, new.comparable, new.changed) == (True, False, True)


def test_hashes_are_sixteen_bytes_and_differ() -> None:
    hashes = {content_hash(str(i).encode()) for i in range(1000)}
    assert len(hashes) == 1000
    assert {len(found) for found in hashes} == {16}
