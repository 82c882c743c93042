"""``POST /receive/webhook/NAME``: the webhooks of the settings."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from afresh.engine.receiving.receiver_error import ReceiverError
from afresh.engine.receiving.webhooks import WebhookReceiver
from afresh.web.error_responses import RequestError
from afresh.web.receivers.receiving_slots import ReceivingSlots


def add_webhooks(router: APIRouter, receiver: WebhookReceiver, slots: ReceivingSlots) -> None:
    @router.post("/receive/webhook/{name}")
    async def receive(name: str, request: Request) -> JSONResponse:
        body = await request.body()
        try:
            found = await slots.run(f"webhook:{name}", receiver.receive, name, request.headers, body)
        except ReceiverError as error:
            raise RequestError(error.status, str(error)) from None
        return JSONResponse({"noticed": found.noticed, "unknown": found.unknown}, 202)
