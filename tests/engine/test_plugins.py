"""Kinds of source and estimators from other packages: installed ones are found, broken ones said in words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from afresh.engine.app import open_engine
from afresh.engine.plugins import Plugins, estimators, source_kinds
from afresh.values.errors import UsageError

MODULE = """
from afresh.rates.estimators.tally_estimators import Naive
from afresh.sources.registry import SourceKind
from afresh.sources.settings import SourceSettings
from afresh.values.fetched import Fetched


class PigeonSettings(SourceSettings):
    kind: str = "pigeon"
    loft: str


class Pigeons:
    def __init__(self, settings, around):
        self.name, self._loft, self._around = settings.name, settings.loft, around

    def group(self, key):
        return self._loft

    def ready_s(self, group, now_s):
        return now_s

    async def poll(self, lease, *, conditional=True):
        await self._around.admit(lease.group)
        word = f"{lease.key} from {self._loft}".encode()
        if lease.content_hash == word:
            return Fetched("unchanged", normal_hash=word, requests=1)
        return Fetched("content", content=word, normal_hash=word, requests=1)

    async def listings(self):
        return
        yield

    async def close(self):
        pass


KIND = SourceKind(PigeonSettings, Pigeons, lambda settings, key: settings.loft)
ESTIMATOR = Naive()
NOTHING = object()
"""

ENTRIES = """
[afresh.sources]
pigeon = pigeon_post:KIND
http = pigeon_post:NOTHING
lame = pigeon_post:NOTHING
lost = pigeon_post_lost:KIND

[afresh.estimators]
feathers = pigeon_post:ESTIMATOR
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as pip leaves it behind: a module, and the metadata beside it."""
    folder = tmp_path / "site-packages"
    meta = folder / "pigeon_post-1.2.dist-info"
    meta.mkdir(parents=True)
    (folder / "pigeon_post.py").write_text(MODULE)
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon-post\nVersion: 1.2\n")
    (meta / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("pigeon_post", None)


def test_an_installed_kind_of_source_is_polled(installed: Path, tmp_path: Path) -> None:
    del installed
    (tmp_path / "afresh.toml").write_text(
        "[budget]\nrequests = '100/s'\n[[source]]\nname = 'post'\nkind = 'pigeon'\nloft = 'north'\n"
    )
    with open_engine(tmp_path, seed=1) as engine:
        assert engine.add(["letter"]) == 1
        assert engine.run(once=True).polls == 1
        copy = engine.get("letter")
        assert copy is not None
        assert copy.content == b"letter from north"
        assert engine.store.items.counts()[0].group == "north"


def test_its_settings_are_checked_like_ours(installed: Path, tmp_path: Path) -> None:
    del installed
    table = "[[source]]\nname = 'post'\nkind = 'pigeon'\nloft = 'north'\n"
    (tmp_path / "afresh.toml").write_text(table + "lofft = 'south'\n")
    with pytest.raises(UsageError, match="unknown setting 'lofft': did you mean 'loft'"):
        open_engine(tmp_path)


def test_what_is_broken_is_said_in_words_and_only_when_asked_for(installed: Path) -> None:
    del installed
    kinds = source_kinds()
    assert {"pigeon", "lame", "lost", "http", "python"} <= set(kinds)
    assert len(kinds) == len(set(kinds))
    with pytest.raises(
        UsageError, match=r"'lame' \(afresh.sources, from pigeon-post 1.2\) is a object without"
    ):
        kinds["lame"]
    with pytest.raises(UsageError, match=r"'lost' .* cannot be loaded: ModuleNotFoundError"):
        kinds["lost"]
    assert kinds["http"].settings.__name__ == "HttpSettings"  # our own names cannot be taken over


def test_estimators_come_the_same_way(installed: Path) -> None:
    del installed
    table = estimators()
    assert table["feathers"].name == "naive"
    assert "grid" in table


def test_two_packages_of_one_name_are_refused(installed: Path) -> None:
    again = installed / "pigeon_mail-2.0.dist-info"
    again.mkdir()
    (again / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon-mail\nVersion: 2.0\n")
    (again / "entry_points.txt").write_text(ENTRIES)
    with pytest.raises(UsageError, match=r"comes from pigeon-mail 2\.0 and pigeon-post 1\.2: uninstall one"):
        source_kinds()["pigeon"]


def test_an_unknown_name_is_no_key() -> None:
    assert "nowhere" not in Plugins("afresh.sources", {}, has=())
    with pytest.raises(KeyError):
        source_kinds()["nowhere"]
