"""Describes settings for people: all values, and what a reload changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from afresh.engine.settings.tables import TABLES, Settings
from afresh.values.printable_text import hide_credentials
from afresh.values.units import format_duration, format_rate, format_share, format_size_rate

_WRITE: dict[tuple[str, str], Callable[[Any], str]] = {
    ("budget", "requests"): format_rate,
    ("budget", "money"): format_rate,
    ("budget", "bytes"): format_size_rate,
    ("budget", "seconds"): format_share,
    ("plan", "caps"): format_rate,
}


def settings_as_dict(settings: Settings) -> dict[str, Any]:
    """Return all settings with their defaults. A value that may be secret is replaced by ``hidden``.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> settings_as_dict(parse_settings("[web]\\ntoken = 'a'"))["web"]["token"]
    'hidden'
    >>> settings_as_dict(parse_settings(""))["budget"]["requests"]
    1.0
    """
    tables: dict[str, Any] = {name: _table_as_dict(getattr(settings, name)) for name in TABLES}
    own = ("on_change", "benefit", "stale_cost", "objective", "update_cost", "decay")
    tables["source"] = [
        _table_as_dict(table.settings)
        | {name: _without_credentials(getattr(table, name)) for name in own}
        | {"notify": ["hidden"] * len(table.notify)}
        for table in settings.sources
    ]
    shown = ("name", "items", "weight", "on_stale")
    tables["view"] = [{name: getattr(view, name) for name in shown} for view in settings.views.tables]
    return tables


def _table_as_dict(table: BaseModel) -> dict[str, Any]:
    plain = table.model_dump(mode="json")
    hidden = {key for key, field in type(table).model_fields.items() if not field.repr and plain[key]}
    return {key: "hidden" if key in hidden else _without_credentials(value) for key, value in plain.items()}


def _without_credentials(value: Any) -> Any:
    """Return a value in which the credentials of addresses are replaced by dots, in whatever setting they
    stand.

    >>> _without_credentials(["postgresql://me:secret@db/x", {"feed": "https://a.test/?token=secret"}])
    ['postgresql://me:•••@db/x', {'feed': 'https://a.test/?token=•••'}]
    """
    if isinstance(value, str):
        return hide_credentials(value)
    if isinstance(value, Mapping):
        return {key: _without_credentials(each) for key, each in value.items()}
    return [_without_credentials(each) for each in value] if isinstance(value, list | tuple) else value


def describe_changes(before: Settings, after: Settings) -> list[str]:
    """Return what a reload changed, except in the sources, as phrases without values that may be secret.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> describe_changes(parse_settings(""), parse_settings("[budget]\\nrequests = '2/s'\\nbytes = '1MB/s'"))
    ['budget.requests is now 2/s (was 1/s)', 'budget.bytes is now 1MB/s (was none)']
    """
    found = []
    for name in TABLES:
        old, new = getattr(before, name), getattr(after, name)
        for key, field in type(new).model_fields.items():
            if getattr(old, key) != getattr(new, key):
                now, was = (_written(name, key, getattr(each, key)) for each in (new, old))
                found.append(f"{name}.{key} {f'is now {now} (was {was})' if field.repr else 'has changed'}")
    return found + _changed_views(before, after)


def _changed_views(before: Settings, after: Settings) -> list[str]:
    old, new = ({view.name: view for view in each.views.tables} for each in (before, after))
    changed = [name for name in new if name in old and new[name] != old[name]]
    return [
        *(f"view {name!r} is new" for name in new if name not in old),
        *(f"view {name!r} has changed" for name in changed),
        *(f"view {name!r} was removed" for name in old if name not in new),
    ]


def _written(table: str, key: str, value: Any) -> str:
    """Return a value as it is written in a settings file, with its unit."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_written(table, key, each)}" for name, each in value.items()) or "none"
    if table == "run" and isinstance(value, float):
        return format_duration(value).replace(" ", "")
    return str(_without_credentials(_WRITE.get((table, key), str)(value)))
