"""The example keeps a real vector index in step with a project, exactly, wherever it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import numpy as np
import pytest
from tests.waiting import until

import afresh
from afresh import Engine, Reported
from afresh.engine.app import init_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "vector_index.py"
PAGES, PARAGRAPHS = 8, 4


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = spec_from_file_location("vector_index", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["vector_index"] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "project"
    init_folder(folder)
    with afresh.open_engine(folder) as engine:
        engine.add([url(page) for page in range(PAGES)])
        yield engine


def url(page: int) -> str:
    return f"https://example.org/{page}"


def text(page: int, version: int) -> str:
    """A page of which only one paragraph differs from version to version."""
    stays = [f"{'lorem ipsum dolor ' * 45}on page {page} in paragraph {part}" for part in range(PARAGRAPHS)]
    return "\n".join([f"{'Version of the page. ' * 40}{page}: {version}", *stays])


def write(engine: Engine, page: int, version: int) -> None:
    content, now_s = text(page, version).encode(), engine.clock.now_s()
    done = engine.observe([Reported(url(page), now_s, content=content, media_type="text/plain")])
    assert done.taken == 1


def command(*words: object) -> list[str]:
    return [sys.executable, str(EXAMPLE), *map(str, words)]


def opened(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """The index beside the program that writes it, which may hold it for a moment."""
    database = apsw.Connection(str(path), flags=flags)
    database.set_busy_timeout(30_000)
    return database


def contents(path: Path) -> dict[str, set[str]]:
    """The texts of the chunks of each page, each of which has its vector."""
    database = opened(path)
    rows: Any = database.execute("SELECT item, text FROM chunk JOIN page ON page.id = page").fetchall()
    database.close()
    found: dict[str, set[str]] = {}
    for item, part in rows:
        assert part not in found.setdefault(item, set())
        found[item].add(part)
    return found


def applied(path: Path) -> int:
    database = opened(path, apsw.SQLITE_OPEN_READONLY)
    try:
        return int(database.execute("SELECT coalesce(sum(applied), 0) FROM page").get)
    except apsw.SQLError:
        return 0  # the tables are not made yet
    finally:
        database.close()


def test_a_changed_page_is_embedded_in_its_changed_part_only(
    example: ModuleType, project: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for page in range(PAGES):
        write(project, page, 1)
    with closing(example.VectorIndex(str(tmp_path / "index.db"))) as index:
        assert example.update(folder, index, form="raw", follow=False) == PAGES
        write(project, 3, 2)
        project.remove([url(5)])
        assert example.freshness(folder, index)["in_step"] == pytest.approx((PAGES - 2) / (PAGES - 1))
        assert example.update(folder, index, form="raw", follow=False) == 2
        found = example.freshness(folder, index)
        assert found["in_step"] == 1.0
        # All newest copies are in the index, so that it is as fresh as the copies are.
        assert found["freshness"] == pytest.approx(project.status().freshness.value, abs=0.05)
        best = index.search("version of the page 3 2", 1)[0]
        assert "Version" in best.text
    database = apsw.Connection(str(tmp_path / "index.db"))
    embedded = [count for (count,) in database.execute("SELECT chunks FROM embedded")]
    database.close()
    assert embedded == [PARAGRAPHS + 1] * PAGES + [1, 0]
    assert set(contents(tmp_path / "index.db")) == {url(page) for page in range(PAGES) if page != 5}


def test_an_index_whose_place_is_lost_starts_again(
    example: ModuleType, project: Engine, tmp_path: Path
) -> None:
    write(project, 0, 1)
    with closing(example.VectorIndex(str(tmp_path / "index.db"))) as index:
        index.start_again("beef-7-00000000", [("web", "https://example.org/old", 1, "an old page")])
        example.update(tmp_path / "project", index, form="raw", follow=False)
        assert index.versions() == {("web", url(0)): 1}
        assert example.update(tmp_path / "project", index, form="raw", follow=False) == 0


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.waits
def test_killed_anywhere_it_applies_every_change_exactly_once(
    kills: int, project: Engine, tmp_path: Path
) -> None:
    folder, path, rng = tmp_path / "project", tmp_path / "index.db", np.random.default_rng(7)
    changes = 20 * kills
    latest = {}
    for number in range(changes):
        page = number % PAGES
        latest[page] = number + 1
        write(project, page, number + 1)
    stops = np.sort(rng.choice(np.arange(1, changes), kills, replace=False)).tolist()
    for stop in stops:
        process = subprocess.Popen(
            command("update", folder, path, "--form", "raw", "--follow"), stdout=subprocess.DEVNULL
        )
        try:
            until(lambda: path.exists() and applied(path) >= stop, "the index goes on")  # noqa: B023
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    subprocess.run(command("update", folder, path, "--form", "raw"), check=True, stdout=subprocess.DEVNULL)
    assert applied(path) == changes
    assert contents(path) == {
        url(page): {*text(page, version).split("\n")} for page, version in latest.items()
    }
