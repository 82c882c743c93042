"""The demo's copies: each an ``afresh run`` in a project folder of its own, as anybody would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from afresh.cli.interruption import INTERRUPTION
from afresh.engine.app import open_engine
from afresh.engine.settings.parsing import FILE_NAME
from afresh.values.errors import AfreshError
from afresh.values.leftovers import LEFTOVERS

_GRACE_S = 15.0
_SETTINGS = """\
[budget]
requests = "{budget_per_s}/s"
[plan]
policy = "{policy}"
[run]
retry_first = "0.2s"
[web]
port = 0
[[source]]
name = "web"
user_agent = "afresh-demo-{policy}"
allow_private = true
delay = "0s"
concurrency = 64
first_rest = "0.2s"
longest_rest = "1s"
"""  # a busy machine's hiccup costs a moment: pages are waited for before the comparison begins


class RunningCopy:
    """A copy of some pages, kept by a process of its own until its ``with`` ends."""

    def __init__(
        self,
        folder: Path,
        policy: str,
        urls: Sequence[str],
        *,
        budget_per_s: float,
        web: bool,
    ) -> None:
        """``web``: it serves its dashboard too."""
        self.policy, self._folder, self._log = policy, folder, folder / "log"
        folder.mkdir()
        (folder / FILE_NAME).write_text(_SETTINGS.format(budget_per_s=budget_per_s, policy=policy))
        with open_engine(folder) as engine:
            engine.add(urls)
        words = ["-C", str(folder), "run", "--log", "json", *(["--web"] if web else [])]
        self._command = [sys.executable, "-m", "afresh.cli.tied_to_parent", *words]
        self._listed = ExitStack()

    def __enter__(self) -> Self:
        # The person's own settings are for the person's own mirror.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AFRESH_")}
        # Not interrupted halfway: a process that exists is one that is ended again.
        with self._log.open("wb") as log, INTERRUPTION.held_back():
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # closed when we end, however we end: then it ends too
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us: we end it
            )
            self._listed.enter_context(LEFTOVERS.process(self._process.pid, leads_group=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # nobody wants what it would still do
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
        """Another budget from now on, which it follows within seconds."""
        with open_engine(self._folder) as engine:
            engine.ask_budget(requests_per_s)

    def follows(self) -> bool:
        """Whether it keeps the budget that it was asked to keep."""
        return self._said("budget asked for") is not None

    def stop(self) -> None:
        """Ask it to end."""
        if self._process.poll() is None:
            self._process.terminate()

    def check(self) -> None:
        """Raise, with its last words, if it has ended by itself."""
        if self._process.poll() is not None:
            lines = self._log.read_text(errors="replace").splitlines() or ["it said nothing"]
            raise AfreshError(f"the copy kept by {self.policy} ended too early: {lines[-1]}")

    def dashboard(self) -> str | None:
        """The address of its dashboard, once it is served."""
        said = self._said("dashboard")
        return None if said is None else str(said["address"])

    def _said(self, event: str) -> dict[str, object] | None:
        """The first line of its log that tells of an event."""
        for line in self._log.read_text(errors="replace").splitlines():
            if f'"event": "{event}"' in line and line.endswith("}"):
                return dict(json.loads(line))
        return None
