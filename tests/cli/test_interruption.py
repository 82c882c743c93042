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

def convert():  # as a library that turns every exception into an error of its own
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise OSError("failed") from None

WORK = {
    "returns": lambda: None, "exits": lambda: sys.exit(3), "fails": lambda: 1 / 0, "converts": convert
}[sys.argv[1]]

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
                signal.raise_signal(signal.Signals[sys.argv[2]])
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


def ends_by_line(work: str, number: str) -> list[tuple[str, int]]:
    """Return every line, and the exit code if the signal comes before it; at the end, without a signal."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, work, number], capture_output=True, text=True, check=True, timeout=120
    )
    return [(line, code) for line, code in json.loads(ran.stdout)]


@pytest.mark.parametrize(("work", "code"), [("returns", 0), ("exits", 3), ("fails", 4)])
def test_a_signal_before_any_line_is_an_interruption_or_comes_too_late(work: str, code: int) -> None:
    *signalled, undisturbed = ends_by_line(work, "SIGINT")
    assert undisturbed == ("", code)
    assert len(signalled) > 20
    assert {end for _, end in signalled} == {130, code}, signalled
    # Once the program has said that it ended by itself, it ends as it would have.
    late = [end for _, end in signalled].index(code)
    assert late > len(signalled) / 2, signalled


def test_an_exception_that_is_raised_again_does_not_decide_the_end_of_an_interrupted_command() -> None:
    """The guard asks for a lost exception again, by SIGURG; by then the command may be ending."""
    ends = ends_by_line("converts", "SIGURG")
    assert len(ends) > 20
    assert {end for _, end in ends} == {130}, ends


SWALLOWED_IN_C = """\
import ctypes, signal
from afresh.cli.interruption import INTERRUPTION

def work():
    # As a library written in C that imports a module: it has the exception printed, and goes on.
    ctypes.pythonapi.PyRun_SimpleString(b"import signal; signal.raise_signal(signal.SIGINT)")
    while True:  # until the exception is raised again
        pass

signal.signal(signal.SIGINT, signal.default_int_handler)
INTERRUPTION.program(work)
"""


def test_an_exception_that_c_code_prints_is_raised_again_without_a_traceback() -> None:
    ran = subprocess.run([sys.executable, "-c", SWALLOWED_IN_C], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "afresh: stopped by SIGINT\n")
