"""The documentation as a web site (``make docs``): it is complete, its links work, it needs no other host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"


def pages() -> set[str]:
    """The names of all pages but the README, whose place the page index takes."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *SITE.glob("*.rst")]
    return {page.stem for page in found} - {"README"}


def test_every_page_is_in_the_contents_once() -> None:
    listed = re.findall(r"^([\w-]+)$", (SITE / "index.md").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == pages()


def test_the_pages_for_language_models_exist() -> None:
    named = re.findall(r"\((\S+)\.html\)", (SITE / "llms.txt").read_text())
    assert len(named) > 10
    assert set(named) <= pages()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, str(SITE / "build.py"), str(tmp_path / "site")]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    found = {page.stem for page in (tmp_path / "site").glob("*.html")}
    assert pages() <= found
    tasks = re.findall(r"^### ", (ROOT / "docs" / "howto.md").read_text(), re.MULTILINE)
    assert len([name for name in found if name.startswith("howto-")]) == len(tasks) > 25
    index = (tmp_path / "site" / "searchindex.js").read_text()
    assert all(f'"{word}"' in index or f"{word}:" in index for word in ("sitemap", "uniform", "lease"))
    assert (tmp_path / "site" / "llms.txt").exists()
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"([^\"]*)\"", text)
        assert [address for address in loaded if "://" in address or address.startswith("//")] == [], page
    reference = (tmp_path / "site" / "api-reference.html").read_text()
    for name in ("allocate", "estimate", "open_engine"):
        assert f'id="afresh.{name}"' in reference or f">{name}<" in reference
