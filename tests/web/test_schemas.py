"""Schemathesis: whatever is sent, no 5xx and no answer that the description does not describe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.engine.virtual_site import VirtualSite
from tests.web.serving import TOKEN, dashboard, engine_of, filled

from afresh.web.app import make_app

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard of its own: its store gets full of nonsense. No server is asked for what it is to read."""
    with engine_of(tmp_path_factory.mktemp("schema"), new_fetcher=lambda *_: VirtualSite()) as engine:
        filled(engine)
        with dashboard(engine) as web:
            yield web.address.rstrip("/")


def description() -> dict[str, object]:
    """The API's description, without a server."""
    with engine_of(Path(), '[store]\nurl = "memory:"\n') as engine:
        return make_app(engine, TOKEN).openapi()


def test_nothing_breaks_the_description(address: str) -> None:
    """Five cases of every operation. All are one test, so that one process alone reads the description."""
    import schemathesis
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as openapi_checks

    schema = schemathesis.openapi.from_dict(description())
    # Cases for every boundary of every parameter take longer to make than to send: the slow suite tries them.
    schema.config.phases.coverage.enabled = False
    known = {**vars(checks), **vars(openapi_checks)}
    operations = [schema[path][method] for path in schema for method in schema[path]]
    assert len(operations) > 10
    for operation in operations:

        @settings(
            max_examples=5,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy())
        def check(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(
                base_url=address,
                headers={"Authorization": f"Bearer {TOKEN}"},
                checks=[known[name] for name in CHECKS],
                timeout=60,
            )

        check()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_breaks_the_description_however_long_it_is_tried(address: str, tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {TOKEN}", "--checks", ",".join(CHECKS), "--seed", "1"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "200", "--no-color"),
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
