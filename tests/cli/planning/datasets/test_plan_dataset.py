"""``afresh plan`` of a dataset against the plan of the same items in one file, and what interrupts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Afresh
from tests.cli.planning.datasets.conftest import MakeItems

from afresh.cli.planning.datasets import item_parts, plan_dataset
from afresh.cli.planning.datasets.output_folder import OutputFolder
from afresh.values.errors import OutputError

BUDGET = ("--budget", "0.05/item/d")


def frequencies(path: Path) -> dict[str, float]:
    table = pq.read_table(path)
    return dict(zip(table["item"].to_pylist(), table["frequency"].to_pylist(), strict=True))


def assert_same_plan(folder: Path, whole: Path, budget: float) -> None:
    """Assert that the frequencies differ by at most 1e-6 of the budget together."""
    parts = frequencies(folder)
    alone = frequencies(whole)
    assert parts.keys() == alone.keys()
    assert sum(abs(parts[item] - alone[item]) for item in alone) <= 1e-6 * budget


@pytest.mark.parametrize("on", [(), ("--on", "local"), ("--on", "duckdb")])
def test_a_dataset_has_the_plan_of_its_rows_in_one_file(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path, on: tuple[str, ...]
) -> None:
    make_items()
    ran = afresh("plan", "items/*.parquet", *BUDGET, *on, "-o", "plan")
    assert ran.code == 0, ran.err
    assert "3,000" in ran.err
    assert afresh("plan", "whole.parquet", *BUDGET, "-o", "whole-plan.parquet").code == 0
    assert_same_plan(tmp_path / "plan", tmp_path / "whole-plan.parquet", 150.0)
    first, alone = pq.read_table("plan/part-0.parquet"), pq.read_table("whole-plan.parquet").slice(0, 1000)
    assert first.column_names == alone.column_names
    assert first["status"].to_pylist() == alone["status"].to_pylist()
    for name in ("freshness", "age", "marginal"):
        np.testing.assert_allclose(first[name], alone[name], rtol=1e-4)


def test_uncertain_rates_are_planned_with_as_in_one_file(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    make_items(low=rng.uniform(0, 0.01, 3000), polls=rng.integers(1, 9, 3000))
    assert afresh("plan", "items", *BUDGET, "-o", "plan").code == 0
    assert afresh("plan", "whole.parquet", *BUDGET, "-o", "whole-plan.parquet").code == 0
    assert_same_plan(tmp_path / "plan", tmp_path / "whole-plan.parquet", 150.0)


def test_levels_of_parts_must_agree(afresh: Afresh, make_items: MakeItems) -> None:
    level = np.where(np.arange(3000) < 1000, 0.9, 0.8)
    make_items(low=np.full(3000, 0.001), level=level)
    ran = afresh("plan", "items", *BUDGET, "-o", "plan")
    assert ran.code == 1
    assert "has the level 0.8" in ran.err
    assert "part-0.parquet has 0.9" in ran.err


def test_other_formats_and_chosen_columns(afresh: Afresh, tmp_path: Path) -> None:
    folder = tmp_path / "items"
    folder.mkdir()
    (folder / "a.csv").write_text("item,rate\na,1\nb,2\nc,3\n")
    (folder / "b.jsonl").write_text('{"item":"d","rate":4}\n{"item":"e","rate":5}\n')
    (folder / "_notes.csv").write_text("no table\n")
    ran = afresh("plan", "items", "--budget", "5/d", "-o", "plan", "--columns", "item,frequency")
    assert ran.code == 0, ran.err
    lines = (tmp_path / "plan" / "a.csv").read_text().splitlines()
    assert lines[0] == "item,frequency"
    assert [round(float(line.split(",")[1]), 4) for line in lines[1:]] == [1.1499, 1.3584, 1.3538]
    rows = [json.loads(line) for line in (tmp_path / "plan" / "b.jsonl").read_text().splitlines()]
    assert [(row["item"], round(row["frequency"], 4)) for row in rows] == [("d", 1.1379), ("e", 0)]


def test_the_summary_of_a_dataset_needs_no_folder(afresh: Afresh, make_items: MakeItems) -> None:
    make_items()
    parts = json.loads(afresh("plan", "items", *BUDGET, "--json").out)
    alone = json.loads(afresh("plan", "whole.parquet", *BUDGET, "--json").out)
    assert parts.keys() == alone.keys()
    for name in ("budget", "spend", "freshness", "multiplier", "dropped"):
        assert parts[name] == pytest.approx(alone[name], rel=1e-7), name
    ran = afresh("plan", "items", *BUDGET)
    assert ran.code == 2
    assert "give -o plan/" in ran.err


def test_an_interrupted_plan_goes_on_and_keeps_what_is_written(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items()

    def full_at_the_last(job: Any) -> int:
        if job.target.endswith("part-2.parquet"):
            raise OutputError("no space left")
        return item_parts.write_part(job)

    monkeypatch.setattr(plan_dataset, "write_part", full_at_the_last)
    ran = afresh("plan", "items", *BUDGET, "-o", "plan", "--on", "local")
    assert ran.code == 1
    assert "no space left" in ran.err
    written = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "plan").glob("*.parquet")}
    assert written.keys() == {"part-0.parquet", "part-1.parquet"}
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan_dataset, "survey_part", None)  # nothing is computed again
    ran = afresh("plan", "items", *BUDGET, "-o", "plan", "--on", "local")
    assert ran.code == 0, ran.err
    assert "2 were there already" in ran.err
    assert {name: (tmp_path / "plan" / name).stat().st_mtime_ns for name in written} == written
    assert afresh("plan", "whole.parquet", *BUDGET, "-o", "whole-plan.parquet").code == 0
    assert_same_plan(tmp_path / "plan", tmp_path / "whole-plan.parquet", 150.0)


def test_a_file_address_is_written_like_a_path(afresh: Afresh, make_items: MakeItems, tmp_path: Path) -> None:
    """So its parts have another name until they are whole."""
    make_items()
    address = f"file://{tmp_path}/plan"
    assert OutputFolder(address).target("part-0.parquet") == f"{tmp_path}/plan/part-0.parquet"
    ran = afresh("plan", "items", *BUDGET, "-o", address)
    assert ran.code == 0, ran.err
    assert "3 were there already" in afresh("plan", "items", *BUDGET, "-o", "plan").err


def test_parts_that_are_written_elsewhere_are_missed(tmp_path: Path) -> None:
    """As by a node of a cluster that does not share the folder."""
    (tmp_path / "a.csv").touch()
    folder = OutputFolder(str(tmp_path))
    folder.check_written(["a.csv"])
    with pytest.raises(OutputError, match=r"b\.csv was written, but not to this folder"):
        folder.check_written(["a.csv", "b.csv"])


def test_another_budget_or_other_items_begin_anew(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path
) -> None:
    folder = make_items()
    assert afresh("plan", "items", *BUDGET, "-o", "plan").code == 0
    assert afresh("plan", "items", "--budget", "300/d", "-o", "plan").code == 0
    spend = pq.read_table("whole.parquet")["cost"].to_numpy() @ [*frequencies(tmp_path / "plan").values()]
    assert spend == pytest.approx(300, rel=1e-6)
    (folder / "part-2.parquet").unlink()
    assert afresh("plan", "items", "--budget", "300/d", "-o", "plan").code == 0
    assert len(frequencies(tmp_path / "plan")) == 2000


def test_a_folder_with_other_files_is_left_alone(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path
) -> None:
    make_items()
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "letter.txt").write_text("dear")
    ran = afresh("plan", "items", *BUDGET, "-o", "plan")
    assert ran.code == 2
    assert "letter.txt, which this command did not write" in ran.err
    ran = afresh("plan", "items/*.parquet", *BUDGET, "-o", "items")
    assert ran.code == 2
    assert "is the folder of the items" in ran.err


def test_an_item_that_is_twice(afresh: Afresh, make_items: MakeItems) -> None:
    """Everywhere within a part; among all parts with DuckDB."""
    item = np.arange(3000)
    item[2999] = 5
    make_items(item=item)
    ran = afresh("plan", "items", *BUDGET, "-o", "plan", "--on", "duckdb")
    assert ran.code == 1
    assert "'5' occurs 2 times in items/part-0.parquet and items/part-2.parquet" in ran.err
    item[2998] = 2999
    pq.write_table(pa.table({"item": item, "rate": np.ones(3000)}), "items/part-2.parquet")
    item[2999] = 2999
    pq.write_table(pa.table({"item": item, "rate": np.ones(3000)}), "items/part-2.parquet")
    ran = afresh("plan", "items", *BUDGET, "-o", "plan")
    assert ran.code == 1
    assert "occurs twice, first in row 2999: it must be unique" in ran.err


@pytest.mark.parametrize(
    ("more", "arguments", "said"),
    [
        ({"min_frequency": np.ones(3000)}, (), "column 'min_frequency' counts only in plans of one file"),
        ({"update_cost": np.ones(3000)}, (), "column 'update_cost'"),
        ({"decay": ["linear"] * 3000}, (), "column 'decay'"),
        ({}, ("--objective", "age"), "--objective age: not with a dataset"),
        ({}, ("--windows", "22:00-06:00"), "--windows: not with a dataset"),
        ({}, ("--policy", "uniform"), "--policy uniform: not with a dataset"),
        ({}, ("--columns", "item,frequence"), "did you mean 'frequency'"),
        ({}, ("--on", "spark"), "One of local, duckdb, ray, ray://HOST[:PORT]"),
    ],
)
def test_what_a_dataset_cannot_have_is_refused(
    afresh: Afresh, make_items: MakeItems, more: dict[str, Any], arguments: tuple[str, ...], said: str
) -> None:
    make_items(**more)
    ran = afresh("plan", "items", *BUDGET, "-o", "plan", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_wrong_rows_are_named_with_their_file(afresh: Afresh, make_items: MakeItems) -> None:
    rate = np.ones(3000)
    rate[2500] = -1
    make_items(rate=rate)
    ran = afresh("plan", "items", *BUDGET, "-o", "plan")
    assert ran.code == 1
    assert "items/part-2.parquet, row 501, column rate: is -1" in ran.err


def test_no_files(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = afresh("plan", "empty", *BUDGET, "-o", "plan")
    assert ran.code == 1
    assert "empty: has no files that end in .csv" in ran.err
    assert "no such folder" in afresh("plan", "nowhere/*.csv", *BUDGET, "-o", "plan").err
