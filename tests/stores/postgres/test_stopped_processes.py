"""A process that stops in the middle of a transaction, or a network that is silent, stops nobody else."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.stores.backends import new_items, schema_url
from tests.waiting import LIMIT_S

from afresh.stores.postgres.connection import Connection, LazyConnection, parse_address
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.store import PostgresStore


def test_locks_of_a_process_that_stopped_are_freed(postgres_url: str, tmp_path: Path) -> None:
    url, goes_on = schema_url(postgres_url, tmp_path), Event()
    attempts: list[bool] = []
    with PostgresStore(url) as store, ThreadPoolExecutor(1) as pool:
        store.items.add(new_items(1), 0.0)
        held = PostgresDatabase(parse_address(url), timeout_s=0.5)
        is_held = Event()

        def stop_in_the_middle(connection: Connection) -> None:
            connection.execute("SELECT * FROM pace FOR UPDATE")
            is_held.set()
            if not attempts:
                assert goes_on.wait(LIMIT_S)
            attempts.append(True)
            connection.execute("SELECT 1")

        stopped = pool.submit(held.write, stop_in_the_middle)
        assert is_held.wait(LIMIT_S)
        store.fleet.reserve(1, 1.0, 0.0, 10.0)  # it waits for the lock, for five seconds at most
        assert attempts == []
        goes_on.set()
        stopped.result(LIMIT_S)
        assert len(attempts) == 2  # the first attempt found its connection ended, and was repeated
        held.close()


def test_a_silent_network_is_noticed(postgres_url: str) -> None:
    """On TCP the kernel asks whether the other side is there; a user's own options are kept."""
    where = postgres_url.partition("host=")[2].split("&")[0].replace("%2F", "/")
    with _tcp_way_to(Path(where) / ".s.PGSQL.5432") as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres?keepalives_idle=7"
        lazy = LazyConnection(parse_address(url), 5.0)
        with socket.socket(fileno=os.dup(lazy.connection().fileno())) as line:
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_USER_TIMEOUT)
            assert [line.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [7, 5, 30_000]
        lazy.close()


@contextmanager
def _tcp_way_to(path: Path) -> Iterator[int]:
    """Let one TCP connection through to a local socket."""

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as server:
        server.connect(str(path))

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                back = Thread(target=pass_on, args=(server, client))
                back.start()
                pass_on(client, server)
                back.join()

        serving = Thread(target=serve)
        serving.start()
        yield listener.getsockname()[1]
        serving.join()
