"""The engine's commands by name, for the command line to register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from afresh.cli.engine_config import config
from afresh.cli.engine_copies import export, get
from afresh.cli.engine_init import init
from afresh.cli.engine_items import add, remove, set_items
from afresh.cli.engine_outside import due, observe
from afresh.cli.engine_run import run
from afresh.cli.engine_status import status, why
from afresh.cli.engine_store import store
from afresh.cli.serve import serve

ENGINE_COMMANDS: dict[str, Callable[..., Any]] = {
    "init": init,
    "add": add,
    "remove": remove,
    "set": set_items,
    "run": run,
    "status": status,
    "why": why,
    "get": get,
    "due": due,
    "observe": observe,
    "export": export,
    "store": store,
    "config": config,
    "serve": serve,
}
