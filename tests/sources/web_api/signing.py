"""Functions that sign requests, for tests, found by their names in settings."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from afresh.sources.web_api.access import RequestToSign


def headers(request: RequestToSign) -> dict[str, str]:
    text = f"{request.method} {request.url} {request.body.decode()}"
    return {"x-signature": sha256(text.encode()).hexdigest()}


async def in_the_address(request: RequestToSign) -> RequestToSign:
    return replace(request, url=f"{request.url}&sig=s1gned")


def elsewhere(request: RequestToSign) -> RequestToSign:
    return replace(request, url="http://127.0.0.1:1/stolen")


def broken(request: RequestToSign) -> dict[str, str]:
    raise RuntimeError(f"no key for {request.method}")


def nothing(request: RequestToSign) -> None:
    del request
