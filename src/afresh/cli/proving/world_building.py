"""Builds the items of a synthetic world, and how they change, from the options of ``afresh simulate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from afresh.cli.options import SettingReaders, parse_number, parse_settings
from afresh.cli.proving.replay_commands import WorldOptions
from afresh.replay.change_process import RateDrift, cho_rates, gamma_rates, power_law_rates
from afresh.replay.simulated_world import MassEdits, WorldBehaviour, working_hours
from afresh.tables.columns import Column
from afresh.tables.reading import read_table
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import UsageError, did_you_mean
from afresh.values.units import UNIT_SECONDS, parse_duration, parse_rate

ITEMS_DEFAULT = 1000
RATED_ITEMS = (
    Column("item", "text", required=True, what="the item's name"),
    Column("rate", "number", required=True, minimum=0, what="changes per unit of time"),
    Column("weight", "number", default=1.0, minimum=0, what="importance"),
    Column("cost", "number", default=1.0, above=0, what="cost of one poll"),
    Column("group", "text", what="what mass edits change together"),
)
_SHAPES = {"poisson": 1.0, "regular": 4.0, "bursty": 0.3}
_DAY_S = UNIT_SECONDS["d"]


@dataclass(frozen=True, slots=True)
class WorldItems:
    """The items of a world: names, rates in changes per second, the number of each item's group for mass
    edits, and further columns (weight, cost, group) by name."""

    names: list[str]
    rates_per_s: Float64s
    group: Ints | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def _numbers(**defaults: float) -> SettingReaders:
    return {name: (parse_number, default) for name, default in defaults.items()}


_SETTINGS: dict[str, SettingReaders] = {
    "--season": _numbers(day=0.0, week=0.0),
    "--drift": {"sd": (parse_number, 1.0), "horizon": (parse_duration, 90 * _DAY_S)},
    "--mass-edits": {"rate": (parse_rate, 2 / UNIT_SECONDS["y"]), **_numbers(share=0.5, size=20)},
}
# For each distribution of rates: its settings, and the function that draws rates (per day for cho, else per
# unit of time).
DISTRIBUTIONS: dict[str, tuple[SettingReaders, Callable[..., Float64s]]] = {
    "cho": (_numbers(), cho_rates),
    "gamma": (_numbers(mean=0.1, cv=1.5), gamma_rates),
    "power": (_numbers(low=0.001, high=10.0, exponent=1.5), power_law_rates),
}


def make_items(
    options: WorldOptions, unit_s: float, group_size: int | None, rng: np.random.Generator
) -> WorldItems:
    """Return items whose rates are drawn from a distribution, or the items of a file. The given rates are per
    ``unit_s`` seconds. Mass edits change groups of ``group_size`` items together; None: no mass edits."""
    rates, items = options.rates, options.items
    name, _, text = rates.partition(":")
    if name in DISTRIBUTIONS:
        count = ITEMS_DEFAULT if items is None else items
        if count < 1:
            raise UsageError(f"--items is {count}: must be 1 or more")
        settings, draw = DISTRIBUTIONS[name]
        drawn = draw(count, rng, **parse_settings(f"--rates {name}", text, settings))
        return _name_items(drawn / (_DAY_S if name == "cho" else unit_s), group_size)
    # A name with a dot or a slash means a file; any other name must be a misspelt distribution.
    looks_like_file = "=" not in rates and ("." in rates or "/" in rates)
    if not (rates == "-" or Path(rates).exists() or looks_like_file):
        known = ", ".join(DISTRIBUTIONS)
        hint = did_you_mean(name, DISTRIBUTIONS)
        raise UsageError(f"--rates {rates!r} is neither one of {known} nor a file such as items.csv{hint}")
    if items is not None:
        raise UsageError("--items says how many to draw: a file of rates has its own items")
    return _read_items(rates, unit_s, group_size)


def _name_items(rates_per_s: Float64s, group_size: int | None) -> WorldItems:
    count = rates_per_s.size
    digits = len(str(count - 1))
    names = [f"item-{index:0{digits}d}" for index in range(count)]
    if group_size is None:
        return WorldItems(names, rates_per_s)
    group = np.arange(count) // group_size
    digits = len(str(int(group[-1])))
    labels = [f"group-{index:0{digits}d}" for index in group]
    paths = [f"{label}/{name}" for label, name in zip(labels, names, strict=True)]
    return WorldItems(paths, rates_per_s, group, {"group": labels})


def _read_items(path: str, unit_s: float, group_size: int | None) -> WorldItems:
    table = read_table(path, RATED_ITEMS, unique="item")
    columns: dict[str, Any] = {}
    for name in ("weight", "cost"):
        if name in table:
            columns[name] = np.asarray(table.numbers(name), dtype=np.float64)
    group = None
    if "group" in table:
        columns["group"] = table.text("group").tolist()
        group = np.unique(columns["group"], return_inverse=True)[1].astype(np.int64)
    elif group_size is not None:
        group = np.arange(table.rows) // group_size
    rates = np.asarray(table.numbers("rate"), dtype=np.float64) / unit_s
    return WorldItems(table.text("item").tolist(), rates, group, columns)


def make_behaviour(options: WorldOptions) -> tuple[WorldBehaviour, int | None]:
    """Return a tuple: how the items change, and the number of items in a group, None without mass edits."""
    edits, size = _parse_mass_edits(options.mass_edits)
    behaviour = WorldBehaviour(
        shape=_parse_shape(options.changes),
        season=None if options.season is None else working_hours(**_parse("--season", options.season)),
        drift=None if options.drift is None else RateDrift(*_parse("--drift", options.drift).values()),
        mass_edits=edits,
        births=options.births,
        deaths=options.deaths,
    )
    return behaviour, size


def _parse_shape(text: str) -> float:
    name, colon, number = text.partition(":")
    if name not in _SHAPES:
        hint = did_you_mean(name, _SHAPES)
        raise UsageError(f"unknown --changes {text!r}{hint} One of poisson, regular:SHAPE, bursty:SHAPE")
    if not colon:
        return _SHAPES[name]
    shape = parse_number(number)
    right = {"poisson": shape == 1, "regular": shape > 1, "bursty": 0 < shape < 1}[name]
    if not right:
        right_shapes = "above 1 for regular, below 1 for bursty, 1 for poisson"
        raise UsageError(f"--changes {text!r}: the shape of the gaps is {right_shapes}")
    return shape


def _parse(option: str, text: str) -> dict[str, float]:
    return parse_settings(option, text, _SETTINGS[option])


def _parse_mass_edits(text: str | None) -> tuple[MassEdits | None, int | None]:
    if text is None:
        return None, None
    found = _parse("--mass-edits", text)
    size = found["size"]
    if size < 1 or size != int(size):
        raise UsageError(f"--mass-edits, size: {size:g} is not a number of items")
    return MassEdits(found["rate"], found["share"]), int(size)
