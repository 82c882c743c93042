"""A function of the user's: found by its name, and called so that nothing it raises ends more than the call.

``SystemExit`` in a function must not end the engine, ``TimeoutError`` not look like our own time limit, and
``StopIteration`` not get lost on its way out of a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, TypeVar

from afresh.values.errors import UsageError

_LONGEST_WORDS = 200
A = TypeVar("A")


class RaisedError(Exception):
    """What a user's function raised; the text says it in one line."""


def describe_error(error: BaseException) -> str:
    """An error's kind and text, in one line.

    >>> describe_error(KeyError("no")), describe_error(SystemExit())
    ("KeyError: 'no'", 'SystemExit')
    """
    kind, text = type(error).__name__, " ".join(str(error).split())
    return (f"{kind}: {text}" if text else kind)[:_LONGEST_WORDS]


def call_function(function: Callable[[A], Any], argument: A) -> Any:
    """What the function returns, call_function on a thread; ``RaisedError`` if it raises."""
    try:
        return function(argument)
    except BaseException as error:  # noqa: BLE001  # it is the user's code: whatever it raises is its answer
        raise RaisedError(describe_error(error)) from None


async def await_function(function: Callable[[A], Awaitable[Any]], argument: A) -> Any:
    """What the coroutine function returns; ``RaisedError`` if it raises. Cancelled, it is cancelled."""
    try:
        return await function(argument)
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise RaisedError(describe_error(error)) from None


def find_function(name: str, setting: str = "call") -> Callable[..., Any]:
    """The function behind ``module:function``.

    >>> find_function("string:capwords")("to be")
    'To Be'
    >>> find_function("string.capwords")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: call 'string.capwords' is no function: write module:function
    """
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise UsageError(f"{setting} {name!r} is no function: write module:function")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever their module does when it is imported
        raise UsageError(f"{setting} {name!r} cannot be found: {describe_error(error)}") from None
    if not callable(found):
        raise UsageError(f"{setting} {name!r} is not a function but a {type(found).__name__}")
    function: Callable[..., Any] = found
    return function
