"""The recipes for LangChain and LlamaIndex in docs/changes.md, run with both."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from tests.interop.environments import ROOT
from tests.pages.blocks import blocks_of

import afresh
from afresh.engine.app import init_folder
from afresh.values.reported import Reported

pytestmark = pytest.mark.interop

LANGCHAIN = """
from langchain_core.embeddings import DeterministicFakeEmbedding
embeddings = DeterministicFakeEmbedding(size=16)
"""
LLAMA_INDEX = """
from llama_index.core import MockEmbedding
embeddings = MockEmbedding(embed_dim=16)
"""


@pytest.mark.parametrize(
    ("package", "model", "shown"),
    [
        ("langchain_core", LANGCHAIN, "sorted(index.store)"),
        ("llama_index", LLAMA_INDEX, "sorted(index.ref_doc_info)"),
    ],
)
def test_a_recipe_holds_what_the_project_holds(
    package: str, model: str, shown: str, programs: Path, tmp_path: Path
) -> None:
    init_folder(tmp_path / "mirror")
    with afresh.open_engine(tmp_path / "mirror") as engine:
        engine.add(["http://a.test/1", "http://a.test/2", "http://a.test/3"])
        for key in ("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/2"):
            now_s = engine.clock.now_s()
            content = f"the text of {key} at {now_s}".encode()
            engine.observe([Reported(key, now_s, content=content, media_type="text/plain")])
        engine.remove(["http://a.test/1"])
    (recipe,) = [block.text for block in blocks_of("changes") if f"from {package}" in block.text]
    (tmp_path / "my_model.py").write_text(model)
    (tmp_path / "recipe.py").write_text(f"{recipe}\nprint({shown})\n")
    # afresh and what it needs come from here, after the packages of the tool.
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [str(programs / "python"), "recipe.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "['http://a.test/2', 'http://a.test/3']", done.stderr
