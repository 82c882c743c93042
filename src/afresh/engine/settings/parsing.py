"""Parses and checks ``afresh.toml``; error messages name the line, the option or the variable."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from afresh.engine.settings.item_views import is_hook, parse_item_views
from afresh.engine.settings.overrides import DEFAULT_SOURCE, SettingWithOrigin, apply_setting
from afresh.engine.settings.tables import TABLES, BudgetTable, Settings, SourceTable, Table
from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError, did_you_mean, one_of
from afresh.values.objective_names import OBJECTIVE_NAMES
from afresh.values.units import parse_rate

FILE_NAME = "afresh.toml"
_ARRAYS = ("source", "view")  # tables of which there may be several


def parse_settings(
    text: str,
    overrides: Mapping[str, str] | None = None,
    *,
    name: str = FILE_NAME,
    kinds: Mapping[str, SourceKind[Any]] = BUILT_IN,
) -> Settings:
    """Parse and check ``text``, the text of a settings file. ``overrides`` such as
    ``{"budget.requests": "2/s"}`` replace values of the file. ``name`` is the file's name for error messages,
    and ``kinds`` are the allowed kinds of sources."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML: {error}") from None
    for table in raw:
        if table not in (*TABLES, *_ARRAYS):
            near = did_you_mean(table, (*TABLES, *_ARRAYS))
            raise UsageError(f"{_place(name, text, table, '')}unknown table {table!r}{near}")
    listed = raw.get("source", [])
    if not (isinstance(listed, list) and all(isinstance(each, dict) for each in listed)):
        raise UsageError(f"{_place(name, text, 'source', '')}there may be several sources: write [[source]]")
    written = _written_requests(raw, overrides or {}, name, text)
    origins: dict[str, str] = {}
    for path, value in (overrides or {}).items():
        origins[apply_setting(raw, path, value)] = (
            value.origin if isinstance(value, SettingWithOrigin) else path
        )
    _split_per_item(raw)
    tables = {
        key: _checked(model, raw.get(key, {}), key, name, text, origins) for key, model in TABLES.items()
    }
    sources = _sources(raw, name, kinds, origins)
    views = parse_item_views(raw.get("view", []), text, name)
    settings = Settings(**tables, sources=sources, written_requests=written, views=views)  # type: ignore[arg-type]
    _check_money(settings, name)
    return settings


def _checked(
    model: type[Table], table: object, key: str, name: str, text: str, origins: Mapping[str, str]
) -> Table:
    if not isinstance(table, dict):
        raise UsageError(f"{_place(name, text, key, '')}[{key}] must be a table")
    for given in table:
        if given not in model.model_fields:
            near = did_you_mean(given, model.model_fields)
            raise UsageError(f"{_place(name, text, key, given)}[{key}]: unknown setting {given!r}{near}")
    try:
        return model.model_validate(table)
    except UsageError as error:
        raise UsageError(f"{name}: [{key}]: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        origin = origins.get(f"{key}.{where}")
        place = f"{_place(name, text, key, where)}[{key}] {where}" if origin is None else origin
        raise UsageError(f"{place}: {words[:1].lower()}{words[1:]}") from None


def _sources(
    raw: Mapping[str, Any], name: str, kinds: Mapping[str, SourceKind[Any]], origins: Mapping[str, str]
) -> tuple[SourceTable, ...]:
    found = []
    for table in raw.get("source", [{"name": DEFAULT_SOURCE}]):
        own = dict(table)
        hook = own.pop("on_change", None)
        if hook is not None and not is_hook(hook):
            who = f"{name}: source {own.get('name', '?')!r}"
            raise UsageError(f"{who}: on_change must be a list of words or 'module:function'")
        chosen = str(own.setdefault("kind", "http"))
        if chosen not in kinds:
            raise UsageError(f"{name}: unknown kind of source {chosen!r}{did_you_mean(chosen, kinds)}")
        kind = kinds[chosen]
        objective = _source_objective(own, name)
        benefit, stale_cost = (_money_rate(own, key, name) for key in ("benefit", "stale_cost"))
        try:
            settings = read_settings(kind.settings, own)
        except UsageError as error:
            raise UsageError(_add_origin(str(error), own.get("name"), origins)) from None
        told = tuple(hook) if isinstance(hook, list) else hook
        found.append(SourceTable(settings, told, kind, benefit, stale_cost, objective))
    names = [source.settings.name for source in found]
    for twice in {each for each in names if names.count(each) > 1}:
        raise UsageError(f"{name}: two sources are named {twice!r}: give each its own name")
    return tuple(found)


def _add_origin(words: str, source: object, origins: Mapping[str, str]) -> str:
    """Return the message ``words`` about a source; if an option or variable set the wrong value, name it."""
    for path, origin in origins.items():
        who, _, problem = words.partition(f": {path.rpartition('.')[2]}: ")
        if problem and path.startswith(f"source.{source}.") and who == f"source {source!r}":
            return f"{origin}: {problem}"
    return words


def _money_rate(own: dict[str, Any], key: str, name: str) -> float:
    """Remove ``key`` from ``own``, the table of a source, and return its value, written like ``0.01/d``, in
    money per second. It is 0 without a value."""
    text = own.pop(key, None)
    if text is None or text == 0:
        return 0.0
    try:
        return parse_rate(str(text))
    except UsageError:
        who = f"{name}: source {own.get('name', '?')!r}"
        raise UsageError(f'{who}: {key} is {text!r}: money per time, such as "0.01/d"') from None


def _source_objective(own: dict[str, Any], name: str) -> str | None:
    """Remove ``objective`` from ``own``, the table of a source, and return it; None without one."""
    given = own.pop("objective", None)
    if given is None:
        return None
    try:
        return one_of("objective", str(given), OBJECTIVE_NAMES)
    except UsageError as error:
        raise UsageError(f"{name}: source {own.get('name', '?')!r}: {error}") from None


def _check_money(settings: Settings, name: str) -> None:
    """Raise ``UsageError`` if fresh copies earn money but polls cost nothing: then no budget is the best."""
    budget = settings.budget
    earns = [source for source in settings.sources if source.benefit > 0 or source.stale_cost > 0]
    if earns and not budget.price_per_request + budget.price_per_gb + budget.price_per_second > 0:
        who = f"{name}: source {earns[0].settings.name!r}"
        raise UsageError(
            f"{who} has a benefit, but polls cost nothing, so that no budget is best: "
            "give price_per_request, price_per_gb or price_per_second in [budget]"
        )


def _split_per_item(raw: dict[str, Any]) -> None:
    """Replace ``requests = "0.05/item/d"`` by ``requests = "0.05/d"`` and ``each_item = true``."""
    budget = raw.get("budget")
    if not isinstance(budget, dict):
        return
    text = budget.get("requests")
    if isinstance(text, str) and re.search(r"/\s*item\s*/", text):
        raw["budget"] = {**budget, "requests": re.sub(r"/\s*item\s*/", "/", text), "each_item": True}


def _written_requests(
    raw: Mapping[str, Any], overrides: Mapping[str, str], name: str, text: str
) -> float | None:
    """Return the ``requests`` of the file's budget if a command-line option overrides them, else None."""
    option = overrides.get("budget.requests")
    if not (isinstance(option, SettingWithOrigin) and option.origin.startswith("--")):
        return None
    in_file = {"budget": raw.get("budget", {})}
    _split_per_item(in_file)
    table = _checked(BudgetTable, in_file["budget"], "budget", name, text, {})
    assert isinstance(table, BudgetTable)
    return table.requests


def _place(name: str, text: str, table: str, key: str) -> str:
    """Return where a key is, for error messages: ``afresh.toml, line 3: ``, or only the name of the file."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)", line)
        if header:
            inside = header[1] == table
        if (inside and not key) or (inside and re.match(rf"\s*{re.escape(key)}\s*=", line)):
            return f"{name}, line {number}: "
    return f"{name}: "
