"""Settings are checked and frozen, and wrong ones are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from afresh.sources.context import no_secrets
from afresh.sources.http.settings import HttpSettings, secret_headers
from afresh.sources.python.settings import PythonSettings
from afresh.sources.registry import BUILT_IN
from afresh.sources.search.settings import SearchSettings
from afresh.sources.settings import MissingRule, is_gone, read_settings
from afresh.values.errors import UsageError


def test_people_write_durations_sizes_and_single_texts() -> None:
    table = {"name": "web", "delay": "250m", "max_size": "1.5MB", "selectors": "main", "timeout": 3}
    settings = read_settings(HttpSettings, table)
    assert (settings.delay, settings.max_size, settings.selectors) == (15000.0, 1_500_000, ("main",))
    assert settings.limits.total_s == 3.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delya": "1s"}, "unknown setting 'delya': did you mean 'delay'?"),
        ({"delay": "fast"}, "'fast' is not a duration"),
        ({"delay": -1}, "delay: must be at least 0"),
        ({"selectors": 5}, 'selectors: must be a list, such as ["one", "two"]'),
        ({"text_only": "maybe"}, "text_only: must be true or false"),
        ({"max_redirects": "many"}, "max_redirects: must be a whole number"),
        ({"max_size": "big"}, "'big' is not a size"),
        ({"concurrency": 0}, "concurrency"),
        ({"near_duplicate": 1.5}, "near_duplicate"),
        ({"windows": "nights"}, "is not a window of time"),
        ({"time_zone": "Mars"}, "is not a time zone"),
        ({"selectors": "p["}, "is not a CSS selector"),
        ({"soft_errors": "("}, "not a regular expression"),
        ({"accept_encoding": "gzip, br"}, "cannot read 'br'"),
        ({"name": ""}, "name"),
        ({"kind": "python"}, "kind"),
        ({"headers": {"Authorization": 7}}, "headers.Authorization"),
    ],
)
def test_wrong_settings_are_refused_in_one_line_that_names_them(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(HttpSettings, {"name": "web"} | changes)
    assert words in str(caught.value)
    assert str(caught.value).startswith("source ")
    assert "\n" not in str(caught.value)


def test_settings_are_frozen() -> None:
    settings = read_settings(PythonSettings, {"name": "py", "call": "string:capwords"})
    with pytest.raises(ValueError, match="frozen"):
        settings.name = "other"


def test_every_setting_has_a_default_but_what_a_kind_cannot_do_without() -> None:
    needed = {
        kind: {name for name, field in made.settings.model_fields.items() if field.is_required()} - {"name"}
        for kind, made in BUILT_IN.items()
    }
    assert needed == {
        "api": {"list", "key"},
        "http": set(),
        "python": {"call"},
        "search": {"relation", "key", "keywords", "server"},
        "sql": {"url", "query", "key"},
        "view": set(),
    }


def test_settings_do_not_show_headers_cookies_or_proxies() -> None:
    table = {
        "name": "w",
        "headers": {"A": "hunter2"},
        "cookies": {"c": "hunter2"},
        "proxy": "http://u:hunter2@p",
    }
    assert "hunter2" not in repr(read_settings(HttpSettings, table))


def test_a_header_set_replaces_the_one_that_would_be_sent() -> None:
    settings = read_settings(HttpSettings, {"name": "w", "headers": {"user-AGENT": "me"}})
    assert list(secret_headers(settings, no_secrets)) == ["User-Agent"]


def test_properties_that_the_settings_of_every_source_have() -> None:
    """A kind without a setting has the default of all."""
    http = HttpSettings(name="web", delay=2.0, concurrency=3, first_rest=7.0)
    assert (http.delay_s, http.polls_at_once, http.first_rest_s) == (2.0, 3, 7.0)
    call = PythonSettings(name="f", call="m:f", concurrency=5)
    assert (call.delay_s, call.polls_at_once, call.first_rest_s) == (None, 5, 1.0)
    search = SearchSettings(
        name="s", relation="r.csv", key="k", keywords=("title",), server="r.csv", delay=3.0, first_rest=4.0
    )
    assert (search.delay_s, search.polls_at_once, search.first_rest_s) == (3.0, 1, 4.0)


@given(st.integers(1, 10), st.floats(0, 1e6), st.integers(1, 10), st.floats(0, 1e6))
@hypothesis_settings(deadline=None)
def test_an_item_is_gone_when_both_limits_of_the_rule_are_reached(
    polls: int, time_s: float, misses: int, silent_s: float
) -> None:
    rule = MissingRule(polls, time_s)
    gone = is_gone(404, misses, silent_s, rule)
    assert gone == (misses >= polls and silent_s >= time_s)
    assert is_gone(404, misses + 1, silent_s + 1, rule) >= gone
    assert is_gone(410, misses, silent_s, rule) >= gone
