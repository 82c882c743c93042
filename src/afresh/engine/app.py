"""The composition root: builds an ``Engine`` from settings, store, sources, clock and random generator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from afresh.engine.engine import Engine, EngineContext
from afresh.engine.event_loop import NewEventLoop, new_fast_loop
from afresh.engine.feed.feed_reader import ChangeQuery
from afresh.engine.plugins import source_kinds
from afresh.engine.settings.parsing import FILE_NAME, parse_settings
from afresh.engine.settings.tables import Settings
from afresh.engine.settings.template import TEMPLATE
from afresh.sources.context import NewFetcher, network_fetcher, no_secrets
from afresh.sources.secrets import Resolver
from afresh.stores.opening import CopiesPlace, open_store
from afresh.stores.shared_time import SharedClock
from afresh.stores.store import Retention, Store
from afresh.values.changes import Change
from afresh.values.clock import Clock, SystemClock
from afresh.values.errors import OutputError, StoreReadOnlyError, UsageError


def make_engine(
    settings: Settings,
    folder: Path | str = ".",
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    secrets: Resolver = no_secrets,
    seed: int | None = None,
    reading: bool = False,
    new_loop: NewEventLoop | None = None,
    new_fetcher: NewFetcher = network_fetcher,
) -> Engine:
    """Return an engine with these settings. It uses ``store`` or, by default, the store that the settings
    name; relative paths begin at ``folder``. With ``reading``, a read-only store is accepted, for commands
    that only read. ``secrets`` resolves values such as ``env:NAME``; ``seed`` is for the random generator.
    ``clock``, ``new_loop`` and ``new_fetcher`` replace the machine's clock, event loop and network."""
    rng = np.random.default_rng(seed)
    opened = store if store is not None else open_settings_store(settings, Path(folder), reading=reading)
    # Workers on several machines use the clock of the store, because their own clocks may differ.
    shared = SharedClock(clock or SystemClock(), opened.fleet)
    given = EngineContext(rng, secrets, new_loop or new_fast_loop, new_fetcher)
    return Engine(settings, opened, shared, given)


def open_settings_store(settings: Settings, folder: Path, *, reading: bool = False) -> Store:
    """Open the store that the settings name, and create it if it does not exist. With ``reading``, open it
    read-only if it cannot be written."""
    retention = Retention(settings.store.versions, settings.store.observations)
    copies = CopiesPlace(settings.store.copies, settings.store.copies_grace)
    try:
        return open_store(settings.store.url, base=folder, retention=retention, copies=copies)
    except StoreReadOnlyError:
        if not reading:
            raise
        url = settings.store.url
        return open_store(url, base=folder, retention=retention, copies=copies, read_only=True)


def open_engine(
    folder: Path | str = ".",
    overrides: Mapping[str, str] | None = None,
    *,
    secrets: Resolver = no_secrets,
    clock: Clock | None = None,
    seed: int | None = None,
    reading: bool = False,
) -> Engine:
    """Return the engine of a project folder. ``overrides`` such as ``{"budget.requests": "2/s"}`` replace
    settings of its settings file. ``make_engine`` explains the other parameters."""
    settings = read_folder(Path(folder), overrides)
    return make_engine(settings, folder, secrets=secrets, clock=clock, seed=seed, reading=reading)


def changes(
    folder: Path | str = ".",
    *,
    since: str | None = None,
    source: str | None = None,
    content: str | None = None,
    consumer: str | None = None,
    wait: bool = False,
    limit: float = math.inf,
    secrets: Resolver = no_secrets,
) -> Iterator[Change]:
    """Yield what changed in the project of ``folder``, in the order of the commits: each change after the
    cursor ``since`` (None: from the oldest that is kept), of ``source`` or of all sources, at most ``limit``.

    ``content`` asks for the content in one of its forms, such as ``raw``. With ``wait``, the iterator waits
    for further changes when it has reached the end. With ``consumer``, it begins where the consumer of this
    name stopped; a change counts as processed when the next one is asked for. Raise ``CursorError`` for a
    cursor from which the feed cannot be followed any more."""
    settings, query = read_folder(Path(folder)), ChangeQuery(source, content)
    with make_engine(settings, folder, secrets=secrets, reading=consumer is None) as engine:
        if consumer is None:
            yield from engine.feed.follow(since, query, limit=limit, wait=wait)
        else:
            yield from engine.feed.consume(consumer, query, since=since, limit=limit, wait=wait)


def read_folder(folder: Path, overrides: Mapping[str, str] | None = None) -> Settings:
    path = folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"there is no {FILE_NAME} in {folder.resolve()}: make one with 'afresh init'"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    return parse_settings(text, overrides, kinds=source_kinds())


def init_folder(folder: Path) -> Path:
    """Create a project folder with a settings file and a store; return the path of the settings file. Raise
    ``UsageError`` if there is a settings file already."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Settings may contain secrets, so only the user may read them.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise UsageError(f"{path} is there already: nothing was changed") from None
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    open_settings_store(parse_settings(TEMPLATE), folder).close()
    return path
