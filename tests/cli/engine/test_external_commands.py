"""``afresh due``: only items that may be polled now are lent."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK, closed_window, write_settings
from tests.servers.site import Site


def test_only_items_of_open_sources_are_lent(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    shut = f'windows = ["{closed_window()}"]\n'
    write_settings(tmp_path, f'[[source]]\nname = "web"\n{shut}[[source]]\nname = "open"\n')
    mirror("add", *(f"{site.url}/{name}" for name in "ab"))
    mirror("add", "--source", "open", f"{site.url}/c")
    assert mirror("due", "--k", "1").out.split() == [f"{site.url}/c"]
    assert mirror("due", "--k", "5", "--lease", "1m").out.split() == [f"{site.url}/c"]
    assert mirror("due").out == ""  # it is lent
    assert "source=web" in mirror("run", "--for", "0s", *QUICK).err
