"""Names that mean one thing: no two public classes share a name, no file name stands for two things.

Files named after a role (``settings.py``, ``errors.py``, …) may stand in every folder. The backends of the
store mirror each other file by file, so that their files may share names, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "afresh"
ROLES = {
    *("__init__.py", "__main__.py", "app.py", "errors.py"),
    *("registry.py", "settings.py", "source.py", "store.py"),
}
BACKENDS = ("stores/sqlite", "stores/postgres")
MOST_FILES = 22
FLAT = ("stores/sqlite", "stores/postgres")  # one table or query set a file


def test_no_two_public_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            homes[name].append(path.relative_to(SOURCE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_file_name_stands_for_two_things() -> None:
    homes = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        folder = path.parent.relative_to(SOURCE).as_posix()
        if path.name not in ROLES:
            homes[path.name].add("stores/*" if folder in BACKENDS else folder)
    assert {name: sorted(folders) for name, folders in homes.items() if len(folders) > 1} == {}


def test_no_folder_holds_too_many_files() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in SOURCE.rglob("*") if folder.is_dir()}
    crowded = {
        name: count
        for folder, count in counts.items()
        if count > MOST_FILES and (name := folder.relative_to(SOURCE).as_posix()) not in FLAT
    }
    assert crowded == {}
