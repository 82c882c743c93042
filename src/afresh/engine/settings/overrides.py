"""Applies overrides: settings that are given by command options or by environment variables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Self, Union, get_args, get_origin

from afresh.engine.settings.tables import TABLES
from afresh.values.errors import UsageError, did_you_mean

DEFAULT_SOURCE = "web"


class SettingWithOrigin(str):
    """A value from a command option or an environment variable, with this origin for error messages.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> parse_settings("", {"budget.requests": SettingWithOrigin("soon", "--budget soon")})
    Traceback (most recent call last):
    afresh.values.errors.WrongSettingsError: --budget soon: 'soon' is not a rate: write it like 5000/d
    """

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, value: str, origin: str) -> Self:
        setting = super().__new__(cls, value)
        setting.origin = origin
        return setting

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # how pickle makes it again
        return str(self), self.origin


def environment_overrides(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of environment variables: ``AFRESH_BUDGET_REQUESTS`` sets ``budget.requests``. In
    ``AFRESH_SOURCE_MY_SITE_DELAY``, ``apply_setting`` finds where the name of the source ends.

    >>> environment_overrides({"AFRESH_BUDGET_REQUESTS": "2/s", "AFRESH_SOURCE_WEB_DELAY": "2s", "HOME": "/"})
    {'budget.requests': '2/s', 'source.web_delay': '2s'}
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        prefix, _, rest = name.partition("_")
        table, _, key = rest.lower().partition("_")
        if prefix == "AFRESH" and key and table in (*TABLES, "source"):
            found[f"{table}.{key}"] = SettingWithOrigin(value, name)
    return found


def apply_setting(raw: dict[str, Any], path: str, value: str) -> str:
    """Set the setting ``path`` to ``value`` in ``raw``, the parsed tables of the settings file. Return its
    full path, TABLE.KEY or source.NAME.KEY."""
    table, _, rest = path.partition(".")
    if table in TABLES and rest and "." not in rest:
        model = TABLES[table]
        if rest not in model.model_fields:
            raise UsageError(f"{path}: unknown setting {rest!r}{did_you_mean(rest, model.model_fields)}")
        wanted = model.model_fields[rest].annotation
        wants_text = wanted is str or (get_origin(wanted) is Union and str in get_args(wanted))
        raw.setdefault(table, {})[rest] = _value(value, wants_text)
        return path
    if table != "source" or not rest:
        raise UsageError(
            f"{path!r} is not a setting: write TABLE.KEY or source.NAME.KEY, such as budget.requests"
        )
    sources = raw.setdefault("source", [{"name": DEFAULT_SOURCE}])
    names = [str(each.get("name")) for each in sources]
    name, dot, key = rest.rpartition(".")
    if not dot:
        name, key = _split(rest, names, getattr(value, "origin", path))
    if name not in names:
        raise UsageError(f"{path}: there is no source {name!r}{did_you_mean(name, names)}")
    sources[names.index(name)][key] = _value(value, wants_text=False)
    return f"source.{name}.{key}"


def _split(text: str, names: list[str], origin: str) -> tuple[str, str]:
    """Split ``text``, the end of a variable's name, into the name of a source (one of ``names``) and a key.
    In a variable, the name of a source is in lower case, with ``_`` instead of other characters. ``origin``
    is the variable, for error messages.

    >>> _split("my_site_delay", ["my", "My-Site"], "")
    ('My-Site', 'delay')
    """
    spelt = {name: re.sub(r"[^a-z0-9]", "_", name.lower()) + "_" for name in names}
    fitting = [name for name in names if text.startswith(spelt[name]) and text != spelt[name]]
    if not fitting:
        known = ", ".join(f"AFRESH_SOURCE_{each.upper()}…" for each in spelt.values())
        raise UsageError(f"{origin}: there is no such source: {known}")
    longest = max(fitting, key=len)
    alike = [name for name in fitting if spelt[name] == spelt[longest]]
    if len(alike) > 1:
        both = " and ".join(map(repr, alike))
        raise UsageError(f"{origin} may mean {both}: use --set source.{longest}.KEY=VALUE")
    return longest, text.removeprefix(spelt[longest])


def _value(text: str, wants_text: bool) -> object:
    """Return the text of an override as a TOML value if it is one, otherwise the text itself."""
    if wants_text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
