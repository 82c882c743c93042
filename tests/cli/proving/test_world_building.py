"""Options of ``simulate`` as worlds, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afresh.cli.options import parse_number, parse_settings
from afresh.cli.proving.replay_commands import WorldOptions
from afresh.cli.proving.world_building import WorldItems, make_behaviour, make_items
from afresh.replay.simulated_world import simulate_world
from afresh.values.errors import InputError, UsageError

DAY = 86400.0


def people(rates: str, items: int | None = None, size: int | None = None, unit_s: float = DAY) -> WorldItems:
    options = WorldOptions(rates=rates, items=items)
    return make_items(options, unit_s, size, np.random.default_rng(1))


def nature(changes: str = "poisson", **given: Any) -> Any:
    return make_behaviour(WorldOptions(changes=changes, **given))


def test_items_are_drawn_and_named() -> None:
    found = people("gamma:mean=2,cv=0", 12)
    assert found.names[0] == "item-00"
    assert found.names[-1] == "item-11"
    assert found.rates_per_s * DAY == pytest.approx(np.full(12, 2.0))
    assert len(people("cho").names) == 1000
    drawn = people("power:low=1,high=4,exponent=0", 500).rates_per_s * DAY
    assert drawn.mean() == pytest.approx(2.5, abs=0.2)


def test_chos_mix_is_per_day_whatever_the_unit() -> None:
    drawn = people("cho", 100, unit_s=3600.0).rates_per_s
    assert drawn.max() == pytest.approx(1 / DAY)


def test_mass_edits_put_items_into_groups_by_name_and_column() -> None:
    how, size = nature(mass_edits="rate=4/y,share=1,size=5")
    found = people("cho", 12, size)
    assert found.names[5] == "group-1/item-05"
    assert found.columns["group"][5] == "group-1"
    assert found.group is not None
    assert found.group.tolist() == [0] * 5 + [1] * 5 + [2] * 2
    assert how.mass_edits.rate_per_s * 365.25 * DAY == pytest.approx(4)


def test_a_file_brings_its_own_items(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item,rate,weight,group\nx,2,3,b\ny,0,1,a\nz,1,1,b\n")
    found = people(str(path))
    assert found.names == ["x", "y", "z"]
    assert (found.rates_per_s * DAY).tolist() == [2, 0, 1]
    assert found.columns["weight"].tolist() == [3, 1, 1]
    assert found.group is not None
    assert found.group.tolist() == [1, 0, 1]
    path.write_text("item,rate\nx,2\ny,1\n")
    assert people(str(path), size=1).group is not None
    with pytest.raises(UsageError, match="has its own items"):
        people(str(path), 5)
    path.write_text("item,rate\nx,-2\n")
    with pytest.raises(InputError, match=r"items\.csv, row 1 .*column rate: is -2"):
        people(str(path))


def test_every_side_of_a_nature_is_read() -> None:
    how, size = nature("bursty:0.2", season="day=0.5", drift="sd=2,horizon=10d", births=0.1, deaths=0.2)
    assert (how.shape, how.births, how.deaths, size) == (0.2, 0.1, 0.2, None)
    assert (how.drift.sd, how.drift.horizon_s) == (2, 10 * DAY)
    assert how.season.is_supported
    assert [nature(name)[0].shape for name in ("poisson", "regular", "bursty")] == [1, 4, 0.3]
    rates_per_s = people("gamma:mean=1", 50).rates_per_s
    made = simulate_world(rates_per_s, 0.0, 20 * DAY, how, np.random.default_rng(2))
    assert (made.start, made.end) == (0, 20 * DAY)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: people("gama"), r"neither one of cho, gamma, power nor a file .*did you mean 'gamma'"),
        (lambda: people("gama:mean=0.1"), r"neither one of .*did you mean 'gamma'"),
        (lambda: people("gamma:men=1"), "unknown setting of --rates gamma 'men': did you mean 'mean'"),
        (lambda: people("gamma:mean"), "write mean=VALUE"),
        (lambda: people("gamma:mean=much"), "mean: 'much' is not a number"),
        (lambda: people("cho", 0), "--items is 0"),
        (lambda: nature("burst"), "unknown --changes 'burst': did you mean 'bursty'"),
        (lambda: nature("bursty:2"), "below 1 for bursty"),
        (lambda: nature("regular:0.5"), "above 1 for regular"),
        (lambda: nature(drift="horizon=9"), "--drift, horizon: '9' is not a duration"),
        (lambda: nature(mass_edits="size=1.5"), "size: 1.5 is not a number of items"),
        (lambda: nature(season="day=3"), "season: day is 3"),
        (lambda: parse_settings("--x", "a=inf", {"a": (parse_number, 0.0)}), "'inf' is not a number"),
    ],
)
def test_what_is_wrong_is_said_in_words(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


def test_a_missing_file_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        people(str(tmp_path / "none.csv"))
