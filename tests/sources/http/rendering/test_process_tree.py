"""Which process is the browser, among scripts that start it and processes that it has just forked."""

from __future__ import annotations

import subprocess
import sys

from afresh.sources.http.rendering.process_tree import find_marked

BROWSER = """
import os, sys
if os.fork() == 0:  # a copy with the same command line
    sys.stdin.read()
    os._exit(0)
print(os.getpid(), flush=True)
sys.stdin.read()
os.wait()
"""


def test_the_browser_is_neither_its_script_nor_its_copy() -> None:
    script = '"$0" -c "$1" "$2"; true'  # so that the shell stays
    command = ["sh", "-c", script, sys.executable, BROWSER, "--marked-for-this-test"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        browser = int(shell.stdout.readline())
        assert find_marked("--marked-for-this-test") == browser
        shell.communicate()
    assert find_marked("--marked-for-this-test") is None
