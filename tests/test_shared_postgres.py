"""The PostgreSQL of a test run: one for all its processes, gone with the last of them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from tests.servers.postgres import shared_postgres
from tests.waiting import until

pytestmark = pytest.mark.waits

USER = """
import os, sys
from pathlib import Path
from tests.servers.postgres import shared_postgres
inheritable = open(sys.argv[1] + ".inheritable", "w")
os.set_inheritable(inheritable.fileno(), True)
with shared_postgres(Path(sys.argv[1])) as server:
    print(server.folder, flush=True)
    sys.stdin.readline()
"""
REPOSITORY = Path(__file__).parent.parent


def started(place: Path, **environment: str) -> subprocess.Popen[str]:
    """Another process that uses the server until it is killed, or hears a line."""
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
    )


def user(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process that uses the server, and the server's folder."""
    process = started(place)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_all_share_one_server_and_the_last_one_stops_it(tmp_path: Path) -> None:
    first, folder = user(tmp_path)
    with shared_postgres(tmp_path) as server:
        assert server.folder == folder
        until(
            lambda: not is_open_elsewhere(Path(f"{tmp_path}.inheritable"), first.pid),
            "the guard has closed it",
        )
        first.communicate("leave\n", timeout=60)
        assert first.returncode == 0
        with psycopg.connect(server.url()) as connection:  # it runs on, though who started it has left
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not folder.exists()


def test_a_server_whose_users_were_all_killed_is_stopped_and_another_is_started(tmp_path: Path) -> None:
    killed, folder = user(tmp_path)
    killed.kill()
    killed.communicate()
    until(lambda: not folder.exists(), "the guard removes the server")
    with shared_postgres(tmp_path) as server:
        assert server.folder != folder
    assert not server.folder.exists()


def test_an_initdb_in_its_middle_leaves_no_shared_memory(open_folder: Path) -> None:
    open_folder.chmod(0o777)  # the server may run as another user
    killed = started(open_folder / "place", TMPDIR=str(open_folder))

    def lines() -> list[str]:
        return [line for file in open_folder.glob("*/data/postmaster.pid") for line in contents(file)]

    until(lambda: len(lines()) >= 7, "PostgreSQL has shared memory")
    pid, *_, shared_memory = lines()[:7]
    os.kill(abs(int(pid)), signal.SIGSTOP)  # it does not end by itself; pg_ctl could not end it either
    killed.kill()
    killed.communicate()
    until(lambda: not list(open_folder.glob("afresh-pg-*")), "the guard removes everything")
    table = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    assert table[0][1] == "shmid"
    assert shared_memory.split()[1] not in [row[1] for row in table]


def is_open_elsewhere(file: Path, process: int) -> bool:
    """Whether a process other than this one has the file open, as far as one may see."""
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it is somebody else's, or has just been closed
            if entry.readlink() == file and int(entry.parts[2]) != process:
                return True
    return False


def contents(file: Path) -> list[str]:
    """Nothing if it is gone."""
    try:
        return file.read_text().splitlines()
    except FileNotFoundError:
        return []
