"""The metrics are Prometheus text, and say nothing old while the store cannot be read."""

from __future__ import annotations

from pathlib import Path

from tests.web.serving import Client, dashboard, engine_of, filled


def test_metrics_are_prometheus_text(web: Client) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    found = {family.name: family for family in text_string_to_metric_families(web.get("/metrics").text)}
    wanted = (
        "freshness_ratio age_seconds audited_freshness_ratio lag_seconds budget_requests_per_second "
        "store_latency_seconds items engine_state"
    )
    assert {f"afresh_{name}" for name in wanted.split()} <= set(found)
    items = {sample.labels["status"]: sample.value for sample in found["afresh_items"].samples}
    assert set(items) == {"active", "paused", "gone", "refused"}  # an alarm needs the zeros too
    assert sum(items.values()) == 123


def test_metrics_say_nothing_of_before_while_the_store_is_out_of_reach(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    filled(engine)
    with dashboard(engine) as web:
        assert "afresh_freshness_ratio 0." in web.get("/metrics").text
        engine.close()
        lines = [line for line in web.get("/metrics").text.splitlines() if not line.startswith("#")]
        assert "afresh_store_latency_seconds NaN" in lines
        assert 'afresh_engine_state{state="no store"} 1.0' in lines
        assert {line.partition("{")[0].partition(" ")[0] for line in lines} == {
            "afresh_store_latency_seconds",
            "afresh_engine_state",
        }
