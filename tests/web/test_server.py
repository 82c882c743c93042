"""The server listens beyond this machine only with a token, and says why a port cannot be used."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.servers.quick_afresh import QuickAfresh
from tests.waiting import LIMIT_S
from tests.web.serving import TOKEN, Client

from afresh.cli.engine.dashboard_server import make_engine_server
from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import UsageError
from afresh.web.reach import check_reach
from afresh.web.server import listen


def test_listening_beyond_this_machine_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        check_reach(host, TOKEN)
        with pytest.raises(UsageError, match="needs a token"):
            check_reach(host, None)
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        check_reach(host, None)


@pytest.mark.parametrize(
    ("host", "setting", "status"),
    [("0.0.0.0", "", 401), ("0.0.0.0", "read_token = false", 200), ("127.0.0.1", "", 200)],
)
def test_beyond_this_machine_reading_needs_the_token_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, setting: str, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.token").write_text(TOKEN)
    text = f"[web]\nhost = '{host}'\nport = 0\n{setting}\n[[source]]\nname = 'web'\n"
    with make_engine(parse_settings(text), tmp_path) as engine, make_engine_server(engine) as server:
        connection = HTTPConnection("127.0.0.1", urlsplit(server.address).port or 0, timeout=LIMIT_S)
        with closing(connection):
            connection.request("GET", "/api/v1/status")
            assert connection.getresponse().status == status


@pytest.mark.parametrize("command", [["serve"], ["run", "--web"]])
def test_a_host_that_is_refused_leaves_nothing_behind(
    quick_afresh: QuickAfresh, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "afresh.toml").write_text("[web]\nhost = '0.0.0.0'\n[[source]]\nname = 'web'\n")
    found = quick_afresh.run("-C", str(tmp_path), *command)
    assert found.returncode == 2
    assert "needs a token" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["afresh.toml"]


def test_a_port_in_use_is_said_in_words(web: Client) -> None:
    with pytest.raises(UsageError, match="another one running"):
        listen("127.0.0.1", int(web.host.split(":")[1]))
