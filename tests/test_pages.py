"""The tutorial and the how-to run as they are written, on a site on loopback; their settings are read."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from afresh.engine.settings import read

ROOT = Path(__file__).parent.parent
PAGES = ("tutorial", "howto", "deploy")


class Pages(BaseHTTPRequestHandler):
    """A sitemap of three pages."""

    def do_GET(self) -> None:
        host, path = self.headers["Host"], self.path
        urls = "".join(f"<url><loc>http://{host}/{name}</loc></url>" for name in ("", "news", "about"))
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        body = f'<urlset xmlns="{space}">{urls}</urlset>' if path == "/sitemap.xml" else f"<h1>{path}</h1>"
        self.send_response(404 if path == "/robots.txt" else 200)
        self.send_header("Content-Type", "application/xml" if path == "/sitemap.xml" else "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        serving.join()


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_their_order(page: str, address: str, tmp_path: Path) -> None:
    script = "\n".join(blocks(page, "sh")).replace("https://example.org/", address)
    assert "afresh " in script
    script = script.replace("--for 60s", "--for 1s")
    project = "afresh init .\n" if page == "deploy" else ""
    head = f'set -e\nafresh() {{ {shlex.quote(sys.executable)} -m afresh "$@"; }}\n{project}'
    environment = {
        **os.environ,
        "AFRESH_SOURCE_WEB_ALLOW_PRIVATE": "true",
        "AFRESH_SOURCE_WEB_DELAY": "0s",
        "AFRESH_BUDGET_REQUESTS": "100/s",
        "AFRESH_WEB_PORT": "0",
    }
    ran = subprocess.run(
        ["bash", "-c", head + script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    if page == "tutorial":
        assert (tmp_path / "mirror" / "news.html").read_text() == "<h1>/news</h1>"
        assert (tmp_path / "mirror" / "copies" / "index.jsonl").read_text().count("\n") == 3


def settings_shown() -> list[tuple[str, str]]:
    """All but those of a package's own pyproject.toml."""
    pages = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
    found = [(page, block) for page in pages for block in blocks(page, "toml")]
    return [(page, block) for page, block in found if not block.startswith("[project")]


@pytest.mark.parametrize(("page", "text"), settings_shown())
def test_settings_in_the_docs_are_read(page: str, text: str) -> None:
    read(text, name=f"docs/{page}.md")


def test_the_unit_starts_what_there_is() -> None:
    """Every command that the systemd unit calls exists, with its options."""
    (unit,) = blocks("deploy", "ini")
    calls = re.findall(r"^Exec\w+=/opt/afresh/bin/afresh (\w+)(.*)$", unit, re.MULTILINE)
    assert [command for command, _ in calls] == ["config", "run"]
    for command, options in calls:
        words = [sys.executable, "-m", "afresh", command, "--help"]
        ran = subprocess.run(
            words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"}
        )
        for option in re.findall(r"--[a-z-]+", options):
            assert option in ran.stdout
