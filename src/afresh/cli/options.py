"""Options that several commands share, groups of options as dataclasses, and parsers of option values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeAlias, get_type_hints

from typer import Argument, Option

from afresh.cli.summary import print_error
from afresh.values.errors import UsageError, one_of
from afresh.values.objective_names import OBJECTIVES_IN_WORDS
from afresh.values.units import number_or_nan, parse_duration, time_or_nan

ItemsFile: TypeAlias = Annotated[
    str, Argument(metavar="ITEMS", help="CSV, Parquet or JSONL, also .gz or .zst; - is standard input.")
]
Unit: TypeAlias = Annotated[
    str, Option("--unit", metavar="s|m|h|d|w|y", help="Unit of rates, frequencies, intervals and ages.")
]
Objective: TypeAlias = Annotated[
    str, Option("--objective", metavar="NAME", help=f"What to optimise: {OBJECTIVES_IN_WORDS}.")
]
Order: TypeAlias = Annotated[
    str,
    Option(
        "--order",
        metavar="NAME",
        help="How refreshes follow each other: fixed (even intervals), shuffled (each round), memoryless.",
    ),
]
Policy: TypeAlias = Annotated[
    str, Option("--policy", metavar="NAME", help="optimal, or to compare: uniform, proportional.")
]
CapsFile: TypeAlias = Annotated[
    str | None,
    Option("--caps", metavar="FILE", help="The most that each group may spend: columns group, cap."),
]
ViewsFile: TypeAlias = Annotated[
    str | None, Option("--views", metavar="FILE", help="Plan views over base items: columns view, base.")
]
WindowsOption: TypeAlias = Annotated[
    list[str] | None,
    Option("--windows", metavar="'22:00-06:00 Mon-Fri'", help="Poll only then (UTC); may be given again."),
]
On: TypeAlias = Annotated[
    str | None,
    Option(
        "--on", metavar="local|duckdb|ray|ray://HOST", help="Where to process a dataset; local if not given."
    ),
]
Output: TypeAlias = Annotated[
    str | None, Option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
]
Plot: TypeAlias = Annotated[
    str | None, Option("--plot", metavar="FILE", help="Draw a picture, as .png or .svg.")
]
AsJson: TypeAlias = Annotated[
    bool, Option("--json", help="Print one summary object on standard output instead of the rows.")
]
JsonSummary: TypeAlias = Annotated[
    bool, Option("--json", help="Print one summary object on standard output.")
]
PrintJson: TypeAlias = Annotated[bool, Option("--json", help="Print JSON on standard output.")]
SettingReaders: TypeAlias = Mapping[str, tuple[Callable[[str], float], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningOptions:
    """The options that ``plan`` and ``budget`` share."""

    unit: Unit = "d"
    order: Order = "fixed"
    policy: Policy = "optimal"
    caps: CapsFile = None
    views: ViewsFile = None
    windows: WindowsOption = None
    on: On = None
    output: Output = None
    as_json: AsJson = False


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a Typer command in which each field of a dataclass parameter is a separate option.

    A command declares a parameter such as ``options: ReplayOptions``. The fields of this dataclass are
    annotated like the parameters of a Typer command. So commands that share options declare them in one
    place, and a new shared option is one new field."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            declared = {"default": default, "annotation": hints[field.name]}
            parameters.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, **declared))

    @wraps(command)
    def call(**given: Any) -> None:
        built = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **built)

    call.__annotations__ = {}  # Typer reads annotations too, and these do not match the new signature
    call.__dict__["__signature__"] = inspect.Signature(parameters)
    return call


def read_duration(option: str, text: str | None, default: float) -> float:
    """Return the duration that an option's text states, in seconds, or ``default`` if ``text`` is None.

    >>> read_duration("--for", "10m", 0.0), read_duration("--for", None, 0.0)
    (600.0, 0.0)
    >>> read_duration("--for", "soon", 0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --for: 'soon' is not a duration: give ...
    """
    if text is None:
        return default
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def parse_moment(option: str, text: str | None) -> float | None:
    """Return the Unix seconds of a text that is a time in Unix seconds or ISO 8601, or None for None.

    A time without an offset is in UTC. ``option`` is the name of the option, for error messages.

    >>> parse_moment("--start", "2024-01-01"), parse_moment("--start", "1700000000.5")
    (1704067200.0, 1700000000.5)
    >>> parse_moment("--start", "2024-01-01T00:00:00+01:00")
    1704063600.0
    >>> parse_moment("--end", "soon")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --end 'soon' is not a time: give Unix seconds or ISO 8601, \
such as 2026-01-31T12:00:00Z
    """
    if text is None:
        return None
    seconds = time_or_nan(text)
    if not math.isfinite(seconds):
        right = "give Unix seconds or ISO 8601, such as 2026-01-31T12:00:00Z"
        raise UsageError(f"{option} {text!r} is not a time: {right}")
    return seconds


def parse_settings(option: str, text: str, readers: SettingReaders) -> dict[str, float]:
    """Return the values by name that the text of an option such as ``--drift sd=1,horizon=90d`` sets.

    ``readers`` maps each name to a tuple (function that parses the value, default value).

    >>> parse_settings("--season", "week=0.5", {"day": (parse_number, 0.0), "week": (parse_number, 0.0)})
    {'day': 0.0, 'week': 0.5}
    >>> parse_settings("--season", "weak=0.5", {"week": (parse_number, 0.0)})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown setting of --season 'weak': did you mean 'week'? One of week
    """
    found = {name: default for name, (_, default) in readers.items()}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        one_of(f"setting of {option}", name, readers)
        if not equals:
            raise UsageError(f"{option} {text!r}: write {name}=VALUE")
        try:
            found[name] = readers[name][0](value)
        except UsageError as error:
            raise UsageError(f"{option}, {name}: {error}") from None
    return found


def read_order(order: str) -> str:
    """Return the order of refreshes that ``--order`` names: fixed, shuffled or memoryless.
    The deprecated name ``random`` means memoryless here; a line on standard error says so.

    >>> read_order("shuffled")
    'shuffled'
    """
    if order != "random":
        from afresh.model.freshness import check_order

        return check_order(order)
    print_error("--order random is deprecated: say memoryless (what it means here) or shuffled")
    return "memoryless"


def parse_number(text: str) -> float:
    """Return the finite number in a text.

    >>> parse_number("x")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: 'x' is not a number
    """
    value = number_or_nan(text)
    if not math.isfinite(value):
        raise UsageError(f"{text!r} is not a number")
    return value
