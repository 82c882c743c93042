"""The engine's commands as a shell sees them, on a living site; signals; the docs name every option."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.engine.living import LivingSite, closed_now
from tests.waiting import LIMIT_S

from afresh.cli.app import app
from afresh.engine.logs import LOGGER
from afresh.values.errors import AfreshError, InputError, UsageError

COMMAND = typer.main.get_command(app)  # once: to build it takes longer than most commands
QUICK = ("--allow-private", "--host-delay", "0.001s", "--budget", "100/s")


class Shell:
    """Runs commands; gives what they print on standard output, and keeps the rest in ``err``."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured, self.err = captured, ""

    def __call__(self, *arguments: object) -> str:
        self._captured.readouterr()
        COMMAND.main([str(each) for each in arguments], standalone_mode=False)
        out, err = self._captured.readouterr()
        self.err = err.decode()
        return out.decode()


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Shell]:
    """A shell in a new project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    run = Shell(capfdbinary)
    run("init")
    yield run
    LOGGER.handlers.clear()


@pytest.fixture
def site() -> Iterator[LivingSite]:
    with LivingSite([0.0] * 4) as living:
        yield living


def test_a_mirror_from_first_to_last(shell: Shell, site: LivingSite, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("\n".join([*site.urls(), "", site.url(0)]))
    assert json.loads(shell("add", "--file", "urls.txt", "--json")) == {"new": 4, "items": 4}
    assert shell("run", "--dry-run").splitlines() == site.urls()
    assert site.requests == []
    done = json.loads(shell("run", "--once", "--json", *QUICK))
    assert (done["polls"], done["failures"]) == (4, 0)
    status = json.loads(shell("status", "--json"))
    assert (status["items"], status["copies"]) == (4, 4)
    why = json.loads(shell("why", site.url(1), "--json"))
    assert why["item"]["polls"] == 1
    assert shell("get", site.url(1)).encode() == site.content(1, 0)
    rows = [json.loads(line) for line in shell("export").splitlines()]
    assert [row["item"] for row in rows] == site.urls()
    assert set(rows[0]) >= {"item", "polled", "changed", "content"}
    shell("export", "--format", "dir", "-o", "out")
    assert len(list((tmp_path / "out").iterdir())) == 5
    shell("store", "check")
    shell("store", "backup", "copy.db")
    assert (tmp_path / "copy.db").exists()
    shell("remove", site.url(1))
    assert json.loads(shell("status", "--json"))["items"] == 3


def test_status_and_why_for_people(shell: Shell, site: LivingSite) -> None:
    shell("add", site.url(0))
    shell("run", "--once", *QUICK)
    words = shell("status") + shell("why", site.url(0))
    assert shell.err == ""
    for part in ("freshness, model", "freshness, audited", "budget", "changes a", "next poll", "because"):
        assert part in words


def test_items_are_set_paused_and_resumed(shell: Shell, site: LivingSite) -> None:
    shell("add", site.url(0), "--weight", "2", "--min-interval", "1m")
    shell("set", site.url(0), "--weight", "3", "--pause")
    item = json.loads(shell("why", site.url(0), "--json"))["item"]
    assert (item["weight"], item["status"], item["min_interval_s"]) == (3.0, "paused", 60.0)
    shell("set", site.url(0), "--resume")
    assert json.loads(shell("why", site.url(0), "--json"))["item"]["status"] == "active"


def test_leases_are_extended_and_released(shell: Shell, site: LivingSite, tmp_path: Path) -> None:
    shell("add", *site.urls())
    sparing = ("--set", "budget.requests=1/h", "--set", "budget.burst=4")
    lines = shell("due", "--k", "2", "--lease", "10m", "--json", *sparing)
    (tmp_path / "work.jsonl").write_text(lines)
    assert json.loads(shell("lease", "extend", "work.jsonl", "--duration", "1h", "--json")) == {
        "held": 2,
        "ended": [],
    }
    first = json.loads(lines.splitlines()[0])["item"]
    assert "leased by a worker until" in shell("why", first, "--json")
    shell("lease", "release", "work.jsonl")
    assert "2 leases released" in shell.err
    assert "leased by a worker" not in shell("why", first, "--json")
    with pytest.raises(AfreshError, match="none of the leases was held any more"):
        shell("lease", "release", "work.jsonl")
    (tmp_path / "wrong.jsonl").write_text('{"item": "a"}')
    with pytest.raises(InputError, match="needs item, a text, and lease"):
        shell("lease", "extend", "wrong.jsonl")


def test_due_and_observe(shell: Shell, site: LivingSite, tmp_path: Path) -> None:
    shell("add", *site.urls())
    sparing = ("--set", "budget.requests=1/h", "--set", "budget.burst=4")
    lines = shell("due", "--k", "2", "--lease", "10m", "--json", *sparing).splitlines()
    leased = [json.loads(line) for line in lines]
    assert len(leased) == 2
    fields = {"item", "source", "group", "weight", "last_poll", "lease", "until", "not_before", "validators"}
    assert set(leased[0]) == fields
    rows = [{"item": row["item"], "content": "hello", "lease": row["lease"]} for row in leased]
    rows.append({"item": site.url(3), "time": "2020-01-01T00:00:00Z", "changed": False})
    (tmp_path / "seen.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = json.loads(shell("observe", "seen.jsonl", "--json"))
    assert [answer["result"] for answer in found.pop("answers")] == ["recorded"] * 3
    assert found == {"taken": 3, "known": 0, "refused": []}
    assert shell("get", leased[0]["item"]) == "hello"
    assert set(shell("due", *sparing).splitlines()) == {site.url(2), site.url(3)}  # half of the burst is left
    assert "the budget allows" not in shell.err
    shell("due", "--lease", "10m", *sparing)
    assert shell("due", *sparing) == ""


def test_what_the_source_stated_is_kept_with_the_polls(shell: Shell, tmp_path: Path) -> None:
    shell("add", "https://h/")
    rows = [{"item": "https://h/", "time": 1e9 + day * 86400, "changed": day > 0} for day in range(3)]
    rows[1] |= {"modified": "2001-09-10T00:00:00Z"}
    rows[2] |= {"count": 4}
    (tmp_path / "seen.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shell("observe", "seen.jsonl")
    written = shell("export", "--format", "polls").splitlines()
    assert written[2:] == ["https://h/,1000086400,1,1000080000,,web", "https://h/,1000172800,1,,4,web"]


def test_observe_takes_what_a_crawler_met(shell: Shell, site: LivingSite, tmp_path: Path) -> None:
    shell("add", *site.urls()[:2])
    rows: list[dict[str, object]] = [{"item": site.url(0), "status": 404, "bytes": 10, "seconds": 0.5}]
    rows.append({"item": site.url(1), "content": "x", "count": 2, "modified": "2026-01-01T00:00:00Z"})
    (tmp_path / "seen.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shell("observe", "seen.jsonl")
    assert json.loads(shell("why", site.url(0), "--json"))["item"]["problem"] == "404 Not Found"
    assert shell("export", "--format", "polls").splitlines()[1].split(",")[3:5] == ["1767225600", "2"]
    (tmp_path / "wrong.jsonl").write_text('{"item": "https://h/", "status": "gone"}')
    with pytest.raises(InputError, match=r"wrong.jsonl, row 1: status is 'gone': give an HTTP status"):
        shell("observe", "wrong.jsonl")


def test_rows_that_are_all_refused_are_an_error(shell: Shell, tmp_path: Path) -> None:
    shell("add", "https://h/")
    (tmp_path / "seen.jsonl").write_text('{"item": "https://h/", "content": "x", "lease": 77}')
    with pytest.raises(AfreshError, match="none of the rows could be taken"):
        shell("observe", "seen.jsonl")


def test_get_of_versions_and_their_difference(
    shell: Shell, site: LivingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("add", site.url(0))
    for content in ("one\n", "two\n"):
        row = json.dumps({"item": site.url(0), "content": content})
        monkeypatch.setattr(sys, "stdin", io.StringIO(row))
        shell("observe")
    assert shell("get", site.url(0)) == "two\n"
    assert (
        shell("get", site.url(0), "--version", "1") == shell("get", site.url(0), "--version", "-1") == "one\n"
    )
    assert {"-one", "+two"} <= set(shell("get", site.url(0), "--diff").splitlines())
    with pytest.raises(UsageError, match="no copy"):
        shell("get", site.url(0), "--version", "9")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("init",), UsageError, "is there already"),
        (("add",), UsageError, "nothing to add"),
        (("add", "--file", "nowhere.txt"), InputError, "nowhere.txt: cannot be read"),
        (("add", "gopher://h/"), UsageError, ""),
        (("set", "https://h/"), UsageError, "nothing to set: say what is to change"),
        (("set", "--weight", "2"), UsageError, "nothing to set: give URLs"),
        (("set", "https://h/", "--weight", "2"), UsageError, "is not known"),
        (("set", "https://h/", "--pause", "--resume"), UsageError, "neither"),
        (("run", "--for", "soon"), UsageError, "not a duration"),
        (("run", "--budget", "5"), UsageError, "per what"),
        (("run", "--set", "budget.requests"), UsageError, "KEY=VALUE"),
        (("run", "--set", "budget.reqests=1/s"), UsageError, "did you mean 'requests'"),
        (("run", "--log", "loud"), UsageError, "unknown kind of log"),
        (("add", "https://h/", "--weight", "1e308"), AfreshError, "weight is 1e+308: must be at most 1e+15"),
        (("why", "https://h/"), UsageError, "no item"),
        (("get", "https://h/"), UsageError, "no item"),
        (("export", "--format", "dir"), UsageError, "needs a folder"),
        (("export", "--format", "xml"), UsageError, "unknown format"),
        (("store", "mend"), UsageError, "unknown action"),
        (("store", "backup"), UsageError, "needs a file"),
        (("observe", "nowhere.jsonl"), InputError, "cannot be read"),
    ],
)
def test_mistakes_are_said_in_one_line(
    shell: Shell, arguments: tuple[str, ...], error: type[AfreshError], words: str
) -> None:
    with pytest.raises(error) as caught:
        shell(*arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "row 1: is not JSON"),
        ("[]", "row 1: must be an object with an item"),
        ('{"item": "https://h/", "changed": "maybe"}', "row 1: changed is 'maybe'"),
        ('{"item": "https://h/", "changed": true, "time": []}', "row 1: time is []"),
        ('{"item": "https://h/", "changed": true}', "row 1: there is no item"),
        ('{"item": "https://h/", "changed": true, "time": "soon"}', "row 1: time is 'soon'"),
        ('{"item": "https://h/", "changed": true, "lease": "7"}', "row 1: lease is '7'"),
        ('{"item": "https://h/", "changed": true, "lease": true}', "row 1: lease is True"),
        ('{"item": "https://h/", "changed": true, "content": 7}', "row 1: content is 7"),
        ('{"item": "https://h/", "changed": true, "count": 1.5}', "row 1: count is 1.5"),
        ('{"item": "https://h/", "changed": true, "modified": "soon"}', "row 1: modified is 'soon'"),
        ('{"item": "https://h/", "content_base64": "abc"}', "row 1: content_base64 is not base64"),
        ("[" * 100_000, "row 1: is JSON with too many levels"),
        ('{"item": "a", "changed": ' + "[" * 900 + "]" * 900 + "}", "row 1: changed is"),
        ('{"item": "a", "time": ' + "9" * 5_000 + "}", "row 1: has a number with too many digits"),
        ('{"item": "a", "time": ' + "9" * 400 + "}", "row 1: time is 999"),
        ('{"item": "a", "changed": true, "lease": 1' + "0" * 30 + "}", "row 1: lease is 1000"),
    ],
)
def test_wrong_rows_are_named(shell: Shell, tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "rows.jsonl").write_text(line)
    with pytest.raises(InputError, match=re.escape(words)):
        shell("observe", "rows.jsonl")


def test_outside_a_project_init_is_suggested(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").unlink()
    with pytest.raises(UsageError, match="make one with 'afresh init'"):
        shell("status")


def test_the_environment_overrides(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_BUDGET_REQUESTS", "7/s")
    assert json.loads(shell("status", "--json"))["budget_per_s"] == 7.0
    assert json.loads(shell("status", "--json", "--set", "budget.requests=9/s"))["budget_per_s"] == 9.0


def test_a_budget_that_the_hosts_cannot_absorb_is_said(shell: Shell, site: LivingSite) -> None:
    shell("add", site.url(1))
    shell("run", "--once", "--allow-private", "--budget", "50/s")
    assert "allow fewer requests than the budget" in shell.err


def test_no_secret_is_ever_shown(
    shell: Shell, site: LivingSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2hunter2"
    monkeypatch.setenv("TOKEN", secret)
    settings = tmp_path / "afresh.toml"
    settings.write_text(settings.read_text() + 'headers = { Authorization = "Bearer env:TOKEN" }\n')
    gone = site.url(99)
    shell("add", site.url(0), gone)
    shown = shell("run", "--once", "--json", "--log", "debug", *QUICK) + shell.err
    assert site.headers["authorization"] == f"Bearer {secret}"
    for command in (("status", "--json"), ("why", gone, "--json"), ("export",), ("due", "--json")):
        shown += shell(*command) + shell.err
    assert "404" in shown
    assert secret not in shown
    assert secret.encode() not in (tmp_path / "afresh.db").read_bytes()


def test_an_old_copy_is_given_and_said_to_be_old(
    shell: Shell, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    key = "http://127.0.0.1:9/"
    shell("add", key)
    Path("old.jsonl").write_text(json.dumps({"item": key, "time": 1e9, "content": "old"}))
    shell("observe", "old.jsonl")
    for more, words in (
        (("--allow-private",), "old: .*cannot connect"),
        (("--set", f"source.web.windows=['{closed_now()}']"), "old: its source is outside its windows until"),
    ):
        with pytest.raises(AfreshError, match=f"the last poll is .* {words}"):
            shell("get", key, "--max-age", "1h", *more)
        assert capfdbinary.readouterr().out == b"old"


def test_signals_reload_and_drain(shell: Shell, site: LivingSite, tmp_path: Path) -> None:
    shell("add", *site.urls())
    process = subprocess.Popen(
        [sys.executable, "-m", "afresh", "run", "--allow-private", "--host-delay", "0.01s", "--log", "debug"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SECRET_TOKEN": "hunter2hunter2"},
    )
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "polled" in line:
                break
        settings = tmp_path / "afresh.toml"
        settings.write_text(settings.read_text().replace('requests = "1/s"', 'requests = "20/s"'))
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            lines.append(line)
            if "reloaded" in line:
                break
        assert "budget.requests is now 20/s (was 1/s)" in lines[-1]
        settings.write_text(settings.read_text().replace('# delay = "1s"', 'delay = "7s"'))
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            lines.append(line)
            if "reloaded" in line:
                break
        assert "source.web.delay changed in the file, but --host-delay 0.01s overrides it" in lines[-1]
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=LIMIT_S) == 0
        assert "stopped" in rest
        assert "hunter2" not in "".join(lines) + rest
    finally:
        process.kill()
        process.wait()
    count_progress = sum(
        row["polls"] for row in (json.loads(shell("why", url, "--json"))["item"] for url in site.urls())
    )
    assert count_progress == len(site.requests)  # whatever was asked for was committed
