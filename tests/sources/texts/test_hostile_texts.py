"""Texts of pages and files that others wrote are taken within limits, and never in this process."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress

import pytest
from tests.sources.texts.documents import article, pdf

from afresh.sources.change_detection import Recipe, change_size, most_bytes_here, normalise
from afresh.sources.parsing.parse_budget import ParseBudget, ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.texts.main_text import NEVER_HERE, extract_text

SHORT = ParseBudget(processor_s=1.0)


def process_id(content: bytes) -> int:
    del content
    return os.getpid()


@pytest.fixture(scope="module")
def pool() -> ParserPool:
    return ParserPool(1, lambda _: SHORT)


def test_a_small_page_is_parsed_by_another_process(pool: ParserPool) -> None:
    with pool.joined():
        assert pool.parse_here(process_id, b"x", small=NEVER_HERE) != os.getpid()
    for recipe in (Recipe(main_text=True), Recipe(selectors=("//p",)), Recipe(drop=("//p",))):
        assert most_bytes_here(recipe, None) == NEVER_HERE


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("nested", b"<html><body>" + b"<div><p>word" * 40_000, "text/html"),
        ("tables", b"<html><table><tr><td>" * 5_000, "text/html"),
        ("circular pdf", pdf("Hello").replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), "application/pdf"),
        ("bomb", b"%PDF-1.4\n1 0 obj\n<< /Length 99 /Filter /FlateDecode >>\nstream\n"
         + zlib.compress(bytes(30_000_000), 1)[:100_000], "application/pdf"),
    ],
)  # fmt: skip
def test_hostile_documents_end_in_words_or_in_a_text(
    pool: ParserPool, name: str, content: bytes, media_type: str
) -> None:
    del name
    with pool.joined():
        text = ""
        with suppress(ParseBudgetError):
            text = pool.parse_here(extract_text, content, media_type, small=NEVER_HERE)
        assert len(text) <= len(content)
        assert pool.parse_here(extract_text, article("The river rose. " * 20), "text/html", small=NEVER_HERE)


def test_the_text_decides_what_a_change_is() -> None:
    recipe, kind = Recipe(main_text=True), "text/html"
    one, clock, other = (
        article(f"The river {verb} by two metres. " * 9, clock)
        for verb, clock in (("rose", "08:00"), ("rose", "09:00"), ("fell", "08:00"))
    )
    assert normalise(one, kind, recipe) == normalise(clock, kind, recipe)
    assert normalise(one, kind, recipe) != normalise(other, kind, recipe)
    assert change_size(clock, kind, one, kind, recipe) == 0.0 < change_size(other, kind, one, kind, recipe)
    assert normalise(pdf("a  b"), "application/pdf", recipe) == b"a b"
    assert normalise(b'{"a": 1}', "application/json", recipe) == b'{"a": 1}'


def test_main_text_is_taken_of_what_the_selectors_select() -> None:
    recipe = Recipe(main_text=True, selectors=("//main",), drop=("ul",))
    normal = normalise(article("The river rose by two metres. " * 9), "text/html", recipe).decode()
    assert "first point" not in normal
    assert "The river rose" in normal
