"""Where the pages' commands run: a folder like a reader's own, with a site, a search box and databases.

Addresses that the pages give (``https://example.org/…``, ``postgresql://me@db.example.org/…``) lead there.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import psycopg
from tests.pages.blocks import ROOT
from tests.servers.search_site import Papers, SearchSite
from tests.sources.recorded_dbt import copy_recorded

_SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_NAMES = ("", "news", "about")

# The site is on this machine, and need not be spared.
_LENIENT = {"AFRESH_SOURCE_WEB_ALLOW_PRIVATE": "true", "AFRESH_SOURCE_WEB_DELAY": "0s"}

_FETCHER = """\
import json, sys
for line in sys.stdin:
    print(json.dumps({**json.loads(line), "content": "what it found"}))
"""

# What only root, a network or hours of time could run, and what is done about each instead.
_IN_PLACE_OF = f"""
make() {{ command make -n -C '{ROOT}' "$@"; }}       # the targets exist
pip() {{ [ "$1" = install ]; }}                      # test_package installs the wheel
/opt/afresh/bin/pip() {{ pip "$@"; }}
python3() {{ [ "$2" = venv ] || [ "$2" = build ] || "{sys.executable}" "$@"; }}
useradd() {{ :; }}
systemctl() {{ [ "$1" = enable ]; }}                 # the unit has a test of its own
sudo() {{ shift 2; mkdir -p var; "${{@//\\/var\\//var/}}"; }}
/opt/afresh/bin/afresh() {{ afresh "$@"; }}
dbt() {{ :; }}                                       # make interop runs it; its files are there
git() {{ [ "$1" = clone ]; }}                        # a small repository is there already
"""

# A server runs until it is stopped: here as long as the commands after it. An engine polls what is due, and
# ends: how far it would come in a minute depends on the machine.
_UNTIL_STOPPED = f"""
afresh() {{
  case "$1" in
    demo) quick "" demo --help ;;                       # test_demo watches it
    --install-completion) "{sys.executable}" -m afresh "$@" ;;  # it asks which shell called it
    serve) [ -n "$served" ] || start_serving "$@" ;;
    run) case " $* " in *" --for "* | *" --once "* | *" --dry-run "*) ;; *) set -- "$@" --once ;; esac
         quick "" "$@" ;;
    *) quick "" "$@" ;;
  esac
}}
start_serving() {{
  exec 3< <(exec "${{quick[@]}}" "" "$@" --port 0 2>&1)
  trap "kill $!" EXIT
  read -r said <&3 && served=${{said#*http://}} && served=${{served%%/*}}
}}
curl() {{ afresh serve; command curl --fail-with-body "${{@//localhost:8321/$served}}"; }}
"""


@dataclass(frozen=True)
class Stage:
    """What a page's commands find: the folder that each section begins with, and where addresses lead."""

    model: Path
    leads: Mapping[str, str]
    head: str
    environment: Mapping[str, str]

    def told(self, text: str) -> str:
        """The text with addresses that lead here."""
        for said, here in self.leads.items():
            text = text.replace(said, here)
        return text

    def settings(self, text: str) -> str:
        """A page's settings, with sources that may ask a site on this machine, and at once."""
        if "[[source]]" not in text:
            text += '\n[[source]]\nname = "web"\n'
        first, *tables = self.told(text).split("[[source]]\n")
        for number, table in enumerate(tables):
            if re.search(r'^kind = "(?!http|search)', table, re.MULTILINE) is None:
                delay = "" if re.search(r"^delay", table, re.MULTILINE) else 'delay = "0s"\n'
                least = "" if re.search(r"^min_interval", table, re.MULTILINE) else "min_interval = 0\n"
                tables[number] = f"allow_private = true\n{delay}{least}{table}"
        return "[[source]]\n".join([first, *tables])

    def run(self, script: str, folder: Path, *, sources: Mapping[str, str] = _LENIENT) -> str:
        """Run commands as a shell would; what they print. Fails where one fails.

        ``sources`` are overrides of settings of sources, which must be there then.
        """
        alone = script.replace(" && ", "\n")  # a shell that ends at errors forgives those before &&
        words = ["bash", "-c", self.head + self.told(alone)]
        environment = {**self.environment, **sources}
        ran = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
        )
        assert ran.returncode == 0, f"{script}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
        return ran.stdout


class _Pages(BaseHTTPRequestHandler):
    """A site of three pages with a sitemap, a feed, and an API of records."""

    def do_GET(self) -> None:
        home = f"http://{self.headers['Host']}/"
        kind, body = "text/html", f"<h1>{self.path}</h1>"
        if self.path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{home}{name}</loc></url>" for name in _NAMES)
            kind, body = "application/xml", f'<urlset xmlns="{_SPACE}">{urls}</urlset>'
        elif self.path == "/feed.xml":
            entries = "".join(f"<item><title>x</title><link>{home}{name}</link></item>" for name in _NAMES)
            kind, body = "application/rss+xml", f'<rss version="2.0"><channel>{entries}</channel></rss>'
        elif self.path.startswith("/api/"):
            kind, body = "application/json", json.dumps({"served": id(self), "product": {"price": 5}})
        elif self.path == "/":
            body = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def site() -> Iterator[str]:
    """The address of a site that lives as long as the ``with``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            serving.join()


def papers() -> Papers:
    """Forty papers of eight authors, whose citations do not grow."""
    titles = [f"Fresh copy {at} of {('the web', 'a view', 'some rows')[at % 3]}" for at in range(40)]
    authors = [f"Ann A{at % 8};Bob B{at % 5}" for at in range(40)]
    return Papers(titles, authors, np.zeros(40), [np.empty(0)] * 40)


def write_files(folder: Path, found: Papers) -> None:
    """The files that the pages speak of."""
    rows = found.rows(range(len(found)))
    for name, part in (("papers.csv", rows[:25]), ("all-papers.csv", rows)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([("id", "title", "authors", "cites"), *((*row, 0) for row in part)])
    (folder / "items.csv").write_text("item,rate\na,1\nb,2\nc,3\nd,4\ne,5\n")
    (folder / "views.csv").write_text("view,base\ndaily,a\ndaily,b\nweekly,b\n")
    (folder / "polls.csv").write_text("item,time,changed\na,2026-01-01,0\na,2026-01-02,1\na,2026-01-04,1\n")
    (folder / "your_fetcher.py").write_text(_FETCHER)
    (folder / "url-watches.json").write_text(
        '{"watching": {"1": {"url": "https://a.test/", "paused": true}}}'
    )
    (folder / "urls.yaml").write_text("url: https://a.test/b\n")
    captures = (f"a {day} https://a.test/c text/html 200 {day}\n" for day in (20260101000000, 20260201000000))
    (folder / "captures.cdx").write_text("".join(captures))
    copy_recorded("1-built", folder / "target")
    stock = sqlite3.connect(folder / "stock.db")
    stock.execute("CREATE TABLE stock (sku TEXT PRIMARY KEY, price REAL, updated_at TEXT, viewed_at TEXT)")
    stock.executemany("INSERT INTO stock VALUES (?, 1.5, '2026-01-01', '')", [("x1",), ("x2",), ("x3",)])
    stock.commit()
    stock.close()
    make_repository(folder / "website.git")


def make_repository(folder: Path) -> None:
    """Twelve pages, the first five of which change now and then from 2022 to 2026."""
    alone = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}

    def git(*words: str, given: bytes = b"") -> None:
        subprocess.run(["git", *words], input=given, env=alone, check=True, capture_output=True)

    stream = bytearray()
    for commit in range(60):
        stamp = 1_660_000_000 + commit * 2_000_000
        stream += f"commit refs/heads/main\ncommitter a <a@b> {stamp} +0000\ndata 1\nx\n".encode()
        for page in range(12) if commit == 0 else range(commit % 5, 5, 2):
            stream += f"M 644 inline content/en/p{page}.md\ndata 2\n{commit:02d}\n".encode()
    git("init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    git("-C", str(folder), "fast-import", "--quiet", given=bytes(stream))


def make_house(url: str, name: str) -> str:
    """A database with materialised views in a schema ``reports``; where it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    house = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    with psycopg.connect(house, autocommit=True) as connection:
        connection.execute("CREATE TABLE sales (day date, amount int)")
        connection.execute("CREATE SCHEMA reports")
        daily = "SELECT day, sum(amount) AS total FROM sales GROUP BY day"
        connection.execute(f"CREATE MATERIALIZED VIEW reports.daily AS {daily}".encode())
    return house


@contextmanager
def staged(folder: Path, quick: str, postgres_url: str) -> Iterator[Stage]:
    """All of it; ``quick`` is how bash starts commands quickly."""
    found, worker = papers(), os.environ.get("PYTEST_XDIST_WORKER", "alone")
    database = make_house(postgres_url, f"house_{worker}")
    with site() as address, SearchSite(found, lambda: 0.0) as search:
        model = folder / "model"
        model.mkdir()
        write_files(model, found)
        feed = f'<opml><body><outline xmlUrl="{address}feed.xml"/></body></opml>'
        (model / "feeds.opml").write_text(feed)
        leads = {
            "https://example.org/search": f"{search.url}/search",
            "https://example.org/papers": f"{search.url}/papers",
            "https://example.org/": address,
            "postgresql://me@db.example.org/copies?": f"{database}{'&' if '?' in database else '?'}",
            "--for 60s": "--once",
            "for_s=60": "once=True",
            # Smaller worlds and papers, which take a part of the time; test_replay_commands and
            # test_reproduce_command have larger ones.
            "2023-08-23": "2025-08-23",
            "--items 100": "--items 20",
            "--items 150": "--items 20",
            "--span 1y": "--span 60d",
            "--span 2y": "--span 60d",
            "reproduce cho": "reproduce yang",
            '{"budget.requests": "2/s"}': '{"budget.requests": "50/s", "source.web.allow_private": "true"}',
        }
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AFRESH_")},
            "HOME": str(folder),  # where completion is installed
            "AFRESH_BUDGET_REQUESTS": "100/s",
            "AFRESH_WEB_PORT": "0",
            "HOUSE_URL": database,
            "OPENALEX_KEY": "k",
            "GITHUB_TOKEN": "t",
            "SHOP_SECRET": "s" * 32,
            "CHAT": "json://127.0.0.1:9",
            "STOCK_URL": "sqlite:stock.db",
        }
        head = "set -e -o pipefail\n" + quick + _UNTIL_STOPPED + _IN_PLACE_OF
        (model / "found.jsonl").write_text(f'{{"item": "{address}news", "content": "found"}}\n')
        stage = Stage(model, leads, head, environment)
        stage.run("afresh init . && afresh add --sitemap https://example.org/sitemap.xml", model)
        stage.run(
            "afresh run --once --json\nafresh history git website.git -o docs --start 2025-08-23", model
        )
        shutil.rmtree(model / "__pycache__", ignore_errors=True)
        yield stage
