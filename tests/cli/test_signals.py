"""One SIGINT or SIGTERM ends every long-running command, whenever it comes; nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.servers.signalled import (
    COMMANDS,
    ENDLESS,
    Ended,
    Moment,
    World,
    moments,
    processes_of,
    twice,
    waits_for_delivery,
    world,
)
from tests.servers.site import Answer, Seen, page
from tests.servers.threaded import served
from tests.waiting import LIMIT_S, until

from afresh.engine.app import open_engine

pytestmark = pytest.mark.waits

AT_ONCE = 6
"""Processes that run beside each other; most of the time they wait."""


def ended_at(here: World, when: Sequence[Moment]) -> list[Ended]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(here.ended, when))


def judge(found: Sequence[Ended], seed: int) -> None:
    """All ended as they should, and those that run until they are told to end were told to."""
    wrong = [(end.moment, end.problem) for end in found if end.problem]
    assert not wrong, f"seed {seed}"
    at_work = [end for end in found if end.moment.is_at_work and end.moment.command in ENDLESS]
    assert all(end.was_alive and end.was_ready for end in at_work), f"seed {seed}: one ended by itself"


def one_of_each(chance: random.Random, *, others_s: float) -> list[Moment]:
    """A moment in the life of each command; those that end by themselves live for about ``others_s``."""
    others = [name for name in COMMANDS if name not in ENDLESS]
    return [*moments(chance, ENDLESS, 1, 3.0), *moments(chance, others, 1, others_s)]


def test_a_signal_at_any_moment_ends_every_command(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    with world(tmp_path, rows=20_000, pages=100) as here:
        judge(ended_at(here, one_of_each(chance, others_s=1.0)), seed)


def test_a_second_signal_at_any_moment_ends_every_command_at_once(tmp_path: Path) -> None:
    """The first signal never ends them: what they had under way is still there, and must be cleared up."""
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    with world(tmp_path, rows=20_000, pages=100) as here:
        judge(ended_at(here, [twice(chance, moment) for moment in one_of_each(chance, others_s=0.5)]), seed)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_at_very_many_moments(command: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    each = 200 if command == "demo" else 20
    with world(tmp_path) as here:
        # Commands that end by themselves take at least twice as long when six run beside each other.
        span_s = 8.0 if command == "demo" else 4.0 if command in ENDLESS else 2.0 * here.lasts_s(command)
        chance = random.Random(seed)
        many = moments(chance, [command], each, span_s)
        judge(
            ended_at(
                here, [moment if number % 4 else twice(chance, moment) for number, moment in enumerate(many)]
            ),
            seed,
        )


# What the guard is for: an exception that is lost, and a main thread that runs no Python code.
PROGRAM = """\
import hashlib, os, select, signal, sys, threading
from pathlib import Path
from afresh.cli import interruption
from afresh.cli.interruption import INTERRUPTION
from afresh.values.leftovers import LEFTOVERS

class Signalled:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def dropped():
    Signalled()
    threading.Event().wait(60)

def eaten():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        pass
    threading.Event().wait(60)

def swallowed():
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        pass

def swallowed_and_drained():
    swallowed()
    asked = threading.Event()
    with INTERRUPTION.stopping_by(asked.set):
        asked.wait(60)

def hangs_in_the_end():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.raise_signal(signal.SIGINT)
        threading.Event().wait()

def hangs_when_asked():
    with INTERRUPTION.stopping_by(lambda: None, 3600):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        threading.Event().wait()

def in_c():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

def send_both():
    os.kill(os.getpid(), signal.SIGTERM)
    while not INTERRUPTION.number:
        select.select([], [], [], 0.01)
    os.kill(os.getpid(), signal.SIGINT)

def hangs_in_c():
    threading.Thread(target=send_both).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

def hangs_in_c_while_held():
    with INTERRUPTION.held_back():
        hangs_in_c()

def hangs_in_c_when_asked():
    with INTERRUPTION.stopping_by(lambda: None, 3600):
        hangs_in_c()

def held():
    with INTERRUPTION.held_back():
        signal.raise_signal(signal.SIGINT)
        print("whole", flush=True)
    print("not reached", flush=True)

def before_it_could_be_asked():
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        pass
    asked = threading.Event()
    with INTERRUPTION.stopping_by(asked.set):
        asked.wait(60)
    INTERRUPTION.check()

def done():
    pass

def work():
    with LEFTOVERS.path("part"):
        try:
            Path("part").touch()
            globals()[sys.argv[1]]()
        finally:
            Path("part").unlink()

INTERRUPTION.program(work)
"""


@pytest.mark.parametrize(
    ("case", "name", "out"),
    [
        ("dropped", "SIGINT", ""),
        ("eaten", "SIGTERM", ""),
        ("swallowed", "SIGINT", ""),
        ("in_c", "SIGTERM", ""),
        ("held", "SIGINT", "whole\n"),
        ("before_it_could_be_asked", "SIGTERM", ""),
    ],
)
def test_no_signal_is_lost(case: str, name: str, out: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, case],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        128 + signal.Signals[name],
        out,
        f"afresh: stopped by {name}\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "case", ["hangs_in_the_end", "hangs_when_asked", "hangs_in_c_while_held", "hangs_in_c_when_asked"]
)
def test_a_second_signal_ends_what_the_first_would_not_end_for_an_hour(case: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM.replace('INTERRUPTION.program(work)', '')}\n{PATIENT}", case],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (143, "", "afresh: stopped at once by SIGTERM\n")
    assert list(tmp_path.iterdir()) == []


# The time to end in order takes so long that only the second signal can have ended the program.
PATIENT = "interruption.IN_ORDER_S = 3600; INTERRUPTION.program(work)"


@pytest.mark.parametrize("case", ["done", "swallowed_and_drained"])
def test_a_command_that_no_signal_ended_or_that_was_asked_to_stop_ends_with_0(
    case: str, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, case], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_sigint_that_the_parent_ignored_is_heard() -> None:
    """A shell ignores it for jobs in the background, and what it starts inherits that."""
    line = f"trap '' INT; exec '{sys.executable}' -c '{IGNORED}'"
    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (ran.returncode, ran.stderr) == (130, "afresh: stopped by SIGINT\n")


IGNORED = (
    "import signal; from afresh.cli.interruption import INTERRUPTION as i; "
    "i.program(lambda: signal.raise_signal(signal.SIGINT))"
)


def started(folder: Path, *words: str, python_path: Sequence[str] = ()) -> subprocess.Popen[str]:
    """An engine in a folder, in whose environment a test finds what it started."""
    found = [*python_path, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "afresh", *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(found)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def engine_at(
    folder: Path, path: str, settings: str = "", python_path: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], threading.Event]]:
    """A run that polls one page, which never answers if it is ``/never``; the event tells of the request."""
    asked = threading.Event()

    async def never(_seen: Seen, answer: Answer) -> None:
        asked.set()
        await answer.hang()

    with served({"/robots.txt": page(b""), "/never": never, "/page": page(b"there")}) as site:
        (folder / "afresh.toml").write_text("[[source]]\nname = 'web'\nallow_private = true\n" + settings)
        with open_engine(folder) as engine:
            engine.add([site.url + path])
        process = started(folder, "run", "--budget", "10/s", python_path=python_path)
        try:
            yield process, asked
        finally:
            for number in processes_of(folder):
                os.kill(number, signal.SIGKILL)
            process.communicate()


def test_a_second_signal_ends_a_drain_at_once(tmp_path: Path) -> None:
    with engine_at(tmp_path, "/never") as (process, asked):
        assert asked.wait(LIMIT_S)
        process.send_signal(signal.SIGTERM)
        until(lambda: not waits_for_delivery(process.pid), "the first signal is delivered")
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, words.splitlines()[-1]) == (143, "afresh: stopped at once by SIGTERM")


def test_a_drain_has_a_time_limit(tmp_path: Path) -> None:
    with engine_at(tmp_path, "/never", "[run]\ndrain_timeout = '0.3s'\n") as (process, asked):
        assert asked.wait(LIMIT_S)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, words.splitlines()[-1]) == (130, "afresh: stopped at once by SIGINT")


def test_a_hook_that_hangs_ends_with_the_run_and_with_what_it_started(tmp_path: Path) -> None:
    hook = "on_change = ['sh', '-c', 'echo > hooked; sleep 600; true']\n"
    with engine_at(tmp_path, "/page", hook) as (process, _):
        until((tmp_path / "hooked").exists, "the hook is called")
        until(lambda: len(processes_of(tmp_path)) == 3, "the run, the shell and what the shell starts")
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, "stopped" in words.splitlines()[-1]) == (0, True), words
        assert processes_of(tmp_path) == []


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_hook_function_that_hangs_keeps_no_run_from_ending(keyword: str, tmp_path: Path) -> None:
    code = f"import threading, pathlib\n{keyword} hang(_):\n"
    code += "    pathlib.Path('hooked').touch()\n    threading.Event().wait(600)\n"
    (tmp_path / "hanging_hook.py").write_text(code)
    hook = "on_change = 'hanging_hook:hang'\n[run]\nhook_timeout = '0.1s'\n"
    with (
        engine_at(tmp_path, "/page", hook, [str(tmp_path)]) as (process, _),
    ):
        until((tmp_path / "hooked").exists, "the hook is called")
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, "stopped" in words.splitlines()[-1]) == (0, True), words
