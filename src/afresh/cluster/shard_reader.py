"""Asks one shard: in this process, by opening its store, or in Ray, where its process answers.

A question is a function of an ``Engine`` that this module's callers name, such as ``Engine.status``. The
store of a shard may not be there yet, and its process may be lost: a reader opens or finds it when it is
asked, and tries again with the next question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from afresh.cluster.ray_session import ClusterError, ask_actor, find_actor
from afresh.cluster.shard_settings import ShardSpec, shard_settings
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.stores.opening import CopiesPlace, open_store
from afresh.values.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")


class ShardUnreachableError(ClusterError, StoreError):
    """A shard cannot be asked now."""


class ShardReader(Protocol):
    """Answers questions about one shard. Any thread may ask."""

    def ask(self, question: Callable[Concatenate[Engine, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return ``question(engine, …)`` for the engine of the shard. It must be a function of a module, or
        of ``Engine``. Raise ``ShardUnreachableError`` if the shard cannot be asked now."""


class StoredShard:
    """A shard whose store this process can open, read-only. It is closed with ``stack``."""

    def __init__(self, spec: ShardSpec, stack: ExitStack) -> None:
        self._spec, self._stack = spec, stack
        self._lock = threading.Lock()
        self._opened: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine of the shard, which must not run."""
        with self._lock:
            if self._opened is None:
                self._opened = self._stack.enter_context(_open_engine(self._spec))
            return self._opened

    def ask(self, question: Callable[Concatenate[Engine, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return question(self.engine, *args, **kwargs)


class RemoteShard:
    """A shard that runs in Ray. Its process is looked for by ``name`` with every question, because it may
    have been started again."""

    def __init__(self, connect: Callable[[], ModuleType], shard: int, name: str) -> None:
        self._connect, self._shard, self._name = connect, shard, name

    def ask(self, question: Callable[Concatenate[Engine, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            ray = self._connect()
            handle = find_actor(ray, self._name)
            if handle is None:
                words = f"shard {self._shard} is not running now: try again when it is back"
                raise ShardUnreachableError(words)
            found: T = ask_actor(ray, handle.ask.remote(question, args, kwargs), f"shard {self._shard}")
        except ShardUnreachableError:
            raise
        except ClusterError as error:
            raise ShardUnreachableError(str(error)) from None
        return found


def _open_engine(spec: ShardSpec) -> Engine:
    settings = shard_settings(spec)
    try:
        copies = CopiesPlace(settings.store.copies, settings.store.copies_grace)
        base = Path(spec.folder)
        store = open_store(settings.store.url, base=base, copies=copies, create=False, read_only=True)
    except StoreError as error:
        raise ShardUnreachableError(f"shard {spec.shard}: {error}") from None
    return make_engine(settings, spec.folder, store=store)
