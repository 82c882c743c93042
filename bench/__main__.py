"""``python -m bench [NAME…] [--quick] [--case CASE]`` prints one table; exit 1 if a limit is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from rich.console import Console
from rich.table import Table

from bench.rows import Row

# Each is a module of this folder with a function rows(quick); its docstring says what it measures.
BENCHES = (
    "plan_stream",
    "plan_scale",
    "plan_cvxpy",
    "plan_file",
    "large",
    "rates_speed",
    "estimate_file",
    "calibration",
    "beliefs",
    "estimators",
    "store",
    "store_postgres",
    "changes",
    "sql_bulk",
    "views",
    "view_simulation",
    "dbt_models",
    "polling",
    "crawl",
    "follow",
    "parsing",
    "render",
    "attacks",
    "engine_scale",
    "replay",
    "notice_hosts",
    "probes",
    "search",
    "api",
    "replay_limit",
    "replay_rivals",
    "replay_robust",
    "replay_stamps",
    "constants",
    "web",
    "demo",
    "signals",
    "cluster",
    "cluster_simulation",
    "package",
)
WIDTH = 200
WITH_CASES = (
    "attacks",
    "constants",
    "follow",
    "large",
    "replay",
    "replay_limit",
    "replay_rivals",
    "replay_robust",
    "replay_stamps",
    "view_simulation",
    "views",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all of them, and return the exit code."""
    parser = argparse.ArgumentParser(prog="bench", description="Measured ratios of afresh.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHES)}; default all")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument(
        "--case", action="append", default=[], help="of benchmarks that have cases: only those beginning so"
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHES))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}: one of {', '.join(BENCHES)}")
    table = Table("benchmark", "what", "measured", "ratio", "wanted", "")
    missed = False
    cases = {"cases": options.case} if options.case else {}
    if cases and (len(options.names) != 1 or options.names[0] not in WITH_CASES):
        parser.error(f"--case goes with one of {', '.join(WITH_CASES)} alone")
    for name in options.names or BENCHES:
        for row in import_module(f"bench.{name}").rows(quick=options.quick, **cases):
            missed |= not row.ok
            table.add_row(name, *_cells(row))
        table.add_section()
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)  # in a file a row need not be broken
    console.print(table)
    return 1 if missed else 0


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
    verdict = "" if not row.wanted else "[green]ok[/]" if row.ok else "[red]missed[/]"
    return row.name, f"{row.measured:.3g} {row.unit}".rstrip(), ratio, row.wanted, verdict


if __name__ == "__main__":
    sys.exit(main())
