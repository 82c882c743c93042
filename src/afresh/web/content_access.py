"""Decides who may read the content of copies over the API."""

from __future__ import annotations

from starlette.requests import Request

from afresh.engine.settings.tables import ContentReaders
from afresh.web.error_responses import RequestError
from afresh.web.guard import given_token
from afresh.web.reach import is_loopback
from afresh.web.token import is_token


def content_readers(host: str, setting: ContentReaders) -> ContentReaders:
    """Return who may read contents: everybody if only this machine can reach ``host``, else those that the
    ``setting`` names.

    >>> content_readers("127.0.0.1", "nobody"), content_readers("0.0.0.0", "token")
    ('everybody', 'token')
    """
    return "everybody" if is_loopback(host) else setting


class ContentAccess:
    """Checks requests for contents, of which ``readers`` may read; ``token`` is the one of the project."""

    def __init__(self, readers: ContentReaders, token: str | None) -> None:
        self._readers, self._token = readers, token

    def allows(self, request: Request) -> bool:
        """Return whether the sender of the request may read contents."""
        try:
            self.check(request)
        except RequestError:
            return False
        return True

    def check(self, request: Request) -> None:
        """Raise ``RequestError`` unless the sender of the request may read contents."""
        if self._readers == "everybody":
            return
        if self._readers == "nobody":
            words = "the content of copies is not given to other machines"
            raise RequestError(403, words, 'set [web] content = "token" or "everybody"')
        given = given_token(request.headers.getlist("authorization"))
        if given is None or self._token is None or not is_token(given, self._token):
            raise RequestError(401, "contents need the token", "Authorization: Bearer TOKEN; see web.token")
