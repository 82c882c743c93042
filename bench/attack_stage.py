"""Where attacks are measured: an engine that polls an honest page beside hostile hosts on this machine.

The site listens at all loopback addresses, so that 127.0.0.2, 127.0.0.3, … are other hosts. Whatever it sends
is made before the engine starts, so that making it delays no answer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.servers.site import Answer, Handler, Seen, Site, page
from tests.servers.threaded import served_by

from afresh.engine.app import open_engine
from afresh.values.items import ItemChange

SECRET = "sesame-0123456789"
_SAMPLE_S = 0.05
_HEAD = """
{more}
[budget]
requests = "200/s"
[run]
{run}
[[source]]
name = "web"
delay = "0s"
min_interval = "0s"
first_rest = "0.5s"
allow_private = true
{source}
"""


@dataclass(slots=True)
class Figures:
    """What one attack cost: bytes of all processes at once, and seconds without a poll of the honest page."""

    peak_bytes: int = 0
    longest_stop_s: float = 0.0
    problem: str = ""


class Stage:
    """A project folder, a site and, between ``start`` and ``end``, an engine."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site, self.figures = folder, site, Figures()
        self.honest_s: list[float] = []
        self.environment = {**os.environ, "PYTHONPATH": str(folder), "KEY": SECRET}
        self._process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._sampler: threading.Thread | None = None

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.site.port}{path}"

    def configure(self, *, source: str = "", run: str = "", more: str = "", after: str = "") -> None:
        """Write the settings, and add the honest page, which is polled as often as possible."""
        text = _HEAD.format(source=source, run=run, more=more) + after
        (self.folder / "afresh.toml").write_text(text)
        with open_engine(self.folder, secrets=self.environment.get) as engine:
            engine.add([self.url("/p")])
            engine.set([self.url("/p")], ItemChange(max_interval_s=0.05))

    def add(self, *urls: str, source: str = "web") -> None:
        with open_engine(self.folder, secrets=self.environment.get) as engine:
            engine.add(urls, source=source)

    def start(self, *words: str) -> None:
        """Start ``afresh run``, and wait until the honest page has been polled."""
        seen = len(self.honest_s)
        self._process = self.command("run", *words)
        self._measure_memory(self._process.pid)
        self.wait(lambda: len(self.honest_s) > seen + 3)

    def command(self, *words: str, given: bytes | None = None) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "afresh", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        log.close()
        if given is not None:
            process.communicate(given)
        return process

    def run_command(self, *words: str, given: bytes | None = None) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it printed. Its memory counts too."""
        done = subprocess.run(
            [sys.executable, "-m", "afresh", *words],
            cwd=self.folder,
            env=self.environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def wait(self, condition: object = None, seconds: float = 60.0) -> None:
        """Wait for a condition; without one, just wait, while the attack goes on."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not (callable(condition) and condition()):
            time.sleep(0.02)
        if callable(condition) and not condition():
            raise RuntimeError(f"the engine does not go on: {self.log()[-500:]}")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Whatever happened, leave no process behind."""
        self._over.set()
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def end(self, within_s: float = 20.0) -> None:
        """Stop the engine by a signal, and by a second one if it does not end."""
        if self._process is None:
            return
        if self._process.poll() is not None and self._process.returncode >= 0:
            self.figures.problem = self.figures.problem or f"the engine ended: {self.log()[-300:]}"
        for wait_s in (within_s / 2, within_s / 2):
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
                break
        else:
            self.figures.problem = "two signals did not end the engine"
            self.kill()
        self._over.set()
        if self._sampler is not None:
            self._sampler.join()
        times = self.honest_s[2:]
        self.figures.longest_stop_s = max((b - a for a, b in pairwise(times)), default=float("inf"))

    def forget_times(self) -> None:
        """Count stops from now on: after a kill nobody polls until the engine runs again."""
        self.honest_s.clear()

    def log(self) -> str:
        file = self.folder / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    @property
    def engine_pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _measure_memory(self, pid: int) -> None:
        self._over.set()
        if self._sampler is not None:
            self._sampler.join()
        self._over = over = threading.Event()

        def work() -> None:
            while not over.wait(_SAMPLE_S):
                self.figures.peak_bytes = max(self.figures.peak_bytes, memory_of(pid))

        self._sampler = threading.Thread(target=work, daemon=True)
        self._sampler.start()


def memory_of(pid: int) -> int:
    """Return the bytes that a process and all processes that it started have in memory. What several of them
    share, such as libraries, counts once (PSS)."""
    total, waiting = 0, [pid]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError, IndexError, StopIteration):
            lines = (place / "smaps_rollup").read_text().splitlines()
            total += 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


@dataclass(slots=True)
class Pages:
    """What the site serves: answers by path for every host, and by (host, path) for one host."""

    by_path: dict[str, Handler] = field(default_factory=dict)
    by_host: dict[tuple[str, str], Handler] = field(default_factory=dict)


class AttackSite(Site):
    """A site at all loopback addresses; a host may have answers of its own."""

    def __init__(self, pages: Pages) -> None:
        super().__init__(address="0.0.0.0")
        self._pages = pages

    async def _one(self, reader: object, answer: Answer) -> None:
        self.routes = _ByHost(self._pages)
        await super()._one(reader, answer)  # type: ignore[arg-type]


class _ByHost(dict[str, Handler]):
    def __init__(self, pages: Pages) -> None:
        super().__init__()
        self._pages = pages

    def get(self, path: str, default: Handler) -> Handler:  # type: ignore[override]
        async def handler(seen: Seen, answer: Answer) -> None:
            host = seen.headers.get("host", "").partition(":")[0]
            found = self._pages.by_host.get((host, path)) or self._pages.by_path.get(path, default)
            await found(seen, answer)

        return handler


@contextmanager
def stage(folder: Path, pages: Pages, environment: Mapping[str, str] | None = None) -> Iterator[Stage]:
    """Serve ``pages`` and the honest page; whatever happens, no process stays."""
    with served_by(AttackSite(pages)) as site:
        made = Stage(folder, site)
        made.environment.update(environment or {})

        async def honest(_seen: Seen, answer: Answer) -> None:
            made.honest_s.append(time.monotonic())
            await answer.send(b"honest", Content_Type="text/plain")

        pages.by_host["127.0.0.1", "/p"] = honest
        pages.by_host["127.0.0.1", "/robots.txt"] = page(b"")
        try:
            yield made
        finally:
            made.close()
