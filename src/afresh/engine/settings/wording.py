"""Settings in words: all of them as they were read, and what a reload changed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from afresh.engine.settings.tables import TABLES, Settings


def shown(settings: Settings) -> dict[str, Any]:
    """The settings as they were read, every default filled in; what may be secret is only said to be there.

    >>> from afresh.engine.settings.reading import read
    >>> shown(read("[web]\\ntoken = 'a'"))["web"]["token"], shown(read(""))["budget"]["requests"]
    ('hidden', 1.0)
    """
    tables: dict[str, Any] = {name: _shown(getattr(settings, name)) for name in TABLES}
    own = ("on_change", "benefit", "stale_cost")
    tables["source"] = [
        _shown(table.settings) | {name: getattr(table, name) for name in own} for table in settings.sources
    ]
    return tables


def _shown(table: BaseModel) -> dict[str, Any]:
    plain = table.model_dump(mode="json")
    hidden = {key for key, field in type(table).model_fields.items() if not field.repr and plain[key]}
    return {key: "hidden" if key in hidden else value for key, value in plain.items()}


def changes(before: Settings, after: Settings) -> list[str]:
    """What a reload changed but for the sources, in words; nothing secret.

    >>> from afresh.engine.settings.reading import read
    >>> changes(read(""), read("[budget]\\nrequests = '2/s'"))
    ['budget.requests is now 2.0 (was 1.0)']
    """
    found = []
    for name in TABLES:
        old, new = getattr(before, name), getattr(after, name)
        for key, field in type(new).model_fields.items():
            if getattr(old, key) != getattr(new, key):
                shown = (
                    f" is now {getattr(new, key)} (was {getattr(old, key)})" if field.repr else " is another"
                )
                found.append(f"{name}.{key}{shown}")
    return found
