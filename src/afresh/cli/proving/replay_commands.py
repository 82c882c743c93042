"""``afresh replay`` runs policies on a recorded history; ``afresh simulate`` runs them on a synthetic world.

Both have the options in ``ReplayOptions``; ``simulate`` also has those in ``WorldOptions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.files import check_files
from afresh.cli.options import (
    CapsFile,
    JsonSummary,
    Objective,
    Plot,
    Unit,
    WindowsOption,
    parse_moment,
    with_option_groups,
)
from afresh.cli.proving.history_command import check_output_names, report_history, write_history
from afresh.values.errors import UsageError
from afresh.values.units import BudgetRate, parse_budget, parse_duration, unit_seconds

if TYPE_CHECKING:
    from afresh.cli.proving.world_building import WorldItems
    from afresh.replay.simulated_world import SimulatedWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options that ``replay`` and ``simulate`` share."""

    budget: Annotated[
        str | None,
        typer.Option(
            metavar="0.05/item/d", help="Cost units per time; several, separated by commas, compare."
        ),
    ] = None
    policy: Annotated[str, typer.Option(metavar="NAMES", help="Policies to run, separated by commas.")] = (
        "adaptive,uniform,oracle"
    )
    objective: Objective = "freshness"
    warm_up: Annotated[float, typer.Option(help="Share of the window that is for learning.")] = 1 / 3
    windows: WindowsOption = None
    caps: CapsFile = None
    notices: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|recall=0.8,false=0.1", help="Hints of change: item, time, origin; or made up."
        ),
    ] = None
    stamps: Annotated[
        bool, typer.Option("--stamps", help="Polls also tell when the item changed last, as Last-Modified.")
    ] = False
    visits: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write every visit: policy, item, time, changed.")
    ] = None
    plot: Plot = None
    unit: Unit = "d"
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 1
    as_json: JsonSummary = False

    @property
    def budgets(self) -> tuple[BudgetRate, ...]:
        """The budgets at which to run the policies, each above 0."""
        return () if self.budget is None else parse_budgets(self.budget)

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies, each once.

        >>> ReplayOptions(policy="adaptive, uniform,adaptive").policies
        ('adaptive', 'uniform')
        """
        names = (name.strip() for name in self.policy.split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    def check(self, inputs: Sequence[str | None]) -> None:
        """Raise ``UsageError`` if an option or one of the files ``inputs`` is wrong. Call it before reading.

        >>> ReplayOptions(warm_up=1.0).check([])
        Traceback (most recent call last):
        afresh.values.errors.UsageError: --warm-up is 1: must be a share of the window, from 0 to below 1
        """
        unit_seconds(self.unit)
        if self.as_json and self.visits == "-":
            raise UsageError("--json and --visits - both want standard output: give --visits a file")
        _ = self.budgets
        if not 0 <= self.warm_up < 1:
            raise UsageError(
                f"--warm-up is {self.warm_up:g}: must be a share of the window, from 0 to below 1"
            )
        check_files([*inputs, self.caps, self.notices], self.visits, self.plot)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions:
    """The options of ``simulate`` that describe the world."""

    items: Annotated[int | None, typer.Option(metavar="N", help="How many items; 1000 if not given.")] = None
    rates: Annotated[
        str,
        typer.Option(metavar="SPEC|FILE", help="cho, gamma:mean=0.1,cv=1.5, power:low=0.001,…, or a file."),
    ] = "cho"
    span: Annotated[str, typer.Option(metavar="1y", help="How long the simulation lasts.")] = "1y"
    start: Annotated[str, typer.Option(metavar="TIME", help="When it starts.")] = "2025-01-01"
    changes: Annotated[str, typer.Option(metavar="KIND", help="poisson, regular:SHAPE or bursty:SHAPE.")] = (
        "poisson"
    )
    season: Annotated[
        str | None, typer.Option(metavar="day=0.8,week=0.5", help="Quiet nights and weekends, from 0 to 1.")
    ] = None
    drift: Annotated[
        str | None,
        typer.Option(metavar="sd=1,horizon=90d", help="Rates change slowly; sd is that of their logarithm."),
    ] = None
    mass_edits: Annotated[
        str | None, typer.Option(metavar="rate=2/y,share=0.5,size=20", help="Groups change together.")
    ] = None
    births: Annotated[float, typer.Option(help="Share of the items that appear.")] = 0.0
    deaths: Annotated[float, typer.Option(help="Share of the items that vanish.")] = 0.0


def parse_budgets(text: str) -> tuple[BudgetRate, ...]:
    """Return the budgets in a text that separates them by commas; raise ``UsageError`` if one is not above 0.

    >>> [budget.per_item for budget in parse_budgets("0.02/item/d, 5/d")]
    [True, False]
    >>> parse_budgets("0/d")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --budget 0/d: a replay needs a budget above 0
    """
    budgets = []
    for part in (piece.strip() for piece in text.split(",")):
        budget = parse_budget(part)
        if budget.per_second <= 0:
            raise UsageError(f"--budget {part}: a replay needs a budget above 0")
        budgets.append(budget)
    return tuple(budgets)


@with_option_groups
def replay(
    changes: Annotated[
        str, typer.Argument(metavar="CHANGES", help="Every change: columns item, time; - is standard input.")
    ],
    options: ReplayOptions,
    items: Annotated[
        str | None, typer.Option("--items", metavar="ITEMS", help="Every item, also those that never change.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="When every copy is fresh.")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="TIME", help="When the history ends.")] = None,
) -> None:
    """Run policies on a recorded history under one budget and measure how fresh they keep the copies.

    ITEMS has a column item and optionally weight, cost, group. Times are Unix seconds or ISO 8601.
    """
    if options.budget is None:
        raise UsageError("give a budget, such as --budget 0.05/item/d")
    window = parse_moment("--start", start), parse_moment("--end", end)
    options.check([changes, items])
    from afresh.cli.proving.replay_run import replay_and_report
    from afresh.histories.recorded import read_recorded

    replay_and_report(read_recorded(changes, items, *window, keeps_past=options.stamps), options)


@with_option_groups
def simulate(
    world_options: WorldOptions,
    options: ReplayOptions,
    name: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="NAME", help="Write NAME.changes.csv and NAME.items.csv."),
    ] = None,
) -> None:
    """Simulate items that change as the options describe, then run policies on them as replay does.

    With -o the changes are written to files. Without a budget no policy runs. Rates are per unit of time.
    """
    if options.budget is None and name is None:
        raise UsageError("give a budget, such as --budget 0.05/item/d, or -o NAME to write the world")
    options.check([world_options.rates])
    outputs = None if name is None else check_output_names(name)
    start, span_s = parse_moment("--start", world_options.start) or 0.0, parse_duration(world_options.span)
    import numpy as np

    from afresh.cli.proving.world_building import make_behaviour, make_items
    from afresh.replay.simulated_world import simulate_world

    rng = np.random.default_rng(options.seed)
    behaviour, group_size = make_behaviour(world_options)
    items = make_items(world_options, unit_seconds(options.unit), group_size, rng)
    world = simulate_world(items.rates_per_s, start, start + span_s, behaviour, rng, group=items.group)
    if outputs is not None:
        rate = items.rates_per_s * unit_seconds(options.unit)
        write_history(outputs, items.names, world.item, world.time, rate=rate, **items.columns)
    if options.budget is not None:
        _replay_world(items, world, options)
    elif outputs is not None:
        counts = {"items": world.items, "changes": int(world.time.size)}
        summary = {**counts, "start": world.start, "end": world.end}
        report_history("a synthetic world", outputs, summary, {}, as_json=options.as_json)


def _replay_world(items: WorldItems, world: SimulatedWorld, options: ReplayOptions) -> None:
    """Run policies on the world as if it had been recorded."""
    import numpy as np

    from afresh.cli.proving.replay_run import replay_and_report
    from afresh.histories.recorded import RecordedHistory
    from afresh.tables.text_columns import as_texts

    group = items.columns.get("group")
    recorded = RecordedHistory(
        names=as_texts(items.names),
        item=world.item,
        time=world.time,
        start=world.start,
        end=world.end,
        weight=items.columns.get("weight", np.ones(world.items)),
        cost=items.columns.get("cost", np.ones(world.items)),
        group=None if group is None else tuple(group),
        items_path="the world",
        modified=np.full(world.items, np.nan),
    )
    replay_and_report(recorded, options)
