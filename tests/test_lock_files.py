"""The lock files and the wheel's list of packages: complete, with hashes, and in step with pyproject.toml."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from tests.lowest_versions import lowest_versions
from tests.write_sbom import locked_packages, sbom_text

ROOT = Path(__file__).parent.parent


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def versions(file: str) -> dict[str, str]:
    return {name: version for name, version, _ in locked_packages((ROOT / file).read_text())}


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_every_package_is_locked_with_hashes_and_no_place(file: str) -> None:
    text = (ROOT / file).read_text()
    packages = locked_packages(text)
    assert len(packages) > 40
    assert [name for name, _, hashes in packages if not hashes] == []
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) == len(packages)
    assert "://" not in text
    assert "index-url" not in text


def test_what_is_locked_is_what_pyproject_asks_for() -> None:
    locked = versions("requirements.txt")
    for line in lowest_versions(extras=("web", "plots", "parquet", "fast", "postgres")):
        name, _, lowest = line.partition("==")
        assert numbers(locked[name]) >= numbers(lowest), name
    developers = versions("requirements-dev.txt")
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.split(r"[\[>=]", line)[0].lower() for line in table["dev"]}
    assert names <= set(developers)
    assert set(locked) <= set(developers)


def test_the_list_of_packages_is_that_of_the_lock_file() -> None:
    assert (ROOT / "afresh.cdx.json").read_text() == sbom_text()
    assert json.loads(sbom_text())["components"][0]["hashes"]
