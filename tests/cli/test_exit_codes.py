"""One rule for every engine command: 2 if the question is wrong, 1 if it cannot be done; said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Afresh

from afresh.engine.app import init_folder, open_engine

KEY = "https://h.test/a"
SOON = "is not a duration"

WRONG = [
    ("add", (KEY, "--weight", "-1"), "weight is -1.0: must be 0 or more"),
    ("add", (KEY, "--weight", "nan"), "weight is nan"),
    ("add", (KEY, "--cost", "0"), "cost is 0.0: must be more than 0"),
    ("add", (KEY, "--min-interval", "soon"), "--min-interval: 'soon' " + SOON),
    ("add", (KEY, "--max-interval", "5"), "--max-interval: '5' " + SOON),
    (
        "add",
        (KEY, "--min-interval", "2h", "--max-interval", "1h"),
        "--min-interval 2h is more than --max-interval 1h",
    ),
    ("add", (KEY, "--selector", "main >"), "is not a CSS selector"),
    ("add", (KEY, "--source", "wbe"), "did you mean 'web'"),
    (
        "add",
        (KEY, "--set", "plan.target=2"),
        "--set plan.target=2: is 2.0: a freshness must be more than 0 and less than 1",
    ),
    ("add", ("gopher://h.test/",), "is not an http or https address"),
    ("add", ("--sitemap", "map.xml"), "'map.xml' is not an http or https address"),
    ("add", ("--feed", "feed"), "'feed' is not an http or https address"),
    ("add", ("--discover", "h.test"), "'h.test' is not an http or https address"),
    ("remove", ("https://h.test/unknown",), "not known: https://h.test/unknown; nothing was done"),
    ("set", (KEY, "--weight", "-1"), "weight is -1.0"),
    ("set", (KEY, "--min-interval", "2h", "--max-interval", "1h"), "--min-interval 2h is more than"),
    ("set", (KEY, "--max-interval", "0s"), "--max-interval is 0.0: must be more than 0"),
    ("set", (KEY, "--max-interval", "1h"), "--min-interval would be more than --max-interval"),
    ("set", (KEY, "--cost", "inf"), "cost is inf"),
    ("set", (KEY, "--min-interval", "soon"), "--min-interval: 'soon' " + SOON),
    ("set", (KEY, "--selector", "main >"), "is not a CSS selector"),
    ("set", ("https://h.test/unknown", "--pause"), "not known: https://h.test/unknown; nothing was done"),
    ("set", ("https://h.test/unknown", KEY, "--min-interval", "2h"), "unknown; the others were done"),
    ("run", ("--budget", "foo"), "--budget foo: 'foo' is not a rate"),
    ("run", ("--budget", "0/s"), "--budget 0/s: "),
    ("run", ("--for", "soon"), "--for: 'soon' " + SOON),
    ("run", ("--host-delay", "soon"), "--host-delay soon: 'soon' " + SOON),
    ("run", ("--host-delay", "-1s"), "--host-delay -1s: "),
    ("run", ("--log", "loud"), "unknown kind of log"),
    ("run", ("--set", "budget.requests=foo"), "--set budget.requests=foo: 'foo' is not a rate"),
    ("run", ("--set", "source.web.delay=foo"), "--set source.web.delay=foo: 'foo' " + SOON),
    ("status", ("--set", "plan.policy=best"), "--set plan.policy=best: must be"),
    ("why", ("https://h.test/unknown",), "there is no item"),
    ("get", ("https://h.test/unknown",), "there is no item"),
    ("get", (KEY, "--max-age", "old"), "--max-age: 'old' " + SOON),
    ("get", (KEY, "--version", "9"), "no copy of https://h.test/a of version 9"),
    ("due", ("--lease", "long"), "--lease: 'long' " + SOON),
    ("due", ("--source", "wbe"), "did you mean 'web'"),
    ("observe", ("--set", "store.versions=0"), "--set store.versions=0: "),
    ("export", ("--format", "xml"), "unknown format"),
    ("export", ("--format", "dir"), "needs a folder"),
    ("store", ("mend",), "unknown action"),
    ("store", ("backup",), "needs a file"),
    ("config", ("chekc",), "did you mean 'check'"),
    ("config", ("check", "--set", "web.port=-1"), "--set web.port=-1: "),
    ("serve", ("--set", "web.port=-1"), "--set web.port=-1: "),
    ("init", (), "is there already"),
]
IMPOSSIBLE = [
    ("add", ("--file", "nowhere.txt"), "nowhere.txt: cannot be read"),
    ("remove", ("--file", "nowhere.txt"), "nowhere.txt: cannot be read"),
    ("set", ("--file", "nowhere.txt", "--pause"), "nowhere.txt: cannot be read"),
    ("get", (KEY,), "there is no copy of https://h.test/a yet"),
    ("observe", ("nowhere.jsonl",), "nowhere.jsonl: cannot be read"),
    ("export", ("-o", "nowhere/copies.jsonl"), "nowhere/copies.jsonl: no folder nowhere"),
    ("store", ("copy", "sqlite:nowhere.db", "sqlite:other.db"), "nowhere.db"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one item; no wrong question changes it."""
    made = tmp_path_factory.mktemp("project")
    init_folder(made)
    with open_engine(made) as engine:
        engine.add([KEY], min_interval_s=7200.0)
    return made


@pytest.fixture
def project(afresh: Afresh, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Afresh:
    monkeypatch.chdir(folder)
    return afresh


@pytest.mark.parametrize(("command", "arguments", "words"), WRONG)
def test_a_wrong_question_is_2(project: Afresh, command: str, arguments: tuple[str, ...], words: str) -> None:
    ran = project(command, *arguments)
    assert ran.code == 2, ran.err
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1 or command in ("remove", "set")


@pytest.mark.parametrize(("command", "arguments", "words"), IMPOSSIBLE)
def test_what_cannot_be_done_is_1(
    project: Afresh, command: str, arguments: tuple[str, ...], words: str
) -> None:
    ran = project(command, *arguments)
    assert ran.code == 1, ran.err
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("add", "--weight"),
        ("set", "--cost"),
        ("run", "--host-concurrency"),
        ("get", "--version"),
        ("due", "--k"),
        ("store", "--sample"),
        ("serve", "--port"),
    ],
)
def test_what_is_no_number_is_2_too(project: Afresh, command: str, option: str) -> None:
    ran = project(command, *(("check",) if command == "store" else (KEY,)), option, "many")
    assert (ran.code, option in ran.err) == (2, True)


def test_a_file_is_blamed_for_what_it_says(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text('[budget]\nrequests = "foo"\n')
    ran = afresh("status")
    assert (ran.code, ran.err.startswith("afresh: afresh.toml, line 2: [budget] requests: 'foo'")) == (
        2,
        True,
    )


def test_a_variable_is_blamed_for_what_it_says(project: Afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_BUDGET_REQUESTS", "foo")
    assert project("status").err.startswith("afresh: AFRESH_BUDGET_REQUESTS: 'foo' is not a rate")
