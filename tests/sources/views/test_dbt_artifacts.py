"""The files that dbt writes, as recorded from a real project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sources.recorded_dbt import DATA, MODELS, copy_recorded

from afresh.sources.views.dbt_artifacts import read_freshness, read_project, read_run
from afresh.values.errors import InputError


def test_the_manifest_says_what_models_are_made_from() -> None:
    project = read_project(DATA / "1-built")
    assert set(project.models) == MODELS
    assert set(project.nodes["revenue_daily"].below) == {"stg_orders", "raw.prices"}
    assert set(project.nodes["customers_by_region"].below) == {"raw.customers", "regions"}
    view, ephemeral, seed = (project.nodes[key] for key in ("stg_orders", "stg_events", "regions"))
    assert [(node.is_stored, node.is_selectable) for node in (view, ephemeral, seed)] == [
        (False, True),
        (False, False),
        (False, True),
    ]


def test_run_results_say_what_was_built_and_how_long_it_took() -> None:
    project = read_project(DATA / "1-built")
    run = read_run(DATA / "1-built", project)
    assert run is not None
    assert {build.key for build in run.builds} == {*MODELS, "stg_orders", "regions"}
    assert {build.result for build in run.builds} == {"built"}
    starts = [build.started_s for build in run.builds]
    assert starts == sorted(starts)
    assert 0 < sum(build.seconds for build in run.builds) < run.seconds
    assert run.overhead_s == pytest.approx(run.seconds - sum(build.seconds for build in run.builds))


def test_failed_and_skipped_models_are_told_apart() -> None:
    project = read_project(DATA / "3-failed")
    run = read_run(DATA / "3-failed", project)
    assert run is not None
    found = {build.key: build.result for build in run.builds}
    assert found == {
        "orders_daily": "built",
        "orders_by_customer": "failed",
        "top_customers": "skipped",
        "finance_report": "skipped",
    }
    (failed,) = [build for build in run.builds if build.result == "failed"]
    assert "broken" in failed.problem


def test_sources_say_when_they_were_loaded() -> None:
    before, after = (
        read_freshness(DATA / moment, read_project(DATA / moment)) for moment in ("1-built", "2-loaded")
    )
    assert before is not None
    assert after is not None
    assert set(before.loaded_s) == {"raw.orders", "raw.customers", "raw.events", "raw.prices"}
    later = {key for key, loaded_s in after.loaded_s.items() if loaded_s > before.loaded_s[key]}
    assert later == {"raw.orders"}


def test_models_of_one_name_in_two_packages_are_told_apart(tmp_path: Path) -> None:
    copy_recorded("1-built", tmp_path)
    found = json.loads((tmp_path / "manifest.json").read_text())
    other = {**found["nodes"]["model.shop.funnel"], "package_name": "audit"}
    found["nodes"]["model.audit.funnel"] = other
    (tmp_path / "manifest.json").write_text(json.dumps(found))
    project = read_project(tmp_path)
    assert {"shop.funnel", "audit.funnel"} < set(project.models)
    assert "shop.funnel" in project.nodes["product_report"].below


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "is missing: give the folder target of a dbt project"),
        ("{", "is not as dbt writes it"),
        ("{}", "is not as dbt writes it: no 'nodes'"),
        ("[]", "is not as dbt writes it"),
        ('{"nodes": {"model.a.b": {"resource_type": "model"}}, "sources": {}}', "no 'name'"),
    ],
)
def test_a_file_that_is_no_manifest_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError) as caught:
        read_project(tmp_path)
    assert words in str(caught.value)
    assert str(tmp_path / "manifest.json") in str(caught.value)
