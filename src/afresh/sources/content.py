"""What counts as the content of an item: the served bytes, normalised by the source's recipe, then hashed.

A change is a change of this content. Without a recipe it is the bytes themselves; selectors, JSON paths
and ignored patterns cut away what changes without meaning anything (a clock, a token, an advertisement).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from afresh.sources.text_decoding import decode
from afresh.values.errors import UsageError

HASH_BYTES = 16
_NO_TEXT = ["script", "style", "noscript", "template"]
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How content is normalised, in this order; the default keeps every byte.

    ``json_path``   a JMESPath expression: only its result counts, with keys sorted.
    ``selectors``   CSS: only these parts of an HTML page count; ``drop`` cuts parts out of it first.
    ``text_only``   of HTML, only the text; tags, scripts and attributes do not count.
    ``ignore``      regular expressions: what they match does not count.
    ``ignore_blanks``  runs of white space count as one blank.
    """

    json_path: str = ""
    selectors: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    text_only: bool = False
    ignore: tuple[str, ...] = ()
    ignore_blanks: bool = False

    def __post_init__(self) -> None:
        if self.json_path and (self.selectors or self.drop or self.text_only):
            raise UsageError(
                "json_path and the HTML settings (selectors, drop, text_only) exclude each other"
            )
        for pattern in self.ignore:
            _compiled(pattern)
        for selector in (*self.selectors, *self.drop):
            _check_selector(selector)
        if self.json_path:
            _path(self.json_path)

    def for_item(self, selector: str) -> Recipe:
        """The recipe of an item with a selector of its own, which stands instead of the source's.

        >>> Recipe(selectors=("main",), text_only=True).for_item("#price").selectors
        ('#price',)
        """
        return replace(self, json_path="", selectors=(selector,)) if selector else self

    @property
    def fingerprint(self) -> str:
        """A short name of the recipe: hashes made by different recipes cannot be compared.

        >>> Recipe().fingerprint, Recipe(text_only=True).fingerprint == Recipe().fingerprint
        ('', False)
        """
        return "" if self == EVERY_BYTE else blake2b(repr(self).encode(), digest_size=6).hexdigest()


EVERY_BYTE = Recipe()
"""The recipe that keeps all."""


def normalise(content: bytes, content_type: str, recipe: Recipe) -> bytes:
    """The content that counts. Never fails: what is no JSON or HTML is taken as the text that it is.

    >>> page = b"<p>Rate: 3</p><footer>12:31:07</footer>"
    >>> normalise(page, "text/html", Recipe(drop=("footer",), text_only=True))
    b'Rate: 3'
    >>> normalise(b'{"t": 99, "b": [1, 2]}', "application/json", Recipe(json_path="b"))
    b'[1,2]'
    """
    if recipe == EVERY_BYTE:
        return content
    text = decode(content, content_type)
    if recipe.json_path:
        text = _json_part(text, recipe.json_path)
    elif recipe.selectors or recipe.drop or recipe.text_only:
        text = _html_part(text, recipe)
    for pattern in recipe.ignore:
        text = _compiled(pattern).sub("", text)
    if recipe.ignore_blanks or recipe.text_only:
        text = _BLANKS.sub(" ", text).strip()
    return text.encode("utf-8", "replace")


def content_hash(normal: bytes) -> bytes:
    """BLAKE2b of normalised content, 16 bytes: two of 10⁹ contents collide with probability 10⁻²¹.

    >>> content_hash(b"").hex()
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(normal, digest_size=HASH_BYTES).digest()


def _json_part(text: str, path: str) -> str:
    try:
        found = _path(path)(json.loads(text))
    except (ValueError, RecursionError):
        return text
    except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
        return f"{type(error).__name__}: {error}"
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _html_part(text: str, recipe: Recipe) -> str:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    for selector in recipe.drop:
        for node in tree.css(selector):
            node.decompose()
    if recipe.text_only:
        tree.strip_tags(_NO_TEXT)
    roots = [node for selector in recipe.selectors for node in tree.css(selector)]
    if not recipe.selectors and tree.root is not None:
        roots = [tree.root]
    parts = (node.text(separator=" ") if recipe.text_only else node.html or "" for node in roots)
    return "\n".join(parts)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"ignore: {pattern!r} is not a regular expression: {error}") from None


@lru_cache(maxsize=1024)
def _path(path: str) -> Callable[[Any], Any]:
    import jmespath  # type: ignore[import-untyped]

    try:
        search: Callable[[Any], Any] = jmespath.compile(path).search
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"json_path: {path!r} is not a JMESPath expression: {reason}") from None
    return search


@lru_cache(maxsize=1024)
def _check_selector(selector: str) -> None:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p>").css(selector)
    except SelectolaxError:
        raise UsageError(f"selectors: {selector!r} is not a CSS selector, such as 'main > article'") from None
