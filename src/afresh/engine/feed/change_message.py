"""Writes changes for people: the difference that a change made, and messages about several changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from string import Template

from afresh.engine.feed.content_forms import opened_form
from afresh.engine.settings.notify_rules import NotifyRules
from afresh.stores.store import Store
from afresh.values.changes import FeedEntry
from afresh.values.diffs.line_diff import unified_lines
from afresh.values.errors import AfreshError, StoreError
from afresh.values.formatting import format_bytes, format_count, format_moment
from afresh.values.printable_text import printable
from afresh.values.stored import Copy

_MOST_SHOWN = 100  # changes in one message; the others are counted
_MOST_CHARACTERS = 50_000  # of one message, about: many services refuse longer ones
_MOST_BYTES, _MOST_LINES, _MOST_WIDTH = 500_000, 2000, 300  # of what is compared and shown


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """A message to people about ``number`` changes."""

    title: str
    body: str
    number: int


def write_message(
    store: Store, source: str, entries: Sequence[FeedEntry], rules: NotifyRules
) -> ChangeMessage | None:
    """Return a message about changes of ``source``, or None if none of them is to be told."""
    told = [entry for entry in entries if _is_told(entry, rules)]
    if not told:
        return None
    parts, length = [], 0
    with opened_form(store, rules.content) as text_of:
        for entry in told[:_MOST_SHOWN]:
            parts.append(_write_change(store, entry, rules, text_of))
            length += len(parts[-1])
            if length >= _MOST_CHARACTERS:
                break
    if len(parts) < len(told):
        parts.append(f"… and {format_count(len(told) - len(parts), 'more change')}: see 'afresh changes'")
    first = told[0]
    summary = f"{first.kind}: {first.key}" if len(told) == 1 else f"{len(told):,} changes of {source}"
    title = Template(rules.title).substitute(summary=summary, number=len(told), source=source)
    return ChangeMessage(" ".join(printable(title).split()), "\n\n".join(parts), len(told))


def _is_told(entry: FeedEntry, rules: NotifyRules) -> bool:
    is_small = entry.kind == "changed" and (
        entry.change_size is not None and entry.change_size < rules.min_change
    )
    return entry.kind in rules.kinds and not is_small


def _write_change(
    store: Store, entry: FeedEntry, rules: NotifyRules, text_of: Callable[[Copy], str | None] | None
) -> str:
    template = Template(rules.template)
    used = template.get_identifiers()
    change = entry.change_size
    fields = {
        "kind": entry.kind,
        "item": printable(entry.key),
        "source": entry.source,
        "version": entry.version,
        "time": format_moment(entry.time_s),
        "size": "" if entry.size is None else format_bytes(entry.size),
        "previous_size": "" if entry.previous_size is None else format_bytes(entry.previous_size),
        "change": "" if change is None else f"{change:.0%}",
        "diff": change_diff(store, entry, rules.diff_lines, text_of) if "diff" in used else "",
    }
    return template.substitute(fields).strip()


def change_diff(
    store: Store,
    entry: FeedEntry,
    most_lines: int,
    text_of: Callable[[Copy], str | None] | None = None,
) -> str:
    """Return at most ``most_lines`` lines of the difference that a change of kind ``changed`` made, in the
    unified format. It is empty if it is not known, as the difference of pictures. ``text_of`` returns the
    text of a copy; without it the contents are compared as they are."""
    if entry.kind != "changed" or entry.version < 2 or most_lines == 0:
        return ""
    pair = [store.copies.get(entry.item_id, number) for number in (entry.version - 1, entry.version)]
    before, after = (None if copy is None else _text(copy, text_of) for copy in pair)
    if before is None or after is None:
        return ""
    old, new = ([line[:_MOST_WIDTH] for line in text.splitlines()[:_MOST_LINES]] for text in (before, after))
    found = islice(unified_lines(old, new, context=1), 2, most_lines + 3)
    lines = [printable(line.rstrip()) for line in found]
    return "\n".join(lines if len(lines) <= most_lines else [*lines[:most_lines], "…"])


def _text(copy: Copy, text_of: Callable[[Copy], str | None] | None) -> str | None:
    """Return the text of a copy, or None if it has none or is too large to be compared."""
    if len(copy.content) > _MOST_BYTES:
        return None
    try:
        return copy.content.decode() if text_of is None else text_of(copy)
    except UnicodeDecodeError:
        return None
    except StoreError:
        raise
    except AfreshError:  # such as a page that cannot be parsed: the change is told without a difference
        return None
