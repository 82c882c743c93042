"""The docs name every command, option, setting, metric and Python name, and nothing that is not there."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families

import afresh
from afresh.cli.app import app
from afresh.engine.app import init_folder, open_engine
from afresh.engine.engine import Engine
from afresh.engine.reporting.pulse import Pulse
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.scheduler.poll_costs import PollTallies, Tally
from afresh.engine.settings.hook_rules import HookRules
from afresh.engine.settings.notify_rules import NotifyRules
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.receiver_rules import WebhookRules
from afresh.engine.state_names import PULSE, STALENESS_REPORTS, TALLIES
from afresh.policy.registry import POLICIES
from afresh.rates.estimator import ESTIMATORS
from afresh.sources.capabilities import StalenessReport
from afresh.sources.registry import BUILT_IN
from afresh.sources.settings import SourceSettings
from afresh.values.objective_names import OBJECTIVE_NAMES
from afresh.web.dashboard_data import DashboardData
from afresh.web.metrics import expose_metrics

ROOT = Path(__file__).parent.parent
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def section(command: str) -> str:
    """The part of docs/commands.md about one command."""
    text = (ROOT / "docs" / "commands.md").read_text()
    found = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section '## {command}'"
    return found[1]


def parameters(command: str) -> list[Any]:
    """Arguments and options of a command and of its subcommands."""
    found = COMMANDS[command]
    below = getattr(found, "commands", {}).values()
    return [parameter for one in (found, *below) for parameter in one.params]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_is_documented(command: str) -> None:
    text = section(command)
    for parameter in parameters(command):
        if parameter.param_type_name == "option" and parameter.name != "help":
            long = max(parameter.opts, key=len)
            assert f"`{long}`" in text, f"{command} {long} is not in docs/commands.md"


def test_every_command_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    assert sorted(re.findall(r"^## (.*)$", text, re.MULTILINE)) == sorted(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_documented_option_exists(command: str) -> None:
    known = {option for parameter in parameters(command) for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z][a-z-]*)`", section(command))) <= known


def test_global_options_are_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text().split("\n## ")[0]
    for parameter in typer.main.get_command(app).params:
        assert max(parameter.opts, key=len) in text


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [
        ("plan", "--objective", OBJECTIVE_NAMES),
        ("estimate", "--method", tuple(ESTIMATORS)),
        ("replay", "--policy", tuple(POLICIES)),
    ],
)
def test_what_an_option_may_name_is_documented(command: str, option: str, names: tuple[str, ...]) -> None:
    (words,) = [row[1] for row in table_rows(section(command)) if option in named(row[0])]
    assert [name for name in names if name not in named(words)] == []


def table_rows(text: str) -> list[list[str]]:
    """The rows of all tables in a text, as cells, without their heads."""
    lines = re.sub(r"^\|.*\|\n\| ---.*$", "", text, flags=re.MULTILINE).splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")
    ]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def calls_in(text: str, prefix: str = "") -> dict[str, list[str]]:
    """``name(parameters)`` in the first cells of a page's tables; … stands for further keywords."""
    calls = [found for row in table_rows(text) for found in named(row[0])]
    parts = [re.fullmatch(rf"{re.escape(prefix)}(\w+)\((.*)\)", call) for call in calls]
    return {part[1]: re.findall(r"[\w…]+", part[2]) for part in parts if part}


def check_signature(function: Callable[..., Any], words: list[str]) -> None:
    """The documented parameters are all of them, in their order, but for those that … stands for."""
    known = inspect.signature(function).parameters.values()
    plain = [one.name for one in known if one.kind != one.VAR_KEYWORD and one.name != "self"]
    assert [word for word in words if word != "…"] == plain, function.__name__
    assert ("…" in words) == any(one.kind == one.VAR_KEYWORD for one in known), function.__name__


def test_the_python_page_names_everything_and_nothing_else() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    rows = table_rows(text)
    assert set(re.findall(r"`afresh\.(\w+)", "\n".join(map(str, rows)))) == set(afresh.__all__)
    imported = r"(?<!from )"  # "from afresh.model…": what is not public is imported from its place
    assert set(re.findall(imported + r"\bafresh\.(\w+)", text)) <= set(afresh.__all__)
    calls = calls_in(text, "afresh.")
    functions = {name for name in afresh.__all__ if inspect.isfunction(getattr(afresh, name))}
    assert set(calls) == functions
    for name, words in calls.items():
        check_signature(getattr(afresh, name), words)
    for row in rows:
        for name in re.findall(r"`afresh\.([A-Z]\w+)`", row[0]):
            found = getattr(afresh, name)
            if is_dataclass(found):
                assert re.findall(r"\.(\w+)", row[1]) == [field.name for field in fields(found)]


def test_the_methods_of_the_engine_are_documented() -> None:
    text = (ROOT / "docs" / "engine.md").read_text().split("## From Python")[1]
    methods = {name: one for name, one in inspect.getmembers(Engine, inspect.isfunction) if name[0] != "_"}
    calls = calls_in(text)
    assert set(calls) == set(methods)
    for name, words in calls.items():
        check_signature(methods[name], words)


def settings_section(heading: str) -> str:
    text = (ROOT / "docs" / "settings.md").read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/settings.md has no section {heading!r}"
    return found[1]


def documented_settings(heading: str) -> dict[str, str]:
    """The keys of a section of docs/settings.md with what is said of their defaults."""
    pairs: list[tuple[str, str]] = []
    for row in table_rows(settings_section(heading)):
        keys, defaults = named(row[0]), row[1].split(", ")
        pairs += zip(keys, defaults if len(keys) == len(defaults) else [row[1]] * len(keys), strict=True)
    return dict(pairs)


TABLES = ("store", "budget", "plan", "run", "web", "cluster", "feed")


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_documented_with_its_default(table: str) -> None:
    said = documented_settings(f"[{table}]")
    usual = getattr(parse_settings(""), table)
    assert set(said) == set(type(usual).model_fields)
    for key, words in said.items():
        if re.fullmatch(r"`[^`]+`|[\d.]+|true|false", words):
            value = words.replace("`", '"')
            assert getattr(parse_settings(f"[{table}]\n{key} = {value}"), table) == usual, f"[{table}] {key}"


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_every_setting_of_a_source_is_documented_with_its_default(kind: str) -> None:
    common, own = documented_settings("[[source]]"), documented_settings(f"Kind {kind}")
    known = BUILT_IN[kind].settings.model_fields
    of_engine = {"on_change", "hook", "benefit", "stale_cost", "objective", "update_cost", "decay"}
    of_engine |= {"notify", "notification"}
    assert set(common) == {*SourceSettings.model_fields, *of_engine}
    assert set(own) <= set(known)
    assert set(known) <= {*own, *common}
    for key, words in {**common, **own}.items():
        usual = None if key in of_engine else known[key].default
        if usual is not None and re.fullmatch(r"`\d[\w.]*`|[\d.]+|true|false", words):
            value = words.replace("`", '"')
            parsed = pydantic.create_model("One", one=(known[key].rebuild_annotation(), ...))
            found = parsed.model_validate({"one": tomllib.loads(f"one = {value}")["one"]})
            assert getattr(found, "one") == usual, f"{kind} {key}"  # noqa: B009


def test_the_settings_of_webhooks_are_documented_with_their_defaults() -> None:
    said = documented_settings("Webhooks")
    assert set(said) == set(WebhookRules.model_fields)
    usual = {key: words.strip("`") for key, words in said.items() if words.startswith("`")}
    values = "\n".join(f'{key} = "{value}"' for key, value in usual.items())
    text = "[web.webhook.a]\nsecret = 'x'\nitems = 'a'\n"
    assert parse_settings(text + values).web.webhook == parse_settings(text).web.webhook


def test_how_hooks_are_called_is_documented_with_its_defaults() -> None:
    said = documented_settings("Hooks of a source")
    assert set(said) == set(HookRules.model_fields)
    values = "\n".join(f"{key} = {words.replace('`', chr(34))}" for key, words in said.items())
    (table,) = parse_settings(f"[[source]]\nname = 'web'\n[source.hook]\n{values}").sources
    assert table.hook == HookRules()


def test_what_notifications_tell_is_documented_with_its_defaults() -> None:
    said = documented_settings("Notifications of a source")
    assert set(said) == set(NotifyRules.model_fields)
    written = {key: words.removeprefix("`").removesuffix("`") for key, words in said.items()}
    values = "\n".join(f"{key} = {words}" for key, words in written.items())
    (table,) = parse_settings(f"[[source]]\nname = 'web'\n[source.notification]\n{values}").sources
    assert table.notification == NotifyRules()


def test_every_metric_is_documented_and_no_other(tmp_path: Path) -> None:
    init_folder(tmp_path)
    view = "[[source]]\nname = 'w'\nkind = 'view'\nurl = 'postgresql:///w'\ntarget_lag = '1h'\n"
    (tmp_path / "afresh.toml").write_text(f"[[source]]\nname = 'web'\n{view}")
    with open_engine(tmp_path) as engine:
        engine.add(["https://example.org/"], source="web")
        engine.add(["v"], source="w")
        tallies = PollTallies()
        tallies.count("w", "w", "v", Tally(1, 1, 0, 0.5))
        report = StalenessReport(5.0, changed=False, stale_since_s=1.0)
        kept = {PULSE: Pulse(1.0, 0.0).pack(), TALLIES: tallies.pack()}
        engine.store.state.set(kept | {STALENESS_REPORTS + "w": pack_reports({"v": report})})
        shown = expose_metrics(DashboardData(engine, None)).decode()
    families = list(text_string_to_metric_families(shown))
    known = {
        sample.name + "".join(f"{{{label}}}" for label in sample.labels): family.type
        for family in families
        for sample in family.samples
    }
    rows = table_rows((ROOT / "docs" / "metrics.md").read_text())
    assert {name: row[1] for row in rows for name in named(row[0])} == known


def test_the_grafana_dashboard_uses_metrics_that_exist() -> None:
    rows = table_rows((ROOT / "docs" / "metrics.md").read_text())
    known = {name.partition("{")[0] for row in rows for name in named(row[0])}
    board = json.loads((ROOT / "docs" / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    used = {name for query in queries for name in re.findall(r"afresh_\w+", query)}
    assert used
    assert used <= known
    assert {name for name in known if name.startswith("afresh_view_")} <= used


def anchors(page: Path) -> set[str]:
    """What a link into a page can name, as GitHub makes it of headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            if "://" not in target:
                there = page.parent / target if target else page
                assert there.exists(), f"{page.name} links to {target}"
                assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_the_readme_is_under_two_screens() -> None:
    """Of fifty lines of a hundred columns; the picture stands beside the first words."""
    text = (ROOT / "README.md").read_text()
    lines = sum(max(1, -(-len(re.sub(r"\]\([^)]*\)", "]", line)) // 100)) for line in text.splitlines())
    assert lines < 100
    (picture,) = re.findall(r'<img align="right" width="440" src="([^"]*)"', text)
    assert (ROOT / picture).exists()


def test_every_page_begins_with_what_the_reader_will_be_able_to_do() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        begin = page.read_text().split("\n\n")[1]
        assert re.match(
            r"(After this page|At the end of this tutorial you|Here you|This page shows)\b", begin
        ), page.name


def test_every_page_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        name = page.relative_to(ROOT).as_posix()
        assert name == "README.md" or f"({name})" in text, f"the README does not lead to {name}"


def test_the_readme_tells_the_figures_of_the_experiments() -> None:
    cells = re.findall(
        r"^\| \w+ \.05 \| \d+ \| .*", (ROOT / "docs" / "experiments.md").read_text(), re.MULTILINE
    )
    needs = [float(cell.split(" | ")[3].rpartition(", ")[2]) for cell in cells]
    assert len(needs) == 8
    told = re.findall(
        r"uniform polling needs (\S+) to (\S+) times the requests", (ROOT / "README.md").read_text()
    )
    assert told == [(f"{min(needs):.1f}", f"{max(needs):.1f}")]


def test_files_named_in_the_docs_exist() -> None:
    layers = "|".join(path.name for path in (ROOT / "src" / "afresh").iterdir() if path.is_dir())
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        path = rf"\b((?:{layers}|tests|docs)/(?:[a-z_]+/)*(?:[a-z_]+\.(?:py|md)\b|(?=[ `,;])))"
        found = set(re.findall(path, page.read_text()))
        for name in found:
            assert any((base / name).exists() for base in (ROOT / "src" / "afresh", ROOT)), f"no {name}"
        assert page.name != "ARCHITECTURE.md" or len(found) > 60


def test_benchmarks_named_in_the_docs_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    found = [
        name
        for page in pages
        for names in re.findall(r"python -m\s+bench((?:[. ][a-z_]+)+)`", page.read_text())
        for name in re.split(r"[. ]", names)[1:]
    ]
    assert len(found) > 12
    assert [name for name in found if not (ROOT / "bench" / f"{name}.py").exists()] == []


@pytest.mark.parametrize(("number", "heading"), [(0, "Layers"), (1, "Inside the engine")])
def test_the_layers_drawn_are_those_that_are_checked(number: int, heading: str) -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][
        number
    ]
    text = (ROOT / "ARCHITECTURE.md").read_text().split(f"## {heading}")[1].split("\n## ")[0]
    drawn = [map(module_name, named(row[0])) for row in table_rows(text.replace("\\|", "/"))]
    assert [" | ".join(names) for names in drawn] == contract["layers"]


def module_name(path: str) -> str:
    return path.removeprefix("engine/").removesuffix(".py")


def test_the_changelog_ends_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    released = [name for name in re.findall(r"^## (\S+)", text, re.MULTILINE) if name != "Unreleased"]
    assert released[0] == afresh.__version__


def test_the_tests_that_the_threat_model_names_exist() -> None:
    named_tests = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / "security.md").read_text()))
    assert len(named_tests) > 20
    assert [name for name in named_tests if not (ROOT / name).exists()] == []
