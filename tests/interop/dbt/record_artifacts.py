"""``python -m tests.interop.dbt.record_artifacts`` records the files of dbt that ``make test`` reads.

Each folder of ``tests/data/dbt`` has what dbt wrote at one moment; macros and arguments are left out."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.interop.dbt.shop import Shop
from tests.interop.environments import ROOT, environment

DATA = ROOT / "tests" / "data" / "dbt"
_LEFT_OUT = ("macros", "docs", "args", "child_map", "parent_map", "group_map", "selectors")
FILES = ("manifest.json", "run_results.json", "sources.json")


def record(shop: Shop, moment: str, *files: str) -> None:
    """Copy what dbt wrote, without what is large or names this machine."""
    folder = DATA / moment
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        text = (shop.folder / "target" / name).read_text()
        found = json.loads(text.replace(str(shop.folder), "."))
        kept = {key: {} if key in _LEFT_OUT else value for key, value in found.items()}
        (folder / name).write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    """Build everything, load orders, and build with a model that fails."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder), environment("dbt"))
        shop.dbt("source", "freshness")
        shop.dbt("build")
        record(shop, "1-built", *FILES)
        shop.write("orders")
        shop.dbt("source", "freshness")
        record(shop, "2-loaded", *FILES)
        shop.model("orders_by_customer", "select broken from {{ ref('stg_orders') }}\n")
        shop.dbt("build", "--select", "orders_daily", "orders_by_customer+", fails=True)
        record(shop, "3-failed", *FILES)
    sys.stdout.write(f"recorded in {DATA}\n")


if __name__ == "__main__":
    main()
