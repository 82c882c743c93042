"""``afresh.toml``: defaults, overrides, and every mistake in words with its place."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from afresh.engine.scheduler.row_policy import PolicyName
from afresh.engine.settings.describing import describe_changes, settings_as_dict
from afresh.engine.settings.overrides import environment_overrides
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import PlanTable
from afresh.engine.settings.template import TEMPLATE
from afresh.policy.registry import POLICIES
from afresh.values.errors import UsageError
from afresh.values.objective_names import OBJECTIVE_NAMES


def test_passwords_are_not_shown_in_whatever_setting_they_stand() -> None:
    text = """
        [store]
        url = "postgresql://me:hunter2@db/mirror?sslpassword=hunter2"
        [[source]]
        name = "books"
        kind = "sql"
        url = "postgresql://me:hunter2@db/books"
        query = "SELECT 1 AS k"
        key = "k"
        on_change = ["curl", "https://me:hunter2@hooks.test/"]
    """
    settings = parse_settings(text)
    assert "hunter2" not in json.dumps(settings_as_dict(settings))
    assert "hunter2" not in "".join(describe_changes(parse_settings(""), settings))
    assert "db/mirror" in settings_as_dict(settings)["store"]["url"]


def test_an_empty_file_is_enough() -> None:
    settings = parse_settings("")
    assert settings.budget.requests == 1.0
    assert settings.budget.bytes is None
    assert settings.plan.audit_share == 0.02
    assert [source.settings.name for source in settings.sources] == ["web"]


def test_what_init_writes_is_the_default() -> None:
    assert parse_settings(TEMPLATE) == parse_settings("")
    wanted = [line.lstrip("# ").split("#")[0] for line in TEMPLATE.splitlines() if " = " in line]
    assert len(wanted) >= 12
    plain = "\n".join(
        line.lstrip("# ") if " = " in line or line.startswith("[") else "" for line in TEMPLATE.splitlines()
    )
    assert parse_settings(plain).budget.bytes == pytest.approx(1e10 / 86400)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget", "not TOML"),
        ("[bugdet]", "line 1: unknown table 'bugdet': did you mean 'budget'?"),
        ("# x\nallow_private = true\n", "line 2: allow_private is a setting of a [[source]]: write it below"),
        (
            "[run]\nallow_private = true",
            "line 2: [run]: allow_private is a setting of a [[source]]: write it",
        ),
        ("[budget]\n[on_change]\nx = 1", "line 2: on_change is a setting of a [[source]]"),
        ("requests = '2/s'", "line 1: requests is a setting of [budget]: write it below that line"),
        ("x = 1", "line 1: unknown setting 'x', which stands above all tables"),
        ("[budget]\nrequests = '2'", "line 2: [budget] requests: '2' is not a rate"),
        (
            "[budget]\n\nrequest = '2/s'",
            "line 3: [budget]: unknown setting 'request': did you mean 'requests'?",
        ),
        ("[budget]\nbytes = '5/s'", "is not a size per time"),
        ("[budget]\nseconds = '2h/h'", "more than all of the time"),
        ("[plan]\naudit_share = 1.0", "audit_share: must be less than 1"),
        ("[plan]\npolicy = 'random'", "policy: must be 'adaptive' or 'uniform'"),
        ("[run]\nlease = '5'", "is not a duration"),
        ("[[source]]\nname = 'a'\nkind = 'htp'", "unknown kind of source 'htp': did you mean 'http'?"),
        ("[[source]]\nname = 'a'\ndellay = '1s'", "unknown setting 'dellay': did you mean 'delay'?"),
        ("[[source]]\nname = 'a'\n[[source]]\nname = 'a'", "two sources are named 'a'"),
        ("[[source]]\nname = 'a'\non_change = 5", "on_change must be a list of words or 'module:function'"),
        ("budget = 5", "must be a table"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_settings(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_overrides_go_over_the_file() -> None:
    given = {
        "budget.requests": "5/s",
        "plan.audit_share": "0.1",
        "source.web.delay": "0.5s",
        "store.url": "memory:",
    }
    settings = parse_settings("[budget]\nrequests = '1/s'", given)
    assert settings.budget.requests == 5.0
    assert settings.plan.audit_share == 0.1
    assert settings.store.url == "memory:"
    assert settings.sources[0].settings.delay == 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["budget", "budget.reqests", "source.nowhere.delay", "web.host.name", "x.y"])
def test_a_wrong_override_is_refused(path: str) -> None:
    with pytest.raises(UsageError):
        parse_settings("", {path: "1"})


def test_the_environment_speaks_in_capitals() -> None:
    given = {
        "AFRESH_BUDGET_REQUESTS": "2/s",
        "AFRESH_SOURCE_WEB_DELAY": "3s",
        "AFRESH_NOTHING": "x",
        "PATH": "/",
    }
    settings = parse_settings("", environment_overrides(given))
    assert settings.budget.requests == 2.0
    assert settings.sources[0].settings.delay == 3.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("objective", OBJECTIVE_NAMES)
def test_every_objective_can_be_pursued(objective: str) -> None:
    assert parse_settings(f"[plan]\nobjective = '{objective}'").plan.objective == objective


def test_an_unknown_objective_is_told_of_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"line 2: .*unknown objective 'agee': did you mean 'age'"):
        parse_settings("[plan]\nobjective = 'agee'")


def test_the_engines_policies_are_those_of_the_rows_and_known_to_replays() -> None:
    names = get_args(PlanTable.model_fields["policy"].annotation)
    assert names == get_args(PolicyName)
    assert set(names) <= set(POLICIES)


@pytest.mark.parametrize("text", ["[source]\nname = 'web'", "source = 3", "source = [3]"])
def test_a_source_in_single_brackets_is_told_of_the_double(text: str) -> None:
    with pytest.raises(UsageError, match=r"there may be several sources: write \[\[source\]\]"):
        parse_settings(text, {"source.web.delay": "1s"})


SEVERAL = "".join(f"[[source]]\nname = '{name}'\n" for name in ("my", "my_site", "Docs", "a.b-c"))


@pytest.mark.parametrize(
    ("variable", "source"),
    [("MY_DELAY", "my"), ("MY_SITE_DELAY", "my_site"), ("DOCS_DELAY", "Docs"), ("A_B_C_DELAY", "a.b-c")],
)
def test_the_environment_reaches_sources_of_any_name(variable: str, source: str) -> None:
    settings = parse_settings(SEVERAL, environment_overrides({f"AFRESH_SOURCE_{variable}": "3s"}))
    delays = {each.settings.name: each.settings.delay for each in settings.sources}  # type: ignore[attr-defined]
    assert delays == {name: 3.0 if name == source else 1.0 for name in delays}


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        (
            "AFRESH_SOURCE_YOUR_DELAY",
            "^AFRESH_SOURCE_YOUR_DELAY: there is no such source: AFRESH_SOURCE_MY_…",
        ),
        ("AFRESH_SOURCE_MY_SITE_DELLAY", "unknown setting 'dellay': did you mean 'delay'"),
        ("AFRESH_SOURCE_MY_SITE_DELAY", "^AFRESH_SOURCE_MY_SITE_DELAY: 'soon'"),
    ],
)
def test_the_environment_is_blamed_for_what_it_says(variable: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_settings(SEVERAL, environment_overrides({variable: "soon"}))


def test_sources_that_a_variable_cannot_tell_apart_are_said() -> None:
    text = "[[source]]\nname = 'my-site'\n[[source]]\nname = 'my_site'\n"
    with pytest.raises(UsageError, match="may mean 'my-site' and 'my_site': use --set"):
        parse_settings(text, environment_overrides({"AFRESH_SOURCE_MY_SITE_DELAY": "3s"}))
    given = parse_settings(text, {"source.my_site.delay": "3s"}).sources
    assert [each.settings.delay for each in given] == [1.0, 3.0]  # type: ignore[attr-defined]


def test_a_source_may_have_dots_in_its_name() -> None:
    (source,) = parse_settings(
        "[[source]]\nname = 'docs.example.org'", {"source.docs.example.org.delay": "3s"}
    ).sources
    assert source.settings.delay == 3.0  # type: ignore[attr-defined]


def test_a_reload_says_what_changed_and_no_secret() -> None:
    before, after = (
        parse_settings("[web]\ntoken = 'old-token'"),
        parse_settings("[web]\ntoken = 'new-token'\n[budget]\nrequests='2/s'"),
    )
    words = describe_changes(before, after)
    assert words == ["budget.requests is now 2/s (was 1/s)", "web.token has changed"]
    assert "old-token" not in repr(before)
