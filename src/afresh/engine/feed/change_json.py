"""A change as a JSON object: the same for ``afresh changes --json``, the API and batches of hooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from afresh.values.changes import Change, FeedEntry

_quote: Callable[[str], str] = json.encoder.encode_basestring
_encode: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False).encode


def change_object(change: Change) -> dict[str, object]:
    """Return a change as a JSON object. Content that is not UTF-8 is in ``content_base64`` instead of
    ``content``; both are left out if no content was asked for, or if there is none.

    >>> change_object(Change("a", "web", "gone", 2, 5.0, previous_size=7, cursor="1-1-00"))
    {'cursor': '1-1-00', 'kind': 'gone', 'item': 'a', 'source': 'web', 'version': 2, 'time_s': 5.0, \
'changed_s': None, 'size': None, 'previous_size': 7, 'change_size': None}
    """
    found: dict[str, object] = {
        "cursor": change.cursor,
        "kind": change.kind,
        "item": change.item,
        "source": change.source,
        "version": change.version,
        "time_s": change.time_s,
        "changed_s": change.changed_s,
        "size": change.size,
        "previous_size": change.previous_size,
        "change_size": change.change_size,
    }
    if change.text is not None:
        found["content"] = change.text
    elif change.has_content:
        _add_bytes(found, "content", change.content)
    if change.previous is not None:
        _add_bytes(found, "previous", change.previous)
    return found


def change_line(change: Change) -> str:
    """Return a change as a line of JSON, the same as that of ``change_object``.

    >>> one = Change('a "b"', "web", "new", 1, 5.0, changed_s=4.5, size=7, cursor="1-1-00")
    >>> change_line(one) == json.dumps(change_object(one))
    True
    """
    if change.text is not None or change.has_content or change.previous is not None:
        return _encode(change_object(change))
    sizes = change.changed_s, change.size, change.previous_size, change.change_size
    place = change.cursor, 0, change.item, change.source, change.kind, change.version, change.time_s
    return entry_line(FeedEntry(*place, *sizes))


def entry_line(entry: FeedEntry) -> str:
    """Return a change without its content as a line of JSON, the same as that of ``change_line``. Most lists
    are read without contents: this is several times as fast as the encoder.

    >>> entry_line(FeedEntry("1-1-00", 1, "a", "web", "gone", 2, 5.0, None, None, 7))
    '{"cursor": "1-1-00", "kind": "gone", "item": "a", "source": "web", "version": 2, "time_s": 5.0, \
"changed_s": null, "size": null, "previous_size": 7, "change_size": null}'
    """
    cursor, _, key, source, kind, version, time_s, changed_s, size, previous_size, change_size = entry
    return (
        f'{{"cursor": "{cursor}", "kind": "{kind}", "item": {_quote(key)}, '
        f'"source": {_quote(source)}, "version": {version}, "time_s": {time_s!r}, '
        f'"changed_s": {"null" if changed_s is None else repr(changed_s)}, '
        f'"size": {"null" if size is None else size}, '
        f'"previous_size": {"null" if previous_size is None else previous_size}, '
        f'"change_size": {"null" if change_size is None else repr(change_size)}}}'
    )


def _add_bytes(found: dict[str, object], name: str, content: bytes) -> None:
    try:
        found[name] = content.decode()
    except UnicodeDecodeError:
        found[f"{name}_base64"] = base64.b64encode(content).decode()
