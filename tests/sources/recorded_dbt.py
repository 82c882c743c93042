"""What dbt wrote for the project of ``examples/dbt_shop``, recorded at three moments.

``1-built``: everything was built; ``2-loaded``: then orders were loaded, and the freshness of sources was
read; ``3-failed``: then a model that others are made from failed."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "dbt"
ENDED_S = datetime.fromisoformat(
    json.loads((DATA / "3-failed" / "run_results.json").read_text())["metadata"]["generated_at"]
).timestamp()
"""When the last recorded run ended."""

MODELS = {
    "customers_by_region", "events_hourly", "finance_report", "funnel", "orders_by_customer", "orders_daily",
    "product_report", "retention", "revenue_daily", "sessions", "top_customers",
}  # fmt: skip
OF_ORDERS = {
    "orders_by_customer", "orders_daily", "revenue_daily", "top_customers", "funnel", "finance_report",
    "product_report",
}  # fmt: skip
_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^"]*)"')


def copy_recorded(moment: str, target: Path, *files: str, shift_s: float = 0.0) -> None:
    """Copy the files of a moment to the folder ``target``, by default all, with all times shifted."""
    target.mkdir(exist_ok=True)
    for path in (DATA / moment).iterdir():
        if not files or path.name in files:
            shutil.copy(path, target)
            if shift_s:
                (target / path.name).write_text(shift_times(path.read_text(), shift_s))


def shift_times(text: str, shift_s: float) -> str:
    """Return a file of dbt in which all times are so many seconds later."""

    def shifted(found: re.Match[str]) -> str:
        return f'"{(datetime.fromisoformat(found[1]) + timedelta(seconds=shift_s)).isoformat()}"'

    return _TIME.sub(shifted, text)
