"""Settings given elsewhere than in the file: by options and by the environment."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Self, Union, get_args, get_origin

from afresh.engine.settings.tables import TABLES, Table
from afresh.values.errors import UsageError, did_you_mean

DEFAULT_SOURCE = "web"


class Said(str):
    """A setting that was given elsewhere than in the file, and where: what is wrong with it is said there.

    >>> from afresh.engine.settings.reading import read
    >>> read("", {"budget.requests": Said("soon", "--budget soon")})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --budget soon: 'soon' is not a rate: write it like 5000/d
    """

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, value: str, origin: str) -> Self:
        """The value, with its origin."""
        said = super().__new__(cls, value)
        said.origin = origin
        return said


def environment_overrides(environment: Mapping[str, str]) -> dict[str, str]:
    """``AFRESH_BUDGET_REQUESTS`` means ``budget.requests``, ``AFRESH_SOURCE_WEB_DELAY`` ``source.web.delay``.

    >>> environment_overrides({"AFRESH_BUDGET_REQUESTS": "2/s", "HOME": "/"})
    {'budget.requests': '2/s'}
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        prefix, _, rest = name.partition("_")
        table, _, key = rest.lower().partition("_")
        if prefix == "AFRESH" and key and table in (*TABLES, "source"):
            if table == "source":
                source, _, key = key.partition("_")
                key = f"{source}.{key}"
            found[f"{table}.{key}"] = Said(value, name)
    return found


def override(raw: dict[str, Any], path: str, value: str) -> None:
    parts = path.split(".")
    if len(parts) == 2 and parts[0] in TABLES:
        key = parts[1]
        model = TABLES[parts[0]]
        if key not in model.model_fields:
            raise UsageError(f"{path}: unknown setting {key!r}{did_you_mean(key, model.model_fields)}")
        raw.setdefault(parts[0], {})[key] = _value(value, _wants_text(model, key))
    elif len(parts) == 3 and parts[0] == "source":
        tables = raw.setdefault("source", [{"name": DEFAULT_SOURCE}])
        named = [table for table in tables if table.get("name") == parts[1]]
        if not named:
            raise UsageError(f"{path}: there is no source {parts[1]!r}")
        named[0][parts[2]] = _value(value, wants_text=False)
    else:
        raise UsageError(
            f"{path!r} is not a setting: write TABLE.KEY or source.NAME.KEY, such as budget.requests"
        )


def _wants_text(model: type[Table], key: str) -> bool:
    wanted = model.model_fields[key].annotation
    return wanted is str or (get_origin(wanted) is Union and str in get_args(wanted))


def _value(text: str, wants_text: bool) -> object:
    """What an override means: a TOML value where it is one, else the text itself."""
    if wants_text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
