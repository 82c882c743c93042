"""Refreshes of views by a command or function of the user, and what ``stale_when`` states of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, find_function
from afresh.sources.sql.connection_thread import ConnectionThread
from afresh.sources.sql.errors import SqlError
from afresh.sources.user_command import CommandFailedError, run_command
from afresh.sources.views.settings import VIEW, ViewSettings, is_query
from afresh.sources.views.view_session import ViewSession

_GRACE_S = 5.0  # between SIGTERM and SIGKILL, for a command that takes too long


class UserRefresh:
    """Runs the settings ``refresh`` and ``stale_when`` of one source. Functions are called in threads of
    their own; a function that takes too long cannot be ended, so no refresh starts until it returns."""

    def __init__(self, settings: ViewSettings) -> None:
        self._settings, self._with = settings, settings.refresh_with
        self._function = find_function(self._with, "refresh") if isinstance(self._with, str) else None
        asked = settings.stale_when
        names = [asked] if isinstance(asked, str) else asked.values()
        self._questions = {
            name: find_function(name, "stale_when") for name in names if name and not is_query(name)
        }
        self._refreshes = UserCalls(f"afresh {settings.name}", 1)
        self._calls = UserCalls(f"afresh {settings.name}", 1)

    @property
    def can_refresh(self) -> bool:
        """Whether the settings say how a view is refreshed; otherwise PostgreSQL does it."""
        return self._with is not None

    @property
    def is_running(self) -> bool:
        """Whether a function still runs, even if its poll timed out."""
        return self._refreshes.is_full

    async def refresh(self, view: str) -> None:
        """Refresh a view; raise ``SqlError`` if that fails or takes longer than ``timeout``."""
        try:
            async with asyncio.timeout(self._settings.timeout):
                if self._function is not None:
                    await self._refreshes.call(self._function, view, view)
                elif isinstance(self._with, tuple):
                    command = tuple(word.replace(VIEW, view) for word in self._with)
                    await run_command(command, b"", grace_s=_GRACE_S, reads_output=True)
        except TimeoutError:
            raise SqlError(f"took longer than its time-out allows ({self._settings.timeout:g} s)") from None
        except (CommandFailedError, RaisedError) as error:
            raise SqlError(str(error)) from None

    async def read_statements(
        self, views: Iterable[str], thread: ConnectionThread[ViewSession], timeout_s: float
    ) -> dict[str, bool]:
        """Return what ``stale_when`` states of each view: True for stale. Views without it are left out. A
        query is sent through ``thread``; raise ``SqlError`` if one fails or takes longer than
        ``timeout_s`` seconds."""
        answers: dict[str, bool] = {}
        found = {}
        for view in views:
            asked = self._settings.stale_question(view)
            if not asked:
                continue
            # A question without a placeholder has one answer for all views.
            question = asked.replace(VIEW, view) if is_query(asked) else f"{asked} {view}"
            if question not in answers:
                answers[question] = await self._answer(asked, question, view, thread, timeout_s)
            found[view] = answers[question]
        return found

    async def _answer(
        self, asked: str, question: str, view: str, thread: ConnectionThread[ViewSession], timeout_s: float
    ) -> bool:
        if asked not in self._questions:
            return await thread.run(lambda session: session.is_true(question), timeout_s, retry=True)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._calls.call(self._questions[asked], view, view)
        except TimeoutError:
            raise SqlError(f"stale_when: no answer within {timeout_s:g} s") from None
        except RaisedError as error:
            raise SqlError(f"stale_when: {error}") from None
        if answer is not None and answer not in (True, False):
            raise SqlError(f"stale_when: gives {answer!r:.50}, which is neither true nor false")
        return bool(answer)

    async def close(self) -> None:
        await self._refreshes.close()
        await self._calls.close()
