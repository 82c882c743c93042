"""``--dbt`` of ``afresh add``, ``due`` and ``observe``: for projects whose models dbt builds."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from afresh.cli.engine.project import open_project
from afresh.cli.summary import print_data, print_json, print_note
from afresh.values.errors import AfreshError, OutputError, UsageError
from afresh.values.formatting import format_count
from afresh.values.units import format_duration

if TYPE_CHECKING:
    from afresh.engine.dbt_models import DueModels
    from afresh.engine.engine import Engine

_SELECT = ("--select", "-s", "--models", "-m", "--selector", "--exclude")


def add_models(target: str, source: str | None, sets: list[str] | None, *, as_json: bool) -> None:
    """Register the models of a dbt project, and learn from its last run. If the settings have no source of
    dbt models yet, add one to ``afresh.toml``."""
    from afresh.sources.views.dbt_artifacts import read_project

    models = read_project(Path(target)).models
    if not models:
        raise UsageError(f"{target}: the project has no model whose build writes rows")
    name = _add_source(target, source)
    with open_project(sets) as engine:
        own = engine.dbt.source(name)
        new = engine.add([model for model in models if own.selects(model)], source=name)
        learned = engine.dbt.learn(name)
        total = sum(count.items for count in engine.store.items.counts())
    if as_json:
        print_json({"new": new, "items": total, "source": name, "built": len(learned.built)})
    print_note(f"{new:,} new, {format_count(total, 'item')} in all")


def print_due_models(
    for_s: float, source: str | None, command: list[str], sets: list[str] | None, *, as_json: bool
) -> None:
    """Print the models worth building within the budget of ``for_s`` seconds; with a ``command``, run it with
    this selection if there is one, and learn from the run."""
    if command and (chosen := next((word for word in command if word in _SELECT), None)):
        raise UsageError(f"{chosen}: leave it out: the models that are due are selected")
    with open_project(sets) as engine:
        found = engine.find_due_models(for_s, source)
        _print_selection(found, is_built=bool(command), as_json=as_json)
        code = _run(engine, source, [*command, "--select", *found.models]) if command and found.models else 0
    if code:
        raise typer.Exit(code)


def observe_run(target: str, source: str | None, sets: list[str] | None, *, as_json: bool) -> None:
    """Learn from the last run of dbt: which models were built, failed or were skipped, and what it took."""
    with open_project(sets) as engine:
        _learn(engine, source, Path(target), None, as_json=as_json)


def _run(engine: Engine, source: str | None, command: list[str]) -> int:
    start_s = engine.clock.elapsed_s()
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise AfreshError(f"{command[0]}: {error.strerror}") from None
    _learn(engine, source, None, engine.clock.elapsed_s() - start_s, as_json=False)
    return code if code >= 0 else 128 - code


def _learn(
    engine: Engine, source: str | None, target: Path | None, seconds: float | None, *, as_json: bool
) -> None:
    found = engine.dbt.learn(source, target, seconds)
    if as_json:
        counts = {"built": list(found.built), "failed": list(found.failed), "skipped": list(found.skipped)}
        print_json({"new": found.is_new, **counts})
    if not found.is_new:
        print_note("no run that was not known already")
        return
    words = [
        format_count(len(keys), "node") + f" {done}"
        for keys, done in ((found.built, "built"), (found.failed, "failed"), (found.skipped, "skipped"))
        if keys
    ]
    print_note(", ".join(words) or "the run built nothing")


def _print_selection(found: DueModels, *, is_built: bool, as_json: bool) -> None:
    """Print the models that are due. If a command builds them, standard output belongs to the command."""
    if as_json:
        budget_s = None if math.isinf(found.budget_s) else round(found.budget_s, 3)
        cost_s = round(found.cost_s, 3)
        print_json({"models": found.models, "stale": found.stale, "cost_s": cost_s, "budget_s": budget_s})
    for model in () if as_json or is_built else found.models:
        print_data(model)
    of = "" if math.isinf(found.budget_s) else f" of the {format_duration(found.budget_s)} allowed"
    if not found.models:
        none_fits = f"none of {found.stale} stale models fits into the time allowed now"
        print_note(f"nothing is due: {none_fits if found.stale else 'no model is stale'}")
        return
    these = f"building {' '.join(found.models)}" if is_built else "these"
    print_note(f"{found.stale:,} stale; {these}: about {format_duration(found.cost_s)}{of}")


def _add_source(target: str, source: str | None) -> str:
    """Return the name of the source of dbt models. If there is none, add it to ``afresh.toml``."""
    from afresh.cli.engine.project import read_overrides
    from afresh.engine.app import read_folder
    from afresh.engine.settings.parsing import FILE_NAME
    from afresh.sources.views.settings import ViewSettings

    settings = read_folder(Path(), read_overrides(None))
    tables = [table.settings for table in settings.sources]
    own = [one.name for one in tables if isinstance(one, ViewSettings) and one.dbt]
    if source in own or (source is None and len(own) == 1):
        return source or own[0]
    if source is None and own:
        raise UsageError(f"the settings have several sources of dbt models: use --source {' or '.join(own)}")
    name = source or "dbt"
    if name in [one.name for one in tables]:
        raise UsageError(f"source {name!r} has no setting dbt: add dbt = {target!r} to it, or use --source")
    path = Path(FILE_NAME)
    text = path.read_text(encoding="utf-8")
    # Without any source there is one of web pages, which must stay.
    web = "" if "[[source]]" in text else '\n[[source]]\nname = "web"\n'
    folder = target.rstrip("/") or target
    table = f'{web}\n[[source]]\nname = "{name}"\nkind = "view"\ndbt = {_quoted(folder)}\n'
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(table)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    print_note(f"{FILE_NAME} has a new source {name!r}: the models of {folder}")
    return name


def _quoted(text: str) -> str:
    """Return a text as a string of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
