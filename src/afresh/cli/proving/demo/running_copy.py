"""The copy of the demo's site that afresh keeps: a child process ``afresh run`` with its project folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np

from afresh.cli.interruption import INTERRUPTION
from afresh.cli.proving.demo.changing_site import DemoSite
from afresh.engine.app import open_engine
from afresh.engine.settings.parsing import FILE_NAME
from afresh.values.errors import AfreshError
from afresh.values.extras import has_extra
from afresh.values.leftovers import LEFTOVERS

_GRACE_S = 15.0
_SETTINGS = """\
[budget]
requests = "{budget_per_s}/s"
[run]
retry_first = "0.2s"
listings_every = "1s"
[web]
port = 0
[[source]]
name = "web"
user_agent = "{user_agent}"
feeds = ["{feed}"]
allow_private = true
min_interval = 0
delay = "0s"
concurrency = 64
first_rest = "0.2s"
longest_rest = "1s"
"""  # short back-offs, because the comparison waits until every page is fetched, even on a busy machine


class RunningCopy:
    """A copy of the pages of ``site``, which a child process keeps fresh until the ``with`` block ends. It is
    told the weights of the pages and the address of the feed, and nothing else."""

    def __init__(self, folder: Path, site: DemoSite, user_agent: str, *, budget_per_s: float) -> None:
        """Create the project ``folder`` with these pages. If the packages of the dashboard are installed, the
        process serves it too."""
        self._folder, self._log = folder, folder / "log"
        folder.mkdir()
        texts = {"budget_per_s": budget_per_s, "user_agent": user_agent, "feed": site.feed}
        (folder / FILE_NAME).write_text(_SETTINGS.format(**texts))
        urls = np.array(site.urls())
        with open_engine(folder) as engine:
            for weight in np.unique(site.weights).tolist():
                engine.add(urls[site.weights == weight].tolist(), weight=weight)
        web = ["--web"] if has_extra("web") else []
        words = ["-C", str(folder), "run", "--log", "json", *web]
        self._command = [sys.executable, "-m", "afresh.cli.child_entry", *words]
        self._listed = ExitStack()

    def __enter__(self) -> Self:
        # Settings in the user's environment are meant for the user's own project.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AFRESH_")}
        # A signal between the start and the entry in LEFTOVERS would leave the process behind.
        with self._log.open("wb") as log, INTERRUPTION.held_back():
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # is closed however this process ends; the child then ends too
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # so that Ctrl-C reaches only this process, which ends the child
            )
            self._listed.enter_context(LEFTOVERS.process(self._process.pid, leads_group=True))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # after an error the result of the process is not needed
            self._process.kill()
        self.stop()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._listed.close()

    def ask_budget(self, requests_per_s: float) -> None:
        """Set another budget, which the process applies within seconds."""
        with open_engine(self._folder) as engine:
            engine.ask_budget(requests_per_s)

    def follows(self) -> bool:
        """Return whether the process has applied the budget that ``ask_budget`` set."""
        return self._find_event("budget asked for") is not None

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def check(self) -> None:
        """Raise AfreshError with the last line of the log if the process has ended by itself."""
        if self._process.poll() is not None:
            lines = self._log.read_text(errors="replace").splitlines() or ["its log is empty"]
            raise AfreshError(f"the copy kept by afresh ended too early: {lines[-1]}")

    def dashboard(self) -> str | None:
        """Return the address of the process's dashboard, or None if there is none."""
        found = self._find_event("dashboard")
        return None if found is None else str(found["address"])

    def _find_event(self, event: str) -> dict[str, object] | None:
        """Return the first entry of the process's log whose field ``event`` has this text, or None."""
        for line in self._log.read_text(errors="replace").splitlines():
            if f'"event": "{event}"' in line and line.endswith("}"):
                return dict(json.loads(line))
        return None
