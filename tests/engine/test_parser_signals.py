"""A run that is told to end while a parser process works ends, and leaves no process behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.servers.site import page
from tests.servers.threaded import served
from tests.waiting import LIMIT_S

from afresh.engine.app import open_engine

SETTINGS = """
[budget]
requests = "100/s"
[run]
drain_timeout = "0.1s"
[[source]]
name = "web"
kind = "http"
allow_private = true
min_interval = 0
delay = "0.001s"
selectors = "main"
"""


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
        if parent == pid:
            found.append(int(entry.parent.name))
    return found


def test_a_run_that_is_stopped_gives_up_what_is_being_parsed(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "afresh", "-C", str(tmp_path), "run", "--log", "debug"]
    with served({"/deep": page(b"<main>" * 160_000)}) as site:
        with open_engine(tmp_path) as engine:
            engine.add([f"{site.url}/deep"])
        with subprocess.Popen(command, stderr=subprocess.PIPE) as run:
            worker = None
            while worker is None:
                worker = next(iter(children(run.pid)), None)
            handle = os.pidfd_open(worker)
            run.send_signal(signal.SIGTERM)
            _, log = run.communicate(timeout=LIMIT_S)
        assert run.returncode == 128 + signal.SIGTERM, log  # it did not wait for the poll
        assert b"parsing it takes" not in log  # the run did not wait for the end of the parse
        assert select.select([handle], [], [], LIMIT_S)[0]  # the parser process has ended
        os.close(handle)
