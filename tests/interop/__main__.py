"""``python -m tests.interop [TOOL…]`` tests afresh together with other tools, by default with all of them."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.interop.environments import HERE, ROOT, TOOLS, environment, install_packages


def main(tools: list[str]) -> int:
    """Make the environment of each tool, and run its tests; return the exit code."""
    unknown = sorted(set(tools) - set(TOOLS))
    if unknown:
        sys.exit(f"unknown tool {', '.join(unknown)}: one of {', '.join(TOOLS)}")
    failed = []
    for tool in tools or TOOLS:
        install_packages(tool)
        programs = {"AFRESH_INTEROP": str(environment(tool))}
        command = [sys.executable, "-m", "pytest", "-q", "--durations=5", "-m", "interop", str(HERE / tool)]
        if subprocess.run(command, cwd=ROOT, env={**os.environ, **programs}, check=False).returncode:
            failed.append(tool)
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
