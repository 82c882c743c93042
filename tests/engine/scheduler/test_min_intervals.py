"""Sources have a least interval between two polls of an item, and unspent budget is explained by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.engine.settings.parsing import parse_settings

KINDS = """
[run]
listings_every = "30m"
[[source]]
name = "web"
[[source]]
name = "rows"
kind = "sql"
url = "sqlite:a.db"
query = "SELECT * FROM a"
key = "id"
[[source]]
name = "cursor"
kind = "sql"
url = "sqlite:a.db"
query = "SELECT * FROM a"
key = "id"
cursor = "at"
[[source]]
name = "views"
kind = "view"
url = "postgresql:///w"
[[source]]
name = "mine"
kind = "python"
call = "json:loads"
[[source]]
name = "none"
min_interval = 0
"""


def test_the_default_depends_on_the_kind_and_0_means_none() -> None:
    found = parse_settings(KINDS).min_intervals()
    expected = {"web": 60.0, "rows": 1800.0, "cursor": 60.0, "views": 0.0, "mine": 0.0, "none": 0.0}
    assert found == expected


@pytest.mark.parametrize(("source", "least_s"), [("min_interval = '5s'", 5.0), ("min_interval = 0", 0.0)])
def test_two_pages_are_not_polled_all_the_time(tmp_path: Path, source: str, least_s: float) -> None:
    site = VirtualSite([5.0, 5.0])
    with site.engine(tmp_path, budget="2/s", source=source) as engine:
        engine.add(site.urls())
        engine.run(for_s=20.0)
        status, polls = engine.status(), [engine.why(url).item.polls for url in site.urls()]
    assert status.run is not None
    if least_s:
        assert max(polls) <= 1 + 20.0 / least_s
        assert status.run.unspent["intervals"] > 20
    else:
        assert max(polls) > 10
        assert "intervals" not in status.run.unspent
