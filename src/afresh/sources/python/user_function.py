"""Find and call functions of the user. Every exception that such a function raises becomes a ``RaisedError``.

Otherwise ``SystemExit`` would end the engine, ``TimeoutError`` would look like the time limit of a poll, and
``StopIteration`` could not be passed on, because an asyncio future does not accept it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, TypeVar

from afresh.values.errors import UsageError

_LONGEST = 200
A = TypeVar("A")


class RaisedError(Exception):
    """A function of the user raised an exception, or cannot be called now. The message says why, in one
    line."""


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an exception in one line of at most 200 characters.

    >>> describe_error(KeyError("no")), describe_error(SystemExit())
    ("KeyError: 'no'", 'SystemExit')
    """
    kind, text = type(error).__name__, " ".join(str(error).split())
    return (f"{kind}: {text}" if text else kind)[:_LONGEST]


def call_function(function: Callable[[A], Any], argument: A) -> Any:
    """Call a function and return its result; raise ``RaisedError`` if it raises an exception."""
    try:
        return function(argument)
    except BaseException as error:  # noqa: BLE001  # any error of the user's code is its result
        raise RaisedError(describe_error(error)) from None


async def await_function(function: Callable[[A], Awaitable[Any]], argument: A) -> Any:
    """Await a coroutine function and return its result; raise ``RaisedError`` if it raises an exception."""
    try:
        return await function(argument)
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the poll itself was cancelled
        raise RaisedError(describe_error(error)) from None


def find_function(name: str, setting: str = "call") -> Callable[..., Any]:
    """Import and return the function with the name ``module:function``. Errors name ``setting``.

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
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the user's module may raise anything when it is imported
        raise UsageError(f"{setting} {name!r} cannot be found: {describe_error(error)}") from None
    if not callable(found):
        raise UsageError(f"{setting} {name!r} is not a function but a {type(found).__name__}")
    function: Callable[..., Any] = found
    return function
