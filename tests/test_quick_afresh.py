"""Commands that are forks of a warm process: they end as processes do, and with those who started them."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.servers.quick_afresh import QuickAfresh
from tests.waiting import LIMIT_S, until


def test_a_command_prints_and_exits_as_ever(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,1\nb,2\n")
    planned = quick_afresh.run("plan", "items.csv", "--budget", "5/d", folder=tmp_path)
    assert planned.returncode == 0
    assert planned.stdout.startswith("item,frequency")
    refused = quick_afresh.run("plan", "items.csv", "--bugdet", "5/d", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--bugdet" in refused.stderr


def test_an_error_of_a_file_of_python_is_its_exit_code(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("import sys; print(sys.argv); raise ValueError('no')")
    ran = subprocess.run(
        ["bash", "-c", quick_afresh.shell + "quick it.py one two"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "['it.py', 'one', 'two']\n")
    assert ran.stderr.endswith("ValueError: no\n")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with something to serve."""
    (tmp_path / "afresh.toml").write_text("[[source]]\nname = 'web'\n")
    return tmp_path


def test_a_command_can_be_stopped_told_to_end_and_killed(quick_afresh: QuickAfresh, mirror: Path) -> None:
    for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        with (mirror / "err").open("wb") as err:
            served = quick_afresh.start("serve", "--port", "0", folder=mirror, err=err)
        try:
            until(lambda: "http://" in (mirror / "err").read_text(), "it serves")
            served.stop()
            served.send_signal(signal.SIGCONT)
            assert served.poll() is None
            served.send_signal(number)
            assert served.wait(LIMIT_S) == code
        finally:
            served.close()


def test_a_command_ends_with_its_caller(quick_afresh: QuickAfresh, mirror: Path) -> None:
    with subprocess.Popen(
        ["bash", "-c", f'{quick_afresh.shell} exec "${{quick[@]}}" "" serve --port 0'],
        cwd=mirror, stderr=subprocess.PIPE, text=True,
    ) as caller:  # fmt: skip
        assert caller.stderr is not None
        assert "http://" in caller.stderr.readline()
        caller.kill()
        assert caller.stderr.read() == ""  # its end is closed by the last process that has it
