"""The dashboard of a cluster of three shards with copies, in a thread; no Ray runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.shards_in_files import FileShards, file_shards, opened_cluster
from tests.web.serving import TOKEN, Client

from afresh.engine.external_polls import Reported
from afresh.values.clock import SystemClock
from afresh.web.app import WebAccess, make_cluster_app
from afresh.web.server import Server, listen

HOSTS = 6
PAGE = "https://site-{}.example/{}"


@contextmanager
def cluster_dashboard(folder: Path, access: WebAccess | None = None) -> Iterator[tuple[Client, FileShards]]:
    """Each of six hosts has ten pages, polled twice a minute apart; one host has forty more, not polled."""
    with file_shards(folder) as made:
        now_s = SystemClock().now_s()
        for host in range(HOSTS):
            engine = made.add(PAGE.format(host, 0))
            engine.add([PAGE.format(host, page) for page in range(1, 10)], source="web")
            for age_s, content in ((120.0, b"first\nline"), (60.0, b"second <b>line</b>")):
                urls = [PAGE.format(host, page) for page in range(10)]
                engine.observe(
                    Reported(url, now_s - age_s, content=content, media_type="text/html") for url in urls
                )
        large = made.add("https://large.example/0")
        large.add([f"https://large.example/{page}" for page in range(1, 40)], source="web")
        made.seen(2)
        with opened_cluster(made) as cluster:
            app = make_cluster_app(cluster, access or WebAccess(TOKEN))
            with Server(app, listen("127.0.0.1", 0)) as server:
                yield Client(server, made.own), made
