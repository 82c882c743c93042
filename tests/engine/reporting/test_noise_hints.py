"""Pages that change only in their clock are named, with the line of the settings that leaves it out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.polling import SetClock

from afresh.cli.engine.status_commands import status_rows
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.settings.parsing import parse_settings

PAGES = [f"https://h.test/{name}" for name in "abcd"]
LINE = 'drop = [".clock"]'
ADVICE = "if this part does not matter to you, leave it out by"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Three pages with a clock, and one that really changes."""
    clock = SetClock()
    settings = parse_settings("", {"store.url": "memory:"})
    with make_engine(settings, tmp_path, clock=clock, seed=1) as made:
        made.add(PAGES)
        for day in range(6):
            clock.time_s += 86400.0
            rows = [(url, f"<p>{'text ' * 50}</p><i class='clock'>{day}:00</i>") for url in PAGES[:3]]
            rows.append((PAGES[3], f"<h1>{day}</h1><p>{f'news {day} ' * 50}</p>"))
            made.observe(
                Reported(url, clock.time_s, content=text.encode(), media_type="text/html")
                for url, text in rows
            )
        yield made


def test_why_proposes_the_line(engine: Engine) -> None:
    (words,) = [words for words in engine.why(PAGES[0]).reasons if "small part" in words]
    assert words == f"4 of its last 4 changes lie in one small part; {ADVICE} {LINE}"
    assert not any("small part" in words for words in engine.why(PAGES[3]).reasons)


def test_status_names_the_source_the_line_and_an_example(engine: Engine) -> None:
    status = engine.status()
    (hint,) = status.noise
    assert (hint.source, hint.line, hint.items, hint.looked_at) == ("web", LINE, 3, 4)
    assert hint.example in PAGES[:3]
    assert ("  noise? web", hint.words) in status_rows(status, 1.0)


def test_the_only_part_that_ever_changed_in_one_item_alone_may_be_what_matters(engine: Engine) -> None:
    engine.remove(PAGES[1:3])
    assert not any("small part" in words for words in engine.why(PAGES[0]).reasons)
    assert engine.status().noise == ()
