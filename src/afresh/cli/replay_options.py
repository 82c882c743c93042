"""Options that ``replay`` and ``simulate`` share, declared once, and what was asked by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from afresh.cli.files import check_files
from afresh.values.errors import UsageError
from afresh.values.units import BudgetRate, parse_budget, unit_seconds

DEFAULT_POLICIES = "adaptive,uniform,oracle"
A_THIRD = 1 / 3

Budgets: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="0.05/item/d", help="Cost units per time; several, separated by commas, compare."
    ),
]
Policies: TypeAlias = Annotated[
    str, typer.Option("--policy", metavar="NAMES", help="Policies to run, separated by commas.")
]
WarmUp: TypeAlias = Annotated[
    float, typer.Option("--warm-up", help="Share of the window before the figures that count.")
]
Windows: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--windows", metavar="'22:00-06:00 Mon-Fri'", help="Poll only then (UTC); may be given again."
    ),
]
Notices: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--notices", metavar="FILE|recall=0.8,false=0.1", help="Hints of change: item, time; or made up."
    ),
]
Visits: TypeAlias = Annotated[
    str | None,
    typer.Option("--visits", metavar="OUT", help="Write every visit: policy, item, time, changed."),
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one summary object on standard output.")
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a replay was asked for, each option checked by itself."""

    budgets: tuple[BudgetRate, ...]
    policies: tuple[str, ...]
    objective: str
    warm_up: float
    windows: tuple[str, ...]
    caps: str | None
    notices: str | None
    visits: str | None
    plot: str | None
    unit: str
    seed: int
    as_json: bool


def asked_for(
    budget: str | None,
    policy: str,
    *,
    inputs: Sequence[str | None],
    objective: str,
    warm_up: float,
    windows: list[str] | None,
    caps: str | None,
    notices: str | None,
    visits: str | None,
    plot: str | None,
    unit: str,
    seed: int,
    as_json: bool,
) -> Asked:
    """The options as values; whatever is wrong with one of them is said here, before anything is read."""
    unit_seconds(unit)
    if as_json and visits == "-":
        raise UsageError("--json and --visits - both want standard output: give --visits a file")
    asked = Asked(
        budgets=() if budget is None else parse_budgets(budget),
        policies=parse_names(policy),
        objective=objective,
        warm_up=check_warm_up(warm_up),
        windows=tuple(windows or ()),
        caps=caps,
        notices=notices,
        visits=visits,
        plot=plot,
        unit=unit,
        seed=seed,
        as_json=as_json,
    )
    check_files(inputs, visits, plot)
    return asked


def parse_budgets(text: str) -> tuple[BudgetRate, ...]:
    """One budget or several, each above 0.

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


def parse_names(text: str) -> tuple[str, ...]:
    """Names separated by commas, each once.

    >>> parse_names("adaptive, uniform,adaptive")
    ('adaptive', 'uniform')
    """
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def check_warm_up(share: float) -> float:
    """A share from 0 to below 1.

    >>> check_warm_up(1.0)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --warm-up is 1: must be a share of the window, from 0 to below 1
    """
    if not 0 <= share < 1:
        raise UsageError(f"--warm-up is {share:g}: must be a share of the window, from 0 to below 1")
    return share
