"""``make pictures`` takes the pictures of the dashboard that the pages show, of a run of 7 minutes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from tests.engine.living import LivingSite
from tests.pages.blocks import ROOT

PAGES, RUN_S = 240, 420.0
CHROMIUM = "/usr/bin/chromium-headless-shell"
SETTINGS = """
[budget]
requests = "8/s"
[plan]
audit_share = 0.1
[web]
port = 0
[[source]]
name = "web"
allow_private = true
delay = "0s"
concurrency = 8
min_interval = 0
"""


def main() -> None:
    rates = list(np.random.default_rng(7).lognormal(np.log(1 / 60), 2.0, PAGES))
    with tempfile.TemporaryDirectory() as folder, LivingSite(rates, seed=1, lasts_s=RUN_S + 60) as site:
        project = Path(folder, "mirror")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AFRESH_")}
        afresh = [sys.executable, "-m", "afresh", "-C", str(project)]
        subprocess.run([*afresh[:3], "init", str(project)], env=environment, check=True)
        (project / "afresh.toml").write_text(SETTINGS)
        (project / "items.txt").write_text("\n".join(site.urls()))
        subprocess.run([*afresh, "add", "--file", str(project / "items.txt")], env=environment, check=True)
        with subprocess.Popen(
            [*afresh, "run", "--web"], env=environment, stderr=subprocess.PIPE, text=True
        ) as run:
            assert run.stderr is not None
            address = next(
                found[0] for line in run.stderr if (found := re.findall(r"http://127\.0\.0\.1:\d+/", line))
            )
            try:
                time.sleep(RUN_S)
                take(address)
            finally:
                run.terminate()


def take(address: str) -> None:
    """Write the pictures of the pages Now and Plan."""
    docs = ROOT / "docs"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport={"width": 1240, "height": 695}, color_scheme="light")
        for name, path in (("now", ""), ("plan", "plan")):
            page.goto(address + path)
            page.wait_for_selector(".js-plotly-plot .main-svg", state="attached")
            page.wait_for_timeout(2000)  # until the first figures have come and the chart is drawn
            if name == "now":
                page.screenshot(path=docs / "web-top.png")
            page.screenshot(path=docs / f"web-{name}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
