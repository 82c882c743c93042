"""The ``[[view]]`` tables of the settings: what they mean, and mistakes named with their line."""

from __future__ import annotations

import pytest

from afresh.engine.settings.describing import describe_changes, settings_as_dict
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import UsageError

FRONT = """
[[view]]
name = "front"
items = [
  "https://a/1",
  "https://a/2",
]
weight = 3
on_stale = ["python", "rebuild.py"]

[[view]]
name = "all"
items = ["https://a/2", "https://a/3"]
weight = 0.5
"""


def test_views_are_found_by_name_and_by_item() -> None:
    views = parse_settings(FRONT).views
    front = views.view("front")
    assert front is not None
    assert (front.items, front.weight, front.on_stale) == (
        ("https://a/1", "https://a/2"),
        3.0,
        ("python", "rebuild.py"),
    )
    assert front.lines == (5, 6)
    assert [view.name for view in views.of_item("https://a/2")] == ["front", "all"]
    assert views.of_item("https://a/4") == ()
    assert views.added_weights() == {"https://a/1": 3.0, "https://a/2": 3.5, "https://a/3": 0.5}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[view]]\nitems = ['a']", "line 1: view: give it a name"),
        ("[[view]]\n\nname = ''\nitems = ['a']", "line 3: view: give it a name"),
        ("[[view]]\nname = 'v'", "line 1: view 'v': items must be a list"),
        ("[[view]]\nname = 'v'\nitems = []", "line 3: view 'v': items must be a list"),
        ("[[view]]\nname = 'v'\nitems = 'a'", "line 3: view 'v': items must be a list"),
        ("[[view]]\nname = 'v'\nitems = ['a',\n'a']", "line 4: view 'v': it names 'a' twice"),
        ("[[view]]\nname = 'v'\nitems = ['a']\nwieght = 2", "line 4: .*unknown setting 'wieght'.*'weight'"),
        ("[[view]]\nname = 'v'\nitems = ['a']\nweight = -1", "line 4: view 'v': weight is -1"),
        ("[[view]]\nname = 'v'\nitems = ['a']\nweight = true", "line 4: view 'v': weight is True"),
        ("[[view]]\nname = 'v'\nitems = ['a']\non_stale = 'no hook'", "line 4: view 'v': on_stale must be"),
        ("[view]\nname = 'v'", r"line 1: there may be several views: write \[\[view\]\]"),
        (
            "[[view]]\nname = 'v'\nitems = ['a']\n[budget]\n\n[[view]]\nname = 'v'\nitems = ['b']",
            "line 7: two views are named 'v'",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"afresh.toml, {problem}"):
        parse_settings(text)


def test_views_are_shown_with_all_settings_and_a_reload_names_what_changed() -> None:
    before, after = parse_settings(FRONT), parse_settings(FRONT.replace("weight = 3", "weight = 4"))
    assert settings_as_dict(before)["view"][1] == {
        "name": "all",
        "items": ("https://a/2", "https://a/3"),
        "weight": 0.5,
        "on_stale": None,
    }
    assert describe_changes(before, after) == ["view 'front' has changed"]
    assert describe_changes(before, parse_settings("\n" + FRONT)) == []
    assert describe_changes(parse_settings(""), before) == ["view 'front' is new", "view 'all' is new"]
    assert describe_changes(before, parse_settings("")) == [
        "view 'front' was removed",
        "view 'all' was removed",
    ]


def test_an_item_has_a_hook_by_its_source_or_by_a_view() -> None:
    settings = parse_settings(FRONT)
    assert settings.has_hook("web", "https://a/1")
    assert not settings.has_hook("web", "https://a/3")
    hooked = parse_settings("[[source]]\nname = 'web'\non_change = ['true']")
    assert hooked.has_hook("web", "https://a/3")
