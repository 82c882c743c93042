"""``/receive/websub/ID``: the addresses that hubs of feeds call (WebSub)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from afresh.engine.receiving.hub_calls import HubCalls
from afresh.engine.receiving.receiver_error import ReceiverError
from afresh.engine.runner.websub.subscriptions import CALLBACK_PATH
from afresh.web.error_responses import RequestError
from afresh.web.receivers.receiving_slots import ReceivingSlots


def add_hubs(router: APIRouter, calls: HubCalls, slots: ReceivingSlots) -> None:
    @router.get(f"{CALLBACK_PATH}{{subscription_id}}")
    def verify(subscription_id: str, request: Request) -> Response:
        try:
            return PlainTextResponse(calls.verify(subscription_id, request.query_params))
        except ReceiverError as error:
            raise RequestError(error.status, str(error)) from None

    @router.post(f"{CALLBACK_PATH}{{subscription_id}}")
    async def receive(subscription_id: str, request: Request) -> Response:
        body = await request.body()
        try:
            await slots.run(f"hub:{subscription_id}", calls.receive, subscription_id, request.headers, body)
        except ReceiverError as error:
            raise RequestError(error.status, str(error)) from None
        return Response(status_code=202)
