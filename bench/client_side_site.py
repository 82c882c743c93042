"""A site of which each page is made in the browser: a script fetches the text, and puts it into the page."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

PART = ".part"
"""What the name of a file with the text of a page ends in, after the name of the page."""

_SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Documentation</title></head>
<body><main id="page"></main><script src="/show.js"></script></body></html>
"""
_SHOW = f"""
const place = location.pathname.endsWith("/") ? location.pathname + "index.html" : location.pathname;
fetch(place + "{PART}").then(answer => answer.text()).then(text => {{
  document.getElementById("page").innerHTML = text;
}});
"""


def make_client_side(pages: Path, root: Path, start: str, most: int) -> None:
    """Write into ``root`` a version of ``most`` pages of the site in the folder ``pages``, those that links
    from ``start`` reach first. Links to other pages are taken out."""
    chosen = _reachable(pages, start, most)
    root.mkdir(parents=True)
    (root / "show.js").write_text(_SHOW)
    for path in chosen:
        tree = LexborHTMLParser((pages / path).read_bytes())
        for link in tree.css("a[href]"):
            target = _target(path, link.attributes["href"] or "")
            if target not in chosen:
                del link.attrs["href"]
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(_SHELL)
        body = tree.body
        (root / (path + PART)).write_text((body.inner_html if body is not None else "") or "")


def _reachable(pages: Path, start: str, most: int) -> list[str]:
    found, waiting = {start: None}, deque([start])
    while waiting:
        path = waiting.popleft()
        for link in LexborHTMLParser((pages / path).read_bytes()).css("a[href]"):
            target = _target(path, link.attributes["href"] or "")
            is_page = target.endswith(".html") and (pages / target).is_file()
            if target not in found and is_page and len(found) < most:
                found[target] = None
                waiting.append(target)
    return list(found)


def _target(path: str, link: str) -> str:
    """Return the path of the file to which a link leads; empty if it leads elsewhere."""
    parts = urlsplit(urljoin(f"http://site/{path}", link))
    name = parts.path.removeprefix("/")
    return (f"{name}index.html" if name.endswith("/") else name) if parts.netloc == "site" else ""
