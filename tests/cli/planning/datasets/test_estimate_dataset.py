"""``afresh estimate`` of a dataset against the estimate of the same polls in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Afresh

from afresh.cli.planning.datasets import estimate_dataset, poll_parts
from afresh.rates import item_sample
from afresh.values.errors import OutputError

MakePolls = Callable[..., Path]


@pytest.fixture
def make_polls(tmp_path: Path) -> MakePolls:
    """Writes a log round by round to ``whole.parquet`` and in three parts to the folder ``polls``."""

    def make(items: int = 600, rounds: int = 12, *, jumps: bool = False, **more: Any) -> Path:
        rng = np.random.default_rng(5)
        rate = rng.gamma(0.5, 0.5, items)
        now, tables = np.full(items, 1.6e9), []
        for number in range(rounds):
            days = rng.standard_exponential(items) * 2
            now = now + 86400 * days
            own = (
                np.where(np.arange(items) % 3 == 0, 40.0 * (number >= rounds / 2) * rate, rate)
                if jumps
                else rate
            )
            changed = rng.random(items) < -np.expm1(-own * days)
            names = [f"page/{item}" for item in range(items)]
            tables.append(pa.table({"item": names, "time": now, "changed": changed}))
        table = pa.concat_tables(tables)
        for name, values in more.items():
            table = table.append_column(name, pa.array(values[: table.num_rows]))
        folder = tmp_path / "polls"
        folder.mkdir()
        pq.write_table(table, tmp_path / "whole.parquet")
        for part in range(3):
            rows = slice(part * table.num_rows // 3, (part + 1) * table.num_rows // 3)
            pq.write_table(table[rows], folder / f"{part}.parquet")
        return folder

    return make


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_dataset, "_BUCKET_BYTES", 20_000)


def rates_of(path: Path) -> dict[str, tuple[float, ...]]:
    table = pq.read_table(path).sort_by("item")
    names = [name for name in table.column_names if name not in ("item", "method")]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return dict(zip(table["item"].to_pylist(), rows, strict=True))


def items_of(path: Path) -> list[str]:
    return [line.split(",")[0] for line in path.read_text().splitlines()[1:]]


def assert_same_rates(folder: Path, whole: Path) -> None:
    found, alone = rates_of(folder), rates_of(whole)
    assert found.keys() == alone.keys()
    mine, theirs = (np.array([each[item] for item in alone], dtype=float) for each in (found, alone))
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.usefixtures("many_buckets")
@pytest.mark.parametrize("on", ["local", "duckdb"])
def test_a_dataset_has_the_rates_of_its_polls_in_one_file(
    afresh: Afresh, make_polls: MakePolls, tmp_path: Path, on: str
) -> None:
    make_polls()
    ran = afresh("estimate", "polls/*.parquet", "--on", on, "-o", "rates")
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "rates").glob("*.parquet"))) > 3
    assert not (tmp_path / "rates" / "_work").exists()
    assert afresh("estimate", "whole.parquet", "-o", "whole-rates.parquet").code == 0
    assert_same_rates(tmp_path / "rates", tmp_path / "whole-rates.parquet")


@pytest.mark.usefixtures("many_buckets")
@pytest.mark.parametrize(
    "options",
    [("--method", "gamma"), ("--drift", "30d"), ("--season", "on", "--level", "0.8"), ("--method", "cho")],
)
def test_options_give_the_same_rates(
    afresh: Afresh, make_polls: MakePolls, tmp_path: Path, options: tuple[str, ...]
) -> None:
    make_polls()
    ran = afresh("estimate", "polls", *options, "-o", "rates")
    assert ran.code == 0, ran.err
    assert afresh("estimate", "whole.parquet", *options, "-o", "whole-rates.parquet").code == 0
    assert_same_rates(tmp_path / "rates", tmp_path / "whole-rates.parquet")


@pytest.mark.usefixtures("many_buckets")
def test_jumps_counts_and_failed_polls_are_those_of_one_file(
    afresh: Afresh, make_polls: MakePolls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only a sample of the items tells the priors and the jumps."""
    monkeypatch.setattr(item_sample, "SAMPLED", 200)
    monkeypatch.setattr(item_sample.sample_keys, "__defaults__", (200,))
    monkeypatch.setattr(item_sample.join_samples, "__defaults__", (200,))
    monkeypatch.setattr(estimate_dataset, "SAMPLED", 200)
    rng = np.random.default_rng(7)
    make_polls(rounds=30, jumps=True, reached=rng.random(18_000) < 0.95)
    ran = afresh("estimate", "polls", "-o", "rates", "--json")
    assert ran.code == 0, ran.err
    alone = json.loads(afresh("estimate", "whole.parquet", "-o", "whole-rates.parquet", "--json").out)
    parts = json.loads(ran.out)
    assert parts["change_points"] > 20
    assert parts.keys() == alone.keys()
    for name, value in alone.items():
        is_number = isinstance(value, int | float)
        assert parts[name] == (pytest.approx(value, rel=1e-9) if is_number else value), name
    assert_same_rates(tmp_path / "rates", tmp_path / "whole-rates.parquet")


@pytest.mark.usefixtures("many_buckets")
def test_items_of_two_sources_and_csv(afresh: Afresh, make_polls: MakePolls, tmp_path: Path) -> None:
    folder = make_polls(source=["web" if row % 7 else "shop" for row in range(7200)])
    for part in folder.glob("*.parquet"):
        table = pq.read_table(part).to_pylist()
        lines = ["item,time,changed,source"]
        lines += [f"{row['item']},{row['time']!r},{int(row['changed'])},{row['source']}" for row in table]
        part.with_suffix(".csv").write_text("\n".join(lines) + "\n")
        part.unlink()
    ran = afresh("estimate", "polls", "-o", "rates")
    assert ran.code == 0, ran.err
    first = (tmp_path / "rates" / "part-0000.csv").read_text().splitlines()
    assert first[0] == "item,rate,low,high,polls,changes,method"
    found = {item for path in (tmp_path / "rates").glob("*.csv") for item in items_of(path)}
    afresh("estimate", "whole.parquet", "-o", "whole-rates.csv")
    assert found == set(items_of(tmp_path / "whole-rates.csv"))
    assert {name.partition(":")[0] for name in found} >= {"web", "shop"}


@pytest.mark.usefixtures("many_buckets")
def test_an_interrupted_estimate_goes_on(
    afresh: Afresh, make_polls: MakePolls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_polls()

    def full_at_the_third(job: Any) -> Any:
        if job.bucket.number == 2:
            raise OutputError("no space left")
        return poll_parts.estimate_bucket(job)

    monkeypatch.setattr(estimate_dataset, "estimate_bucket", full_at_the_third)
    ran = afresh("estimate", "polls", "-o", "rates")
    assert ran.code == 1
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "rates").glob("part-000[01].parquet")}
    assert len(kept) == 2
    assert list((tmp_path / "rates" / "_work").iterdir())
    monkeypatch.setattr(estimate_dataset, "estimate_bucket", poll_parts.estimate_bucket)
    ran = afresh("estimate", "polls", "-o", "rates")
    assert ran.code == 0, ran.err
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert afresh("estimate", "whole.parquet", "-o", "whole-rates.parquet").code == 0
    assert_same_rates(tmp_path / "rates", tmp_path / "whole-rates.parquet")
    (tmp_path / "rates" / "_work").mkdir()
    (tmp_path / "rates" / "_work" / "polls-00000-0000.parquet").touch()  # as an interrupted command leaves it
    assert afresh("estimate", "polls", "--level", "0.8", "-o", "rates").code == 0, "it begins anew"
    assert afresh("estimate", "polls", "-o", "rates").code == 0
    monkeypatch.setattr(estimate_dataset, "_Estimate", None)  # nothing is left to do
    again = afresh("estimate", "polls", "-o", "rates")
    assert again.code == 0
    assert again.err == ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("polls", "-o", "rates", "--views", "v.csv"), "--views: not with a dataset"),
        (("polls", "-o", "rates", "--plot", "x.png"), "--plot: not with a dataset"),
        (("polls",), "give -o rates/"),
        (("--cohorts", "c.csv", "--on", "local"), "--on goes with POLLS"),
        (("polls", "-o", "rates", "--a", "2"), "--a is 2"),
    ],
)
def test_what_a_dataset_cannot_have_is_refused(
    afresh: Afresh, make_polls: MakePolls, arguments: tuple[str, ...], said: str
) -> None:
    make_polls(items=5, rounds=2)
    ran = afresh("estimate", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_a_wrong_poll_is_named_with_its_file(afresh: Afresh, make_polls: MakePolls) -> None:
    folder = make_polls(items=5, rounds=3)
    (folder / "late.csv").write_text("item,time,changed\na,1,0\nb,9e9,1\n")
    ran = afresh("estimate", "polls", "-o", "rates")
    assert ran.code == 1
    assert "polls/late.csv, row 2 (line 3), column time: is in the future" in ran.err


def test_a_log_in_which_nothing_was_polled_twice(
    afresh: Afresh, make_polls: MakePolls, tmp_path: Path
) -> None:
    make_polls(items=5, rounds=1)
    assert afresh("estimate", "polls", "-o", "rates").code == 0
    assert afresh("estimate", "whole.parquet", "-o", "whole-rates.parquet").code == 0
    assert_same_rates(tmp_path / "rates", tmp_path / "whole-rates.parquet")
