"""Schemathesis: whatever is sent, no 5xx and no answer that the description does not describe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.web.serving import TOKEN, dashboard, engine_of, filled

from afresh.web.app import make_app

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard of its own: its store gets full of nonsense."""
    with engine_of(tmp_path_factory.mktemp("schema")) as engine:
        filled(engine)
        with dashboard(engine) as web:
            yield web.address.rstrip("/")


def description() -> dict[str, object]:
    """The API's description, without a server."""
    with engine_of(Path(), '[store]\nurl = "memory:"\n') as engine:
        return make_app(engine, TOKEN).openapi()


SCHEMA = schemathesis.openapi.from_dict(description())


def send(case: schemathesis.Case[Any], address: str) -> None:
    case.call_and_validate(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS, timeout=60
    )


def examples(count: int) -> settings:
    """So many examples of every operation, the same ones every time."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )


@SCHEMA.parametrize()
@examples(5)
def test_nothing_breaks_the_description(case: schemathesis.Case[Any], address: str) -> None:
    send(case, address)


@pytest.mark.slow
@SCHEMA.parametrize()
@examples(200)
def test_nothing_breaks_the_description_however_long_it_is_tried(
    case: schemathesis.Case[Any], address: str
) -> None:
    send(case, address)
