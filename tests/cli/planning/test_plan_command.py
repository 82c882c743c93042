"""``afresh plan``: rows, summaries, pictures, every kind of file, and what it says of wrong ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Afresh

from afresh.cli.planning.open_hours import read_open_hours
from afresh.values.zstd_frames import zstd

HEADER = ["item", "frequency", "interval", "freshness", "age", "marginal", "status"]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_cho_table_5_in_one_command(afresh: Afresh, table_5: Path) -> None:
    ran = afresh("plan", table_5, "--budget", "5/d")
    assert ran.code == 0
    plan = rows(ran.out)
    assert list(plan[0]) == HEADER
    assert [round(float(row["frequency"]), 4) for row in plan] == [1.1499, 1.3584, 1.3538, 1.1379, 0]
    assert [row["status"] for row in plan] == ["kept"] * 4 + ["dropped"]
    assert plan[4]["interval"] == "inf"
    assert plan[4]["age"] == "inf"
    assert float(plan[4]["marginal"]) == pytest.approx(0.2)


def test_people_read_why_an_item_is_dropped_and_what_the_next_unit_buys(
    afresh: Afresh, table_5: Path
) -> None:
    ran = afresh("plan", table_5, "--budget", "5/d", "-o", "plan.csv")
    assert ran.out == ""
    assert "5, 1 of them dropped" in ran.err
    assert "0.3739 (refreshing all equally often: 0.3651)" in ran.err
    said = " ".join(ran.err.split())
    assert "1 more per day raises freshness by 0.04079; at the margin, multiplier 0.2164" in said
    assert "e (rate 5 per day): one more unit spent on it gains only 0.2" in said
    assert "comes back with 0.4854 more per day" in said


def test_the_next_unit_is_what_it_really_buys(afresh: Afresh, table_5: Path) -> None:
    before = json.loads(afresh("plan", table_5, "--budget", "5/d", "--json").out)
    after = json.loads(afresh("plan", table_5, "--budget", "6/d", "--json").out)
    assert round(after["freshness"] - before["freshness"], 5) == 0.04079


def test_json_is_one_object_with_the_summary(afresh: Afresh, table_5: Path) -> None:
    ran = afresh("plan", table_5, "--budget", "5/d", "--json")
    summary = json.loads(ran.out)
    names = {"budget", "spend", "freshness", "age", "multiplier", "gap", "items", "dropped"}
    assert names <= summary.keys()
    assert summary["spend"] == pytest.approx(5, rel=1e-9)
    assert summary["age"] is None  # infinite: an item is dropped
    assert (summary["items"], summary["dropped"]) == (5, 1)


def test_units_are_those_asked_for(afresh: Afresh, table_5: Path) -> None:
    daily = json.loads(afresh("plan", table_5, "--budget", "5/d", "--json").out)
    hourly = json.loads(afresh("plan", table_5, "--budget", "5/h", "--unit", "h", "--json").out)
    each = json.loads(afresh("plan", table_5, "--budget", "1/item/d", "--json").out)
    weekly = json.loads(afresh("plan", table_5, "--budget", "35/w", "--json").out)
    assert hourly["freshness"] == daily["freshness"]
    for other in (each, weekly):
        assert other["budget"] == pytest.approx(5, rel=1e-12)
        assert other["freshness"] == pytest.approx(daily["freshness"], rel=1e-12)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz", "csv.zst", "jsonl.gz", "jsonl.zst"])
def test_every_kind_of_file_in_and_out(afresh: Afresh, table_5: Path, tmp_path: Path, ending: str) -> None:
    names, rates = ["a", "b", "c", "d", "e"], [1.0, 2.0, 3.0, 4.0, 5.0]
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"item": names, "rate": rates}), source)
    else:
        text = table_5.read_text()
        if "jsonl" in ending:
            text = "".join(
                json.dumps({"item": n, "rate": r}) + "\n" for n, r in zip(names, rates, strict=True)
            )
        data = text.encode()
        if ending.endswith("gz"):
            data = gzip.compress(data)
        elif ending.endswith("zst"):
            data = zstd.compress(data)
        source.write_bytes(data)
    assert afresh("plan", source, "--budget", "5/d", "-o", target).code == 0
    again = afresh("plan", source, "--budget", "5/d")
    assert rows(again.out)[1]["frequency"].startswith("1.3584")
    if ending == "parquet":
        table = pq.read_table(target)
        assert table.column_names == HEADER
        assert table["interval"][4].as_py() == math.inf
    else:
        data = target.read_bytes()
        if ending.endswith("gz"):
            data = gzip.decompress(data)
        elif ending.endswith("zst"):
            data = zstd.decompress(data)
        if "jsonl" in ending:
            last = json.loads(data.decode().splitlines()[4])
            assert last["interval"] is None
        else:
            assert data.decode() == again.out


def test_standard_input_to_standard_output(table_5: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "afresh", "plan", "-", "--budget", "5/d"],
        input=table_5.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert rows(ran.stdout.decode())[0]["frequency"].startswith("1.1498")


def test_statuses_by_the_first_that_fits(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        "item,rate,weight,group,min_frequency,max_frequency\n"
        "still,0,1,,,\n"
        "nobody,1,0,,,\n"
        "top,1,1,,,0.1\n"
        "host,1,1,slow,,\n"
        "low,50,1,,0.2,\n"
        "wild,50,1,,,\n"
        "plain,1,1,,,\n"
    )
    (tmp_path / "caps.csv").write_text("group,cap\nslow,0.3\n")
    ran = afresh("plan", "items.csv", "--budget", "2/d", "--caps", "caps.csv")
    status = {row["item"]: row["status"] for row in rows(ran.out)}
    assert status == {
        "still": "static",
        "nobody": "unweighted",
        "top": "ceiling",
        "host": "capped",
        "low": "floor",
        "wild": "dropped",
        "plain": "kept",
    }
    frequency = {row["item"]: float(row["frequency"]) for row in rows(ran.out)}
    assert frequency["host"] == pytest.approx(0.3, rel=1e-9)


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic", "missed", "lag"])
@pytest.mark.parametrize("order", ["fixed", "shuffled", "memoryless"])
def test_every_objective_and_order(afresh: Afresh, table_5: Path, objective: str, order: str) -> None:
    ran = afresh("plan", table_5, "--budget", "5/d", "--objective", objective, "--order", order, "--json")
    summary = json.loads(ran.out)
    assert summary["spend"] == pytest.approx(5, rel=1e-9)
    assert abs(summary["gap"]) < 1e-9


@pytest.mark.parametrize("command", [("plan", "--budget", "5/d"), ("budget", "--target", "0.5")])
def test_the_deprecated_order_is_memoryless_and_says_so(
    afresh: Afresh, table_5: Path, command: tuple[str, ...]
) -> None:
    old, new = (afresh(*command, table_5, "--json", "--order", name) for name in ("random", "memoryless"))
    assert (old.out, old.code) == (new.out, 0)
    assert "--order random is deprecated: say memoryless (what it means here)" in old.err
    assert "deprecated" not in new.err


def test_policies_to_compare(afresh: Afresh, table_5: Path) -> None:
    fresh = {
        policy: json.loads(afresh("plan", table_5, "--budget", "5/d", "--policy", policy, "--json").out)
        for policy in ("optimal", "uniform", "proportional")
    }
    assert fresh["optimal"]["freshness"] > fresh["uniform"]["freshness"] > fresh["proportional"]["freshness"]
    assert fresh["uniform"]["gap"] > 0.01


def test_views_take_the_rates_of_their_distinct_bases(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,weight,cost\nR,1,,\nS,2,,\nother,1,,\nV2,,3,2\n")
    (tmp_path / "views.csv").write_text("view,base\nV1,R\nV1,S\nV2,V1\nV2,S\n")
    ran = afresh("plan", "items.csv", "--budget", "4/d", "--views", "views.csv")
    assert ran.code == 0, ran.err
    plan = {row["item"]: row for row in rows(ran.out)}
    assert set(plan) == {"V1", "V2", "other"}  # bases are read, not refreshed
    f = float(plan["V1"]["frequency"])
    assert float(plan["V1"]["freshness"]) == pytest.approx((1 - math.exp(-3 / f)) * f / 3, rel=1e-9)
    f = float(plan["V2"]["frequency"])
    assert float(plan["V2"]["freshness"]) == pytest.approx((1 - math.exp(-3 / f)) * f / 3, rel=1e-9)


def test_views_whose_rate_is_given_or_base_is_unknown_are_refused(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\nR,1\nV,2\n")
    (tmp_path / "views.csv").write_text("view,base\nV,R\n")
    ran = afresh("plan", "items.csv", "--budget", "4/d", "--views", "views.csv")
    assert (ran.code, "row 2 (line 3), column rate: 'V' is a view" in ran.err) == (1, True)
    (tmp_path / "views.csv").write_text("view,base\nW,Q\n")
    ran = afresh("plan", "items.csv", "--budget", "4/d", "--views", "views.csv")
    assert (ran.code, "views.csv, row 1 (line 2), column base: is 'Q'" in ran.err) == (1, True)


def test_a_budget_per_item_counts_the_rows_of_items(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\nR,1\nS,2\nT,1\n")
    (tmp_path / "views.csv").write_text("view,base\nV,R\nV,S\n")
    ran = afresh("plan", "items.csv", "--budget", "1/item/d", "--views", "views.csv", "--json")
    assert json.loads(ran.out)["budget"] == pytest.approx(3)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture(afresh: Afresh, table_5: Path, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"plan.{ending}"
    assert afresh("plan", table_5, "--budget", "5/d", "--plot", picture, "--json").code == 0
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert len(data) > 10_000


def test_many_items_are_drawn_from_a_sample(afresh: Afresh, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.5, 1.0, 20_000)
    names = [f"i{n}" for n in range(rates.size)]
    groups = [f"g{n % 7}" for n in range(rates.size)]
    pq.write_table(pa.table({"item": names, "rate": rates, "group": groups}), tmp_path / "items.parquet")
    (tmp_path / "caps.csv").write_text("group,cap\ng1,100\n")
    arguments = ("plan", "items.parquet", "--budget", "0.5/item/d", "--caps", "caps.csv", "--json")
    plain = json.loads(afresh(*arguments).out)
    drawn = afresh(*arguments, "--plot", "plan.png")
    assert drawn.code == 0, drawn.err
    assert json.loads(drawn.out) == plain


def test_a_header_without_rows_gives_an_empty_plan(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\n")
    ran = afresh("plan", "items.csv", "--budget", "5/d")
    assert (ran.code, ran.out) == (0, ",".join(HEADER) + "\n")


BAD_FILES = {
    "a missing column": ("item,speed\na,1\n", ("items.csv", "rate")),
    "a misspelt column": ("item,rte\na,1\n", ("items.csv", "'rte'", "rate")),
    "a misspelt optional column": ("item,rate,wieght\na,1,2\n", ("items.csv", "wieght", "weight")),
    "a negative rate": ("item,rate\na,1\nb,-2\n", ("items.csv, row 2 (line 3), column rate", "-2")),
    "NaN": ("item,rate\na,nan\n", ("items.csv, row 1 (line 2), column rate",)),
    "an infinite rate": ("item,rate\na,1\nb,2\nc,inf\n", ("items.csv, row 3 (line 4), column rate", "inf")),
    "an unparsable rate": ("item,rate\na,often\n", ("items.csv, row 1 (line 2), column rate", "often")),
    "an empty rate": ("item,rate\na,\n", ("items.csv, row 1 (line 2), column rate",)),
    "a duplicate item": (
        "item,rate\na,1\nb,2\na,3\n",
        ("items.csv, row 3 (line 4), column item", "'a'", "row 1"),
    ),
    "an empty file": ("", ("items.csv", "empty")),
    "a ragged row": ("item,rate\na,1\nb\n", ("items.csv", "row 2 (line 3)")),
    "an unknown decay": (
        "item,rate,decay\na,1,\nb,1,weibul:2\n",
        ("row 2 (line 3), column decay", "weibull"),
    ),
    "a decay out of range": ("item,rate,decay\na,1,weibull:0\n", ("row 1 (line 2), column decay", "shape")),
    "a floor above its ceiling": (
        "item,rate,min_frequency,max_frequency\na,1,,\nb,1,2,1\n",
        ("row 2 (line 3), column min_frequency: is 2, above the max_frequency of 1",),
    ),
    "a cost of nothing": ("item,rate,cost\na,1,0\n", ("items.csv, row 1 (line 2), column cost",)),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_wrong_file_is_named_with_row_and_column(afresh: Afresh, tmp_path: Path, case: str) -> None:
    text, said = BAD_FILES[case]
    (tmp_path / "items.csv").write_text(text)
    ran = afresh("plan", "items.csv", "--budget", "5/d", "-o", "plan.csv")
    assert ran.code in (1, 2)
    assert ran.out == ""
    assert ran.err.strip().count("\n") == 0, "one line"
    for words in said:
        assert words in ran.err
    assert not (tmp_path / "plan.csv").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.csv"]


BAD_USAGE = {
    "no such file": (("nowhere.csv", "--budget", "5/d"), 1, "nowhere.csv: no such file"),
    "a folder": ((".", "--budget", "5/d"), 2, "give -o plan/"),
    "a wrong unit": (("items.csv", "--budget", "5/fortnight"), 2, "unknown unit of time 'fortnight'"),
    "no unit": (("items.csv", "--budget", "5"), 2, "5/d is per day"),
    "no number": (("items.csv", "--budget", "lots"), 2, "is not a budget"),
    "a negative budget": (("items.csv", "--budget=-5/d"), 2, "is not a budget"),
    "a wrong --unit": (("items.csv", "--budget", "5/d", "--unit", "day"), 2, "unknown unit of time 'day'"),
    "an unknown objective": (("items.csv", "--budget", "5/d", "--objective", "freshnes"), 2, "'freshness'?"),
    "an unknown policy": (("items.csv", "--budget", "5/d", "--policy", "optimum"), 2, "'optimal'?"),
    "an unknown order": (("items.csv", "--budget", "5/d", "--order", "shuffle"), 2, "'shuffled'?"),
    "no folder for the output": (("items.csv", "--budget", "5/d", "-o", "no/plan.csv"), 1, "no folder no"),
    "no folder for the picture": (("items.csv", "--budget", "5/d", "--plot", "no/p.png"), 1, "no folder no"),
    "an unknown output ending": (("items.csv", "--budget", "5/d", "-o", "plan.cvs"), 2, "csv"),
    "an unknown picture ending": (("items.csv", "--budget", "5/d", "--plot", "p.pdf"), 2, ".png or .svg"),
    "caps without groups": (("items.csv", "--budget", "5/d", "--caps", "caps.csv"), 2, "column 'group'"),
    "the input as output": (("items.csv", "--budget", "5/d", "-o", "items.csv"), 2, "also an input"),
    "stdin twice": (("-", "--budget", "5/d", "--caps", "-"), 2, "one file only"),
    "two on stdout": (("items.csv", "--budget", "5/d", "--json", "-o", "-"), 2, "standard output"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_a_wrong_question_says_what_would_be_right(
    afresh: Afresh, table_5: Path, tmp_path: Path, case: str
) -> None:
    arguments, code, said = BAD_USAGE[case]
    (tmp_path / "caps.csv").write_text("group,cap\nx,1\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = afresh("plan", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert table_5.exists()


def test_an_unknown_group_in_caps_is_named(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,group\na,1,example.org\n")
    (tmp_path / "caps.csv").write_text("group,cap\nexample.org,1\nexmaple.org,1\n")
    ran = afresh("plan", "items.csv", "--budget", "5/d", "--caps", "caps.csv")
    assert ran.code == 1
    assert "caps.csv, row 2 (line 3), column group: 'exmaple.org'" in ran.err
    assert "did you mean 'example.org'" in ran.err


def test_bounds_that_cannot_be_met_say_by_how_much(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,min_frequency\na,1,3\nb,1,4\n")
    ran = afresh("plan", "items.csv", "--budget", "5/d")
    assert ran.code == 1
    assert "the lower bounds need a budget of 7: 2 more than 5" in ran.err


def test_a_cap_below_its_floors_names_the_group(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,group,min_frequency\na,1,host,2\n")
    (tmp_path / "caps.csv").write_text("group,cap\nhost,1\n")
    ran = afresh("plan", "items.csv", "--budget", "5/d", "--caps", "caps.csv")
    assert (ran.code, "group 'host' needs 2" in ran.err) == (1, True)


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "parquet"])
def test_a_half_written_file_is_refused(afresh: Afresh, tmp_path: Path, ending: str) -> None:
    text = "item,rate\n" + "".join(f"i{n},{n}\n" for n in range(1, 5000))
    path = tmp_path / f"items.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"item": ["a"] * 999, "rate": [1.0] * 999}), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if ending == "csv.gz" else zstd.compress(text.encode()))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    ran = afresh("plan", path, "--budget", "5/d", "-o", "plan.csv")
    assert ran.code == 1
    assert path.name in ran.err
    assert not (tmp_path / "plan.csv").exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    text = "item,rate\n" + "".join(f"i{n},{n}\n" for n in range(1, 20_000))
    (tmp_path / "items.csv").write_text(text)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    program = f"{limit}; import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); import afresh.__main__"
    ran = subprocess.run(
        [sys.executable, "-c", program, "plan", "items.csv", "--budget", "5/d", "-o", "plan.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ran.returncode == 1
    assert "no space left" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["items.csv"]


def test_an_older_plan_survives_a_failed_run(afresh: Afresh, table_5: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.csv").write_text("the last good plan")
    table_5.write_text("item,rate\na,1\nb,x\n")
    assert afresh("plan", table_5, "--budget", "5/d", "-o", "plan.csv").code == 1
    assert (tmp_path / "plan.csv").read_text() == "the last good plan"


def test_windows_change_the_plan_and_what_it_reaches(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate,weight\na,0.5,1\nb,2,1\nc,30,2\n")
    plain = json.loads(afresh("plan", "items.csv", "--budget", "6/d", "--json").out)
    night = ("plan", "items.csv", "--budget", "6/d", "--windows", "22:00-06:00")
    found = json.loads(afresh(*night, "--json").out)
    assert "windows" not in plain
    assert found["windows"]["open_share"] == pytest.approx(1 / 3)
    assert found["windows"]["without"] == pytest.approx(plain["freshness"])
    assert found["freshness"] < min(plain["freshness"], found["windows"]["most"])
    assert found["spend"] == pytest.approx(6.0)
    ran = afresh(*night)
    fresh = [float(row["freshness"]) for row in rows(ran.out)]
    mean = (fresh[0] + fresh[1] + 2 * fresh[2]) / 4
    assert mean == pytest.approx(found["freshness"], rel=1e-6)
    assert "open 33.3% of the time" in " ".join(ran.err.split())
    always = afresh("plan", "items.csv", "--budget", "6/d", "--windows", "00:00-24:00", "--json")
    assert json.loads(always.out) == plain
    uniform = json.loads(afresh(*night, "--policy", "uniform", "--json").out)
    assert uniform["freshness"] < found["freshness"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--objective", "lag"), "--windows needs the objective freshness or age"),
        (("--order", "memoryless"), "--windows needs the objective freshness or age, and the order fixed"),
        (("--windows", "25:00-26:00"), "is not a window of time"),
    ],
)
def test_windows_are_refused_where_plans_are_not_known(
    afresh: Afresh, tmp_path: Path, more: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,0.5\n")
    ran = afresh("plan", "items.csv", "--budget", "6/d", "--windows", "22:00-06:00", *more)
    assert (ran.code, problem in " ".join(ran.err.split())) == (2, True), ran.err
    (tmp_path / "items.csv").write_text("item,rate,decay\na,0.5,linear\n")
    ran = afresh("plan", "items.csv", "--budget", "6/d", "--windows", "22:00-06:00")
    assert "--windows cannot be used with a column 'decay'" in " ".join(ran.err.split())


def test_hours_of_several_windows_are_those_of_a_week() -> None:
    hours = read_open_hours(["22:00-06:00 Mon-Fri", "00:00-24:00 Sat,Sun"], 3600.0)
    assert hours is not None
    assert hours.period == 168.0
    # Monday to Thursday evening open a night each, Friday evening opens until Monday morning.
    assert sorted(hours.closed.tolist()) == [16.0, 16.0, 16.0, 16.0, 22.0]
    assert hours.open_time == 168.0 - 86.0
    assert read_open_hours(["00:00-12:00", "12:00-24:00"], 3600.0) is None
