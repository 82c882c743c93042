"""Whether content that came is a change of the copy held: the normalised content's hash decides; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from afresh.sources.content import Recipe, content_hash, normalise
from afresh.sources.similarity import likeness, sketch
from afresh.values.fetched import Fetched


@dataclass(frozen=True, slots=True)
class Comparison:
    """``changed``: another content than the copy's, or the first. ``differs``: however little.

    ``comparable``: the copy was normalised by the same recipe. ``notes`` belong to the validators.
    """

    normal_hash: bytes
    changed: bool
    differs: bool
    comparable: bool
    notes: Mapping[str, str]

    def fetched(self, content: bytes, media_type: str) -> Fetched:
        """The answer with this content, which is kept if it is a change."""
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
    *,
    held_hash: bytes | None,
    held_notes: Mapping[str, str],
    near_duplicate: float | None = None,
) -> Comparison:
    """Compare content with the copy held (its hash and the notes kept with it).

    A near-duplicate is no change, and its sketch is not kept: many small steps away from the copy still
    add up to a change.

    >>> first = compare_content(b"a b c", "text/plain", Recipe(), held_hash=None, held_notes={})
    >>> compare_content(b"a b c", "text/plain", Recipe(), held_hash=first.normal_hash, held_notes={}).changed
    False
    """
    normal = normalise(content, content_type, recipe)
    found = content_hash(normal)
    fingerprint = recipe.fingerprint
    comparable = held_hash is None or held_notes.get("recipe", "") == fingerprint
    differs = found != held_hash
    changed = differs
    notes = {"recipe": fingerprint} if fingerprint else {}
    if near_duplicate is not None:
        new_sketch, old_sketch = sketch(normal), held_notes.get("sketch")
        if differs and comparable and held_hash is not None and old_sketch is not None:
            changed = likeness(old_sketch, new_sketch) < near_duplicate
        notes["sketch"] = new_sketch if changed or old_sketch is None else old_sketch
    return Comparison(found, changed, differs and held_hash is not None, comparable, notes)
