"""``afresh simulate``: a synthetic world, written to files or replayed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from afresh.cli.history import output_names, replay_line, write_history
from afresh.cli.moments import parse_moment
from afresh.cli.options import CapsFile, Objective, Plot, Unit
from afresh.cli.replay_options import (
    A_THIRD,
    DEFAULT_POLICIES,
    AsJson,
    Asked,
    Budgets,
    Notices,
    Policies,
    Seed,
    Visits,
    WarmUp,
    Windows,
    asked_for,
)
from afresh.cli.summary import print_json, print_summary
from afresh.cli.world_flags import (
    Births,
    Changes,
    Count,
    Deaths,
    DriftSettings,
    MassEditSettings,
    Rates,
    SeasonSettings,
    Span,
    Start,
    WorldName,
)
from afresh.values.errors import UsageError
from afresh.values.units import parse_duration, unit_seconds

if TYPE_CHECKING:
    from afresh.cli.world_options import Inhabitants
    from afresh.replay.simulated_world import SimulatedWorld


def simulate(
    budget: Budgets = None,
    items: Count = None,
    rates: Rates = "cho",
    span: Span = "1y",
    start: Start = "2025-01-01",
    changes: Changes = "poisson",
    season: SeasonSettings = None,
    drift: DriftSettings = None,
    mass_edits: MassEditSettings = None,
    births: Births = 0.0,
    deaths: Deaths = 0.0,
    name: WorldName = None,
    policy: Policies = DEFAULT_POLICIES,
    objective: Objective = "freshness",
    warm_up: WarmUp = A_THIRD,
    windows: Windows = None,
    caps: CapsFile = None,
    notices: Notices = None,
    visits: Visits = None,
    plot: Plot = None,
    unit: Unit = "d",
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Make a world whose items change as you say, then run policies on it as replay does.

    With -o the world is written; without a budget that is all. Rates are per unit of time.
    """
    if budget is None and name is None:
        raise UsageError("give a budget, such as --budget 0.05/item/d, or -o NAME to write the world")
    asked = asked_for(
        budget,
        policy,
        inputs=[rates, caps, notices],
        objective=objective,
        warm_up=warm_up,
        windows=windows,
        caps=caps,
        notices=notices,
        visits=visits,
        plot=plot,
        unit=unit,
        seed=seed,
        as_json=as_json,
    )
    outputs = None if name is None else output_names(name)
    begin, span_s = parse_moment("--start", start), parse_duration(span)
    import numpy as np

    from afresh.cli.world_options import inhabitants_of, nature_of, world_of

    rng = np.random.default_rng(seed)
    nature, group_size = nature_of(changes, season, drift, mass_edits, births, deaths)
    people = inhabitants_of(rates, items, unit_seconds(unit), group_size, rng)
    world = world_of(people, begin or 0.0, span_s, nature, rng)
    if outputs is not None:
        _write(outputs, people, world, unit, only=budget is None, as_json=as_json)
    if budget is not None:
        _replay(people, world, asked)


def _replay(people: Inhabitants, world: SimulatedWorld, asked: Asked) -> None:
    """Run policies on the world as if it had been recorded."""
    import numpy as np
    import pyarrow as pa

    from afresh.cli.replay_run import replay_and_report
    from afresh.histories.recorded import RecordedHistory

    group = people.columns.get("group")
    recorded = RecordedHistory(
        names=pa.array(people.names, pa.large_string()),
        item=world.item,
        time=world.time,
        start=world.start,
        end=world.end,
        weight=people.columns.get("weight", np.ones(world.items)),
        cost=people.columns.get("cost", np.ones(world.items)),
        group=None if group is None else tuple(group),
        items_path="the world",
    )
    replay_and_report(recorded, asked)


def _write(
    outputs: dict[str, str],
    people: Inhabitants,
    world: SimulatedWorld,
    unit: str,
    *,
    only: bool,
    as_json: bool,
) -> None:
    """Write both files; where that is all there is to do, say what was made."""
    from afresh.values.formatting import format_iso_time

    rate = people.rates_per_s * unit_seconds(unit)
    write_history(outputs, people.names, world.item, world.time, rate=rate, **people.columns)
    if not only:
        return
    start, end = format_iso_time(world.start), format_iso_time(world.end)
    if as_json:
        made = {"items": world.items, "changes": int(world.time.size), "start": world.start, "end": world.end}
        print_json(made | {"files": outputs})
        return
    rows = [
        ("items", f"{world.items:,} ({outputs['items']})"),
        ("changes", f"{world.time.size:,} ({outputs['changes']})"),
        ("window", f"{start} to {end}"),
    ]
    print_summary("a synthetic world; replay it with the command below", rows)
    typer.echo(replay_line(outputs, start, end), err=True)
