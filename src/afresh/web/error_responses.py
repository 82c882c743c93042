"""Answers errors: with ``{"error": {"code", "message", "hint"}}`` for programs, with a page for people."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from afresh.values.errors import (
    AfreshError,
    AmbiguousKeyError,
    CursorError,
    InputError,
    StoreError,
    StoreReadOnlyError,
    UsageError,
)


class ErrorBody(BaseModel):
    """An error: ``code`` is for programs, ``message`` and ``hint`` (which may be empty) are for people."""

    code: str
    message: str
    hint: str


class Problem(BaseModel):
    """The response to every request that fails."""

    error: ErrorBody


class RequestError(Exception):
    """Raised by a handler to answer a request with an error status, a message and a hint."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


def error_response(status: int, message: str, hint: str = "") -> JSONResponse:
    body = {"code": error_code(status), "message": message, "hint": hint}
    headers = {"WWW-Authenticate": 'Bearer realm="afresh"'} if status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse({"error": body}, status, headers)


def error_code(status: int) -> str:
    """Return the error code that programs read, for an HTTP status.

    >>> error_code(404), error_code(413)
    ('not_found', 'too_large')
    """
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "too_large"
    return HTTPStatus(status).phrase.lower().replace(" ", "_")


def error_status(error: AfreshError) -> int:
    """Return the HTTP status for an error of afresh.

    >>> error_status(UsageError("")), error_status(StoreError("")), error_status(AmbiguousKeyError("'a'", ()))
    (400, 503, 409)
    """
    if isinstance(error, CursorError):
        return 410
    if isinstance(error, AmbiguousKeyError):
        return 409
    if isinstance(error, StoreError) and not isinstance(error, StoreReadOnlyError):
        return 503
    return 400 if isinstance(error, UsageError | InputError) else 409


ErrorPage = Callable[[Request, RequestError], Response | None]
"""A function that returns the page for an error, or None if the client does not expect a page."""


def add_error_handlers(app: FastAPI, error_page: ErrorPage) -> None:
    def respond(request: Request, error: RequestError) -> Response:
        return error_page(request, error) or error_response(error.status, error.message, error.hint)

    @app.exception_handler(RequestError)
    def refused(request: Request, error: RequestError) -> Response:
        return respond(request, error)

    @app.exception_handler(AfreshError)
    def failed(request: Request, error: AfreshError) -> Response:
        return respond(request, RequestError(error_status(error), str(error)))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        message = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
        return respond(request, RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, message, "see /api/docs"))

    @app.exception_handler(HTTPException)
    def not_routed(request: Request, error: HTTPException) -> Response:
        is_missing = error.status_code == HTTPStatus.NOT_FOUND
        message = f"there is nothing at {request.url.path[:200]}" if is_missing else str(error.detail)
        response = respond(request, RequestError(error.status_code, message))
        response.headers.update(error.headers or {})
        return response
