"""Recognises settings of a ``[[source]]`` table that were written elsewhere in the settings file."""

from __future__ import annotations

from afresh.sources.registry import BUILT_IN

# What the engine reads from the table of a source of any kind.
_ENGINE_KEYS = {
    "benefit",
    "decay",
    "hook",
    "notification",
    "notify",
    "objective",
    "on_change",
    "stale_cost",
    "update_cost",
}


def is_source_setting(key: str) -> bool:
    """Return whether a source of some kind has a setting of this name.

    >>> is_source_setting("allow_private"), is_source_setting("on_change"), is_source_setting("requests")
    (True, True, False)
    """
    return key in _ENGINE_KEYS or any(key in kind.settings.model_fields for kind in BUILT_IN.values())


def where_it_belongs(key: str) -> str:
    """Return words that say where the setting ``key`` of a source is written."""
    return f'{key} is a setting of a [[source]]: write it below that line, after name = "web" for example'
