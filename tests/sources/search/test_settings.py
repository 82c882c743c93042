"""Bad settings of a search source are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sources.searching import World, make_world, search_table

from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, count=200, own=20)


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no query": ({"server": "https://a.test/?page={page}"}, r"server: needs \{query\}"),
    "odd part": ({"server": "https://a.test/?q={query}&p={pg}"}, r"server: \{pg\} is not known"),
    "brace": ({"server": "https://a.test/?q={query"}, "a single brace"),
    "no key part": ({"look_up": "https://a.test/x"}, r"look_up: needs \{key\}"),
    "path": ({"rows": "data["}, "'data\\[' is not a JSON path"),
    "no table": ({"server": "sqlite:a.db"}, "table: name the server's table"),
    "twice": ({"keywords": ["title", "title:;"]}, "keywords: name each column once"),
    "odd path": ({"paths": {"price": "p"}}, "'price' is none of the fields"),
    "unknown": ({"pagesize": 5}, "did you mean 'page_size'"),
}


@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_bad_settings_are_refused_with_a_reason(bad: str, world: World) -> None:
    change, words = BAD_SETTINGS[bad]
    good = search_table(world, None, server="https://a.test/?q={query}&page={page}")
    read_settings(SearchSettings, good)
    with pytest.raises(UsageError, match=words):
        read_settings(SearchSettings, good | change)


def test_an_unknown_dissimilarity_is_refused(world: World) -> None:
    table = search_table(world, None, server="all.csv", fields={"cites": "absolut"})
    with pytest.raises(UsageError, match="did you mean 'absolute'"):
        SearchSource(read_settings(SearchSettings, table), SourceContext())
