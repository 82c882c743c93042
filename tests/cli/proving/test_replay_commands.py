"""``afresh replay`` and ``afresh simulate`` as a user meets them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.proving.replay_commands import replay, simulate
from afresh.histories.recorded import read_recorded
from afresh.policy.policy import PolicyInput
from afresh.replay.scores import freshness_course, stale_spans
from afresh.values.errors import InputError, OutputError, UsageError

DAY = 86400
Line: TypeAlias = tuple[object, ...]
app = typer.Typer()
app.command()(replay)
app.command()(simulate)


def run(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "120"})
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


def policies(*arguments: object) -> dict[str, Any]:
    """The summary's policies by name; the last of several budgets wins."""
    found = json.loads(run(*arguments, "--json")[0])["policies"]
    return {one["policy"]: one for one in found}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def history() -> Line:
    """Forty items, of which half never change and a quarter every other day, for fifty days."""
    rng = np.random.default_rng(3)
    rates = np.repeat([0.0, 0.1, 0.5], [20, 10, 10])
    rows = [
        f"i{item},{time:.0f}"
        for item, rate in enumerate(rates)
        for time in rng.uniform(1, 50 * DAY, rng.poisson(50 * rate))
    ]
    Path("c.csv").write_text("item,time\n" + "\n".join(rows) + "\n")
    Path("i.csv").write_text("item\n" + "\n".join(f"i{item}" for item in range(40)) + "\n")
    return ("replay", "c.csv", "--items", "i.csv", "--start", 0, "--end", 50 * DAY, "--budget", "0.2/item/d")


def test_one_object_per_policy_whole_and_after_the_warm_up(history: Line) -> None:
    out, said = run(*history, "--json")
    summary = json.loads(out)
    assert said == ""
    assert (summary["items"], summary["unit"], summary["start"], summary["end"]) == (40, "d", 0, 50 * DAY)
    found = {one["policy"]: one for one in summary["policies"]}
    assert list(found) == ["adaptive", "uniform", "oracle"]
    for one in found.values():
        assert {"freshness", "age", "missed", "visits", "captured", "uniform_needs"} <= one.keys()
        assert one.keys() - one["after_warm_up"].keys() == {"policy", "budget", "after_warm_up"}
        assert one["visits"] == 400  # 0.2 × 40 × 50: exactly the budget
        assert one["after_warm_up"]["visits"] == pytest.approx(267, abs=1)
        assert one["freshness_low"] < one["freshness"] < one["freshness_high"]
        assert one["budget"] == pytest.approx(8)
    assert found["uniform"]["captured"] == 0
    assert found["oracle"]["captured"] == 1
    assert found["uniform"]["uniform_needs"] == 1
    assert found["oracle"]["after_warm_up"]["uniform_needs"] > 1.2
    assert found["oracle"]["freshness"] > found["uniform"]["freshness"]


def test_with_stamps_the_first_rounds_are_told_apart_and_adaptive_learns_from_them(history: Line) -> None:
    later = (*history[:5], 20 * DAY, *history[6:])
    with pytest.raises(InputError, match="before the start"):
        policies(*later)
    found, without = policies(*later, "--stamps"), policies(*history)
    assert "first_rounds" not in without["uniform"]
    for one in found.values():
        assert one["first_rounds"].keys() == one["after_warm_up"].keys()
        assert one["first_rounds"]["visits"] == pytest.approx(120, abs=1)  # three rounds of 40 items
    rows = Path("c.csv").read_text().splitlines()
    recent = [row for row in rows[1:] if float(row.partition(",")[2]) > 20 * DAY]
    Path("c.csv").write_text("\n".join([rows[0], *recent]))
    bits = policies(*later)
    assert bits["uniform"]["freshness"] == found["uniform"]["freshness"]
    assert bits["adaptive"]["freshness"] != found["adaptive"]["freshness"]  # it knew the ages of its copies
    assert "first rounds" in run(*later, "--stamps")[1]


def test_the_freshness_is_that_of_the_visits_written(history: Line) -> None:
    found = policies(*history, "--visits", "v.csv", "--policy", "uniform")["uniform"]
    recorded = read_recorded("c.csv", "i.csv", 0, 50 * DAY)
    with Path("v.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["policy", "item", "time", "changed"]
    place = {name: index for index, name in enumerate(recorded.names.tolist())}
    item = np.array([place[row["item"]] for row in rows])
    time = np.array([float(row["time"]) for row in rows])
    spans = stale_spans(recorded.item, recorded.time, item, time, recorded.end)
    edges = np.array([0, 50 * DAY / 3, 50 * DAY])
    course = freshness_course(spans, edges, np.ones(40))
    assert found["after_warm_up"]["freshness"] == pytest.approx(course[1], abs=1e-9)
    assert found["freshness"] == pytest.approx(course @ [1 / 3, 2 / 3], abs=1e-9)
    seen = sum(row["changed"] == "true" for row in rows)
    assert 0 < seen < recorded.time.size


# Of every policy this is tested where policies are; here, that the command adds no chance of its own.
@pytest.mark.parametrize("policy", ["adaptive", "nutch", "uniform"])
def test_policies_spend_the_same_and_repeat_themselves(history: Line, policy: str) -> None:
    one, two = (policies(*history, "--policy", policy)[policy] for _ in range(2))
    assert one == two
    assert one["visits"] == 400


def test_a_table_for_people(history: Line) -> None:
    out, said = run(*history)
    assert out == ""
    assert "40 items, " in said
    assert "budget 8 per day" in said
    assert [word for word in ("adaptive", "uniform", "oracle") if word not in said] == []


def test_several_budgets_and_a_picture(history: Line) -> None:
    arguments = [
        *history[:-1],
        "0.5/item/d,0.1/item/d",
        "--plot",
        "x.png",
        "--unit",
        "h",
        "--policy",
        "uniform",
    ]
    found = json.loads(run(*arguments, "--json")[0])["policies"]
    assert [one["budget"] for one in found] == pytest.approx([4 / 24, 20 / 24])
    assert found[0]["freshness"] < found[1]["freshness"]
    assert found[0]["age"] > found[1]["age"]
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


def test_weights_decide_what_counts(history: Line) -> None:
    Path("i.csv").write_text("item,weight\n" + "\n".join(f"i{item},{int(item < 20)}" for item in range(40)))
    found = policies(*history, "--policy", "uniform")
    assert found["uniform"]["freshness"] == 1  # only what never changes matters
    assert found["uniform"]["captured"] is None


def test_costs_are_paid_from_the_budget(history: Line) -> None:
    Path("i.csv").write_text("item,cost\n" + "\n".join(f"i{item},2" for item in range(40)))
    assert policies(*history, "--policy", "uniform")["uniform"]["visits"] == 200


def test_windows_confine_the_visits(history: Line) -> None:
    run(
        *(*history, "--windows", "22:00-06:00 Mon-Fri", "--visits", "v.csv", "--json"),
        *("--policy", "nutch,uniform,oracle"),
    )
    with Path("v.csv").open() as file:
        times = np.array([float(row["time"]) for row in csv.DictReader(file)])
    hour = times / 3600 % 24
    assert np.all((hour >= 22) | (hour <= 6 + 1e-6))
    assert times.size == 3 * 400


def test_caps_hold(history: Line) -> None:
    Path("i.csv").write_text(
        "item,group\n" + "\n".join(f"i{item},{'slow' if item >= 30 else 'free'}" for item in range(40))
    )
    Path("k.csv").write_text("group,cap\nslow,0.5\n")
    found = policies(*history, "--caps", "k.csv", "--visits", "v.csv", "--policy", "adaptive,uniform,oracle")
    with Path("v.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name in ("adaptive", "uniform", "oracle"):
        polls = [row for row in rows if row["policy"] == name]
        capped = sum(int(row["item"][1:]) >= 30 for row in polls)
        assert 0 < capped <= 0.5 * 50 + 1, name
        assert len(polls) >= 375, name  # what the cap spares goes to the others
    assert found["oracle"]["captured"] == 1
    hourly = policies(*history, "--caps", "k.csv", "--unit", "h", "--policy", "uniform")["uniform"]
    free = policies(*history, "--policy", "uniform")["uniform"]
    assert hourly["freshness"] == free["freshness"]  # 12 a day: more than it wants


def test_caps_of_no_group_are_refused(history: Line) -> None:
    Path("k.csv").write_text("group,cap\nslow,0.5\n")
    with pytest.raises(UsageError, match=r"--caps needs a column 'group' in i\.csv"):
        run(*history, "--caps", "k.csv")
    Path("i.csv").write_text("item,group\n" + "\n".join(f"i{item},slower" for item in range(40)))
    with pytest.raises(InputError, match=r"k\.csv, row 1 .*'slow' is the group of no item in i\.csv"):
        run(*history, "--caps", "k.csv")


def test_values_are_scored_where_changes_have_them() -> None:
    Path("c.csv").write_text("item,time,value\na,0,10\nb,50,7\na,60,14\na,10,12\n")
    line = ("replay", "c.csv", "--start", 0, "--end", 100, "--budget", "0.01/s", "--policy", "uniform")
    found = policies(*line, "--warm-up", 0, "--visits", "v.csv")["uniform"]
    # One poll, at the very end: a is off by 2 for 50 s and by 4 for 40 s; b starts from what it first is.
    assert found["error"] == pytest.approx((2 * 50 + 4 * 40) / 100 / 2)
    assert "error" in run(*line)[1]
    Path("c.csv").write_text("item,time,value\na,10,12\na,20,\n")
    with pytest.raises(InputError, match=r"c\.csv, row 2 .*column value"):
        run(*line)


def test_harmonic_is_captured_by_its_own_metric(history: Line) -> None:
    found = policies(*history, "--objective", "harmonic", "--policy", "uniform,oracle,proportional")
    part = {name: one["harmonic"] for name, one in found.items()}
    share = (part["proportional"] - part["uniform"]) / (part["oracle"] - part["uniform"])
    assert found["proportional"]["captured"] == pytest.approx(share)
    assert found["oracle"]["harmonic"] < found["uniform"]["harmonic"]


def test_notices_help_and_may_come_from_a_file(history: Line) -> None:
    few = (*history[:-1], "0.06/item/d", "--policy", "adaptive")
    alone = policies(*few)["adaptive"]
    made = policies(*few, "--notices", "recall=0.9,false=0.05")["adaptive"]
    assert made["freshness"] > alone["freshness"]
    told = policies(*few, "--notices", "c.csv")["adaptive"]
    assert told["freshness"] > alone["freshness"]


class Given(Exception):  # noqa: N818 (no error: it ends the command where the policies would run)
    """What the policies would be run with."""


@pytest.mark.parametrize(
    ("names", "column", "hosts"),
    [
        (("https://b.test/1", "https://a.test/2", "https://b.test/3"), "", [1, 0, 1]),
        (("x", "y", "z"), "group", [0, 0, 1]),
        (("x", "y", "z"), "", None),
    ],
)
def test_notices_have_origins_and_items_have_hosts(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], column: str, hosts: list[int] | None
) -> None:
    def stop(_history: object, _policies: object, start: PolicyInput, **given: Any) -> None:
        raise Given(start.hosts, given["notices"])

    monkeypatch.setattr("afresh.cli.proving.replay_run.replay", stop)
    groups = ["g", "g", "h"] if column else [""] * 3
    rows = [f"{name},{group}" if column else name for name, group in zip(names, groups, strict=True)]
    Path("i.csv").write_text("\n".join([f"item,{column}" if column else "item", *rows]))
    Path("c.csv").write_text(f"item,time\n{names[0]},5\n{names[1]},6\n")
    Path("n.csv").write_text(f"item,time,origin\n{names[2]},8,sitemap\n{names[0]},7,feed\n")
    line = ("replay", "c.csv", "--items", "i.csv", "--start", 0, "--end", DAY, "--budget", "1/d")
    with pytest.raises(Given) as caught:
        run(*line, "--notices", "n.csv")
    known, log = caught.value.args
    assert (None if known is None else known.tolist()) == hosts
    assert [log.origins[one] for one in log.origin] == ["feed", "sitemap"]
    assert log.item.tolist() == [0, 2]
    with pytest.raises(Given) as caught:
        run(*line, "--notices", "recall=1,false=0,hosts=3,lying=1")
    known, log = caught.value.args
    assert sorted(known.tolist()) == [0, 1, 2]
    assert not set(log.time.tolist()) & {5.0, 6.0}


def test_the_objective_decides_what_is_captured(history: Line) -> None:
    found = policies(*history, "--objective", "age", "--policy", "uniform,oracle")
    assert found["oracle"]["age"] < found["uniform"]["age"]
    assert found["oracle"]["captured"] == 1


def test_changes_may_come_from_standard_input(history: Line) -> None:
    given = Path("c.csv").read_text()
    line = [str(word) for word in ("replay", "-", *history[2:], "--policy", "uniform", "--json")]
    result = CliRunner().invoke(app, line, input=given)
    assert json.loads(result.stdout)["policies"][0] == policies(*history, "--policy", "uniform")["uniform"]
    wrong = CliRunner().invoke(app, line, input=given + "x,5\n")
    rows = len(given.splitlines())
    assert f"standard input, row {rows} (line {rows + 1}), column item: 'x'" in str(wrong.exception)


def test_what_is_not_said_is_remarked(history: Line) -> None:
    _, said = run(*history[:2], *history[-2:], "--policy", "uniform")
    for words in ("without --items only the 20", "without --start", "without --end"):
        assert words in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--budget", "0/d"), "--budget 0/d: a replay needs a budget above 0"),
        (("--budget", "0"), "a replay needs a budget above 0"),
        (("--budget", "5"), "5 per what"),
        (("--policy", "adaptiv"), "unknown policy 'adaptiv': did you mean 'adaptive'"),
        (("--policy", ","), "--policy names none"),
        (("--objective", "fresh"), "objective"),
        (("--warm-up", "1"), "--warm-up is 1: must be a share"),
        (("--unit", "x"), "unknown unit of time 'x'"),
        (("--start", "soon"), "--start 'soon' is not a time"),
        (("--notices", "recal=1"), "unknown setting of --notices 'recal': did you mean 'recall'"),
        (("--notices", "recall=2"), "recall is 2"),
        (("--notices", "hosts=2.5"), "2.5 is not a number of hosts"),
        (("--notices", "hosts=4,lying=2"), "lying is 2"),
        (("--windows", "25:00-26:00"), "is not a window of time"),
        (("--plot", "x.pdf"), "use .png or .svg"),
        (("--visits", "-", "--json"), "both want standard output"),
        (("--visits", "c.csv"), "c.csv is also an input"),
    ],
)
def test_wrong_usage_is_said_in_words(history: Line, change: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        run(*history, *change)


def test_rows_in_any_order_are_the_same_history(history: Line) -> None:
    sorted_rows = policies(*history, "--policy", "uniform")
    head, *rows = Path("c.csv").read_text().splitlines()
    Path("c.csv").write_text("\n".join([head, *reversed(rows)]))
    assert policies(*history, "--policy", "uniform") == sorted_rows


def test_windows_that_never_open_are_refused() -> None:
    Path("c.csv").write_text("item,time\na,5\n")
    arguments = ("replay", "c.csv", "--start", 0, "--end", 3600, "--budget", "1/h")
    with pytest.raises(UsageError, match="none opens between --start and --end"):
        run(*arguments, "--windows", "12:00-13:00")


def test_what_is_no_history_is_refused_with_file_and_row(history: Line) -> None:
    with pytest.raises(UsageError, match="give a budget"):
        run(*history[:-2])
    with pytest.raises(InputError, match=r"c\.csv: the window is empty"):
        run(*history, "--end", 0)
    with pytest.raises(InputError, match=r"c\.csv, row \d+ .*column time: .* after the end"):
        run(*history, "--end", DAY)
    with pytest.raises(OutputError, match="none"):
        run(*history, "--visits", "none/v.csv")
    with pytest.raises(InputError, match=r"c\.csv, row \d+ .*column time: .* before the start"):
        run(*history, "--start", 40 * DAY)
    Path("n.csv").write_text(f"item,time\ni1,3\ni2,{51 * DAY}\n")
    with pytest.raises(InputError, match=r"n\.csv, row 2 .*column time: .* after the end"):
        run(*history, "--notices", "n.csv")
    Path("n.csv").write_text("item,time\nx,3\n")
    with pytest.raises(InputError, match=r"n\.csv, row 1 .*'x' is no item"):
        run(*history, "--notices", "n.csv")
    Path("c.csv").write_text("item,time\ni1,5\ni77,6\n")
    with pytest.raises(
        InputError, match=r"c\.csv, row 2 \(line 3\), column item: 'i77' is no item of i\.csv"
    ):
        run(*history)
    Path("i.csv").write_text("item\n")
    with pytest.raises(InputError, match=r"i\.csv: has no rows"):
        run(*history)


WORLD = ("--items", 30, "--span", "60d", "--seed", 5)


def test_a_world_is_made_and_replayed() -> None:
    found = policies("simulate", *WORLD, "--budget", "0.1/item/d")
    assert list(found) == ["adaptive", "uniform", "oracle"]
    assert found["uniform"]["visits"] == 180
    again = policies("simulate", *WORLD, "--budget", "0.1/item/d")
    assert again == found
    other = policies("simulate", *WORLD, "--budget", "0.1/item/d", "--seed", 6, "--policy", "uniform")
    assert other["uniform"]["freshness"] != found["uniform"]["freshness"]


def test_a_world_written_replays_to_the_same_figures() -> None:
    nature = ("--changes", "bursty", "--mass-edits", "rate=9/y,size=5", "--births", "0.2", "--deaths", "0.1")
    rest = ("--season", "day=0.9,week=0.5", "--drift", "sd=1,horizon=20d", "--rates", "gamma:mean=0.2,cv=1")
    made = policies("simulate", *WORLD, *nature, *rest, "--budget", "0.1/item/d", "-o", "w")
    begin = 1735689600
    window = ("--start", begin, "--end", begin + 60 * DAY)
    read = policies(
        "replay", "w.changes.csv", "--items", "w.items.csv", *window, "--budget", "0.1/item/d", "--seed", 5
    )
    assert read == made
    with Path("w.items.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["item", "rate", "group"]
    assert rows[7]["item"] == "group-1/item-07"


def test_a_world_may_only_be_written() -> None:
    out, said = run("simulate", *WORLD, "-o", "w")
    assert out == ""
    assert "afresh replay w.changes.csv --items w.items.csv --start 2025-01-01T00:00:00Z" in said
    made = json.loads(run("simulate", *WORLD, "-o", "w", "--json")[0])
    assert made["items"] == 30
    assert made["files"] == {"changes": "w.changes.csv", "items": "w.items.csv"}


def test_rates_from_a_file_are_per_unit() -> None:
    Path("r.csv").write_text("item,rate\na,0\nb,1\n")
    made = json.loads(
        run("simulate", "--rates", "r.csv", "--unit", "h", "--span", "100h", "-o", "w", "--json")[0]
    )
    assert made["changes"] == pytest.approx(100, abs=40)


def test_wrong_worlds_are_refused_in_words() -> None:
    with pytest.raises(UsageError, match=r"give a budget, .* or -o NAME"):
        run("simulate")
    with pytest.raises(UsageError, match="--budget 0/d"):
        run("simulate", "--budget", "0/d")
    with pytest.raises(UsageError, match="'long' is not a duration"):
        run("simulate", "-o", "w", "--span", "long")
    with pytest.raises(UsageError, match="neither one of cho"):
        run("simulate", "-o", "w", "--rates", "chos")
    assert not list(Path().iterdir())
