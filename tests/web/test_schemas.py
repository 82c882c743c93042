"""Schemathesis: whatever is sent, no 5xx and no answer that the description does not describe."""

from __future__ import annotations

import subprocess
import sys
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
# Cases for every boundary of every parameter take longer to make than to send: the slow suite tries them.
SCHEMA.config.phases.coverage.enabled = False


@SCHEMA.parametrize()
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_nothing_breaks_the_description(case: schemathesis.Case[Any], address: str) -> None:
    case.call_and_validate(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS, timeout=60
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_breaks_the_description_however_long_it_is_tried(address: str, tmp_path: Path) -> None:
    names = ",".join(check.__name__ for check in CHECKS)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {TOKEN}", "--checks", names, "--seed", "1"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "200", "--no-color"),
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
