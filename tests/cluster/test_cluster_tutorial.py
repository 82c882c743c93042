"""The commands of the tutorial of a cluster run as they are written, with a site on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.ray_cluster import ray_folder
from tests.engine.living import LivingSite
from tests.pages.blocks import blocks_of

pytestmark = pytest.mark.waits
WEB = {"DELAY": "0", "MIN_INTERVAL": "0", "RESPECT_ROBOTS": "false", "ALLOW_PRIVATE": "true"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_tutorial_runs(tmp_path: Path) -> None:
    words = {f"AFRESH_SOURCE_WEB_{name}": value for name, value in WEB.items()}
    with ray_folder() as own, LivingSite([0.2, 0.2, 0.2], hosts=2, lasts_s=600.0) as site:
        home, other, news = site.urls()
        leads = {
            "https://example.org/news": news,
            "https://example.org/": home,
            "https://example.net/": other,
        }
        leads |= {"--for 60s": "--for 25s", "pip install": "true"}
        blocks = [block.text for block in blocks_of("tutorial-cluster") if "ray start" not in block.text]
        script = "set -eu\n" + "".join(blocks)
        for said, here in leads.items():
            script = script.replace(said, here)
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        ran = subprocess.run(
            ["bash", "-c", script.replace(" && ", "\n")],
            cwd=tmp_path,
            env={**os.environ, **path, **own, **words},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    folder = tmp_path / "shop"
    assert (folder / "news.html").read_text().startswith("page 2 version")
    assert (folder / "changes.jsonl").read_text().count("\n") >= 3
    assert "3 items (3 active)" in ran.stdout
    assert (folder / "shards" / "2.db").exists()
