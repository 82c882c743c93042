"""Every code block of the README and the docs runs, as it is written, against a stage on this machine.

A page's sections are each run in a folder of their own: a project with a mirrored site, and the files that
the pages speak of. Its ``toml`` blocks are the settings, checked by ``afresh config check``; its ``sh`` and
``python`` blocks run in their order. The tutorials have a test of their own: test_tutorials.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pages.blocks import PAGES, Block, all_blocks, blocks_of
from tests.pages.stage import Stage, staged
from tests.pages.tutorials import TUTORIALS
from tests.servers.quick_afresh import QuickAfresh

from afresh.engine import plugins

pytestmark = pytest.mark.waits

RUN = ("sh", "python", "toml")
# Blocks that are not run, by page, first words and reason.
SHOWN = {
    ("architecture", "             policy/adaptive/rate_belief.py"): "a drawing; test_docs checks its files",
    ("architecture", "polls.csv    tables/reading.py"): "a drawing; test_docs checks its files",
    ("architecture", "request_template.py"): "a drawing; test_docs checks its files",
    ("architecture", "host_hashing.py"): "a drawing; test_docs checks its files",
    ("engine", "policy (memory)"): "a drawing",
    ("deploy", "[Unit]"): "a systemd unit, checked below",
    ("deploy", "*/10 * * * *"): "a line of a crontab",
    ("install", "python3 -m build"): "a container program; test_package runs the commands of the file",
    ("metrics", "scrape_configs"): "settings of Prometheus",
    ("howto", "from airflow.sdk"): "a DAG of Airflow; tests/pages/test_airflow_recipe.py runs its command",
    ("howto", "import subprocess\n\nimport dagster"): "make interop runs it with Dagster",
    ("scale", "pip install 'afresh[ray]'"): "several machines; tests/cluster runs clusters",
    ("commands", "afresh cluster run"): "several machines; tests/cluster runs clusters",
    ("changes", "pip install 'afresh[text]' apsw"): "tests/examples runs the example",
    ("changes", "import afresh\nfrom langchain_core"): "make interop runs it with LangChain",
    ("changes", "import afresh\nfrom llama_index"): "make interop runs it with LlamaIndex",
    ("settings", "[project.entry-points"): "part of another package's pyproject.toml, checked below",
}


def is_shown(block: Block) -> bool:
    return any(block.page == page and block.text.startswith(words) for page, words in SHOWN)


def test_every_block_is_run_or_has_a_reason() -> None:
    others = [block for block in all_blocks() if block.page not in TUTORIALS]
    loose = [block.place for block in others if block.language not in RUN and not is_shown(block)]
    assert loose == [], "fence these with sh, python or toml so that they run, or give a reason above"
    for page, words in SHOWN:
        assert any(block.text.startswith(words) for block in blocks_of(page)), f"{page}: {words} is gone"


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, quick_afresh: QuickAfresh
) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage"), quick_afresh.shell, postgres_url) as found:
        yield found


def sections(page: str) -> list[list[Block]]:
    """The blocks of a page that run, by section: the README's begin with bold words, to be short."""
    blocks = [block for block in blocks_of(page) if not is_shown(block)]
    if page in TUTORIALS:
        return []
    lines, heads = PAGES[page].read_text().splitlines(), "**" if page == "readme" else "##"
    starts = [number for number, line in enumerate(lines, 1) if line.startswith(heads)]
    parts: dict[int, list[Block]] = {}
    for block in blocks:
        parts.setdefault(sum(start < block.line for start in starts), []).append(block)
    return list(parts.values())


def script(blocks: list[Block], stage: Stage, folder: Path, python: str = "quick") -> str:
    """What a reader would type, with files for the settings and the Python programs, run by ``python``."""
    lines = []
    for number, block in enumerate(blocks):
        if block.language == "sh":
            lines.append(block.text)
        elif block.language == "toml":
            (folder / f"{number}.toml").write_text(stage.settings(block.text))
            lines.append(f"cp {number}.toml afresh.toml && afresh config check")
        else:
            (folder / f"{number}.py").write_text(stage.told(block.text))
            lines.append(f"{python} {number}.py")
    return "\n".join(lines)


@pytest.mark.parametrize("page", [page for page in PAGES if sections(page)])
def test_the_blocks_of_a_page_run_in_their_order(page: str, stage: Stage, tmp_path: Path) -> None:
    for number, blocks in enumerate(sections(page)):
        folder = tmp_path / str(number)
        shutil.copytree(stage.model, folder)
        own = any(block.language == "toml" for block in blocks)
        text = script(blocks, stage, folder)
        stage.run(text, folder, **({"sources": {}} if own else {}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [block for block in all_blocks("python") if not is_shown(block)], ids=lambda block: block.place
)
def test_python_imports_all_that_it_uses(block: Block, stage: Stage, tmp_path: Path) -> None:
    """In a Python of its own: the quick one has imported everything already."""
    folder = tmp_path / "folder"
    shutil.copytree(stage.model, folder)
    stage.run(script([block], stage, folder, sys.executable), folder)


def test_a_command_that_fails_fails_the_page(stage: Stage, tmp_path: Path) -> None:
    for rest in ("\ntrue", " && true", " | cat"):
        with pytest.raises(AssertionError, match="no-such-file"):
            stage.run(f"afresh plan no-such-file.csv --budget 5/d{rest}\ntrue", tmp_path)


def test_the_unit_starts_what_there_is(quick_afresh: QuickAfresh) -> None:
    """It parses, and every command that it calls exists, with its options."""
    (unit,) = (block.text for block in blocks_of("deploy") if block.language == "ini")
    parser = configparser.ConfigParser(strict=True)
    parser.read_string(unit)
    assert parser.sections() == ["Unit", "Service", "Install"]
    calls = re.findall(r"^Exec\w+=/opt/afresh/bin/afresh (\w+)(.*)$", unit, re.MULTILINE)
    assert [command for command, _ in calls] == ["config", "run"]
    for command, options in calls:
        ran = quick_afresh.run(command, "--help", environment={**os.environ, "COLUMNS": "200"})
        assert ran.returncode == 0
        for option in re.findall(r"--[a-z-]+", options):
            assert option in ran.stdout


def test_the_entry_points_shown_are_those_that_are_looked_up() -> None:
    (text,) = (block.text for block in blocks_of("settings") if block.text.startswith("[project"))
    (group,) = tomllib.loads(text)["project"]["entry-points"]
    assert group in Path(plugins.__file__).read_text()
