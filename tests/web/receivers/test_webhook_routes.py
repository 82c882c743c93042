"""Webhooks over HTTP: no token is needed, but a signature, and they come to the host of ``callback``."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from tests.web.serving import PLAIN, TOKEN, Client, engine_of, filled

from afresh.web.app import make_app
from afresh.web.server import Server, listen

SETTINGS = """
[web]
callback = "https://hooks.example/afresh"
[web.webhook.site]
secret = "hush"
items = "url"
"""


def test_a_signed_request_is_taken_without_a_token(tmp_path: Path) -> None:
    with engine_of(tmp_path, SETTINGS) as engine:
        filled(engine)
        app = make_app(engine, TOKEN, read_token=True)
        with Server(app, listen("127.0.0.1", 0)) as server:
            client = Client(server, engine)
            path, body = "/receive/webhook/site", f'{{"url": "{PLAIN}"}}'.encode()
            signature = hmac.new(b"hush", body, hashlib.sha256).hexdigest()
            headers = {"X-Hub-Signature-256": f"sha256={signature}", "Host": "hooks.example"}
            assert client.get("/api/v1/status").status == 401
            answer = client.ask("POST", path, raw=body, headers=headers)
            assert (answer.status, answer.json()) == (202, {"noticed": 1, "unknown": 0})
            assert client.ask("POST", path, raw=body, headers=headers).status == 409
            assert client.ask("POST", path, raw=body).status == 401
            assert client.ask("POST", "/receive/webhook/other", raw=body, headers=headers).status == 404
            assert client.ask("POST", path, raw=bytes(1 << 21), headers=headers).status == 413
            assert client.ask("POST", path, raw=body, headers={"Host": "evil.example"}).status == 421
            for own in ("/", "/api/v1/status", "/changes.atom", "/healthz"):
                assert client.get(own, Host="hooks.example").status in (401, 421)
        assert [notice.origin for notice in engine.store.notices.open(0)] == ["webhook:site"]


def test_the_address_for_signed_requests_shows_nothing_else(tmp_path: Path) -> None:
    with engine_of(tmp_path, SETTINGS) as engine:
        filled(engine)
        for names, status in (((), 421), (("hooks.example",), 200)):
            app = make_app(engine, TOKEN, names=names, read_token=False)
            with Server(app, listen("127.0.0.1", 0)) as server:
                client = Client(server, engine)
                for path in ("/", "/changes", "/api/v1/changes?content=raw", "/metrics"):
                    assert client.get(path, Host="hooks.example").status == status
                signed = client.ask(
                    "POST", "/receive/webhook/site", raw=b"{}", headers={"Host": "hooks.example"}
                )
                assert signed.status == 401  # it was heard, and its signature is missing
