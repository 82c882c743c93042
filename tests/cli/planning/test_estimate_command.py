"""``afresh estimate``: polls in any shape, cohorts, lifetimes, views, and what it says of wrong ones."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Afresh
from tests.slow_cases import with_slow_cases

from afresh.model.freshness import freshness
from afresh.rates.estimator import ESTIMATORS

DAY_S = 86400


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def write_polls(path: Path, polls: Sequence[tuple[str, float, int]]) -> Path:
    """Polls as (item, day, changed), from the start of 2020 on."""
    lines = (f"{item},{1577836800 + day * DAY_S},{changed}\n" for item, day, changed in polls)
    path.write_text("item,time,changed\n" + "".join(lines))
    return path


@pytest.fixture
def polls(tmp_path: Path) -> Path:
    return write_polls(
        tmp_path / "polls.csv",
        [("a", 0, 0), ("a", 1, 1), ("a", 2, 1), ("a", 4, 0), ("b", 0, 0), ("b", 4, 0), ("once", 3, 0)],
    )


def test_rates_with_intervals(afresh: Afresh, polls: Path) -> None:
    ran = afresh("estimate", polls)
    assert ran.code == 0, ran.err
    found = rows(ran.out)
    assert list(found[0]) == ["item", "rate", "low", "high", "polls", "changes", "method"]
    assert [(row["item"], row["polls"], row["changes"]) for row in found] == [
        ("a", "3", "2"),
        ("b", "1", "0"),
        ("once", "0", "0"),
    ]
    for row in found:  # an item polled once has the prior, never nothing
        assert 0 < float(row["low"]) < float(row["rate"]) < float(row["high"]) < np.inf
    assert float(found[1]["rate"]) < float(found[2]["rate"]) < float(found[0]["rate"])


@pytest.mark.parametrize("method", sorted(ESTIMATORS))
def test_every_method(afresh: Afresh, polls: Path, method: str) -> None:
    ran = afresh("estimate", polls, "--method", method)
    assert ran.code == 0, ran.err
    assert {row["method"] for row in rows(ran.out)} == {method}


def test_order_and_repeats_do_not_matter(afresh: Afresh, polls: Path, tmp_path: Path) -> None:
    lines = polls.read_text().splitlines()
    shuffled = [lines[0], *sorted(lines[1:], key=lambda line: line[::-1]), lines[2]]
    (tmp_path / "other.csv").write_text("\n".join(shuffled) + "\n")
    first = {row["item"]: row for row in rows(afresh("estimate", polls).out)}
    other = {row["item"]: row for row in rows(afresh("estimate", "other.csv").out)}
    for name, row in first.items():
        assert other[name]["polls"] == row["polls"]
        assert float(other[name]["rate"]) == pytest.approx(float(row["rate"]), rel=1e-9)


def test_units_scale_the_rates(afresh: Afresh, polls: Path) -> None:
    daily = rows(afresh("estimate", polls).out)
    weekly = rows(afresh("estimate", polls, "--unit", "w").out)
    for day, week in zip(daily, weekly, strict=True):
        assert float(week["rate"]) == pytest.approx(7 * float(day["rate"]), rel=1e-3)


def drifting_polls(path: Path) -> Path:
    """Thirty items looked at each day, busy for fifty days and quiet for fifty more."""
    rng = np.random.default_rng(0)
    found = rng.random((30, 101)) < np.where(np.arange(101) < 50, 0.8, 0.02)
    return write_polls(path, [(f"i{i}", day, int(found[i, day])) for i in range(30) for day in range(101)])


def seasonal_polls(path: Path) -> Path:
    """Sixty items that change by day alone, looked at every five hours or so."""
    rng = np.random.default_rng(0)
    polls = []
    for item in range(60):
        hours = np.cumsum(rng.uniform(3.0, 7.0, 200))
        by_day = (hours % 24 > 8) & (hours % 24 < 20)
        bits = rng.random(200) < np.where(by_day, 0.4, 0.02)
        polls += [(f"i{item}", hour / 24, int(bit)) for hour, bit in zip(hours, bits, strict=True)]
    return write_polls(path, polls)


def test_drift_is_found_and_said_and_rates_are_of_now(afresh: Afresh, tmp_path: Path) -> None:
    log = drifting_polls(tmp_path / "polls.csv")
    found = json.loads(afresh("estimate", log, "--json").out)
    assert 1 < found["drift"] < 60
    assert found["season"] is None
    assert found["mean_rate"] < 0.2
    assert "old polls fade" in afresh("estimate", log, "-o", "rates.csv").err
    steady = json.loads(afresh("estimate", log, "--json", "--drift", "off").out)
    assert steady["drift"] is None
    assert steady["mean_rate"] > 0.3
    asked = json.loads(afresh("estimate", log, "--json", "--drift", "2w", "--unit", "w").out)
    assert asked["drift"] == 2.0


def test_saa_adapts_a_or_takes_the_one_given(afresh: Afresh, tmp_path: Path) -> None:
    bits = {"all": "1111111", "four": "1010101", "one": "0001000"}
    polls = [(name, day, int(bit)) for name, seen in bits.items() for day, bit in enumerate("0" + seen)]
    log = write_polls(tmp_path / "polls.csv", polls)
    found = {row["item"]: float(row["rate"]) for row in rows(afresh("estimate", log, "--method", "saa").out)}
    wanted = {"all": math.log(7.25 / 0.25), "four": math.log(7.7 / 3.7), "one": math.log(7.5119 / 6.5119)}
    assert found == pytest.approx(wanted, rel=1e-4)
    given = rows(afresh("estimate", log, "--method", "saa", "--a", "0.4").out)
    zhang = rows(afresh("estimate", log, "--method", "zhang").out)
    assert [row["rate"] for row in given] == [row["rate"] for row in zhang]
    for wrong in (("--a", "0.4"), ("--method", "saa", "--a", "0"), ("--method", "cho", "--a", "0.3")):
        assert afresh("estimate", log, *wrong).code == 2


def test_sharp_changes_are_found_said_and_written(afresh: Afresh, tmp_path: Path) -> None:
    log = drifting_polls(tmp_path / "polls.csv")
    ran = afresh("estimate", log, "-o", "rates.csv", "--marks", "marks.csv")
    assert "of the rates of 30 items, 3" in ran.err
    found = rows((tmp_path / "rates.csv").read_text())
    assert found[0]["change_points"] == "1"
    assert 45 < np.median([float(row["period"]) for row in found]) < 58
    covered = [float(row["low"]) <= -math.log(0.98) <= float(row["high"]) for row in found]
    assert sum(covered) >= 25
    marks = rows((tmp_path / "marks.csv").read_text())
    assert {row["item"] for row in marks} == {f"i{number}" for number in range(30)}
    summary = json.loads(afresh("estimate", log, "--json").out)
    assert (summary["change_points"], summary["changed_sharply"]) == (len(marks), 30)
    assert len(marks) <= 33
    plain = afresh("estimate", log, "--change-points", "off")
    assert "change_points" not in plain.out.splitlines()[0]
    assert afresh("estimate", log, "--change-points", "off", "--marks", "m.csv").code == 2
    assert afresh("plan", "rates.csv", "--budget", "5/d").code == 0
    by_cho = afresh("estimate", log, "--method", "cho", "--json")
    assert json.loads(by_cho.out)["mean_rate"] < 0.1


def test_a_season_is_found_and_said(afresh: Afresh, tmp_path: Path) -> None:
    log = seasonal_polls(tmp_path / "polls.csv")
    found = json.loads(afresh("estimate", log, "--json").out)
    assert found["season"] > 0.3
    assert found["drift"] is None
    assert "the hours of the week differ" in afresh("estimate", log, "-o", "rates.csv").err
    assert json.loads(afresh("estimate", log, "--json", "--season", "off").out)["season"] is None


def test_steady_polls_are_neither(afresh: Afresh, polls: Path) -> None:
    found = json.loads(afresh("estimate", polls, "--json").out)
    assert (found["drift"], found["season"]) == (None, None)
    assert json.loads(afresh("estimate", polls, "--json", "--season", "on").out)["season"] is not None


def test_methods_that_cannot_forget_say_so_when_asked(afresh: Afresh, tmp_path: Path) -> None:
    log = drifting_polls(tmp_path / "polls.csv")
    assert json.loads(afresh("estimate", log, "--json", "--method", "mle").out)["drift"] is None
    refused = afresh("estimate", log, "--method", "mle", "--drift", "30d")
    assert refused.code == 2
    assert "does not forget" in refused.err


def test_without_an_interval_the_prior_is_the_same_in_every_unit(afresh: Afresh, tmp_path: Path) -> None:
    log = write_polls(tmp_path / "polls.csv", [("a", 0, 0), ("b", 1, 0)])
    found = {unit: rows(afresh("estimate", log, "--unit", unit).out)[0] for unit in ("s", "d", "w")}
    for unit, per_day in (("s", 86400.0), ("w", 1 / 7)):
        for name in ("rate", "low", "high"):
            assert float(found[unit][name]) * per_day == pytest.approx(float(found["d"][name]), rel=1e-6)


def test_a_higher_level_gives_a_wider_interval(afresh: Afresh, polls: Path) -> None:
    narrow = rows(afresh("estimate", polls, "--level", "0.5").out)[0]
    wide = rows(afresh("estimate", polls, "--level", "0.99").out)[0]
    assert float(wide["low"]) < float(narrow["low"]) < float(narrow["high"]) < float(wide["high"])


def test_the_rate_to_plan_with_is_no_higher_than_the_mean(afresh: Afresh, polls: Path) -> None:
    mean = rows(afresh("estimate", polls).out)
    plan = rows(afresh("estimate", polls, "--interval", "20d").out)
    for one, other in zip(mean, plan, strict=True):
        assert 0 < float(other["rate"]) < float(one["rate"])
    assert "posterior" in afresh("estimate", polls, "--method", "mle", "--interval", "20d").err


def test_failed_polls_tell_nothing(afresh: Afresh, tmp_path: Path) -> None:
    head = "item,time,changed,reached\n"
    (tmp_path / "with.csv").write_text(
        head + "a,2020-01-01,0,1\na,2020-01-02,1,1\na,2020-01-03,0,0\na,2020-01-04,0,1\n"
    )
    (tmp_path / "without.csv").write_text(head + "a,2020-01-01,0,1\na,2020-01-02,1,1\na,2020-01-04,0,1\n")
    assert afresh("estimate", "with.csv").out == afresh("estimate", "without.csv").out


def test_the_default_uses_counts_and_stamps(afresh: Afresh, tmp_path: Path) -> None:
    def found(name: str, text: str) -> dict[str, str]:
        (tmp_path / name).write_text(text)
        return rows(afresh("estimate", name).out)[0]

    bit = found("bits.csv", "item,time,changed\na,2020-01-01,0\na,2020-01-05,1\n")
    counted = found("counts.csv", "item,time,changed,count\na,2020-01-01,0,0\na,2020-01-05,1,8\n")
    assert (counted["method"], counted["changes"]) == ("grid", "8")
    assert float(counted["rate"]) > 2 * float(bit["rate"])
    head = "item,time,changed,modified\n"
    stamped = found("stamps.csv", head + "a,2020-01-01,0,2019-01-01\na,2020-01-05,1,2020-01-02\n")
    assert stamped["method"] == "grid"
    assert stamped["rate"] != bit["rate"]
    empty = found("empty.csv", head + "a,2020-01-01,0,\na,2020-01-05,1,\n")
    assert empty == bit


def test_views_to_plan_with_keep_their_interval(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "item,time,changed\na,2020-01-01,0\na,2020-01-02,1\na,2020-01-03,1\nb,2020-01-01,0\nb,2020-01-09,0\n"
    )
    (tmp_path / "v.csv").write_text("view,base\nV,a\nV,b\n")
    plain = rows(afresh("estimate", "p.csv", "--views", "v.csv").out)[-1]
    planned = rows(afresh("estimate", "p.csv", "--views", "v.csv", "--interval", "500d").out)[-1]
    assert (planned["low"], planned["high"]) == (plain["low"], plain["high"])
    assert 0 < float(planned["rate"]) < float(plain["rate"])


def test_groups_learn_their_own_prior(afresh: Afresh, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = []
    for kind, rate in (("news", 1.0), ("archive", 0.02)):
        for item in range(60):
            for day in range(0, 21, 2):
                changed = int(rng.random() < 1 - np.exp(-2 * rate))
                lines.append(f"{kind}{item},{1577836800 + day * DAY_S},{changed},{kind}")
        lines.append(f"{kind}-new,1577836800,0,{kind}")
    (tmp_path / "polls.csv").write_text("item,time,changed,host\n" + "\n".join(lines) + "\n")
    found = {
        row["item"]: float(row["rate"])
        for row in rows(afresh("estimate", "polls.csv", "--group", "host").out)
    }
    assert found["news-new"] > 10 * found["archive-new"]
    assert "polls.csv" in afresh("estimate", "polls.csv", "--group", "hots").err


def test_an_item_in_two_groups_is_refused(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "polls.csv").write_text("item,time,changed,host\na,2020-01-01,0,x\na,2020-01-02,0,y\n")
    ran = afresh("estimate", "polls.csv", "--group", "host")
    assert ran.code == 1
    assert "'a' is in more than one group" in ran.err


def test_views_are_further_rows(afresh: Afresh, polls: Path, tmp_path: Path) -> None:
    (tmp_path / "views.csv").write_text("view,base\nV,a\nV,b\nW,V\nW,a\n")
    found = {row["item"]: row for row in rows(afresh("estimate", polls, "--views", "views.csv").out)}
    both = float(found["a"]["rate"]) + float(found["b"]["rate"])
    assert float(found["V"]["rate"]) == pytest.approx(both)
    assert float(found["W"]["rate"]) == pytest.approx(both)  # a counts once
    assert float(found["V"]["low"]) < both < float(found["V"]["high"])
    (tmp_path / "views.csv").write_text("view,base\na,b\n")
    assert "'a' is a view and was polled itself" in afresh("estimate", polls, "--views", "views.csv").err
    (tmp_path / "views.csv").write_text("view,base\nV,W\nW,V\n")
    ran = afresh("estimate", polls, "--views", "views.csv")
    assert (ran.code, "V → W → V" in ran.err) == (1, True)


def polled_daily(path: Path, rate: float, days: int, shape: float = 1.0) -> None:
    """Twenty items with Gamma gaps (exponential for shape 1) of mean 1/rate, polled every day."""
    rng = np.random.default_rng(1)
    lines = []
    for item in range(20):
        changes = np.cumsum(rng.gamma(shape, 1 / (rate * shape), 1000))
        seen = np.diff(np.searchsorted(changes, np.arange(days))) > 0
        lines += [(f"i{item}", day, int(bit)) for day, bit in enumerate([False, *seen])]
    write_polls(path, lines)


def test_changes_seen_through_coarse_polls_are_not_judged(afresh: Afresh, tmp_path: Path) -> None:
    polled_daily(tmp_path / "polls.csv", 2.0, 200)
    ran = afresh("estimate", "polls.csv", "--check-poisson", "--json")
    assert "20 items have fewer than 3 polls for each change found" in json.loads(ran.out)["poisson"]


def test_bursts_are_told_from_poisson(afresh: Afresh, tmp_path: Path) -> None:
    polled_daily(tmp_path / "polls.csv", 0.03, 1500, shape=0.2)
    ran = afresh("estimate", "polls.csv", "--check-poisson", "--json")
    assert "change in bursts" in json.loads(ran.out)["poisson"]


def test_what_cannot_be_drawn_leaves_no_rates_behind(afresh: Afresh, polls: Path, tmp_path: Path) -> None:
    ran = afresh("estimate", polls, "-o", "rates.csv", "--check-poisson", "--plot", "gaps.png")
    assert ran.code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["polls.csv"]


@pytest.mark.parametrize("level", with_slow_cases(["0.9", "0.5", "0.99"], kept=1))
def test_estimates_after_three_polls_make_plans_no_worse_than_uniform(
    afresh: Afresh, tmp_path: Path, level: str
) -> None:
    """The trap: with little evidence a plan must not drop all that might be fast."""
    rng = np.random.default_rng(2)
    for rates in (np.exp(rng.uniform(-6, 2, 600)), rng.choice([0.01, 2.0], 600), rng.gamma(0.3, 3.0, 600)):
        lines = []
        for number, rate in enumerate(rates / rates.mean()):
            gaps = rng.standard_exponential(3) * 0.2
            bits = rng.random(3) < -np.expm1(-rate * gaps)
            lines.append((f"i{number}", 0.0, 0))
            lines += [
                (f"i{number}", float(day), int(bit)) for day, bit in zip(np.cumsum(gaps), bits, strict=True)
            ]
        write_polls(tmp_path / "polls.csv", lines)
        assert afresh("estimate", "polls.csv", "-o", "rates.csv", "--level", level).code == 0
        for budget in (0.02, 0.1, 0.6):
            ran = afresh("plan", "rates.csv", "--budget", f"{budget}/item/d")
            frequency = np.array([float(row["frequency"]) for row in rows(ran.out)])
            truth = rates / rates.mean()
            fresh = float(np.mean(freshness(truth, frequency)))
            uniform = float(np.mean(freshness(truth, np.full(600, budget))))
            assert fresh > uniform - 0.01


def test_rates_made_for_an_interval_are_planned_with_as_they_are(
    afresh: Afresh, polls: Path, tmp_path: Path
) -> None:
    afresh("estimate", polls, "--interval", "20d", "-o", "for-20d.csv")
    found = rows((tmp_path / "for-20d.csv").read_text())
    assert {row["for_interval"] for row in found} == {"20"}
    bare = "item,rate\n" + "".join(f"{row['item']},{row['rate']}\n" for row in found)
    (tmp_path / "bare.csv").write_text(bare)
    planned = [afresh("plan", name, "--budget", "0.05/item/d").out for name in ("for-20d.csv", "bare.csv")]
    assert planned[0] == planned[1]


def test_a_plan_for_views_knows_how_uncertain_their_bases_are(
    afresh: Afresh, polls: Path, tmp_path: Path
) -> None:
    """The view of one base is planned as its base would be, of two with less uncertainty."""
    (tmp_path / "one.csv").write_text("view,base\nV,a\nW,b\nX,once\n")
    (tmp_path / "two.csv").write_text("view,base\nV,a\nV,b\nW,V\n")
    afresh("estimate", polls, "-o", "rates.csv", "--level", "0.8")
    bare = "".join(
        ",".join(line.split(",")[:2]) + "\n" for line in (tmp_path / "rates.csv").read_text().splitlines()
    )
    (tmp_path / "bare.csv").write_text(bare)

    def planned(name: str, *more: str) -> list[float]:
        return [float(row["frequency"]) for row in rows(afresh("plan", name, "--budget", "0.3/d", *more).out)]

    assert planned("rates.csv", "--views", "one.csv") == pytest.approx(planned("rates.csv"))
    assert planned("rates.csv", "--views", "two.csv") != planned("bare.csv", "--views", "two.csv")
    lines = (tmp_path / "rates.csv").read_text().splitlines()
    (tmp_path / "rates.csv").write_text("\n".join([*lines[:2], lines[2].replace(",0.8", ",0.7"), lines[3]]))
    refused = afresh("plan", "rates.csv", "--budget", "0.3/d").err
    assert "row 2 (line 3), column level: is 0.7, another than above" in refused


def test_a_failed_poll_need_not_say_whether_it_changed(afresh: Afresh, tmp_path: Path) -> None:
    head = "item,time,changed,reached\n"
    (tmp_path / "with.csv").write_text(head + "a,2020-01-01,0,1\na,2020-01-02,,0\na,2020-01-04,1,1\n")
    (tmp_path / "without.csv").write_text(head + "a,2020-01-01,0,1\na,2020-01-04,1,1\n")
    (tmp_path / "with.jsonl").write_text(
        '{"item": "a", "time": "2020-01-01", "changed": 0}\n'
        '{"item": "a", "time": "2020-01-02", "reached": 0}\n'
        '{"item": "a", "time": "2020-01-04", "changed": 1}\n'
    )
    found = afresh("estimate", "without.csv").out
    assert afresh("estimate", "with.csv").out == found
    assert afresh("estimate", "with.jsonl").out == found


VIEWS = {
    "a base nobody knows": ("V,a\nV,oncee\n", "row 2 (line 3), column base: is 'oncee', which is neither"),
    "itself": ("V,a\nV,V\n", "row 2 (line 3), column base: views depend on each other in a circle: V → V"),
    "a circle": ("V,a\nV,W\nX,V\nW,V\n", "row 4 (line 5), column base: views depend on each other"),
    "an item": ("V,b\na,b\n", "row 2 (line 3), column view: 'a' is a view and was polled itself"),
}


@pytest.mark.parametrize("case", VIEWS)
def test_a_wrong_view_is_named(afresh: Afresh, polls: Path, tmp_path: Path, case: str) -> None:
    text, said = VIEWS[case]
    (tmp_path / "views.csv").write_text("view,base\n" + text)
    ran = afresh("estimate", polls, "--views", "views.csv")
    assert (ran.code, ran.out) == (1, "")
    assert f"views.csv, {said}" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3,0\n2,0\n", "lifetimes.csv, column ended: says of no lifetime that it ended"),
        ("", "lifetimes.csv, column ended: says of no lifetime that it ended"),
        ("3,1\n-2,1\n", "lifetimes.csv, row 2 (line 3), column lifetime: is -2"),
        ("3,1\n1e308,1\n", "lifetimes.csv, row 2 (line 3), column lifetime: is 1e+308"),
    ],
)
def test_wrong_lifetimes_are_named(afresh: Afresh, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "lifetimes.csv").write_text("lifetime,ended\n" + text)
    ran = afresh("estimate", "--lifetimes", "lifetimes.csv")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


@pytest.mark.parametrize("method", sorted(ESTIMATORS))
def test_an_item_with_one_poll_has_the_prior_at_any_level(afresh: Afresh, polls: Path, method: str) -> None:
    ran = afresh("estimate", polls, "--method", method, "--level", "0.99")
    once = rows(ran.out)[-1]
    assert (ran.code, once["item"], once["level"]) == (0, "once", "0.99")
    assert 0 < float(once["low"]) < float(once["rate"]) < float(once["high"]) < np.inf


def test_a_row_written_twice_counts_once(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "polls.csv").write_text(
        "item,time,changed,count\na,2020-01-01,0,0\na,2020-01-03,1,2\na,2020-01-03,1,2\n"
    )
    assert rows(afresh("estimate", "polls.csv").out)[0]["changes"] == "2"


def test_a_clock_that_stepped_back_is_only_another_order(afresh: Afresh, tmp_path: Path) -> None:
    """The log says 5, 3, 7: nothing tells which is wrong, so it is read as 3, 5, 7."""
    write_polls(tmp_path / "back.csv", [("a", 0, 0), ("a", 5, 1), ("a", 3, 0), ("a", 7, 0)])
    write_polls(tmp_path / "sorted.csv", [("a", 0, 0), ("a", 3, 0), ("a", 5, 1), ("a", 7, 0)])
    assert afresh("estimate", "back.csv").out == afresh("estimate", "sorted.csv").out


def test_poisson_in_a_sentence_and_a_picture(afresh: Afresh, tmp_path: Path) -> None:
    polled_daily(tmp_path / "polls.csv", 0.03, 1500)
    ran = afresh("estimate", "polls.csv", "--check-poisson", "--plot", "gaps.png", "--json")
    assert "look Poisson" in json.loads(ran.out)["poisson"]
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_the_rates(afresh: Afresh, polls: Path, tmp_path: Path) -> None:
    assert afresh("estimate", polls, "--plot", "rates.svg").code == 0
    assert "How many items change how often" in "".join(
        re.findall("<!-- (.*?) -->", (tmp_path / "rates.svg").read_text())
    )
    assert (tmp_path / "rates.svg").stat().st_size > 5000


def test_cohorts_of_whom_all_changed_have_a_finite_rate(afresh: Afresh, tmp_path: Path) -> None:
    """Razniewski 2016, Table 3."""
    (tmp_path / "cohorts.csv").write_text(
        "group,elapsed,n,changed\nstudents,5,10,10\nacademic,5,8,5\nindustry,5,13,3\nprofessors,5,19,2\n"
    )
    ran = afresh("estimate", "--cohorts", "cohorts.csv", "--unit", "y")
    found = {row["group"]: float(row["rate"]) for row in rows(ran.out)}
    assert round(found["professors"], 3) == 0.022
    assert 0.3 < found["students"] < 2
    assert "students" in ran.err
    (tmp_path / "cohorts.csv").write_text("group,elapsed,n,changed\nstudents,5,10,11\n")
    ran = afresh("estimate", "--cohorts", "cohorts.csv")
    assert (ran.code, "row 1 (line 2), column changed: is 11" in ran.err) == (1, True)


def test_lifetimes_choose_a_decay_that_money_takes(afresh: Afresh, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lifetimes = rng.weibull(2.0, 400) / 0.3
    ended = lifetimes < 6
    text = "".join(f"{min(life, 6.0)},{int(end)}\n" for life, end in zip(lifetimes, ended, strict=True))
    (tmp_path / "lifetimes.csv").write_text("lifetime,ended\n" + text)
    ran = afresh("estimate", "--lifetimes", "lifetimes.csv", "--unit", "y", "--json", "--plot", "decay.png")
    best = json.loads(ran.out)
    assert best["decay"].startswith("weibull:")
    assert best["rate"] == pytest.approx(0.3, rel=0.1)
    (tmp_path / "items.csv").write_text(f"item,rate\na,{best['rate']}\n")
    again = afresh("money", "items.csv", "--decay", best["decay"], "--benefit", 1, "--cost", 0.1)
    assert rows(again.out)[0]["status"] == "kept"


BAD = {
    "a poll in the future": (
        "item,time,changed\na,2020-01-01,0\na,2999-01-01,1\n",
        "row 2 (line 3), column time",
    ),
    "no time": ("item,changed\na,1\n", "time"),
    "a time in words": ("item,time,changed\na,yesterday,0\n", "row 1 (line 2), column time"),
    "neither changed nor not": (
        "item,time,changed\na,2020-01-01,perhaps\n",
        "row 1 (line 2), column changed",
    ),
    "a time beyond all": ("item,time,changed\na,2020-01-01,0\na,1e30,1\n", "row 2 (line 3), column time"),
    "a time before all": ("item,time,changed\na,-1e300,0\na,2020-01-01,1\n", "row 1 (line 2), column time"),
    "nothing known of a poll that succeeded": (
        "item,time,changed,reached\na,2020-01-01,0,1\na,2020-01-02,,1\n",
        "row 2 (line 3), column changed: is empty, which it may be only where reached is 0",
    ),
    "half a change": (
        "item,time,changed,count\na,2020-01-01,1,2.5\n",
        "row 1 (line 2), column count: is 2.5",
    ),
    "endless changes": ("item,time,changed,count\na,2020-01-01,1,1e300\n", "column count: is 1e+300"),
    "a negative count": ("item,time,changed,count\na,2020-01-01,1,-1\n", "row 1 (line 2), column count"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_row_is_named(afresh: Afresh, tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    (tmp_path / "polls.csv").write_text(text)
    ran = afresh("estimate", "polls.csv", "-o", "rates.csv")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert not (tmp_path / "rates.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "POLLS"),
        (("polls.csv", "--cohorts", "c.csv"), "one of"),
        (("polls.csv", "--level", "90"), "between 0 and 1"),
        (("polls.csv", "--method", "gama"), "'gamma'?"),
        (("polls.csv", "--json", "-o", "-"), "standard output"),
        (("--cohorts", "c.csv", "--plot", "x.png"), "--plot"),
        (("--cohorts", "c.csv", "--method", "mle", "--views", "v.csv"), "--method, --views: goes with POLLS"),
        (("--lifetimes", "l.csv", "--check-poisson"), "--check-poisson"),
        (("polls.csv", "--group", "item"), "--group item"),
        (("polls.csv", "--interval", "0d"), "above 0"),
        (("polls.csv", "--interval", "x"), "--interval must be a time such as 20d: 'x' is not"),
        (
            ("polls.csv", "--drift", "banana"),
            "--drift must be auto, off or a time such as 30d: 'banana' is not",
        ),
    ],
)
def test_wrong_questions(afresh: Afresh, polls: Path, arguments: tuple[str, ...], said: str) -> None:
    assert polls.exists()
    ran = afresh("estimate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_an_empty_log_gives_no_rows(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "polls.csv").write_text("item,time,changed\n")
    ran = afresh("estimate", "polls.csv")
    assert (ran.code, ran.out) == (0, "item,rate,low,high,polls,changes,method\n")


def test_items_of_two_sources_with_one_name_are_told_apart(afresh: Afresh, tmp_path: Path) -> None:
    lines = ["item,time,changed,source"]
    for day in range(9):
        lines += [f"17,{1577836800 + day * DAY_S},1,a", f"17,{1577836800 + day * DAY_S},0,b"]
        lines += [f"18,{1577836800 + day * DAY_S},0,b"]
    (tmp_path / "polls.csv").write_text("\n".join(lines) + "\n")
    for options in ((), ("--group", "source")):
        ran = afresh("estimate", "polls.csv", *options)
        assert ran.code == 0, ran.err
        found = {row["item"]: float(row["rate"]) for row in rows(ran.out)}
        assert found.keys() == {"a:17", "b:17", "18"}
        assert found["a:17"] > 5 * found["b:17"]
