"""Find the longest beginning of whole words that each name shares with a few others.

A word is a run of letters or digits; ``GLMakieTests`` has the words ``GL``, ``Makie`` and ``Tests``. Every
beginning of whole words is a node of a tree, whose parent is a shorter beginning of the same words. In sorted
order, names with a common beginning follow each other, so the number of names below a node is known when the
first name without that beginning comes. Names are counted differently at two nodes only if some name leaves
the others between them, so that three nodes are enough for the characters that two neighbours have in common:
the longest two beginnings, which the next characters may turn into parts of a word, and the one before them.
All steps together take as long as reading the names once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from string import ascii_letters, ascii_lowercase, ascii_uppercase

MOST_WITH_WORDS = 200  # if more names share their first words, that is a naming convention, not a family
LEAST_LETTERS = 3
_SMALL, _CAPITAL, _LETTERS = map(frozenset, (ascii_lowercase, ascii_uppercase, ascii_letters))
_LOOK_AHEAD = 2  # where a word ends is decided by its last character and at most two after it


@dataclass(slots=True)
class _Node:
    """A beginning of ``length`` characters that ``count`` names have. ``members`` are the names whose longest
    shared beginning it may be. ``parent`` is the next shorter beginning, None if there is none."""

    length: int
    parent: _Node | None
    count: int = 0
    members: list[int] = field(default_factory=list)


def shared_beginnings(names: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield tuples (beginning, positions of names): for these names it is the longest beginning of whole
    words, with at least 3 characters, that 2 to 200 of ``names`` have.

    >>> sorted(shared_beginnings(["GLMakie", "Zygote", "GLMakieTests", "Zygoma"]))
    [('GLMakie', [0, 2])]
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    opened: list[_Node] = []  # the nodes that later names may still have, by length
    own: list[_Node] = []  # those of the current name
    common = 0  # characters that the name has in common with the one before it
    before = ""
    for at, row in enumerate(order):
        name = names[row]
        after = common_length(name, names[order[at + 1]]) if at + 1 < len(order) else 0
        if opened and opened[-1].length > common:
            yield from _close(opened, common, before)
        while own and own[-1].length > common - _LOOK_AHEAD:
            own.pop()
        _add_nodes(own, opened, name, common)
        if after != common:
            _add_nodes(own, opened, name, after)
        if own:
            own[-1].count += 1
            own[-1].members.append(row)
        common, before = after, name
    yield from _close(opened, -1, before)


def _add_nodes(own: list[_Node], opened: list[_Node], name: str, shared: int) -> None:
    """Add the longest beginnings of ``name`` of up to ``shared`` characters to its nodes ``own``."""
    place = len(own)
    while place and own[place - 1].length > shared:
        place -= 1
    known = own[place - 1].length if place else LEAST_LETTERS - 1
    size = len(name)
    for length in range(shared, known, -1):
        # The first test only saves time: most characters are small letters within a word.
        if length < size and name[length] in _SMALL and name[length - 1] in _LETTERS:
            continue
        if _ends_word(name, length):
            node = _open(opened, name, length, own[place - 1] if place else None)
            if place < len(own):
                own[place].parent = node
            own.insert(place, node)
            if length <= shared - _LOOK_AHEAD:
                return


def _open(opened: list[_Node], name: str, length: int, parent: _Node | None) -> _Node:
    """Return the node of this length, which another name may have opened already."""
    at = len(opened)
    while at and opened[at - 1].length > length:
        at -= 1
    if at and opened[at - 1].length == length:
        return opened[at - 1]
    node = _Node(length, parent)
    for longer in opened[at : at + _LOOK_AHEAD]:
        # Between two capitals the third character decides, and there the names may differ.
        capitals = name[length - 1] in _CAPITAL and name[length : length + 1] in _CAPITAL
        if longer.parent is parent and not (capitals and longer.length == length + 1):
            longer.parent = node
    opened.insert(at, node)
    return node


def _ends_word(name: str, length: int) -> bool:
    """Return whether the first ``length`` characters of a name are whole words.

    >>> [length for length in range(1, 13) if _ends_word("GLMakie-2x10", length)]
    [2, 7, 8, 9, 10, 12]
    """
    if length >= len(name):
        return True
    last, following = name[length - 1], name[length]
    if following in _SMALL:
        return last not in _SMALL and last not in _CAPITAL
    if following in _CAPITAL:
        # Of several capitals, the last one belongs to the small letters after it.
        return last not in _CAPITAL or name[length + 1 : length + 2] in _SMALL
    return not (following.isdecimal() and last.isdecimal())


def _close(opened: list[_Node], common: int, name: str) -> Iterator[tuple[str, list[int]]]:
    """Remove the nodes that are longer than ``common`` from ``opened``, and yield their families. ``name`` is
    the last name that had these beginnings."""
    while opened and opened[-1].length > common:
        node = opened.pop()
        parent = node.parent
        if parent is not None:
            parent.count += node.count
        if node.count == 1 and parent is not None:
            parent.members += node.members
        elif 2 <= node.count <= MOST_WITH_WORDS and node.length >= LEAST_LETTERS and len(node.members) > 1:
            yield name[: node.length], sorted(node.members)


def common_length(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning.

    >>> common_length("cafés", "café au lait"), common_length("a", "b"), common_length("a", "a")
    (4, 0, 1)
    """
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    width, codec = (1, "ascii") if one.isascii() and other.isascii() else (4, "utf-32-be")
    first = one[:length].encode(codec, "surrogatepass")
    second = other[:length].encode(codec, "surrogatepass")
    # The highest bit in which the two numbers differ is in the first byte that differs.
    different = (int.from_bytes(first) ^ int.from_bytes(second)).bit_length()
    return (len(first) - (different + 7) // 8) // width
