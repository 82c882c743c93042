"""The token is made once, is readable by its owner alone, and must not be guessable."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web.serving import TOKEN

from afresh.values.errors import UsageError
from afresh.web.token import TOKEN_FILE, find_token, make_token_file


def nothing(_: str) -> str | None:
    """An environment without anything."""
    return None


def test_the_token_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = make_token_file(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    token = find_token("", tmp_path, nothing)
    assert token is not None
    assert len(token) >= 40
    make_token_file(tmp_path)
    assert find_token("", tmp_path, nothing) == token
    assert find_token("env:WORD", tmp_path, lambda name: TOKEN if name == "WORD" else None) == TOKEN
    assert find_token("", tmp_path / "elsewhere", nothing) is None
    for short in ("short", "with a space in the middle", "ü" * 30):
        (tmp_path / TOKEN_FILE).write_text(short)
        with pytest.raises(UsageError, match="the token"):
            find_token("", tmp_path, nothing)
