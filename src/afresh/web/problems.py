"""One shape for every error of the API: ``{"error": {"code", "message", "hint"?}}``."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from afresh.values.errors import AfreshError, InputError, StoreError, StoreReadOnlyError, UsageError


class ErrorBody(BaseModel):
    """What went wrong: a ``code`` for programs, a ``message`` and perhaps a ``hint`` for people."""

    code: str
    message: str
    hint: str | None = None


class Problem(BaseModel):
    """Every error looks like this."""

    error: ErrorBody


class ProblemError(Exception):
    """An error to be answered."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


def problem(status: int, message: str, hint: str | None = None) -> JSONResponse:
    """The answer for an error."""
    body: dict[str, str] = {"code": code_of(status), "message": message}
    if hint:
        body["hint"] = hint
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


def say_problems(app: FastAPI) -> None:
    """Every exception becomes an answer of the one shape."""

    @app.exception_handler(ProblemError)
    def own(_: Request, error: ProblemError) -> Response:
        return problem(error.status, error.message, error.hint)

    @app.exception_handler(AfreshError)
    def ours(_: Request, error: AfreshError) -> Response:
        return problem(status_of(error), str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{where}: {first['msg']}", "see /api/docs")

    @app.exception_handler(HTTPException)
    def plain(_: Request, error: HTTPException) -> Response:
        answer = problem(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer
