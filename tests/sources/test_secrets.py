"""Secrets are shown to nobody."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.sources.polling import make_source

from afresh.sources.context import SourceContext, no_secrets
from afresh.sources.http.settings import HttpSettings, all_secrets
from afresh.sources.secrets import Secret, redactor, resolve
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError


def test_a_secret_is_never_shown() -> None:
    secret = Secret("hunter2")
    for shown in (repr(secret), str(secret), f"{secret}", repr([secret]), f"{secret!r}"):
        assert "hunter2" not in shown
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)
    assert secret == Secret("hunter2") != Secret("other")
    assert len({secret, Secret("hunter2")}) == 1


@pytest.mark.parametrize(
    "table",
    [
        {"headers": {"A": "hunter2\r\nHost: evil"}},
        {"headers": {"A:": "hunter2"}},
        {"cookies": {"c": "hunter2é"}},
        {"proxy": "socks://u:hunter2@p"},
        {"proxy": "http://u:hunter2@p:x"},
        {"proxy": "http://u:hunter2@[p"},
    ],
)
def test_secrets_that_cannot_be_used_are_refused_unseen(table: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="source 'w', ") as caught:
        make_source({"name": "w", "kind": "http"} | table, SourceContext())
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parts_of_secrets_are_secret_too() -> None:
    table = {"name": "w", "cookies": {"c": "c00kiec00kie"}, "proxy": "http://user:hunter2@proxy.test:8080"}
    hide = redactor(all_secrets(read_settings(HttpSettings, table), no_secrets))
    assert hide("c00kiec00kie hunter2 proxy.test") == "••• ••• proxy.test"


def test_names_of_secrets_are_resolved_at_the_end_of_a_value_only() -> None:
    known = {"TOKEN": "t0ken"}.get
    assert resolve("h", "env:TOKEN", known).reveal() == "t0ken"
    assert resolve("h", "Bearer env:TOKEN", known).reveal() == "Bearer t0ken"
    assert resolve("h", "myenv:TOKEN", known).reveal() == "myenv:TOKEN"
    with pytest.raises(UsageError, match="the environment has no variable NOPE"):
        resolve("h", "env:NOPE", known)


def test_the_redactor_hides_secrets_and_their_words() -> None:
    hide = redactor([Secret("Bearer t0kent0ken"), Secret("abc")])
    assert hide("got Bearer t0kent0ken, t0kent0ken; abc") == "got •••, •••; abc"
