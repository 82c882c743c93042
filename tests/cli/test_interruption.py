"""A signal may come between any two statements of the program's own handling of signals."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# One child per line that interruption.py executes; the signal comes just before that line. The child's own
# handling begins with ``install``: before it Python's default applies.
PROGRAM = """\
import json, os, signal, sys
from afresh.cli import interruption

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
WORK = {"returns": lambda: None, "exits": lambda: sys.exit(3), "fails": lambda: 1 / 0}[sys.argv[1]]

def run_and_signal_at(line):
    seen, begun = -1, False
    def trace(frame, event, argument):
        nonlocal seen, begun
        if frame.f_code.co_filename != interruption.__file__:
            return None
        begun = begun or frame.f_code.co_name == "install"
        if begun and event == "line":
            seen += 1
            if seen == line:
                os.write(told, f"{frame.f_code.co_name}:{frame.f_lineno}".encode())
                signal.raise_signal(signal.SIGINT)
        return trace
    sys.settrace(trace)
    interruption.INTERRUPTION.program(WORK)

found = []
while not found or found[-1][0]:
    tell, told = os.pipe()
    child = os.fork()
    if not child:
        code = 0
        try:
            run_and_signal_at(len(found))
        except SystemExit as end:
            code = end.code
        except ZeroDivisionError:
            code = 4
        except BaseException:
            code = 1
        os._exit(code)
    os.close(told)
    with open(tell) as where:
        found.append((where.read(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
print(json.dumps(found))
"""


@pytest.mark.parametrize(("work", "code"), [("returns", 0), ("exits", 3), ("fails", 4)])
def test_a_signal_before_any_line_is_an_interruption_or_comes_too_late(work: str, code: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, work], capture_output=True, text=True, check=True, timeout=120
    )
    *signalled, undisturbed = json.loads(ran.stdout)
    assert undisturbed == ["", code]
    assert len(signalled) > 20
    assert {end for _, end in signalled} == {130, code}, signalled
    # Once the program has said that it ended by itself, it ends as it would have.
    late = [end for _, end in signalled].index(code)
    assert late > len(signalled) / 2, signalled
