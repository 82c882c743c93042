"""Rows and views of a real MariaDB, from Debian, through SQLAlchemy."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source
from tests.sources.rebuilding import RebuiltViews
from tests.waiting import until

from afresh.sources.context import SourceContext
from afresh.sources.sql.source import SqlSource

ROWS = 5000


class MariaDB:
    """A server on a socket in a folder of its own, without a network."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "socket"
        # As root, the server gives up its rights; the folder must be its own then.
        user = [] if os.getuid() else ["--user=mysql"]
        if user:
            owner = pwd.getpwnam("mysql")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = f"--datadir={folder / 'data'}"
        auth = "--auth-root-authentication-method=normal"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", data, auth, *user, "--skip-test-db"],
            check=True,
            capture_output=True,
        )
        command = ["mariadbd", "--no-defaults", data, f"--socket={self.socket}", "--skip-networking", *user]
        self._process = subprocess.Popen(
            [*command, f"--pid-file={folder / 'pid'}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._answers, "MariaDB answers")

    def _answers(self) -> bool:
        assert self._process.poll() is None, "MariaDB has ended"
        if not self.socket.exists():
            return False
        try:
            self.run("SELECT 1")
        except pymysql.OperationalError:
            return False
        return True

    def run(self, *statements: str, database: str | None = None) -> None:
        connection = pymysql.connect(
            user="root", unix_socket=str(self.socket), database=database, autocommit=True
        )
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def url(self, user: str = "reader", password: str = "s3cret-word") -> str:
        return f"mysql+pymysql://{user}:{password}@localhost/shop?unix_socket={self.socket}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDB]:
    folder = Path(tempfile.mkdtemp(prefix="afresh-mariadb-"))
    found = MariaDB(folder)
    try:
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder)


@pytest.fixture
def shop(server: MariaDB) -> MariaDB:
    """A database with five thousand rows, and a role that may read and write."""
    server.run(
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "CREATE OR REPLACE USER reader@localhost IDENTIFIED BY 's3cret-word'",
        "GRANT ALL ON shop.* TO reader@localhost",
    )
    server.run(
        "CREATE TABLE stock (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(9,2), raw BLOB, "
        "seen DATETIME(6))",
        f"INSERT INTO stock SELECT seq, concat('größe ', seq), seq / 4, x'00ff', "
        f"TIMESTAMP'2026-01-01 00:00:00' + INTERVAL seq SECOND FROM seq_1_to_{ROWS}",
        "CREATE TABLE texts (k VARCHAR(20) PRIMARY KEY, v INT)",
        "INSERT INTO texts VALUES ('a', 1), ('ß', 2), ('100%', 3), (':x', 4)",
        database="shop",
    )
    return server


def use(shop: MariaDB, work: Callable[[SqlSource], Awaitable[None]], **changes: Any) -> None:
    table = {"name": "s", "kind": "sql", "url": shop.url(), "query": "SELECT * FROM stock", "key": "id"}
    source = make_source(table | changes, SourceContext(clock=SetClock()))
    assert isinstance(source, SqlSource)

    async def run() -> None:
        try:
            await work(source)
        finally:
            await source.close()

    asyncio.run(run())


def test_rows_are_listed_polled_and_compared(shop: MariaDB) -> None:
    async def work(source: SqlSource) -> None:
        (listing,) = [one async for one in source.listings()]
        assert (len(listing.entries), listing.complete, listing.problem) == (ROWS, True, "")
        leases = [lease_of(entry.key) for entry in listing.entries[:1000]]
        found = await source.poll_many(leases)
        assert json.loads(found[0].content or b"") == {
            "id": 1,
            "name": "größe 1",
            "price": 0.25,
            "raw": {"base64": "AP8="},
            "seen": "2026-01-01 00:00:01",
        }
        leases = [lease_with_copy(*pair) for pair in zip(leases, found, strict=True)]
        shop.run(
            "UPDATE stock SET price = 9, seen = '2027-01-01' WHERE id = 7",
            "DELETE FROM stock WHERE id = 8",
            database="shop",
        )
        kinds = [one.kind for one in await source.poll_many(leases)]
        assert (kinds[6], kinds[7], kinds.count("unchanged")) == ("content", "gone", 998)
        (moved,) = [one async for one in source.listings()]
        assert {entry.key for entry in moved.entries} == {str(ROWS), "7"}

    use(shop, work, cursor="seen", overlap="1s")


def test_keys_that_are_texts_with_signs_of_all_kinds(shop: MariaDB) -> None:
    async def work(source: SqlSource) -> None:
        (listing,) = [one async for one in source.listings()]
        keys = [entry.key for entry in listing.entries]
        assert set(keys) == {"a", "ß", "100%", ":x"}
        assert [one.kind for one in await source.poll_many([lease_of(key) for key in keys])] == [
            "content"
        ] * 4

    use(shop, work, query="SELECT k, v FROM texts WHERE k <> ':no' AND k NOT LIKE 'z%'", key="k")


def test_a_statement_that_takes_too_long_is_ended_by_the_server(shop: MariaDB) -> None:
    async def work(source: SqlSource) -> None:
        found = await source.poll(lease_of("1"))
        assert found.kind == "failed"
        assert "max_statement_time" in found.problem
        assert found.seconds < 20

    use(shop, work, query="SELECT id, sleep(0.5) AS x FROM stock", timeout="0.3s")


def test_the_session_cannot_write(shop: MariaDB) -> None:
    shop.run(
        "CREATE FUNCTION spoil() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM texts; RETURN 1; END",
        database="shop",
    )

    async def work(source: SqlSource) -> None:
        found = await source.poll(lease_of("1"))
        assert found.kind == "failed"
        assert "READ ONLY" in found.problem

    use(shop, work, query="SELECT id, spoil() AS x FROM stock")


def test_a_wrong_password_is_not_shown(shop: MariaDB) -> None:
    async def work(source: SqlSource) -> None:
        found = await source.poll(lease_of("1"))
        assert found.problem.startswith("no connection: ")
        assert "Access denied" in found.problem
        assert "wr0ng-word" not in found.problem
        assert (found.retry_after_s or 0) > 0

    use(shop, work, url=shop.url(password="wr0ng-word"))


def test_a_lost_connection_is_opened_again(shop: MariaDB) -> None:
    async def work(source: SqlSource) -> None:
        assert (await source.poll(lease_of("1"))).kind == "content"
        shop.run("KILL USER reader@localhost")
        assert (await source.poll(lease_of("2"))).kind == "content"

    use(shop, work)


def test_a_query_says_which_views_are_stale(shop: MariaDB, tmp_path: Path) -> None:
    shop.run(
        "CREATE TABLE totals (n INT, price DECIMAL(15,2))",
        "INSERT INTO totals SELECT count(*), sum(price) FROM stock",
        database="shop",
    )
    asks = "SELECT (SELECT sum(price) FROM stock) <> price FROM {view}"
    views = RebuiltViews(tmp_path, url=shop.url(), views=["totals"], stale_when=asks)

    async def work() -> None:
        await views.look()
        assert views.stale() == set()
        shop.run("UPDATE stock SET price = price + 1 WHERE id = 3", database="shop")
        await views.look()
        assert views.stale() == {"totals"}
        await views.poll("totals")
        assert views.built() == ["totals"]

    views.use(work)
