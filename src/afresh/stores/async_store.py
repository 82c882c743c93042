"""The awaitable form of a store: ``await store.items.by_id(ids)`` runs the call in the store's thread.

    calls = StoreCalls(executor)                         # an executor with a single thread
    store = AsyncStore(opened, calls.call_with_retry)    # or calls.call: no retry

The executor has one thread, so calls run one after the other, in the order in which they were made. Between
two attempts of a call that is retried, other calls may run. Cancelling an awaited call does not stop the
thread: a call that is already running is completed, a call that still waits for the thread is never run, and
neither is retried.

Each method has the type of the store's method (``ParamSpec``), so that its parameters are not repeated here.
Methods that return an iterator are left out, because an iterator belongs to one thread, and a failure in the
middle of it could not be retried. Instead, pass to ``StoreCalls.call`` a function that reads the whole
iterator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

import afresh.stores.store as contract
from afresh.values.backoff import Backoff
from afresh.values.errors import StoreCorruptError, StoreError, StoreVersionError

P = ParamSpec("P")
T = TypeVar("T")
Result: TypeAlias = Coroutine[object, object, T]
RETRIES = Backoff(first_s=0.1, longest_s=5.0)


class RunCall(Protocol):
    """Runs a function in the store's thread and returns its result."""

    def __call__(self, work: Callable[[], T]) -> Result[T]: ...


class StoreCalls:
    """Runs functions in the store's thread, once or until they succeed.

    ``thread`` is an executor with one thread. ``trouble`` is the message of the error because of which the
    store cannot be used at the moment, empty while the store works. ``report`` is called with every new
    ``trouble``, also with the empty text when the store works again."""

    def __init__(
        self,
        thread: Executor,
        report: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._thread, self._report, self._sleep = thread, report, sleep
        self.trouble = ""

    async def call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def call_with_retry(self, work: Callable[[], T]) -> T:
        """Run ``work`` again after every ``StoreError`` until it succeeds, with growing waits in between.

        Most errors pass: locks are released, disks are cleared, servers restart. The errors of a damaged
        store, or of a store that a newer version of afresh wrote, do not, so they are raised at once."""
        failures = 0
        while True:
            try:
                result = await self.call(work)
            except (StoreCorruptError, StoreVersionError):
                raise
            except StoreError as error:
                failures += 1
                self._set_trouble(str(error))
                await self._sleep(RETRIES.wait_s(failures))
            else:
                # Success at the first attempt proves nothing: a full disk can still be read.
                if failures:
                    self._set_trouble("")
                return result

    def _set_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._report(trouble)


def _awaited(run: RunCall, method: Callable[P, T]) -> Callable[P, Result[T]]:
    """Return a function with the same parameters as ``method``, whose result is awaited; ``run`` runs it."""

    def call(*args: P.args, **kwargs: P.kwargs) -> Result[T]:
        return run(lambda: method(*args, **kwargs))

    return call


class AsyncItems:
    def __init__(self, items: contract.StoredItems, run: RunCall) -> None:
        self.add = _awaited(run, items.add)
        self.change = _awaited(run, items.change)
        self.remove = _awaited(run, items.remove)
        self.get = _awaited(run, items.get)
        self.by_id = _awaited(run, items.by_id)
        self.ids = _awaited(run, items.ids)
        self.page = _awaited(run, items.page)
        self.due = _awaited(run, items.due)
        self.counts = _awaited(run, items.counts)
        self.edits = _awaited(run, items.edits)


class AsyncLeases:
    def __init__(self, leases: contract.Leases, run: RunCall) -> None:
        self.take = _awaited(run, leases.take)
        self.take_due = _awaited(run, leases.take_due)
        self.release = _awaited(run, leases.release)
        self.open = _awaited(run, leases.open)
        self.until_s = _awaited(run, leases.until_s)


class AsyncCopies:
    def __init__(self, copies: contract.Copies, run: RunCall) -> None:
        self.get = _awaited(run, copies.get)
        self.versions = _awaited(run, copies.versions)


class AsyncPlan:
    def __init__(self, plan: contract.Plan, run: RunCall) -> None:
        self.columns_of = _awaited(run, plan.columns_of)
        self.names = _awaited(run, plan.names)
        self.save = _awaited(run, plan.save)


class AsyncObservations:
    def __init__(self, observations: contract.Observations, run: RunCall) -> None:
        self.add = _awaited(run, observations.add)
        self.audits = _awaited(run, observations.audits)


class AsyncEvents:
    def __init__(self, events: contract.Events, run: RunCall) -> None:
        self.take = _awaited(run, events.take)
        self.done = _awaited(run, events.done)
        self.defer = _awaited(run, events.defer)
        self.waiting = _awaited(run, events.waiting)


class AsyncNotices:
    def __init__(self, notices: contract.StoredNotices, run: RunCall) -> None:
        self.add = _awaited(run, notices.add)
        self.open = _awaited(run, notices.open)


class AsyncLedger:
    def __init__(self, ledger: contract.Ledger, run: RunCall) -> None:
        self.add = _awaited(run, ledger.add)
        self.total = _awaited(run, ledger.total)
        self.rows = _awaited(run, ledger.rows)
        self.forget = _awaited(run, ledger.forget)


class AsyncState:
    def __init__(self, state: contract.State, run: RunCall) -> None:
        self.get = _awaited(run, state.get)
        self.set = _awaited(run, state.set)
        self.names = _awaited(run, state.names)


class AsyncFleet:
    def __init__(self, fleet: contract.Fleet, run: RunCall) -> None:
        self.beat = _awaited(run, fleet.beat)
        self.leave = _awaited(run, fleet.leave)
        self.workers = _awaited(run, fleet.workers)
        self.take = _awaited(run, fleet.take)
        self.renew = _awaited(run, fleet.renew)
        self.release = _awaited(run, fleet.release)
        self.claims = _awaited(run, fleet.claims)
        self.reserve = _awaited(run, fleet.reserve)
        self.give_back = _awaited(run, fleet.give_back)
        self.next_slot_s = _awaited(run, fleet.next_slot_s)
        self.owe = _awaited(run, fleet.owe)
        self.ahead_s = _awaited(run, fleet.ahead_s)


class AsyncUpkeep:
    def __init__(self, upkeep: contract.Upkeep, run: RunCall) -> None:
        self.check = _awaited(run, upkeep.check)
        self.vacuum = _awaited(run, upkeep.vacuum)
        self.backup = _awaited(run, upkeep.backup)
        self.stats = _awaited(run, upkeep.stats)


class AsyncStore:
    """A ``Store`` whose methods are awaited. ``run`` runs each call, with or without retries."""

    def __init__(self, store: contract.Store, run: RunCall) -> None:
        self.items = AsyncItems(store.items, run)
        self.leases = AsyncLeases(store.leases, run)
        self.copies = AsyncCopies(store.copies, run)
        self.plan = AsyncPlan(store.plan, run)
        self.observations = AsyncObservations(store.observations, run)
        self.events = AsyncEvents(store.events, run)
        self.notices = AsyncNotices(store.notices, run)
        self.ledger = AsyncLedger(store.ledger, run)
        self.state = AsyncState(store.state, run)
        self.fleet = AsyncFleet(store.fleet, run)
        self.upkeep = AsyncUpkeep(store.upkeep, run)
        self.commit = _awaited(run, store.commit)
