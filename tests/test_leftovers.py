"""A run that leaves something behind fails, names it and clears it up; so does one that is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.leftovers", "-p", "no:cacheprovider")
SETTINGS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "AFRESH_TEST_TIME_TO_END": "0.2", "PYTHONPATH": str(ROOT)}
# The child is nobody's by the end: its parent has ended, and it leads a session of its own.
LEAVES = """
import signal, subprocess, sys, tempfile
from pathlib import Path

START = "import subprocess; print(subprocess.Popen(['tail', '-f', '/dev/null'], start_new_session=True).pid)"

def start_and_forget():
    with open("pid", "w") as file:
        subprocess.run([sys.executable, "-c", START], stdout=file, check=True)
"""


def inner(folder: Path, test: str, *options: str) -> subprocess.Popen[str]:
    (folder / "test_it.py").write_text(LEAVES + test)
    (folder / "tmp").mkdir()
    environment = {**os.environ, **SETTINGS, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        [*COMMAND, *options],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        process_group=0,
        # A shell starts commands in the background with interrupts ignored, and so would this run be.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("result", ["passed", "failed"])
def test_a_process_and_a_file_left_behind_fail_the_run_and_are_named(tmp_path: Path, result: str) -> None:
    forgets = "def test_it():\n    start_and_forget()\n    tempfile.mkstemp(suffix='.forgotten')\n"
    run = inner(tmp_path, f"{forgets}    assert {result == 'passed'}\n", "-n1")
    output, _ = run.communicate()
    pid = int((tmp_path / "pid").read_text())
    assert run.returncode == 1, output
    assert f"1 {result}" in output
    assert f"process {pid}: tail -f /dev/null\n" in output
    assert ".forgotten\n" in output
    assert not lives(pid)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_run_that_leaves_nothing_passes(tmp_path: Path) -> None:
    ends = "def test_it(tmp_path):\n    subprocess.run(['true'], cwd=tmp_path, check=True)\n"
    run = inner(tmp_path, ends, "-n0")
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert "left behind" not in output
    assert not list((tmp_path / "tmp").iterdir())


def test_a_run_told_to_end_clears_up_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    # The first test takes the interrupt for its own, as a command that is run inside a test does.
    waits = """
def test_it():
    start_and_forget()
    try:
        open('ready', 'w').close()
        while True:  # and not signal.pause(), which would miss a signal that comes just before it
            signal.sigtimedwait((), 0.1)
    except KeyboardInterrupt:
        pass

def test_never_begun():
    raise AssertionError
"""
    run = inner(tmp_path, waits, "-n0")
    (tmp_path / "ready").read_text()  # until the test has begun to wait
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    pid = int((tmp_path / "pid").read_text())
    assert f"process {pid}: tail" in output
    assert "1 passed" in output
    assert "failed" not in output
    assert not lives(pid)
    assert not list((tmp_path / "tmp").iterdir())


def test_an_interrupted_run_of_several_processes_clears_up_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    waits = """
def test_it():
    start_and_forget()
    tempfile.mkstemp(suffix='.forgotten')
    open('ready', 'w').close()
    while True:
        signal.sigtimedwait((), 0.1)
"""
    run = inner(tmp_path, waits, "-n1")
    (tmp_path / "ready").read_text()
    os.killpg(run.pid, signal.SIGINT)  # all of them, as Ctrl-C in a terminal
    output, _ = run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    pid = int((tmp_path / "pid").read_text())
    assert f"process {pid}: tail" in output
    assert ".forgotten\n" in output
    assert not lives(pid)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_second_interrupt_does_not_disturb_the_clearing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "told")
    # It does not end when the run tells it to, but says so: the run is clearing up then.
    stays = """
STAYS = '''
import signal
signal.signal(signal.SIGTERM, lambda *_: open("told", "w").close())
print("ready", flush=True)
while True:
    signal.pause()
'''

def test_it():
    child = subprocess.Popen([sys.executable, "-c", STAYS], start_new_session=True, stdout=subprocess.PIPE)
    child.stdout.readline()
    Path("pid").write_text(str(child.pid))
    raise KeyboardInterrupt
"""
    run = inner(tmp_path, stays, "-n0")
    (tmp_path / "told").read_text()
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    pid = int((tmp_path / "pid").read_text())
    assert f"process {pid}:" in output
    assert not lives(pid)
    assert not list((tmp_path / "tmp").iterdir())
