"""Settings of Sphinx for ``make docs``. No page of the result requests anything from another host."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from afresh.version import __version__  # noqa: E402

project, author, release = "afresh", "the authors of afresh", __version__
copyright = author  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"afresh {release}"
html_show_sphinx = False
html_extra_path = ["llms.txt"]
html_static_path: list[str] = []
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "llms.txt"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
nitpicky = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
default_role = "code"
