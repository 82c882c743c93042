"""A browser that asks for something that is not there, or in a wrong way, gets a page."""

from __future__ import annotations

from tests.web.serving import Client


def test_a_browser_that_errs_gets_a_page(web: Client) -> None:
    for path, status, title in (
        ("/nope", 404, "Not found"),
        ("/items?sort=colour", 400, "Refused"),
        ("/items?source=nope", 404, "Not found"),
        (f"/items?text={'a' * 600}", 422, "Refused"),
    ):
        answer = web.get(path, Accept="text/html,*/*")
        assert answer.status == status
        assert f"<title>{title} · afresh</title>" in answer.text
