"""Which pages are rendered: all, none, or those of classes that need it."""

from __future__ import annotations

import asyncio

import pytest

from afresh.sources.http.rendering.modes import RenderModes, is_browser_needed, needs_browser
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool


def page(number: int, folder: str = "app") -> str:
    return f"http://a.test/{folder}/{number}"


def learned(modes: RenderModes, needed: list[bool], folder: str = "app") -> None:
    for number, each in enumerate(needed):
        modes.learn(page(number, folder), needed=each)


def test_fixed_modes_learn_nothing() -> None:
    for mode, how in (("never", "plain"), ("always", "render")):
        modes = RenderModes(mode)  # type: ignore[arg-type]
        assert modes.choose(page(1), audit=False) == modes.choose(page(1), audit=True) == how
        assert not modes.learns


def test_five_pages_that_agree_decide_a_class() -> None:
    modes = RenderModes("auto")
    learned(modes, [False] * 4)
    assert modes.choose(page(9), audit=False) == "render"
    learned(modes, [False])
    assert modes.choose(page(9), audit=False) == "plain"
    assert modes.choose(page(9), audit=True) == "compare"
    assert modes.choose(page(9, "shop"), audit=False) == "render"  # another class
    learned(modes, [True] * 5, "shop")
    assert modes.choose(page(9, "shop"), audit=True) == "render"


def test_twenty_pages_decide_a_mixed_class_by_a_tenth() -> None:
    modes = RenderModes("auto")
    learned(modes, [True, *[False] * 18])
    assert modes.choose(page(99), audit=True) == "render"
    learned(modes, [False])
    assert modes.choose(page(99), audit=True) == "compare"


def test_audits_notice_that_a_class_has_changed() -> None:
    modes = RenderModes("auto")
    learned(modes, [False] * 20)
    assert modes.choose(page(9), audit=False) == "plain"
    learned(modes, [True] * 5)
    assert modes.choose(page(9), audit=False) == "render"
    learned(modes, [False] * 90)
    assert modes.choose(page(9), audit=False) == "plain"


def test_what_was_learned_is_saved() -> None:
    modes, other = RenderModes("auto"), RenderModes("auto")
    learned(modes, [False] * 5)
    other.load(modes.save())
    assert other.choose(page(9), audit=False) == "plain"
    assert other.save() == modes.save()


def test_only_what_scripts_add_needs_a_browser() -> None:
    text = " ".join(f"word{number}" for number in range(50)).encode()
    assert not needs_browser(b"<p>" + text, b"<nav>menu</nav><p>" + text)
    assert not needs_browser(b"<p>%s</p><p>a clock" % text, b"<p>" + text)
    assert needs_browser(b"<p>" + text, b"<div id=app></div><script>app()</script>")
    assert not needs_browser(b"", b"<p>" + text)


def test_a_large_answer_is_not_parsed_in_the_process_however_little_the_browser_shows() -> None:
    pool = ParserPool()  # nobody has joined it, so that it has no parser processes

    def compare(rendered: bytes, plain: bytes) -> bool:
        return asyncio.run(is_browser_needed(pool, rendered, plain, "text/html", "a.test"))

    large = b"<div>" * 100_000
    assert not compare(b"", b"<p>small")
    for rendered, plain in ((b"", large), (b"<p>small", large), (large, b"<p>small"), (large, large)):
        with pytest.raises(ParseBudgetError):
            compare(rendered, plain)
