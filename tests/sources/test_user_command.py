"""A hook that is a command: its errors, what it writes, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until, until_async

from afresh.sources.user_command import CommandFailedError, run_command


def run(script: str, content: bytes = b"") -> None:
    asyncio.run(run_command(("sh", "-c", script), content, {"AFRESH_SOURCE": "web"}))


def test_a_command_that_leaves_a_child_behind_has_succeeded(tmp_path: Path) -> None:
    child = tmp_path / "child"
    run(f"sleep 600 & echo $! > {child}")
    os.kill(int(child.read_text()), signal.SIGKILL)  # it is still there: it was left alone


def test_of_the_standard_error_only_the_end_is_kept() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CommandFailedError, match="sh ended with 3: the end"):
            run("yes | head -c 30000000 >&2; echo the end >&2; exit 3")
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_a_command_gets_variables_beside_its_environment(tmp_path: Path) -> None:
    run(f'echo "$AFRESH_SOURCE $HOME" > {tmp_path}/seen')
    assert (tmp_path / "seen").read_text() == f"web {os.environ['HOME']}\n"


def test_a_command_need_not_read_its_input(tmp_path: Path) -> None:
    run("exit 0", b"x" * 5_000_000)
    run(f"wc -c > {tmp_path}/size", b"x" * 5_000_000)
    assert int((tmp_path / "size").read_text()) == 5_000_000


def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(CommandFailedError, match="/no/such: No such file"):
        asyncio.run(run_command(("/no/such",), b"", {}))


@pytest.mark.parametrize("while_it_starts", [False, True])
def test_a_command_that_is_cancelled_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, while_it_starts: bool
) -> None:
    child = tmp_path / "child"
    exec_ = asyncio.create_subprocess_exec

    async def slow_start(*command: str, **options: Any) -> asyncio.subprocess.Process:
        """As on a busy machine: the command works before asyncio says that it has started."""
        process = await exec_(*command, **options)
        await until_async(lambda: cancelled or not while_it_starts, "the caller is cancelled")
        return process

    cancelled: list[bool] = []
    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow_start)

    async def work() -> None:
        script = f"sleep 600 & echo $! > {child}.part; mv {child}.part {child}; wait"
        running = asyncio.create_task(run_command(("sh", "-c", script), b"", {}))
        await until_async(child.exists, "the command has started its child")
        running.cancel()
        await asyncio.sleep(0)
        cancelled.append(True)
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())
    status = Path("/proc") / child.read_text().strip() / "stat"
    until(lambda: not status.exists() or ") Z " in status.read_text(), "the child is dead")
