"""``afresh money``: intervals, futile items, bulks and the benefit implied by an interval."""

from __future__ import annotations

import csv
import io
import json
import math
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
    assert list(found[0]) == [
        *("item", "interval", "frequency", "freshness", "net_income", "status", "break_even")
    ]
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


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    """Razniewski's Table 4: 270 sites that change daily to yearly, where these are half-lives."""
    path = tmp_path / "sites.csv"
    shares, days = (0.23, 0.15, 0.16, 0.16, 0.30), (1, 7, 30, 120, 365)
    rows_of = [
        f"{day},{math.log(2) / day!r},{270 * share!r}" for share, day in zip(shares, days, strict=True)
    ]
    path.write_text("item,rate,count\n" + "\n".join(rows_of) + "\n")
    return path


def test_the_best_intervals_are_compared_with_other_ways(afresh: Afresh, crawled: Path) -> None:
    """Table 4, B/C = 1: 1033 crawls in a month of 30 days, 6.0 % more than 270 well distributed ones earn."""
    ran = afresh(
        *("money", crawled, "--benefit", 1, "--cost", 1, "--compare", "--today", "30d"),
        *("--refreshes", "9/d", "--json", "-o", "out.csv"),
    )
    found = json.loads(ran.out)["compare"]
    assert list(found) == ["today", "uniform", "limited", "best"]
    assert 30 * found["best"]["refreshes"] == pytest.approx(1033, abs=1)
    assert 1 - found["limited"]["net_income"] / found["best"]["net_income"] == pytest.approx(0.0603, abs=1e-3)
    assert found["limited"]["refreshes"] == pytest.approx(9)
    incomes = [found[name]["net_income"] for name in ("today", "uniform", "best")]
    assert incomes == sorted(incomes)
    written = rows(Path("out.csv").read_text())
    for name in ("today", "uniform", "limited"):
        total = sum(
            float(row[f"{name}_income"]) * count
            for row, count in zip(written, (62.1, 40.5, 43.2, 43.2, 81), strict=True)
        )
        assert total == pytest.approx(found[name]["net_income"])


def test_the_sweep_finds_table_4_again(afresh: Afresh, crawled: Path) -> None:
    sweep = ("--sweep", "sweep.csv", "--plot", "income.png")
    assert afresh("money", crawled, "--benefit", 1, "--cost", 1, "--compare", *sweep).code == 0
    found = {round(float(row["factor"]), 6): row for row in rows(Path("sweep.csv").read_text())}
    for ratio, crawls in ((0.1, 92.5), (1.0, 1033), (10.0, 4712), (100.0, 16018)):
        assert 30 * float(found[ratio]["refreshes"]) == pytest.approx(crawls, rel=1e-3)
    assert Path("income.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_groups_are_decays(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text("group,elapsed,right\nslow,10,0\nfast,2,0\nfast,1,0.5\n")
    (tmp_path / "items.csv").write_text("item,rate,group,decay\na,0,slow,\nb,0,fast,\nc,0.1,,linear\n")
    found = rows(afresh("money", "items.csv", "--decays", "curves.csv", "--benefit", 9, "--cost", 1).out)
    # A straight line down to 0 at t is linear decay at the rate 1/t: √(2C/(λB)).
    assert float(found[0]["interval"]) == pytest.approx(math.sqrt(2 * 10 / 9))
    assert float(found[1]["interval"]) == pytest.approx(math.sqrt(2 * 2 / 9))
    assert float(found[2]["interval"]) == pytest.approx(float(found[0]["interval"]))


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        (
            "group,elapsed,right\nslow,1,0.5\nslow,2,0.6\n",
            "row 2 (line 3), column right: is 0.6, more than 0.5",
        ),
        ("group,elapsed,right\nslow,1,0.5\nslow,1,0.4\n", "column elapsed: is 1 twice for a group"),
        ("group,elapsed,right\nother,1,0.5\n", "column group: is 'slow', which curves.csv has no curve for"),
    ],
)
def test_wrong_curves_are_refused(afresh: Afresh, tmp_path: Path, curves: str, said: str) -> None:
    (tmp_path / "curves.csv").write_text(curves)
    (tmp_path / "items.csv").write_text("item,rate,group\na,0,slow\n")
    ran = afresh("money", "items.csv", "--decays", "curves.csv", "--benefit", 9, "--cost", 1)
    assert ran.code == 1
    assert said in " ".join(ran.err.split())


def test_cohorts_are_read_as_they_were_written(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "cohorts.csv").write_text("group,elapsed,n,changed\nstudent,5,8,5\nprofessor,5,19,2\n")
    afresh("estimate", "--cohorts", "cohorts.csv", "--unit", "y", "-o", "rates.csv")
    cohorts = rows((tmp_path / "rates.csv").read_text())
    assert float(cohorts[0]["half_life"]) == pytest.approx(math.log(2) / float(cohorts[0]["rate"]))
    found = rows(afresh("money", "rates.csv", "--benefit", 1, "--cost", 0.1, "--unit", "y").out)
    assert [row["item"] for row in found] == ["student", "professor"]


def test_lifetimes_of_groups_become_curves_for_money(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "lived.csv").write_text("group,lifetime,ended\na,2,1\na,4,1\nb,10,1\nb,20,1\nb,30,0\n")
    ran = afresh("estimate", "--lifetimes", "lived.csv", "--curves", "curves.csv", "-o", "fits.csv", "--json")
    assert set(json.loads(ran.out)["groups"]) == {"a", "b"}
    fits = rows((tmp_path / "fits.csv").read_text())
    assert {row["group"] for row in fits} == {"a", "b"}
    (tmp_path / "items.csv").write_text("item,rate,group\nx,0,a\ny,0,b\n")
    found = rows(afresh("money", "items.csv", "--decays", "curves.csv", "--benefit", 9, "--cost", 1).out)
    assert float(found[0]["interval"]) < float(found[1]["interval"])


def test_rows_of_many_items_count_as_many(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,count\na,0.1,3\nb,5,2\n")
    summary = json.loads(
        afresh("money", "items.csv", "--benefit", 1, "--cost", 1, "--json", "-o", "o.csv").out
    )
    written = rows((tmp_path / "o.csv").read_text())
    assert (summary["items"], summary["futile"]) == (5, 2)
    assert summary["net_income"] == pytest.approx(3 * float(written[0]["net_income"]))


def test_a_heavy_tail_pays_from_any_benefit_on(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\nz,1\n")
    ran = afresh("money", "items.csv", "--benefit", 0, "--cost", 1, "--decay", "lomax:0.8")
    assert "pays from any benefit above 0 on" in " ".join(ran.err.split())


def test_an_interval_of_0_is_refused(afresh: Afresh, addresses: Path) -> None:
    ran = afresh("money", addresses, "--benefit", 1, "--cost", 1, "--compare", "--today", "0d")
    assert (ran.code, ran.err) == (2, "afresh: --today is 0d: must be above 0\n")


@pytest.mark.parametrize("wrong", [("--today", "7d"), ("--refreshes", "9/d"), ("--sweep", "s.csv")])
def test_what_belongs_to_a_comparison_needs_it(
    afresh: Afresh, addresses: Path, wrong: tuple[str, str]
) -> None:
    ran = afresh("money", addresses, "--benefit", 1, "--cost", 1, *wrong)
    assert ran.code == 2
    assert f"{wrong[0]} goes with --compare" in ran.err
