"""``afresh config check`` says everything that a run would stumble over, and does nothing else."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh


def test_a_new_project_is_right_and_stays_as_it_is(afresh: Afresh, tmp_path: Path) -> None:
    assert afresh("init").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ran = afresh("config", "check")
    assert ran.code == 0
    for words in ("afresh.toml is right", "1/s in requests", "0 items", "with a token", "source web"):
        assert words in ran.out
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    found = json.loads(afresh("config", "check", "--json").out)
    assert found["problems"] == []
    assert found["settings"]["budget"]["requests"] == 1.0
    assert found["settings"]["source"][0]["name"] == "web"


def test_secrets_are_not_shown(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(
        "[web]\ntoken = 'hunter2hunter2'\n[[source]]\nname = 'web'\nheaders = { X = 'hunter2hunter2' }\n"
    )
    ran = afresh("config", "check", "--json")
    assert json.loads(ran.out)["settings"]["source"][0]["headers"] == "hidden"
    assert "hunter2" not in ran.out + ran.err


def test_credentials_in_addresses_are_not_shown(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(
        """
[store]
copies = "s3://bucket/prefix?secret=hunter2"
[[source]]
name = "web"
feeds = ["https://a.test/feed?page=2&api_key=hunter2&x=1", "https://a.test/feed?Access_Token=hunter2"]
sitemaps = ["https://a.test/map.xml?key=hunter2", "https://a.test/map.xml?X-Amz-Signature=hunter2"]
discover = ["https://a.test/?password=hunter2", "https://a.test/?sig=hunter2#token=hunter2"]
follow = ["https://a.test/docs/?token=hunter2"]
"""
    )
    ran = afresh("config", "check", "--json")
    source = json.loads(ran.out)["settings"]["source"][0]
    assert source["feeds"][0] == "https://a.test/feed?page=2&api_key=•••&x=1"
    shown = [ran, afresh("config", "check"), afresh("status"), afresh("add", "https://a.test/x")]
    assert "hunter2" not in "".join(each.out + each.err for each in shown)


def test_addresses_of_people_are_checked_and_not_shown(afresh: Afresh, tmp_path: Path) -> None:
    settings = "[[source]]\nname = 'web'\nnotify = ['json://hunter2', '{}://hunter2']\n"
    (tmp_path / "afresh.toml").write_text(settings.format("jsons"))
    right, as_json = afresh("config", "check"), afresh("config", "check", "--json")
    assert (right.code, ", notifies 2 addresses" in right.out) == (0, True)
    (tmp_path / "afresh.toml").write_text(settings.format("nosuch"))
    wrong = afresh("config", "check")
    told = "afresh.toml, line 3: source 'web': notify: address 2 is not understood"
    assert (wrong.code, told in wrong.err) == (2, True)
    assert "hunter2" not in "".join(ran.out + ran.err for ran in (right, as_json, wrong))


def test_all_problems_of_a_source_are_told_each_with_its_line(afresh: Afresh, tmp_path: Path) -> None:
    settings = "[[source]]\nname = 'web'\n[[source]]\nname = 'shop'\non_change = ['no-such-program']\n"
    (tmp_path / "afresh.toml").write_text(settings + "headers = { X = 'env:NOPE' }\n")
    ran = afresh("config", "check")
    assert ran.code == 2
    first, second = ran.err.splitlines()
    assert first.startswith("afresh: afresh.toml, line 3: source 'shop'"), first
    assert first.endswith("the environment has no variable NOPE")
    told = "afresh: afresh.toml, line 5: source 'shop': on_change: there is no program 'no-such-program'"
    assert second == told


def test_no_store_is_made(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text("")
    ran = afresh("config", "check")
    assert (ran.code, "not there yet" in ran.out) == (0, True)
    assert [path.name for path in tmp_path.iterdir()] == ["afresh.toml"]


def test_a_store_that_the_next_run_makes_or_upgrades_is_right(
    afresh: Afresh, tmp_path: Path, postgres_url: str
) -> None:
    assert afresh("init").code == 0
    with closing(sqlite3.connect(tmp_path / "afresh.db")) as store:
        store.execute("PRAGMA user_version = 0")
    ran = afresh("config", "check")
    assert (ran.code, "brings it up to date" in ran.out) == (0, True), ran.out
    url = f"store.url={postgres_url}&schema=not_there_yet"
    ran = afresh("config", "check", "--set", url)
    assert (ran.code, "not there yet" in ran.out) == (0, True), ran.out
    ran = afresh("config", "check", "--set", url.replace("/postgres?", "/no_database?"))
    assert (ran.code, "no such database" in ran.err) == (2, True), ran.err


def test_everything_that_is_wrong_is_said_at_once(
    afresh: Afresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    (tmp_path / "afresh.toml").write_text(
        """
[store]
url = "mysql:there"
[web]
host = "0.0.0.0"
[[source]]
name = "secret"
headers = { Authorization = "Bearer env:NO_SUCH_SECRET" }
[[source]]
name = "call"
kind = "python"
call = "no_such_module:look"
[[source]]
name = "program"
on_change = ["no-such-program"]
[[source]]
name = "function"
on_change = "no_such_module:tell"
[[source]]
name = "right"
on_change = ["python3", "reindex.py"]
"""
    )
    ran = afresh("config", "check", "--json")
    assert ran.code == 2
    problems = json.loads(ran.out)["problems"]
    for problem, (place, words) in zip(
        problems,
        (
            ("store: ", "mysql"),
            ("web: ", "token"),
            ("afresh.toml, line 6: source 'secret'", "NO_SUCH_SECRET"),
            ("afresh.toml, line 9: source 'call': ", "no_such_module"),
            ("afresh.toml, line 15: source 'program': ", "no-such-program"),
            ("afresh.toml, line 18: source 'function': ", "no_such_module"),
        ),
        strict=True,
    ):
        assert problem.startswith(place)
        assert words in problem
        assert problem in ran.err


WRONG = """
[budget]
requets = "1/s"
bytes = "5/s"
[plan]
objective = "agee"
[[source]]
name = "one"
delay = "soon"
dellay = "1s"
benefit = "much"
[[source]]
name = "two"
kind = "view"
objective = "agee"
timeout = "-5s"
[[source]]
name = "three"
kind = "htp"
[[view]]
name = "front"
items = []
"""


def test_all_wrong_settings_are_named_with_their_lines(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(WRONG)
    ran = afresh("config", "check", "--json")
    assert ran.code == 2
    found = json.loads(ran.out)
    assert found["settings"] is None
    lines = [problem.split(",")[1].split(":")[0].strip() for problem in found["problems"]]
    wrong = (3, 4, 6, 9, 10, 11, 15, 16, 19, 22)
    assert sorted(lines, key=lambda line: int(line.split()[1])) == [f"line {number}" for number in wrong]
    for words in (
        "[budget] bytes:",
        "source 'one': delay:",
        "source 'one': benefit is 'much'",
        "kind of source",
    ):
        assert words in ran.err
    one_line = afresh("run", "--once").err.strip()
    assert "line 3: [budget]: unknown setting 'requets': did you mean 'requests'? (9 more: 'af" in one_line
    assert "\n" not in one_line


def test_every_limit_of_the_budget_is_shown(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text("[budget]\nseconds = '5m/h'\nbytes = '1GB/d'\n")
    checked = " ".join(afresh("config", "check").out.split())
    assert "1/s in requests; 1GB/d in bytes; 300 s an hour in seconds" in checked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--set", "budget.requets=1/s"), "did you mean 'requests'"),
        (("chekc",), "did you mean 'check'"),
        (("check", "--set", "store.url=sqlite:afresh.toml"), "afresh.toml"),
    ],
)
def test_wrong_questions_and_damaged_stores(
    afresh: Afresh, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "afresh.toml").write_text("# no store at all, but a file\n" * 100)
    ran = afresh("config", *arguments)
    assert (ran.code, words in ran.err) == (2, True), ran.err


def test_the_items_of_views_must_be_known(afresh: Afresh, tmp_path: Path) -> None:
    assert afresh("init").code == 0
    assert afresh("add", "https://a.example/1", "https://a.example/2").code == 0
    right = "[[view]]\nname = 'front'\nitems = [\n'https://a.example/1',\n'https://a.example/2',\n]\n"
    (tmp_path / "afresh.toml").write_text(right)
    ran = afresh("config", "check")
    assert (ran.code, "view front" in ran.out, "2 items" in ran.out) == (0, True, True), ran.out
    assert json.loads(afresh("config", "check", "--json").out)["settings"]["view"][0]["name"] == "front"
    for wrong, problem in (
        (
            right.replace("example/2", "example/3"),
            "afresh.toml, line 5: there is no item 'https://a.example/3'",
        ),
        (right.replace("'front'", "'https://a.example/1'"), "is also the key of an item"),
        (right + "on_stale = ['no-such-program']", "on_stale: there is no program 'no-such-program'"),
        (right + "on_stale = 'nowhere:told'", "on_stale 'nowhere:told' cannot be found"),
        (right + right, "afresh.toml, line 8: two views are named 'front'"),
        ("[[view]]\nname = 'front'\nitems = []", "afresh.toml, line 3: view 'front': items must be a list"),
    ):
        (tmp_path / "afresh.toml").write_text(wrong)
        ran = afresh("config", "check")
        assert (ran.code, problem in ran.err) == (2, True), ran.err
