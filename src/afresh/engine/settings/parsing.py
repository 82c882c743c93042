"""Parses and checks ``afresh.toml``; error messages name the line, the option or the variable."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from afresh.engine.settings.hook_rules import HookRules
from afresh.engine.settings.item_views import ItemViews, is_hook, parse_item_views
from afresh.engine.settings.notify_rules import NotifyRules
from afresh.engine.settings.overrides import DEFAULT_SOURCE, SettingWithOrigin, apply_setting
from afresh.engine.settings.problems import ProblemList, find_place, find_top_place
from afresh.engine.settings.source_keys import is_source_setting, where_it_belongs
from afresh.engine.settings.tables import TABLES, BudgetTable, Settings, SourceTable, Table
from afresh.model.decay import decay_from
from afresh.policy.adaptive.decayed_value import SCALABLE
from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.sources.settings import SettingProblem, find_problems, read_settings
from afresh.values.errors import InputError, UsageError, did_you_mean, one_of
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
    origins: dict[str, str] = {}
    problems = ProblemList(name, text, origins)
    for table in raw:
        if table not in (*TABLES, *_ARRAYS):
            problems.add(_unknown_table(table, raw[table], name, text))
    listed = raw.get("source", [])
    if not (isinstance(listed, list) and all(isinstance(each, dict) for each in listed)):
        place = find_place(name, text, "source", "")
        problems.add(f"{place}there may be several sources: write [[source]]")
        problems.raise_any()
    written = _written_requests(raw, overrides or {}, name, text)
    for path, value in (overrides or {}).items():
        origins[apply_setting(raw, path, value)] = (
            value.origin if isinstance(value, SettingWithOrigin) else path
        )
    _split_per_item(raw)
    tables = {key: _checked(model, raw.get(key, {}), key, problems) for key, model in TABLES.items()}
    sources = _sources(raw, name, kinds, problems)
    views = ItemViews()
    try:
        views = parse_item_views(raw.get("view", []), text, name)
    except UsageError as error:
        problems.add_error(error)
    problems.raise_any()
    settings = Settings(**tables, sources=sources, written_requests=written, views=views)  # type: ignore[arg-type]
    _check_money(settings, name)
    return settings


def _unknown_table(table: str, value: object, name: str, text: str) -> str:
    """Return what is wrong with the unknown table or key ``table`` at the top level of the file."""
    if isinstance(value, dict | list) and not is_source_setting(table):
        near = did_you_mean(table, (*TABLES, *_ARRAYS))
        return f"{find_place(name, text, table, '')}unknown table {table!r}{near}"
    place = find_top_place(name, text, table)
    tables = [key for key, model in TABLES.items() if table in model.model_fields]
    if tables:
        return f"{place}{table} is a setting of [{tables[0]}]: write it below that line"
    if is_source_setting(table):
        return f"{place}{where_it_belongs(table)}"
    return f"{place}unknown setting {table!r}, which stands above all tables"


def _checked(model: type[Table], table: object, key: str, problems: ProblemList) -> Table | None:
    """Return the settings of a table; None if they are wrong, with the reasons in ``problems``."""
    if not isinstance(table, dict):
        problems.add_of_table(key, SettingProblem("", "", "must be a table"))
        return None
    found = find_problems(model, table)
    for problem in found:
        is_elsewhere = problem.key not in model.model_fields and is_source_setting(problem.key)
        problems.add_of_table(
            key, replace(problem, words=where_it_belongs(problem.key)) if is_elsewhere else problem
        )
    return None if found else model.model_validate(table)


def _sources(
    raw: Mapping[str, Any], name: str, kinds: Mapping[str, SourceKind[Any]], problems: ProblemList
) -> tuple[SourceTable, ...]:
    found = []
    for number, table in enumerate(raw.get("source", [{"name": DEFAULT_SOURCE}])):
        wrong = _SourceProblems(problems, number, table.get("name", "?"))
        source = _source(dict(table), kinds, wrong)
        if source is not None:
            found.append(source)
    names = [source.settings.name for source in found]
    for twice in sorted({each for each in names if names.count(each) > 1}):
        problems.add(f"{name}: two sources are named {twice!r}: give each its own name")
    return tuple(found)


class _SourceProblems:
    """The problems of the ``[[source]]`` table ``name`` with this number."""

    def __init__(self, problems: ProblemList, number: int, name: object) -> None:
        self._problems, self._number, self._name = problems, number, name
        self.found = False

    def add(self, key: str, words: str) -> None:
        self.add_problem(SettingProblem(key, "", words))

    def add_problem(self, problem: SettingProblem) -> None:
        self.found = True
        self._problems.add_of_source(self._number, self._name, problem)


def _source(
    own: dict[str, Any], kinds: Mapping[str, SourceKind[Any]], wrong: _SourceProblems
) -> SourceTable | None:
    """Return a source, from its table ``own``; None if something is ``wrong``."""
    hook = own.pop("on_change", None)
    if hook is not None and not is_hook(hook):
        wrong.add("on_change", "on_change must be a list of words or 'module:function'")
    rules = own.pop("hook", {})
    for problem in find_problems(HookRules, rules) if isinstance(rules, dict) else ():
        wrong.add_problem(problem)
    if not isinstance(rules, dict):
        wrong.add("hook", "hook must be a table: [source.hook] with batch, within, at_once, …")
    addresses, notification = _notification(own, wrong)
    objective = _source_objective(own, wrong)
    benefit, stale_cost = (_money_rate(own, key, wrong) for key in ("benefit", "stale_cost"))
    update_cost = _update_cost(own, wrong)
    decay = _decay(own, wrong, earns=benefit > 0 or stale_cost > 0, objective=objective)
    chosen = str(own.setdefault("kind", "http"))
    if chosen not in kinds:
        wrong.add("kind", f"unknown kind of source {chosen!r}{did_you_mean(chosen, kinds)}")
        return None
    kind = kinds[chosen]
    for problem in find_problems(kind.settings, own):
        wrong.add_problem(problem)
    if wrong.found:
        return None
    told = tuple(hook) if isinstance(hook, list) else hook
    called = HookRules.model_validate(rules)
    table = read_settings(kind.settings, own)
    money = (benefit, stale_cost, objective, update_cost, decay)
    return SourceTable(table, told, kind, *money, called, addresses, notification)


def _notification(own: dict[str, Any], wrong: _SourceProblems) -> tuple[tuple[str, ...], NotifyRules]:
    """Remove ``notify`` and ``notification`` from ``own``, the table of a source, and return them. The
    addresses may hold passwords: no problem shows them."""
    given, rules = own.pop("notify", []), own.pop("notification", {})
    if isinstance(given, str):
        given = [given]
    if not (isinstance(given, list) and all(isinstance(each, str) and each for each in given)):
        wrong.add("notify", "notify must be a list of addresses, such as mailto://… or env:NAME")
        given = []
    if not isinstance(rules, dict):
        wrong.add("notification", "notification must be a table: [source.notification] with every, …")
        return tuple(given), NotifyRules()
    problems = find_problems(NotifyRules, rules)
    for problem in problems:
        wrong.add_problem(problem)
    return tuple(given), NotifyRules() if problems else NotifyRules.model_validate(rules)


def _money_rate(own: dict[str, Any], key: str, wrong: _SourceProblems) -> float:
    """Remove ``key`` from ``own``, the table of a source, and return its value, written like ``0.01/d``, in
    money per second. It is 0 without a value."""
    text = own.pop(key, None)
    if text is None or text == 0:
        return 0.0
    try:
        return parse_rate(str(text))
    except UsageError:
        wrong.add(key, f'{key} is {text!r}: money per time, such as "0.01/d"')
        return 0.0


def _update_cost(own: dict[str, Any], wrong: _SourceProblems) -> float:
    """Remove ``update_cost`` from ``own``, the table of a source, and return it, in money for each change."""
    given = own.pop("update_cost", 0)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (is_number and 0 <= given < math.inf):
        wrong.add("update_cost", f"update_cost is {given!r}: money for each change, a number from 0 on")
        return 0.0
    return float(given)


def _decay(own: dict[str, Any], wrong: _SourceProblems, *, earns: bool, objective: str | None) -> str:
    """Remove ``decay`` from ``own``, the table of a source, and return it; empty without one."""
    given = own.pop("decay", "")
    if given == "":
        return ""
    try:
        decay_from(str(given), 1.0)
    except UsageError as error:
        wrong.add("decay", str(error))
        return ""
    except InputError as error:
        wrong.add("decay", f"decay is {given!r}: {error}")
        return ""
    if str(given).partition(":")[0].strip() not in SCALABLE:
        wrong.add("decay", f"decay is {given!r}: an engine knows {', '.join(SCALABLE)}")
    elif not earns:
        wrong.add("decay", "decay says what copies earn over time: give benefit or stale_cost too")
    elif objective not in (None, "freshness"):
        wrong.add("decay", f"decay is for the objective freshness, and the objective is {objective}")
    return str(given)


def _source_objective(own: dict[str, Any], wrong: _SourceProblems) -> str | None:
    """Remove ``objective`` from ``own``, the table of a source, and return it; None without one."""
    given = own.pop("objective", None)
    if given is None:
        return None
    try:
        return one_of("objective", str(given), OBJECTIVE_NAMES)
    except UsageError as error:
        wrong.add("objective", str(error))
        return None


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
    problems = ProblemList(name, text, {})
    table = _checked(BudgetTable, in_file["budget"], "budget", problems)
    problems.raise_any()
    assert isinstance(table, BudgetTable)
    return table.requests
