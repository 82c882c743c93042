"""Decide whether content differs from the copy: normalise it by the source's recipe, hash it, compare hashes.

Without a recipe every byte counts. Selectors, JSON paths and ignored patterns remove parts that change but
have no meaning (a clock, a token, an advertisement). All functions are pure."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from afresh.sources.linear_pattern import compile_pattern
from afresh.sources.parsing.parse_budget import SMALL_BYTES, ParseBudgetError
from afresh.sources.similarity import exact_similarity, similarity, sketch
from afresh.sources.text_decoding import decode
from afresh.sources.texts.main_text import NEVER_HERE, check_text_extra, html_text, pdf_text, text_kind
from afresh.sources.xpath_selection import compile_xpath, drop_parts, is_xpath, select_parts
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched

HASH_BYTES = 16
_NO_TEXT = ["script", "style", "noscript", "template"]
_BLANKS = re.compile(r"\s+")
_MOST_OVERLAP = 64  # selected parts of a page may together be this many times as long as the page


@dataclass(frozen=True, slots=True)
class Recipe:
    """The rules by which content is normalised before it is compared. The default keeps every byte.

    ``json_path``      a JMESPath expression; only its result counts, with sorted keys.
    ``selectors``      CSS selectors or XPath expressions; only the parts of an HTML page that match count.
    ``drop``           the same; parts of an HTML page that match one are removed first.
    ``text_only``      only the text of an HTML page counts, not its tags, scripts and attributes.
    ``ignore``         regular expressions; text that matches one is removed.
    ``ignore_blanks``  a run of white space counts as one blank.
    ``main_text``      only the main text counts, of an HTML page or a PDF file (``texts.main_text``).
    """

    json_path: str = ""
    selectors: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    text_only: bool = False
    ignore: tuple[str, ...] = ()
    ignore_blanks: bool = False
    main_text: bool = False

    def __post_init__(self) -> None:
        if self.json_path and (self.selectors or self.drop or self.text_only or self.main_text):
            raise UsageError(
                "json_path and the HTML settings (selectors, drop, text_only, main_text) exclude each other"
            )
        if self.main_text and self.text_only:
            raise UsageError("main_text and text_only exclude each other: main_text is a part of the text")
        if self.main_text:
            check_text_extra()
        for pattern in self.ignore:
            compile_pattern("ignore", pattern)
        for selector in (*self.selectors, *self.drop):
            check_selector("selectors", selector)
        if self.json_path:
            compile_json_path("json_path", self.json_path)

    def for_item(self, selector: str) -> Recipe:
        """Return the recipe for one item. Its own ``selector``, if not empty, replaces those of the source.

        >>> Recipe(selectors=("main",), text_only=True).for_item("#price").selectors
        ('#price',)
        """
        return replace(self, json_path="", selectors=(selector,)) if selector else self

    @property
    def fingerprint(self) -> str:
        """A short hash that identifies the recipe. Content hashes made with two recipes are not comparable.

        >>> Recipe().fingerprint, Recipe(text_only=True).fingerprint == Recipe().fingerprint
        ('', False)
        """
        if self == EVERY_BYTE:
            return ""
        # Fields that came later are named only if they are used, so that older fingerprints stay valid.
        names = (field.name for field in fields(self))
        shown = [name for name in names if name != "main_text" or self.main_text]
        text = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return blake2b(f"Recipe({text})".encode(), digest_size=6).hexdigest()

    @property
    def parses_much(self) -> bool:
        """Whether the parsers of this recipe may take long for every page, however small."""
        return self.main_text or any(map(is_xpath, (*self.selectors, *self.drop)))


EVERY_BYTE = Recipe()
"""The recipe that keeps every byte."""


def normalise(content: bytes, content_type: str, recipe: Recipe) -> bytes:
    """Return the normalised content. Content that is not JSON or HTML is read as text. Raise
    ``ParseBudgetError`` if the selected parts of a page contain each other so often that they are far longer
    than the page.

    >>> page = b"<p>Rate: 3</p><footer>12:31:07</footer>"
    >>> normalise(page, "text/html", Recipe(drop=("footer",), text_only=True))
    b'Rate: 3'
    >>> normalise(b'{"t": 99, "b": [1, 2]}', "application/json", Recipe(json_path="b"))
    b'[1,2]'
    """
    if recipe == EVERY_BYTE:
        return content
    if recipe.main_text and text_kind(content, content_type) == "pdf":
        text = pdf_text(content)
    else:
        text = decode(content, content_type)
    if recipe.json_path:
        text = _json_part(text, recipe.json_path)
    elif recipe.main_text:
        text = _main_text(text, content, content_type, recipe)
    elif recipe.selectors or recipe.drop or recipe.text_only:
        text = _html_part(text, recipe)
    for pattern in recipe.ignore:
        text = compile_pattern("ignore", pattern).remove_from(text)
    if recipe.ignore_blanks or recipe.text_only or recipe.main_text:
        text = _BLANKS.sub(" ", text).strip()
    return text.encode("utf-8", "replace")


def content_hash(normal: bytes) -> bytes:
    """Return the BLAKE2b hash (16 bytes). Two of 10⁹ contents have the same hash with probability 10⁻²¹.

    >>> content_hash(b"").hex()
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(normal, digest_size=HASH_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing new content with the copy.

    ``normal_hash``  the hash of the new content after normalisation.
    ``changed``      True if the content counts as a change, or if there is no copy yet.
    ``differs``      True if there is a copy and the content differs from it, even as a near-duplicate.
    ``comparable``   True if the copy was normalised by the same recipe, or if there is no copy yet.
    ``notes``        texts by name that are stored with the validators, for the next comparison.
    """

    normal_hash: bytes
    changed: bool
    differs: bool
    comparable: bool
    notes: Mapping[str, str]

    def to_fetched(self, content: bytes, media_type: str) -> Fetched:
        """Return the result of a poll that received ``content``. The result holds it only if it changed."""
        return Fetched(
            "content" if self.changed else "unchanged",
            content=content if self.changed else None,
            media_type=media_type,
            normal_hash=self.normal_hash,
            comparable=self.comparable,
            validators=self.notes,
            bytes=len(content),
        )


def compare_content(
    content: bytes,
    content_type: str,
    recipe: Recipe,
    held_hash: bytes | None,
    held_notes: Mapping[str, str],
    near_duplicate: float | None = None,
) -> Comparison:
    """Compare new content with the copy, of which only the hash and the notes are needed.

    ``held_hash`` is the hash of the copy's normalised content, None without a copy. ``held_notes`` are the
    ``notes`` of the comparison that made the copy. Content whose similarity to the copy is at least
    ``near_duplicate`` (0 to 1) is no change. The notes then keep the sketch of the copy, so that many small
    differences add up to a change.

    >>> first = compare_content(b"a b c", "text/plain", Recipe(), None, {})
    >>> compare_content(b"a b c", "text/plain", Recipe(), first.normal_hash, {}).changed
    False
    """
    normal = normalise(content, content_type, recipe)
    found = content_hash(normal)
    fingerprint = recipe.fingerprint
    comparable = held_hash is None or is_comparable(held_notes, fingerprint, near_duplicate)
    differs = found != held_hash
    changed = differs
    notes = {"recipe": fingerprint} if fingerprint else {}
    if near_duplicate is not None:
        new_sketch, old_sketch = sketch(normal), held_notes.get("sketch")
        if differs and comparable and held_hash is not None and old_sketch is not None:
            changed = similarity(old_sketch, new_sketch) < near_duplicate
        notes["sketch"] = new_sketch if changed or old_sketch is None else old_sketch
        notes["near"] = repr(near_duplicate)
    return Comparison(found, changed, differs and held_hash is not None, comparable, notes)


def is_comparable(notes: Mapping[str, str], fingerprint: str, near_duplicate: float | None) -> bool:
    """Return whether a copy with these ``notes`` was compared by today's content settings: by the recipe with
    this ``fingerprint``, and by the same ``near_duplicate``.

    >>> is_comparable({"recipe": "a1"}, "a1", None), is_comparable({"recipe": "a1"}, "a1", 0.9)
    (True, False)
    """
    # Versions up to 0.1.0 kept only the sketch, and not the similarity from which on it is no change.
    near = notes.get("near") or (repr(near_duplicate) if "sketch" in notes else repr(None))
    return notes.get("recipe", "") == fingerprint and near == repr(near_duplicate)


def most_bytes_here(recipe: Recipe, near_duplicate: float | None) -> int:
    """Return up to how many bytes of content ``compare_content`` may compare in this process: any number if
    the content is only hashed, else what is small for every parser.

    >>> most_bytes_here(EVERY_BYTE, None) > 10**12, most_bytes_here(Recipe(text_only=True), None)
    (True, 16384)
    """
    if recipe.parses_much:
        return NEVER_HERE
    return sys.maxsize if recipe == EVERY_BYTE and near_duplicate is None else SMALL_BYTES


def _json_part(text: str, path: str) -> str:
    try:
        found = compile_json_path("json_path", path)(json.loads(text))
        return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
        return f"{type(error).__name__}: {error}"


def _main_text(text: str, content: bytes, content_type: str, recipe: Recipe) -> str:
    if text_kind(content, content_type) != "html":
        return text
    return html_text(_html_part(text, recipe) if recipe.selectors or recipe.drop else text)


def _html_part(text: str, recipe: Recipe) -> str:
    from selectolax.lexbor import LexborHTMLParser

    paths = [selector for selector in recipe.drop if is_xpath(selector)]
    text = drop_parts(text, paths) if paths else text
    tree = LexborHTMLParser(text)
    for selector in recipe.drop:
        for node in () if is_xpath(selector) else tree.css(selector):
            node.decompose()
    if recipe.text_only:
        tree.strip_tags(_NO_TEXT)
    if not recipe.selectors:
        found = [] if tree.root is None else [_node_part(tree.root, recipe)]
    else:
        found = [part for selector in recipe.selectors for part in _selected(tree, selector, recipe)]
    return _join_parts(found, len(text))


def _selected(tree: Any, selector: str, recipe: Recipe) -> list[str]:
    """Return the parts of a page that one selector selects."""
    from selectolax.lexbor import LexborHTMLParser

    if not is_xpath(selector):
        return [_node_part(node, recipe) for node in tree.css(selector)]
    parts = select_parts(tree.html or "", [selector])
    if not recipe.text_only:
        return parts
    bodies = (LexborHTMLParser(part).body for part in parts)
    return ["" if body is None else body.text(separator=" ") for body in bodies]


def _node_part(node: Any, recipe: Recipe) -> str:
    return str(node.text(separator=" ") if recipe.text_only else node.html or "")


def _join_parts(found: Iterable[str], page_size: int) -> str:
    """Join the selected parts of a page of ``page_size`` characters, by lines."""
    parts: list[str] = []
    left = _MOST_OVERLAP * (page_size + 1000)
    for part in found:
        left -= len(part)
        if left < 0:
            words = f"are more than {_MOST_OVERLAP} times as long as the page: they contain each other"
            raise ParseBudgetError(f"the parts that its selectors select {words}")
        parts.append(part)
    return "\n".join(parts)


@lru_cache(maxsize=1024)
def compile_json_path(setting: str, path: str) -> Callable[[Any], Any]:
    """Compile the JMESPath expression ``path`` into a function of parsed JSON. Errors name ``setting``."""
    import jmespath  # type: ignore[import-untyped]

    try:
        search: Callable[[Any], Any] = jmespath.compile(path).search
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{setting}: {path!r} is not a JMESPath expression: {reason}") from None
    return search


@lru_cache(maxsize=1024)
def check_selector(setting: str, selector: str) -> None:
    """Raise ``UsageError``, which names ``setting``, if ``selector`` is neither a CSS selector nor XPath."""
    if is_xpath(selector):
        compile_xpath(setting, selector)
    else:
        check_css_selector(setting, selector)


@lru_cache(maxsize=1024)
def check_css_selector(setting: str, selector: str) -> None:
    """Raise ``UsageError``, which names ``setting``, if ``selector`` is not a CSS selector."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser("<p>").css(selector)
    except SelectolaxError:
        raise UsageError(f"{setting}: {selector!r} is not a CSS selector, such as 'main > article'") from None


def change_size(
    new: bytes, content_type: str, old: bytes, old_content_type: str, recipe: Recipe = EVERY_BYTE
) -> float:
    """Return how much of a content is new, from 0 to 1: 1 − the similarity of the normalised contents. It is
    the similarity that ``near_duplicate`` uses, but exact, because both contents are at hand.

    >>> change_size(b"a b c d", "", b"a b c e", "")        # 1 shingle of 3 in common
    0.6666666666666667
    """
    one, other = normalise(new, content_type, recipe), normalise(old, old_content_type, recipe)
    return 1.0 - exact_similarity(one, other)
