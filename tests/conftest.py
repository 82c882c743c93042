"""What tests of several layers share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.servers.postgres import running_postgres


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL for the whole session: that of ``AFRESH_TEST_POSTGRES``, or one of our own."""
    given = os.environ.get("AFRESH_TEST_POSTGRES")
    if given:
        yield given
        return
    with running_postgres() as server:
        yield server.url()
