"""The servers of the tutorials say what to do if they run already."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("library_site.py", "Does the library run in another terminal already?"),
        ("two_shops.py", "Do the shops run in another terminal already?"),
    ],
)
def test_a_port_in_use_is_explained(program: str, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ports = ["--port", port] if program == "library_site.py" else ["--ports", "0", port]
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / program), *ports],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ran.returncode == 1
    assert ran.stderr.startswith("port ")
    assert ran.stderr.endswith(f"Address already in use. {words}\n")
