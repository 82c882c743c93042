"""``POST /receive/webhook/NAME``: the webhooks of the settings."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from afresh.engine.receiving.receiver_error import ReceiverError
from afresh.engine.receiving.webhooks import WebhookReceiver
from afresh.web.error_responses import RequestError


def add_webhooks(router: APIRouter, receiver: WebhookReceiver) -> None:
    @router.post("/receive/webhook/{name}")
    async def receive(name: str, request: Request) -> JSONResponse:
        body = await request.body()
        try:
            found = await run_in_threadpool(receiver.receive, name, request.headers, body)
        except ReceiverError as error:
            raise RequestError(error.status, str(error)) from None
        return JSONResponse({"noticed": found.noticed, "unknown": found.unknown}, 202)
