"""Health, readiness, and answers to HEAD requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web.serving import NOW_S, Client, dashboard, engine_of

from afresh.engine.reporting.pulse import Pulse
from afresh.engine.state_names import PULSE


@pytest.mark.parametrize("path", ["/", "/items", "/metrics", "/healthz", "/api/v1/status"])
def test_head_is_answered_like_get_without_the_body(web: Client, path: str) -> None:
    answer = web.ask("HEAD", path)
    assert answer.status == 200
    assert answer.body == b""
    assert answer.headers["content-type"] == web.get(path).headers["content-type"]


def test_the_engine_shows_as_running_stopped_or_lost(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        for pulse, state in (
            (Pulse(NOW_S, NOW_S - 60), "running"),
            (Pulse(NOW_S, NOW_S - 60, stopped=True), "stopped"),
            (Pulse(NOW_S - 600, NOW_S - 900), "lost"),
        ):
            engine.store.state.set({PULSE: pulse.pack()})
            with dashboard(engine) as web:
                assert web.get("/readyz").json() == {"ok": True, "engine": state}
                assert web.get("/api/v1/status").json()["state"] == state


def test_healthy_without_a_store_but_not_ready(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    with dashboard(engine) as web:
        engine.close()
        assert web.get("/healthz").status == 200
        ready = web.get("/readyz")
        assert ready.status == 503
        assert "closed" in ready.problem()
        for path in ("items", "status", "course", "sources"):
            assert web.get(f"/api/v1/{path}").status == 503
        assert "closed" in web.get("/items").text
        assert "data-recovers" in web.get("/items").text
