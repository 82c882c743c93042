"""An engine answers what can be asked of a project; a cluster does the same (tests/cluster)."""

from __future__ import annotations

from afresh.engine.app import make_engine
from afresh.engine.project_interface import Project
from afresh.engine.settings.parsing import parse_settings
from afresh.stores.sqlite.memory_store import MemoryStore


def test_an_engine_is_a_project() -> None:
    with make_engine(parse_settings(""), store=MemoryStore()) as engine:
        engine.add(["https://example.org/"])
        project: Project = engine
        assert project.status().items == 1
        assert project.why("https://example.org/").item.key == "https://example.org/"
        assert project.get("https://example.org/") is None
        assert project.versions("https://example.org/") == []
        page = project.changes()
        assert (list(page.changes), page.is_last) == ([], True)
