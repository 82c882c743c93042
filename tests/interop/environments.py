"""The environments of ``make interop``: one for each folder beside this file.

``requirements.txt`` of a folder lists the packages of the tool, all with their versions: they are installed
into ``.venv-interop-NAME``. ``packages.txt`` lists packages of Debian, which are installed where they are
missing."""

from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOOLS = tuple(sorted({path.parent.name for path in HERE.glob("*/test_*.py")}))


def environment(tool: str) -> Path:
    """Return the folder with the programs of a tool. Make or renew its environment if need be."""
    wanted = HERE / tool / "requirements.txt"
    if not wanted.exists():
        return Path(sys.executable).parent
    folder = ROOT / f".venv-interop-{tool}"
    mark, bin_ = folder / "made-from", folder / "bin"
    content = blake2b(wanted.read_bytes()).hexdigest()
    if not mark.exists() or mark.read_text() != content:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", str(wanted)], check=True, cwd=ROOT)
        mark.write_text(content)
    return bin_


def install_packages(tool: str) -> None:
    """Install the packages of Debian that a tool needs and the machine lacks; raise if that fails."""
    wanted = HERE / tool / "packages.txt"
    names = wanted.read_text().split() if wanted.exists() else []
    ask = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}"]
    for name in names:
        found = subprocess.run([*ask, name], capture_output=True, text=True, check=False)
        if found.stdout != "installed":
            apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq"]
            subprocess.run([*apt, "--no-install-recommends", name], check=True)
