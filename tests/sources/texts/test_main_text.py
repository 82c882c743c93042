"""The main text of pages and PDF files: what is kept, what is left out, and which contents have none."""

from __future__ import annotations

import pytest
from tests.sources.texts.documents import article, pdf

from afresh.sources.texts import main_text
from afresh.sources.texts.main_text import NoTextError, check_text_extra, extract_text, text_kind
from afresh.values.errors import UsageError


def test_menus_and_clocks_are_no_part_of_the_text() -> None:
    text = extract_text(article("The river rose by two metres. " * 9, clock="12:31:07"), "text/html")
    assert "The river rose" in text
    assert "12:31:07" not in text
    assert "Subscribe" not in text


def test_markdown_keeps_headings_lists_and_links() -> None:
    text = extract_text(article("The river rose by two metres. " * 9), "text/html", "markdown")
    assert "# Flood" in text
    assert "[the report](https://a.test/report)" in text
    assert "- first" in text


def test_a_page_of_two_words_is_its_own_text() -> None:
    assert extract_text(b"<p>two</p><script>no</script><p>words</p>", "text/html") == "two\nwords"


def test_a_pdf_file_has_the_text_of_its_pages() -> None:
    assert extract_text(pdf("Hello page", "Second page"), "application/pdf") == "Hello page\n\nSecond page"


def test_other_texts_are_their_own() -> None:
    assert extract_text('{"a": "é"}'.encode(), "application/json") == '{"a": "é"}'
    assert extract_text("é".encode("latin-1"), "text/plain; charset=latin-1") == "é"


@pytest.mark.parametrize("content", [b"\x89PNG\0", b""])
def test_pictures_have_no_text(content: bytes) -> None:
    with pytest.raises(NoTextError, match="no text can be taken from image/png"):
        extract_text(content, "image/png")


def test_the_kind_is_found_without_a_media_type() -> None:
    assert text_kind(article("x"), "") == "html"
    assert text_kind(pdf("x"), "application/octet-stream") == "pdf"
    assert text_kind(b"a,b\n1,2\n", "") == "plain"
    assert text_kind(b"\0\1\2", "") == "none"


def test_a_missing_extra_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_text, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"needs trafilatura: pip install 'afresh\[text\]'"):
        check_text_extra()
