"""The python source: any function, its results, its errors and its time-outs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source
from tests.waiting import until_async

from afresh.sources.capabilities import find_capabilities
from afresh.sources.context import SourceContext
from afresh.sources.source import Source
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched


@pytest.fixture
def source_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    """Makes a source of a function, as if it were in a module ``things``."""

    def make(function: Callable[[str], Any], context: SourceContext | None = None, **changes: Any) -> Source:
        module = ModuleType("things")
        module.__dict__["look"] = function
        monkeypatch.setitem(__import__("sys").modules, "things", module)
        table = {"name": "py", "kind": "python", "call": "things:look", "timeout": "0.3s"} | changes
        return make_source(table, context or SourceContext())

    return make


def poll(source: Source, key: str = "k") -> Fetched:
    async def run() -> Fetched:
        try:
            return await source.poll(lease_of(key))
        finally:
            await source.close()

    return asyncio.run(run())


def test_bytes_and_text_sync_and_async(source_of: Callable[..., Source]) -> None:
    async def slowly(key: str) -> str:
        await asyncio.sleep(0)
        return f"é{key}"

    assert poll(source_of(lambda key: key.encode() * 2)).content == b"kk"
    fetched = poll(source_of(slowly))
    assert (fetched.content, fetched.requests, fetched.bytes) == ("ék".encode(), 1, 3)


def test_the_same_again_is_unchanged(source_of: Callable[..., Source]) -> None:
    async def run() -> str:
        source = source_of(lambda _: '{"a": 1, "t": 5}', json_path="a")
        lease = lease_of("k")
        again = await source.poll(lease_with_copy(lease, await source.poll(lease)))
        await source.close()
        return again.kind

    assert asyncio.run(run()) == "unchanged"


def test_errors_are_described_in_one_line(source_of: Callable[..., Source]) -> None:
    def broken(key: str) -> bytes:
        raise KeyError(f"no\nsuch {key}")

    fetched = poll(source_of(broken))
    assert (fetched.kind, fetched.problem) == ("failed", "KeyError: 'no\\nsuch k'")


@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (BaseExceptionGroup("both", [SystemExit()]), "BaseExceptionGroup: both (1 sub-exception)"),
        (StopIteration(), "StopIteration"),
    ],
)
def test_nothing_that_a_function_raises_ends_more_than_its_poll(
    source_of: Callable[..., Source], error: BaseException, words: str, coroutine: bool
) -> None:
    def leave(_: str) -> bytes:
        raise error

    async def leave_later(_: str) -> bytes:
        raise error

    fetched = poll(source_of(leave_later if coroutine else leave))
    assert fetched.kind == "failed"
    assert words in fetched.problem


@pytest.mark.parametrize("coroutine", [False, True])
def test_a_poll_can_be_cancelled(source_of: Callable[..., Source], coroutine: bool) -> None:
    release, begun = threading.Event(), threading.Event()

    def hang(_: str) -> bytes:
        begun.set()
        release.wait(30)
        return b""

    async def hang_later(_: str) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        return b""

    async def run() -> None:
        source = source_of(hang_later if coroutine else hang, timeout="30s")
        polling = asyncio.create_task(source.poll(lease_of("k")))
        await until_async(begun.is_set, "the call begins")
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        release.set()
        await source.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (None, "gone", "knows no such item"),
        (7, "failed", "gave int, not bytes or text"),
        (b"x" * 99, "failed", "99 bytes"),
    ],
)
def test_odd_answers(source_of: Callable[..., Source], answer: object, kind: str, words: str) -> None:
    fetched = poll(source_of(lambda _: answer, max_size=50))
    assert fetched.kind == kind
    assert words in fetched.problem


def test_a_function_that_hangs_fails_in_time_and_is_not_called_again_while_it_hangs(
    source_of: Callable[..., Source],
) -> None:
    release = threading.Event()

    async def run() -> None:
        source = source_of(lambda _: release.wait(30) and b"late", concurrency=1)
        hung = await source.poll(lease_of("k"))
        assert (hung.kind, hung.problem) == ("failed", "no answer within 0.3 s")
        assert source.ready_s("g", 0.0) == float("inf")
        assert "all 1 calls still run" in (await source.poll(lease_of("k"))).problem
        release.set()
        await until_async(lambda: source.ready_s("g", 0.0) < float("inf"), "the call ends")
        assert (await source.poll(lease_of("k"))).content == b"late"
        await source.close()

    asyncio.run(run())


def test_an_async_function_that_hangs_is_cancelled(source_of: Callable[..., Source]) -> None:
    async def hang(_: str) -> bytes:
        await asyncio.Event().wait()
        return b""

    source = source_of(hang)
    assert poll(source).problem == "no answer within 0.3 s"
    assert source.ready_s("g", 5.0) == 5.0


def test_an_async_function_that_blocks_delays_only_its_own_poll(source_of: Callable[..., Source]) -> None:
    release = threading.Event()

    async def block(_: str) -> bytes:
        release.wait(30)
        return b"late"

    async def run() -> None:
        source = source_of(block, concurrency=1)
        assert (await source.poll(lease_of("k"))).problem == "no answer within 0.3 s"
        assert "all 1 calls still run" in (await source.poll(lease_of("k"))).problem
        release.set()
        await until_async(lambda: source.ready_s("g", 0.0) < float("inf"), "the call ends")
        await source.close()

    asyncio.run(run())


def test_an_item_is_not_called_again_while_its_earlier_call_hangs(source_of: Callable[..., Source]) -> None:
    release = threading.Event()

    async def run() -> None:
        source = source_of(lambda key: (key == "hang" and release.wait(30) and b"") or b"x", concurrency=2)
        assert (await source.poll(lease_of("hang"))).problem == "no answer within 0.3 s"
        assert (await source.poll(lease_of("hang"))).problem == "the earlier call for this item still runs"
        assert (await source.poll(lease_of("other"))).content == b"x"
        release.set()
        await source.close()

    asyncio.run(run())


def test_each_call_is_admitted_and_windows_hold(source_of: Callable[..., Source]) -> None:
    admitted: list[str] = []

    async def admit(group: str) -> None:
        admitted.append(group)

    source = source_of(lambda _: b"x", SourceContext(clock=SetClock(), admit=admit), windows="01:00-02:00")
    assert source.ready_s("g", 0.0) == 3600.0
    poll(source)
    assert admitted == ["g"]


def test_a_source_lists_nothing_and_closes_twice(source_of: Callable[..., Source]) -> None:
    async def run() -> None:
        source = source_of(lambda _: b"x")
        assert [listing async for listing in source.listings()] == []
        await source.close()
        await source.close()
        assert (await source.poll(lease_of("k"))).kind == "failed"

    asyncio.run(run())


@pytest.mark.parametrize(
    "call", ["nomodule", "no.such.module:f", "string:nothing", "string:digits", ":f", "a:"]
)
def test_a_name_that_is_no_function_is_refused(call: str) -> None:
    with pytest.raises(UsageError, match="call "):
        make_source({"name": "py", "kind": "python", "call": call}, SourceContext())


def test_one_call_polls_many_keys(source_of: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def many(keys: list[str]) -> dict[str, str | None]:
        given.append(keys)
        return {key: key.upper() for key in keys if key != "gone"}

    module = ModuleType("bulks")
    module.__dict__.update(many=many, odd=lambda _: ["a"])
    monkeypatch.setitem(__import__("sys").modules, "bulks", module)

    async def run(call: str) -> list[Fetched]:
        source = source_of(lambda key: key.upper(), bulk_call=call, bulk=3)
        bulk = find_capabilities(source).bulk
        assert bulk is not None
        assert bulk.bulk_limit("things:look") == 3
        try:
            return await bulk.poll_many([lease_of(key) for key in ("a", "gone", "b")])
        finally:
            await source.close()

    found = asyncio.run(run("bulks:many"))
    assert [one.kind for one in found] == ["content", "gone", "content"]
    assert [one.content for one in found] == [b"A", None, b"B"]
    assert sum(one.requests for one in found) == 1
    assert given == [["a", "gone", "b"]]
    assert {one.problem for one in asyncio.run(run("bulks:odd"))} == {
        "bulk_call gave list, not a mapping from keys to contents"
    }
    plain = source_of(lambda key: key)
    assert find_capabilities(plain).bulk is None
    asyncio.run(plain.close())
