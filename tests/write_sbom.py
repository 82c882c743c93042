"""Writes afresh.cdx.json, the list of packages in the wheel's metadata, from requirements.txt (``make
lock``).

The list is a software bill of materials in the format CycloneDX 1.6. It names the versions that the tests
used, with their hashes; pip may install later ones, as the dependencies in pyproject.toml allow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from afresh.version import __version__

ROOT = Path(__file__).parent.parent
_ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>[\w.+!]+)(?P<rest>.*?)(?=^\S|\Z)",
    re.MULTILINE | re.DOTALL,
)


def locked_packages(requirements: str) -> list[tuple[str, str, list[str]]]:
    """Return a tuple (name, version, SHA-256 hashes) for each package of a requirements file. A package has
    several versions if machines or versions of Python need different ones."""
    return [
        (entry["name"], entry["version"], re.findall(r"--hash=sha256:([0-9a-f]{64})", entry["rest"]))
        for entry in _ENTRY.finditer(requirements)
    ]


def bill_of_materials() -> dict[str, Any]:
    packages = locked_packages((ROOT / "requirements.txt").read_text())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "afresh",
                "version": __version__,
                "purl": f"pkg:pypi/afresh@{__version__}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
            }
            for name, version, hashes in sorted(packages)
        ],
    }


def sbom_text() -> str:
    return json.dumps(bill_of_materials(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    (ROOT / "afresh.cdx.json").write_text(sbom_text())
