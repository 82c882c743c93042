"""The wheel: it holds what it needs and nothing else, and works without the source tree."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.engine.living import LivingSite
from tests.servers.quick_afresh import QuickAfresh

pytestmark = pytest.mark.waits

ROOT = Path(__file__).parent.parent
LARGEST = 2_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The wheel of this tree, built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            _build(folder)
    (found,) = folder.glob("*.whl")
    return found


def _build(folder: Path) -> None:
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


def inside(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_is_in_the_wheel_and_no_other(wheel: Path) -> None:
    source = ROOT / "src"
    waste = ("__pycache__", ".nbi", ".nbc")
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "afresh").rglob("*")
        if path.is_file() and not any(part in path.as_posix() for part in waste)
    }
    assert {name for name in inside(wheel) if ".dist-info/" not in name} == files
    assert {"afresh/py.typed", "afresh/stores/sqlite/schema.sql", "afresh/web/templates/layout.html"} <= files
    assert wheel.stat().st_size < LARGEST


def test_the_wheel_says_what_it_needs_and_which_command_it_brings(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            Path(name).name: archive.read(name).decode() for name in archive.namelist() if "dist-info" in name
        }
    assert re.search(r"^Requires-Dist: numpy", texts["METADATA"], re.MULTILINE)
    for package, extra in (("fastapi", "web"), ("matplotlib", "plots")):
        assert re.search(
            rf"^Requires-Dist: {package}\S*; extra == '{extra}'$", texts["METADATA"], re.MULTILINE
        )
    assert "License-Expression: Apache-2.0" in texts["METADATA"]
    assert "afresh = afresh.cli.entry:main" in texts["entry_points.txt"]
    assert json.loads(texts["afresh.cdx.json"])["bomFormat"] == "CycloneDX"  # the list of packages


# Several commands, one after the other in one process, and what each of them printed.
SEVERAL = """
import io, json, sys
from contextlib import redirect_stdout
import afresh
from afresh.cli.app import main

printed = [afresh.__file__]
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, words
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


def works(run: Callable[[list[list[str]]], list[str]], folder: Path) -> None:
    """From the version to a mirror. ``run`` runs commands in the folder; it returns what each printed."""
    (folder / "items.csv").write_text("item,rate\na,1\nb,2\nc,3\nd,4\ne,5\n")
    quick = ["--allow-private", "--host-delay", "0.001s", "--budget", "100/s"]
    with LivingSite([1.0] * 3) as site:
        version, plan, _, _, ran = run(
            [
                ["--version"],
                ["plan", "items.csv", "--budget", "5/d", "--json"],
                ["init", "."],
                ["add", "--allow-private", *site.urls()],
                ["run", "--once", *quick, "--json"],
            ]
        )
    assert version.startswith("afresh 0.")
    assert json.loads(plan)["dropped"] == 1
    assert json.loads(ran)["polls"] == 3


def serves(command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """The mirror has a dashboard."""
    words = [*command, "serve", "--port", "0"]
    served = subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert served.stderr is not None
        address = re.search(r"http://\S+/", served.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(address[0]) as page:
            assert b"afresh" in page.read()
        served.terminate()
        served.communicate(timeout=30)
        assert served.returncode == 128 + signal.SIGTERM
    finally:
        served.kill()  # whatever went wrong, it is not left behind


def test_the_wheel_works_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    """A wheel is a folder of modules in an archive: unpacked first on the path, it is what runs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "unpacked")}
    folder = tmp_path / "work"
    folder.mkdir()

    def run(commands: list[list[str]]) -> list[str]:
        words = [sys.executable, "-c", SEVERAL, json.dumps(commands)]
        ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        printed: list[str] = json.loads(ran.stdout)
        assert printed.pop(0).startswith(str(tmp_path))
        return printed

    works(run, folder)
    serves([sys.executable, "-m", "afresh"], folder, environment)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # every dependency is fetched
def test_a_clean_environment_installs_and_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder = tmp_path / "venv" / "bin"

    def install(what: str) -> None:
        words = [str(bin_folder / "python"), "-m", "pip", "install", "--quiet", what]
        subprocess.run(words, check=True, capture_output=True)

    install(str(wheel))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folder = tmp_path / "work"
    folder.mkdir()

    def run(commands: list[list[str]]) -> list[str]:
        each = [[str(bin_folder / "afresh"), *words] for words in commands]
        return [subprocess.check_output(words, cwd=folder, env=environment, text=True) for words in each]

    works(run, folder)
    without = subprocess.run(
        [str(bin_folder / "afresh"), "serve"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert without.returncode == 2
    assert "pip install 'afresh[web]'" in without.stderr
    install(f"{wheel}[web]")
    serves([str(bin_folder / "afresh")], folder, environment)


CONTAINER = (ROOT / "Containerfile").read_text().splitlines()


@pytest.mark.slow
@pytest.mark.timeout(1800)  # every dependency is fetched
def test_the_commands_of_the_container_file_work_in_an_environment(wheel: Path, tmp_path: Path) -> None:
    """Each RUN, ENTRYPOINT and CMD, with folders of its own in place of those of the image."""
    folders = {"/opt/afresh": "venv", "/tmp/dist": "dist", "/var/lib/afresh": "home"}
    for name in ("dist", "home"):
        (tmp_path / name).mkdir()
    shutil.copy(wheel, tmp_path / "dist")

    def here(text: str) -> str:
        for there, name in folders.items():
            text = text.replace(there, str(tmp_path / name))
        return text.replace("python3 ", f"{sys.executable} ")

    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def typed(words: list[str]) -> None:
        ran = subprocess.run(
            words, cwd=tmp_path / "home", env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr

    for line in CONTAINER:
        if line.startswith("RUN ") and not line.startswith("RUN useradd"):  # only root may do that
            typed(["bash", "-c", here(line[4:])])
    (entry,) = json.loads(here(entry_of("ENTRYPOINT")))
    typed([entry, "init", "."])
    typed([entry, *json.loads(entry_of("CMD")), "--for", "1s"])


def entry_of(instruction: str) -> str:
    (found,) = (line.partition(" ")[2] for line in CONTAINER if line.startswith(instruction + " "))
    return found


def test_every_command_that_the_container_file_starts_exists(quick_afresh: QuickAfresh) -> None:
    command, *options = json.loads(entry_of("CMD"))
    listed = quick_afresh.run(command, "--help").stdout
    assert all(option in listed for option in options if option.startswith("--"))
    kinds = {line.split()[0] for line in CONTAINER if line and not line.startswith("#")}
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert kinds == known


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete"), ("zsh", "#compdef"), ("fish", "complete")]
)
def test_shells_can_complete_commands(quick_afresh: QuickAfresh, shell: str, words: str) -> None:
    script = _afresh(quick_afresh, {"_AFRESH_COMPLETE": f"source_{shell}"})
    assert words in script
    assert "afresh" in script


def test_completion_knows_commands_and_options(quick_afresh: QuickAfresh) -> None:
    for line, number, found in (("afresh pl", "1", "plan"), ("afresh plan --bud", "2", "--budget")):
        asked = {"_AFRESH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": number}
        assert _afresh(quick_afresh, asked).split() == [found]


def _afresh(quick: QuickAfresh, environment: dict[str, str]) -> str:
    """What ``afresh`` says to a shell that completes a line."""
    return quick.run(environment={**os.environ, **environment}).stdout
