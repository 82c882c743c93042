"""``afresh money``: intervals, futile items, bulks and the benefit implied by an interval."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def addresses(tmp_path: Path) -> Path:
    """Razniewski's Example 4: addresses of people of four ages, changes per year."""
    path = tmp_path / "addresses.csv"
    path.write_text("item,rate\n25,0.457\n30,0.316\n40,0.163\n50,0.098\n")
    return path


def test_example_4(afresh: Afresh, addresses: Path) -> None:
    ran = afresh("money", addresses, "--benefit", 1, "--cost", 1, "--unit", "y")
    found = rows(ran.out)
    assert list(found[0]) == ["item", "interval", "frequency", "freshness", "net_income", "status"]
    assert [round(float(row["interval"]), 2) for row in found] == [3.38, 3.61, 4.42, 5.36]
    assert [round(float(row["net_income"]), 2) for row in found] == [0.21, 0.32, 0.49, 0.59]


def test_futile_items_say_from_which_benefit_on_they_pay(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,benefit\nslow,0.1,1\nwild,5,1\n")
    ran = afresh("money", "items.csv", "--cost", 1)
    assert [row["status"] for row in rows(ran.out)] == ["kept", "futile"]
    assert rows(ran.out)[1]["interval"] == "inf"
    said = " ".join(ran.err.split())
    assert "wild changes too fast for its cost" in said
    assert "pays from a benefit of 5 per day on" in said


def test_columns_win_over_flags_and_flags_fill_empty_cells(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,cost\na,0.163,4\nb,0.163,\n")
    found = rows(afresh("money", "items.csv", "--benefit", 1, "--cost", 1).out)
    alone = rows(afresh("money", "items.csv", "--benefit", 1, "--cost", 9).out)
    assert round(float(found[1]["interval"]), 2) == 4.42
    assert float(found[0]["interval"]) == float(alone[0]["interval"])
    assert float(alone[1]["interval"]) > float(found[1]["interval"])


def test_bulk_has_one_interval(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,bulk\na,0.1,x\nb,0.5,x\nc,0.1,\n")
    ran = afresh("money", "items.csv", "--benefit", 1, "--cost", 1, "--json", "-o", "out.csv")
    found = rows((tmp_path / "out.csv").read_text())
    assert found[0]["interval"] == found[1]["interval"] != found[2]["interval"]
    summary = json.loads(ran.out)
    once = float(found[0]["frequency"]) + float(found[2]["frequency"])
    assert summary["refreshes"] == pytest.approx(once)
    assert summary["net_income"] == pytest.approx(sum(float(row["net_income"]) for row in found))


def test_size_and_its_cost(afresh: Afresh, tmp_path: Path) -> None:
    """Razniewski §8.4: departments of 1024, 61 and 22 people, cost √n."""
    (tmp_path / "items.csv").write_text("item,rate,size\nbig,0.24,1024\nmedium,0.24,61\nsmall,0.24,22\n")
    arguments = ("--benefit", 1, "--cost", 1, "--cost-of-size", "sqrt", "--unit", "y")
    found = rows(afresh("money", "items.csv", *arguments).out)
    assert [round(float(row["interval"]), 3) for row in found] == [0.532, 1.129, 1.5]


def test_the_benefit_that_makes_an_interval_the_best(afresh: Afresh, tmp_path: Path) -> None:
    """Razniewski §9: crawled 75 times a day, one change a day."""
    (tmp_path / "items.csv").write_text("item,rate\npage,1\n")
    ran = afresh("money", "items.csv", "--cost", 1, "--interval", "1152s")
    assert round(float(rows(ran.out)[0]["benefit"])) == 11350


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        ("item,rate\na,1\n", (), 2, "no cost"),
        ("item,rate\na,1\n", ("--cost", 1), 2, "no benefit"),
        ("item,rate,cost\na,1,\n", ("--benefit", 1), 1, "row 1 (line 2), column cost: is empty"),
        ("item,rate\na,1\n", ("--cost", 1, "--benefit", -1), 2, "--benefit is -1"),
        ("item,rate\na,-1\n", ("--cost", 1, "--benefit", 1), 1, "column rate"),
        ("item,rate,size\na,1,0\n", ("--cost", 1, "--benefit", 1), 1, "column size"),
        ("item,rate\na,1\n", ("--cost", 1, "--benefit", 1, "--decay", "weibul:2"), 2, "weibull"),
        ("item,rate,decay\na,1,expo\n", ("--cost", 1, "--benefit", 1), 1, "row 1 (line 2), column decay"),
        ("item,rate\na,1\n", ("--cost", 1, "--benefit", 1, "--cost-of-size", "square"), 2, "sqrt"),
        ("item,rate\na,1\n", ("--cost", 1, "--benefit", 1, "--size", 0), 2, "--size is 0"),
        ("item,rate\na,1\n", ("--cost", 1, "--interval", "0h"), 2, "--interval is 0h"),
        (
            "item,rate,bulk,cost\na,1,x,1\nb,1,x,2\n",
            ("--benefit", 1),
            1,
            "row 2 (line 3), column cost: is 2, but 1 in row 1",
        ),
        ("item,rate\na,1\n", ("--cost", 1, "--interval", "often"), 2, "duration"),
        ("item,rate,bulk\na,1,x\n", ("--cost", 1, "--interval", "6h"), 2, "bulk"),
    ],
)
def test_wrong_questions(
    afresh: Afresh, tmp_path: Path, text: str, arguments: tuple[object, ...], code: int, said: str
) -> None:
    (tmp_path / "items.csv").write_text(text)
    ran = afresh("money", "items.csv", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
