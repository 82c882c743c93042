"""``plan --views`` says beforehand whether target lags fit the budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from afresh.cli.app import app
from afresh.cli.planning.planned_items import read_items
from afresh.tables.input_file import InputFile
from afresh.values.errors import InputError

ITEMS = "item,rate,cost\ns,240,\nr,24,\nlow,,2\nhigh,,1\ndear,,30\n"
VIEWS = "view,base,target_lag\nlow,s,\nhigh,low,10m\nhigh,r,10m\ndear,r,2h\n"


def plan(folder: Path, views: str, *options: str) -> tuple[int, str]:
    (folder / "items.csv").write_text(ITEMS)
    (folder / "views.csv").write_text(views)
    files = [str(folder / "items.csv"), "--views", str(folder / "views.csv")]
    found = CliRunner().invoke(app, ["plan", *files, "--output", str(folder / "out.csv"), *options])
    return found.exit_code, found.output


def test_targets_that_do_not_fit_are_named_with_the_budget_that_would_do(tmp_path: Path) -> None:
    status, words = plan(tmp_path, VIEWS, "--budget", "300/d")
    assert status == 0, words
    assert "dear" in words
    assert "does not fit" in words
    _, text = plan(tmp_path, VIEWS, "--budget", "300/d", "--json")
    found = json.loads(text)["target_lags"]
    assert {each["item"] for each in found["unfit"]} >= {
        "low",
        "high",
    }  # they would have to wait for the dear one
    enough = f"{1.001 * found['needed']}/d"
    assert json.loads(plan(tmp_path, VIEWS, "--budget", enough, "--json")[1])["target_lags"]["unfit"] == []
    assert "all fit" in plan(tmp_path, VIEWS, "--budget", enough)[1]


@pytest.mark.parametrize("wrong", ["soon", "0s", "-1m"])
def test_a_wrong_target_is_named_with_its_row(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "items.csv").write_text(ITEMS)
    views = tmp_path / "views.csv"
    views.write_text(f"view,base,target_lag\nlow,s,{wrong}\nhigh,r,1h\ndear,r,1h\n")
    with InputFile(str(tmp_path / "items.csv")) as source, pytest.raises(InputError) as found:
        read_items(source, views=str(views))
    assert "target_lag" in str(found.value)
    assert "line 2" in str(found.value)
