"""Every error of the API has one shape."""

from __future__ import annotations

import pytest
from tests.web.serving import Client


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/item?key=nothing", 404),
        ("/api/v1/items?sort=colour", 422),
        ("/api/v1/items?limit=0", 422),
        ("/api/v1/items?cursor=rubbish", 400),
        ("/api/v1/plan?objective=speed", 400),
        ("/api/v1/plan/at?budget=2", 400),
        ("/api/v1/plan/at?budget=0/s", 400),
        ("/api/v1/items?source=nope", 404),
        ("/api/v1/items?limits=5", 422),
        ("/api/v1/status?verbose=1", 422),
        ("/api/v1/nothing", 404),
        ("/nothing", 404),
    ],
)
def test_errors_have_one_shape(web: Client, path: str, status: int) -> None:
    answer = web.get(path)
    assert answer.status == status
    assert answer.problem()
