"""Types a tutorial through, as its reader would: in an empty folder, beside the servers that it names.

Every ``sh`` block runs in its order, in one shell. A block whose first line speaks of the second terminal
starts a server of ``examples/``, which runs until the end. A ``text`` block is what the block before it
prints; one without a language is only shown. ``~/afresh`` is the source tree.
``python -m tests.pages.tutorials PAGE`` prints what each block printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.pages.blocks import PAGES, ROOT, Block, blocks_of

TUTORIALS = tuple(page for page in PAGES if PAGES[page].read_text().startswith("# Tutorial: "))
"""The pages that are typed through from their first line to their last."""

_SERVER = re.compile(r"# in the second terminal\npython3 ~/afresh/(examples/\w+\.py)\n")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_SAID = {"library_site.py": ("127.0.0.1:8100",), "two_shops.py": ("127.0.0.1:8201", "127.0.0.1:8202")}
"""The addresses that the pages give to the servers; here they get free ports."""

# The wheel is installed by test_package, in an environment that it makes; a shell without a terminal prints
# 80 columns.
_HEAD = """\
set -e -o pipefail
exec 2>&1
pip() { [ "$1" = install ]; }
python3() {
  [ "$1 $2" = "-m venv" ] || { command python3 "$@"; return; }
  mkdir -p "$3/bin"; : > "$3/bin/activate"
}
"""


@dataclass(frozen=True)
class Pace:
    """How fast a tutorial is typed. ``shell`` is read first; ``in_place_of`` says what is replaced.

    ``suits`` tells for which addresses of a server its page is true. Others are not used.
    """

    shell: str = ""
    in_place_of: Mapping[str, str] | None = None
    speed: float = 1.0
    limit_s: float = 900.0
    suits: Callable[[Sequence[str]], bool] = lambda _addresses: True

    def of_text(self, text: str) -> str:
        for said, here in (self.in_place_of or {}).items():
            text = text.replace(said, here)
        return text


AS_WRITTEN = Pace()


@dataclass(frozen=True)
class Step:
    """A block of commands, what the page says that it prints, and what it printed."""

    block: Block
    shown: str
    printed: str


def type_through(
    page: str, folder: Path, pace: Pace = AS_WRITTEN, programs: Path | None = None
) -> list[Step]:
    """Run all blocks of a tutorial in ``folder``; return its steps. ``programs`` are before all others."""
    blocks = blocks_of(page)
    servers = [found[1] for block in blocks if (found := _SERVER.fullmatch(block.text))]
    with ExitStack() as running:
        leads = {"~/afresh": str(ROOT)}
        for server in servers:
            leads |= running.enter_context(_started(server, pace))
        return _run(blocks, leads, folder, pace, programs)


@contextmanager
def _started(server: str, pace: Pace) -> Iterator[dict[str, str]]:
    """Start an example server on free ports; yield where the addresses of the pages lead."""
    said = _SAID[Path(server).name]
    ports = ["--port", "0"] if len(said) == 1 else ["--ports", "0", "0"]
    words = [sys.executable, str(ROOT / server), *ports, "--speed", str(pace.speed)]
    while True:
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                here = _ADDRESS.findall(process.stdout.readline())
                if pace.suits(here):
                    yield dict(zip(said, here, strict=True))
                    return
            finally:
                process.terminate()


def _run(
    blocks: list[Block], leads: Mapping[str, str], folder: Path, pace: Pace, programs: Path | None
) -> list[Step]:
    typed = [block for block in blocks if block.language == "sh" and not _SERVER.fullmatch(block.text)]
    mark = "=== block {} ===\n"
    text = "".join(f"printf '{mark.format(at)[:-1]}\\n'\n{block.text}" for at, block in enumerate(typed))
    text = pace.of_text(text)
    for said, here in leads.items():
        text = text.replace(said, here)
    path = [str(programs)] if programs else []
    path += [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AFRESH_")}
    environment |= {"PATH": os.pathsep.join(path), "COLUMNS": "80", "AFRESH_WEB_PORT": "0"}
    environment |= {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    words = ["bash", "-c", _HEAD + pace.shell + text]
    ran = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=pace.limit_s,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    for said, here in leads.items():
        ran = subprocess.CompletedProcess(words, 0, ran.stdout.replace(here, said))
    parts = re.split(r"=== block \d+ ===\n", ran.stdout)[1:]
    return [
        Step(block, _shown_after(block, blocks), printed) for block, printed in zip(typed, parts, strict=True)
    ]


def _shown_after(block: Block, blocks: list[Block]) -> str:
    """What the page says that a block prints: the ``text`` block that follows it, if one does."""
    at = blocks.index(block) + 1
    return blocks[at].text if at < len(blocks) and blocks[at].language == "text" else ""


def differences(step: Step) -> list[str]:
    """Return the lines that the page shows and the block did not print, and those that the block printed and
    the page leaves out without a line ``…``.

    Figures differ from run to run: of each line only the words before the first wide gap are compared, and
    all numbers and texts of JSON are taken for equal. A line ``…`` stands for others.
    """
    printed = {_outline(line) for line in step.printed.splitlines()}
    # Whether a value needs a second line depends on its figures.
    shown = [line for line in step.shown.splitlines() if not _continues(line)]
    missing = [line for line in shown if line != "…" and _outline(line) not in printed]
    if not shown or "…" in shown:
        return missing
    outlines = {_outline(line) for line in shown}
    left_out = [
        line
        for line in step.printed.splitlines()
        if line and not _continues(line) and _outline(line) not in outlines
    ]
    return missing + [f"not shown: {line}" for line in left_out]


def _continues(line: str) -> bool:
    """Whether a line continues the value of the one before it, below its first column."""
    return line.startswith(" " * 10)


def _outline(line: str) -> str:
    """The words of a line that stay the same.

    >>> _outline("fresh now                  0.745"), _outline("15 new, 15 items in all")
    ('fresh now', '# new, # items in all')
    """
    if re.match(r"[\d:]+,", line):  # a row of a CSV file
        return f"{line.count(',') + 1} columns"
    head = re.split(r"(?<=\S) {2,}", line.rstrip())[0]
    return re.sub(r'(?<=: )"[^"]*"|\d[\d.,:]*', "#", head).strip()


def main(page: str) -> None:
    """Type a tutorial through as it is written, and print what each block printed."""
    with tempfile.TemporaryDirectory() as folder:
        for step in type_through(page, Path(folder)):
            sys.stdout.write(f"\n----- {step.block.place}\n{step.block.text}\n{step.printed}")


if __name__ == "__main__":
    main(sys.argv[1])
