"""Names that mean one thing: no two public classes share a name, no file name stands for two things.

Files named after a role (``settings.py``, ``errors.py``, …) may stand in every folder. The backends of the
store mirror each other file by file, so that their files may share names, too.

And time: no test waits by letting real time pass.
"""

from __future__ import annotations

import ast
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
TESTS = Path(__file__).parent
PAUSES = {
    "cluster/test_cluster_run.py": "takes steps of a run until a condition holds",
    "engine/changing_pages.py": "an answer takes its time, so that another request could meet it",
    "engine/recorded_fleet.py": "disturbs engines for a while; reads the feed again and again",
    "engine/ratelimit/test_request_slots.py": "stands in for sleep itself",
    "engine/test_history.py": "disturbs engines for a while, at random moments",
    "engine/test_slow_hosts.py": "a server that answers slowly on purpose",
    "pages/take_pictures.py": "no test: lets a run go on until there is something to see",
    "servers/hostile.py": "a server that answers slowly on purpose",
    "sources/parsing/test_parser_pool.py": "counts turns of the event loop until a parse has ended",
    "test_virtual_time.py": "sleeps in virtual time, which it tests",
    "virtual_time.py": "sleeps in virtual time",
    "waiting.py": "looks at a condition again and again",
}
"""Files that let real time pass, or seem to, and why. Others wait with ``waiting.until`` for a condition, or
let virtual time pass with ``virtual_time.pass_time``."""
LEAST_LIMIT_S = 10.0  # who waits for less with a literal number pauses, or depends on a quick machine
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


def pauses_in(code: str) -> list[int]:
    """Return the lines on which real time passes: ``sleep(x)`` for other x than 0, ``Event().wait(x)``, …"""
    return [
        node.lineno for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and is_pause(node)
    ]


def is_pause(call: ast.Call) -> bool:
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "timeout")]
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if not given or (isinstance(given[0], ast.Constant) and not given[0].value):
        return False
    if name == "wait" and isinstance(call.func, ast.Attribute):
        is_set_by_nobody = isinstance(call.func.value, ast.Call)
        number = given[0].value if isinstance(given[0], ast.Constant) else None
        return is_set_by_nobody or (isinstance(number, int | float) and number < LEAST_LIMIT_S)
    if name == "select":
        return bool(call.args) and all(isinstance(one, ast.List) and not one.elts for one in call.args[:3])
    return name == "sleep"


def test_pauses_are_found() -> None:
    pauses = [
        "time.sleep(1)",
        "asyncio.sleep(x)",
        "sleep(0.1)",
        "Event().wait(x)",
        "threading.Event().wait(9)",
    ]
    pauses += ["pause.wait(0.3)", "process.wait(timeout=1)", "select.select([], [], [], 0.1)"]
    waits = [
        "asyncio.sleep(0)",
        "Event().wait()",
        "asked.wait(LIMIT_S)",
        "process.wait(60)",
        "asyncio.wait({x})",
    ]
    waits += ["select.select([handle], [], [], LIMIT_S)", "self.wait(0.0)"]
    assert pauses_in("\n".join([*pauses, *waits])) == list(range(1, len(pauses) + 1))


def test_no_test_waits_by_letting_time_pass() -> None:
    """A time that is long enough on one machine is too short on another, and too long everywhere else."""
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in sorted(TESTS.rglob("*.py"))
        if re.search(r"\b(sleep|wait|select)\(", code := path.read_text()) and (lines := pauses_in(code))
    }
    assert {name: lines for name, lines in found.items() if name not in PAUSES} == {}
    assert set(PAUSES) <= set(found), "a file in the list has no pause any more"
