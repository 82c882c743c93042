"""Every long-running command as a process of its own, sent a signal at some moment of its life.

Each process has a folder and a ``TMPDIR`` of its own. Its environment names that ``TMPDIR``, and so does the
environment of every process that it starts: that is how those left behind are found.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.servers import deaf_afresh
from tests.servers.site import Answer, Seen, page
from tests.servers.threaded import served
from tests.waiting import LIMIT_S, until

from afresh.engine.app import open_engine
from afresh.engine.external_polls import Reported

_SETTINGS = """\
[budget]
requests = "20/s"
[web]
port = 0
[[source]]
name = "web"
allow_private = true
min_interval = 0
delay = "0.01s"
"""
_BUSY = ("--host-delay", "0.01s", "--budget", "50/s")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "demo": ("demo", "--no-browser", "--for", "10m"),
    "run": ("run", *_BUSY),
    "run --web": ("run", "--web", *_BUSY),
    "serve": ("serve",),
    "get --max-age": ("get", "{url}/never", "--max-age", "0s"),
    "add --sitemap": ("add", "--sitemap", "{url}/never.xml"),
    "export": ("export", "-o", "out"),
    "store copy": ("store", "copy", "sqlite:afresh.db", "sqlite:out.db"),
    "estimate": ("estimate", "polls.csv", "-o", "out.csv"),
    "replay": ("replay", "history.csv", "--budget", "2000/d"),
    "plan": ("plan", "items.csv", "--budget", "1000/d", "-o", "out.csv"),
}
DRAINS = ("run", "run --web")
"""Commands that end with 0 once they have drained."""
ENDLESS = ("demo", *DRAINS, "serve", "get --max-age", "add --sitemap")
"""Commands that end only when they are told to."""
_ASKS_FOR_NEVER = "get --max-age"
"""Its project has a page that never answers. A run would poll that page first, and have to drain it."""
_MADE = ("out", "out.db", "out.csv")  # results: they may be there, whole, when the signal came late
_OF_SQLITE = ("-wal", "-shm")


@dataclass(frozen=True)
class Moment:
    """When a command is sent which signal: so long after its start, or after it took over its signals."""

    command: str
    number: int
    after_s: float
    is_at_work: bool
    again: int = 0
    """A second signal, sent while the first one is handled, which would take for ever. 0 if there is none."""


@dataclass(frozen=True)
class Ended:
    """How a process ended that was sent a signal."""

    moment: Moment
    code: int
    took_s: float
    words: str
    was_alive: bool
    was_ready: bool
    left: tuple[str, ...]

    @property
    def problem(self) -> str:
        """What is wrong with that end; empty if nothing is."""
        if self.left:
            return f"left behind: {self.left}"
        if not self.was_ready:  # the program had not begun: Python or the system ended it
            return ""
        if self.code == 0:
            return (
                "" if not self.was_alive or self.moment.command not in ENDLESS or self._drained else "code 0"
            )
        name = signal.Signals(self.moment.number).name
        said = {f"afresh: stopped at once by {name}"}
        if not self.moment.again:  # on a busy machine, the time to end in order may be too short all the same
            said.add(f"afresh: stopped by {name}")
        told = [line for line in self.words.splitlines() if "afresh: stopped" in line]
        if (
            self.code != 128 + self.moment.number
            or len(told) != 1
            or told[0] not in said
            or "Traceback" in self.words
        ):
            return f"code {self.code}, said {self.words!r}"
        return ""

    @property
    def _drained(self) -> bool:
        # What could not be fetched is said after it.
        return self.moment.command in DRAINS and any("stopped" in line for line in self.words.splitlines())


class World:
    """Inputs for every command; ``of(command)`` is a folder with a copy of them."""

    def __init__(self, folder: Path, url: str, rows: int, pages: int) -> None:
        self.url, self._folder, self._inputs, self._given = url, folder, folder / "inputs", 0
        self._with_never = folder / "inputs_with_never"
        self._inputs.mkdir()
        random = Random(1)
        self._write("items.csv", "item,rate", (f"i{n},{random.random()}" for n in range(rows)))
        polls = (f"i{n % (rows // 15)},{n},{int(random.random() < 0.3)}" for n in range(rows))
        self._write("polls.csv", "item,time,changed", polls)
        changes = (f"i{n % (rows // 200)},{n / 1000}" for n in range(rows // 5))
        self._write("history.csv", "item,time", changes)
        (self._inputs / "afresh.toml").write_text(_SETTINGS)
        urls = [f"{url}/page/{n}" for n in range(pages)]
        with open_engine(self._inputs) as engine:
            engine.add(urls)
            engine.observe(Reported(key, 1e9, content=f"copy of {key}".encode() * 20) for key in urls)
        shutil.copytree(self._inputs, self._with_never)
        with open_engine(self._with_never) as engine:
            engine.add([f"{url}/never"])

    def _write(self, name: str, header: str, rows: Iterator[str]) -> None:
        (self._inputs / name).write_text("\n".join([header, *rows]) + "\n")

    def ended(self, moment: Moment) -> Ended:
        """Start a command, send it the signals of that moment, and see how it ends."""
        process, folder, words = self._start(moment.command, is_deaf=moment.again > 0)
        try:
            while moment.is_at_work and not _takes_signals(process.pid) and _lives_for(process, 0.01):
                pass
            # The demo has the most to clear up, but not from its start.
            if moment.again and moment.command == "demo":
                until(lambda: any((folder / "tmp").iterdir()), "the demo has made its folder")
            was_alive, was_ready = _lives_for(process, moment.after_s), _takes_signals(process.pid)
            sent_s = time.monotonic()
            process.send_signal(moment.number)
            if moment.again:
                handling = folder / "handling"
                until(lambda: handling.exists() or process.poll() is not None, "the first signal is handled")
                process.send_signal(moment.again)
            code = process.wait(LIMIT_S)
            took_s = time.monotonic() - sent_s
            left = tuple(self._left(folder))
            return Ended(moment, code, took_s, words.read_text(), was_alive, was_ready, left)
        finally:
            for each in processes_of(folder / "tmp"):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.communicate()
            shutil.rmtree(folder)

    def lasts_s(self, command: str) -> float:
        """Let a command that ends by itself do its work; return the seconds that it takes."""
        start_s = time.monotonic()
        process, folder, words = self._start(command)
        try:
            code = process.wait(LIMIT_S)
            if code:
                raise RuntimeError(f"{command}: code {code}, said {words.read_text()!r}")
            return time.monotonic() - start_s
        finally:
            process.kill()
            process.communicate()
            shutil.rmtree(folder)

    def _start(self, command: str, *, is_deaf: bool = False) -> tuple[subprocess.Popen[bytes], Path, Path]:
        self._given += 1
        folder, words = self._folder / f"{self._given}", self._folder / f"{self._given}.err"
        shutil.copytree(self._with_never if command == _ASKS_FOR_NEVER else self._inputs, folder / "work")
        (folder / "tmp").mkdir()
        arguments = [word.format(url=self.url) for word in COMMANDS[command]]
        entry = [deaf_afresh.__file__] if is_deaf else ["-m", "afresh.cli.child_entry"]
        with words.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, *entry, *arguments],
                cwd=folder / "work",
                env={**os.environ, "TMPDIR": str(folder / "tmp")},
                stdin=subprocess.PIPE,  # closed when the tests end, however they do: then it ends too
                stdout=subprocess.DEVNULL,
                stderr=err,
                start_new_session=True,
            )
        return process, folder, words

    def _left(self, folder: Path) -> list[str]:
        known = {path.name for path in self._inputs.iterdir()} | set(_MADE)
        known |= {f"{name}{ending}" for name in ("afresh.db", "out.db") for ending in _OF_SQLITE}
        found = [path.name for path in (folder / "work").iterdir() if path.name not in known]
        found += [path.name for path in (folder / "tmp").iterdir()]
        return found + [f"process {number}" for number in processes_of(folder / "tmp")]


def _lives_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _takes_signals(number: int) -> bool:
    """Whether a process has a handler for SIGTERM; of Python's own there is none."""
    return _has_sigterm(number, "SigCgt:")


def waits_for_delivery(number: int) -> bool:
    """Whether a SIGTERM has been sent to a process and not reached it: a second one would be lost."""
    return _has_sigterm(number, "ShdPnd:")


def _has_sigterm(number: int, kind: str) -> bool:
    """Whether SIGTERM is among the signals of this kind, as the kernel lists them for a process."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith(kind):
                return bool(int(line.split()[1], 16) & 1 << (signal.SIGTERM - 1))
    return False


def processes_of(folder: Path) -> list[int]:
    """The processes whose temporary files go to this folder."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if _is_of(each, folder)]


def _is_of(process: Path, folder: Path) -> bool:
    try:
        environment = (process / "environ").read_bytes()
    except OSError:  # it has just ended, or is another user's
        return False
    return f"TMPDIR={folder}".encode() in environment.split(b"\0")


@contextmanager
def world(folder: Path, *, rows: int = 60_000, pages: int = 1200) -> Iterator[World]:
    """Inputs of so many rows, and a site of so many pages, of which some never answer."""

    async def never(_seen: Seen, answer: Answer) -> None:
        await answer.hang()

    routes = {"/robots.txt": page(b""), "/never": never, "/never.xml": never}
    routes |= {f"/page/{n}": page(b"there") for n in range(pages)}
    with served(routes) as site, _interruptible_children():
        yield World(folder, site.url, rows, pages)


@contextmanager
def _interruptible_children() -> Iterator[None]:
    """Let SIGINT have its default effect on the processes that are started within.

    A shell runs jobs in the background with SIGINT ignored, and processes inherit that. A command then takes
    the signal only from its first statement on, so that one sent before would be lost, and not by our fault.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def moments(random: Random, commands: Sequence[str], each: int, span_s: float) -> list[Moment]:
    """Random moments of these commands: every third one counts from the start of Python."""
    return [
        Moment(
            command, random.choice((signal.SIGINT, signal.SIGTERM)), random.uniform(0.02, span_s), at % 3 > 0
        )
        for at, command in enumerate(command for _ in range(each) for command in commands)
    ]


def twice(random: Random, moment: Moment) -> Moment:
    """A command at work that is sent a second signal too."""
    return replace(moment, is_at_work=True, again=random.choice((signal.SIGINT, signal.SIGTERM)))
