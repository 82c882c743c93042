"""``afresh`` as a child process that its first signal does not end, as if ending in order took for ever.

The file ``handling`` beside its folder of temporary files says that it is at it. Files and child processes
are still there then: what a second signal has to clear up.
"""

from __future__ import annotations

import os
import runpy
import threading
from pathlib import Path
from unittest.mock import patch

from afresh.cli.interruption import Interruption

_FOR_EVER_S = 1e6


def _say() -> None:
    Path(os.environ["TMPDIR"]).with_name("handling").touch()


def _hang(_self: object) -> None:
    _say()
    threading.Event().wait()


def _do_not_ask(_self: object) -> None:
    _say()


if __name__ == "__main__":
    with (
        patch.object(Interruption, "_raise", _hang),
        patch.object(Interruption, "_limit_s", lambda _self: _FOR_EVER_S),
        patch("afresh.cli.interruption._Stop.ask", _do_not_ask),
    ):
        runpy.run_module("afresh.cli.child_entry", run_name="__main__")
