"""A store of every backend, and the backends themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores.backends import BACKENDS, Backend

from afresh.stores.store import Retention, Store


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend in turn."""
    backend: Backend = request.param
    if backend.name == "postgres":
        return replace(backend, server=request.getfixturevalue("postgres_url"))
    return backend


@pytest.fixture
def store(backend: Backend, tmp_path: Path) -> Iterator[Store]:
    """An empty store that keeps little."""
    with backend.open(tmp_path, Retention(versions=2, observations=50, audits=10)) as opened:
        yield opened
        assert opened.upkeep.check() == []
