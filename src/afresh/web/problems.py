"""One shape for every error of the API: ``{"error": {"code", "message", "hint"}}``."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from afresh.values.errors import AfreshError, InputError, StoreError, StoreReadOnlyError, UsageError


class ErrorBody(BaseModel):
    """What went wrong: a ``code`` for programs, ``message`` and ``hint`` (perhaps empty) for people."""

    code: str
    message: str
    hint: str


class Problem(BaseModel):
    """Every error looks like this."""

    error: ErrorBody


class ProblemError(Exception):
    """An error to be answered."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


def problem(status: int, message: str, hint: str = "") -> JSONResponse:
    """The answer for an error."""
    body = {"code": code_of(status), "message": message, "hint": hint}
    headers = {"WWW-Authenticate": 'Bearer realm="afresh"'} if status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse({"error": body}, status, headers)


def code_of(status: int) -> str:
    """The code of a status.

    >>> code_of(404), code_of(413)
    ('not_found', 'too_large')
    """
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "too_large"
    return HTTPStatus(status).phrase.lower().replace(" ", "_")


def status_of(error: AfreshError) -> int:
    """Which status says an error of ours.

    >>> status_of(UsageError("")), status_of(StoreError(""))
    (400, 503)
    """
    if isinstance(error, StoreError) and not isinstance(error, StoreReadOnlyError):
        return 503
    return 400 if isinstance(error, UsageError | InputError) else 409


def say_problems(app: FastAPI, page: Callable[[ProblemError], Response]) -> None:
    """Every exception becomes an answer of the one shape; to a browser that wants a page, a ``page``."""

    def answer(request: Request, error: ProblemError) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and request.method == "GET" and not request.url.path.startswith("/api/v1"):
            return page(error)
        return problem(error.status, error.message, error.hint)

    @app.exception_handler(ProblemError)
    def own(request: Request, error: ProblemError) -> Response:
        return answer(request, error)

    @app.exception_handler(AfreshError)
    def ours(request: Request, error: AfreshError) -> Response:
        return answer(request, ProblemError(status_of(error), str(error)))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        words = f"{where}: {first['msg']}"
        return answer(request, ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, words, "see /api/docs"))

    @app.exception_handler(HTTPException)
    def plain(request: Request, error: HTTPException) -> Response:
        missing = error.status_code == HTTPStatus.NOT_FOUND
        words = f"there is nothing at {request.url.path[:200]}" if missing else str(error.detail)
        found = answer(request, ProblemError(error.status_code, words))
        found.headers.update(error.headers or {})
        return found
