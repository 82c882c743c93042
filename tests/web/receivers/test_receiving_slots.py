"""Received requests take a limited number of threads, and one sender not all of them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from afresh.web.error_responses import RequestError
from afresh.web.receivers.receiving_slots import MOST_AT_ONCE, MOST_OF_ONE, ReceivingSlots


def test_the_threads_of_the_dashboard_are_not_used_up() -> None:
    over = threading.Event()

    async def main() -> None:
        slots = ReceivingSlots()
        senders = [f"hub{number // MOST_OF_ONE}" for number in range(MOST_AT_ONCE)]
        busy = [asyncio.create_task(slots.run(sender, over.wait, 60.0)) for sender in senders[:MOST_OF_ONE]]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as error:
            await slots.run(senders[0], int, "1")
        assert error.value.status == 503
        assert await slots.run("another", int, "1") == 1
        rest = senders[MOST_OF_ONE:]
        busy += [asyncio.create_task(slots.run(sender, over.wait, 60.0)) for sender in rest]
        await asyncio.sleep(0)
        with pytest.raises(RequestError):
            await slots.run("another", int, "1")
        over.set()
        await asyncio.gather(*busy)
        assert await slots.run(senders[0], int, "1") == 1

    asyncio.run(main())
