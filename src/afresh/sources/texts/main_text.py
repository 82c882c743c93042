"""The main text of a content, as plain text or Markdown: of HTML by trafilatura, of PDF files by pypdf.

Of an HTML page, trafilatura keeps the text that the page is about, and leaves out menus, advertisements and
footers. Of a page so short that it finds nothing, all visible text is taken. Other texts, such as JSON, are
their own main text. Both libraries are the extra ``text``. They parse what others wrote, so call
``extract_text`` only in a parser process (``parsing.parser_pool``), with ``NEVER_HERE`` as its ``small``.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from io import BytesIO
from typing import Literal, TypeAlias, get_args

from afresh.sources.text_decoding import decode
from afresh.values.errors import AfreshError, UsageError

TextForm: TypeAlias = Literal["text", "markdown"]
TEXT_FORMS: tuple[TextForm, ...] = get_args(TextForm)

NEVER_HERE = 0
"""The ``small`` of ``ParserPool.parse`` for these parsers: only a parser process calls them."""

_INSTALL = "pip install 'afresh[text]'"
_MODULES = {"trafilatura": "the main text of HTML pages", "pypdf": "the text of PDF files"}
_HEAD = 1024
_HTML_HEAD = re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_TEXT_TYPES = ("json", "xml", "javascript", "yaml", "toml", "csv")
_NOT_TEXT = ["script", "style", "noscript", "template", "head"]
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")
_LINES = re.compile(r"\n\s*\n+")


class NoTextError(AfreshError):
    """A content has no text that can be taken from it, such as a picture."""


def check_text_extra() -> None:
    """Raise ``UsageError`` with the line that installs what is missing, if the extra ``text`` is missing."""
    for module, purpose in _MODULES.items():
        if find_spec(module) is None:
            raise UsageError(f"{purpose} needs {module}: {_INSTALL}")


def text_kind(content: bytes, media_type: str) -> Literal["html", "pdf", "plain", "none"]:
    """Return how the text of a content is taken.

    >>> text_kind(b"<!doctype html><p>a", ""), text_kind(b"%PDF-1.7 ", "application/pdf")
    ('html', 'pdf')
    >>> text_kind(b"{}", "application/json"), text_kind(bytes(9), "image/png")
    ('plain', 'none')
    """
    head, kind = content[:_HEAD], media_type.partition(";")[0].strip().lower()
    if b"%PDF-" in head and (kind.endswith("pdf") or head.startswith(b"%PDF-")):
        return "pdf"
    if "html" in kind or (not kind.startswith("text/") and _HTML_HEAD.search(head)):
        return "html"
    if kind.startswith("text/") or any(word in kind for word in _TEXT_TYPES):
        return "plain"
    return "none" if (kind and kind != "application/octet-stream") or b"\0" in head else "plain"


def extract_text(content: bytes, media_type: str, form: TextForm = "text") -> str:
    """Return the main text of a content. Raise ``NoTextError`` if it has none.

    >>> extract_text(b"plain words", "text/plain")
    'plain words'
    """
    require_text(content, media_type)
    kind = text_kind(content, media_type)
    if kind == "pdf":
        return pdf_text(content)
    text = decode(content, media_type)
    return html_text(text, form) if kind == "html" else text


def require_text(content: bytes, media_type: str) -> None:
    """Raise ``NoTextError`` if no text can be taken from a content of this kind."""
    if text_kind(content, media_type) == "none":
        raise NoTextError(f"no text can be taken from {media_type or 'binary data'}")


def html_text(page: str, form: TextForm = "text") -> str:
    """Return the main text of an HTML page. The same page always has the same text."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs what it cannot read
    is_markdown = form == "markdown"
    found = trafilatura.extract(
        page,
        output_format="markdown" if is_markdown else "txt",
        include_comments=False,
        include_links=is_markdown,
        include_formatting=is_markdown,
    )
    return found.strip() if found else visible_text(page)


def visible_text(page: str) -> str:
    """Return all visible text of an HTML page, a line for each part.

    >>> visible_text("<title>t</title><p>two  <b>words</b></p><script>x</script>")
    'two\\nwords'
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(page)
    tree.strip_tags(_NOT_TEXT)
    text = tree.root.text(separator="\n") if tree.root is not None else ""
    lines = (_SPACES.sub(" ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def pdf_text(content: bytes) -> str:
    """Return the text of a PDF file, with an empty line between pages."""
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = pypdf.PdfReader(BytesIO(content))
    pages = (page.extract_text().strip() for page in reader.pages)
    return _LINES.sub("\n\n", "\n\n".join(page for page in pages if page))
