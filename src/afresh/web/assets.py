"""Scripts and styles from our own origin: our files, plotly.js of its wheel, Swagger UI of its bundle.

Each is served under a name with the version of what it is, so that a browser may keep it for good, and
packed once where it is large.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from afresh.web.problems import problem

_PACK_FROM = 100_000
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_OWN = (
    "afresh.css",
    "theme.js",
    "live.js",
    "charts.js",
    "actions.js",
    "now.js",
    "item.js",
    "plan.js",
    "docs.js",
    "icon.svg",
)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file's bytes, packed too where that pays."""

    content: bytes
    packed: bytes | None
    media_type: str


def _path_of(name: str) -> Path | None:
    """Where a name's file is; only the names listed here are files at all."""
    if name in _OWN:
        return Path(str(files("afresh.web"))) / "static" / name
    if name == "plotly.js":
        return Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
    if name in ("swagger-ui-bundle.js", "swagger-ui.css"):
        from swagger_ui_bundle import swagger_ui_path  # type: ignore[import-untyped]

        return Path(swagger_ui_path) / name
    return None


@cache
def asset(name: str) -> Asset | None:
    """A file by its name, None if there is no such."""
    path = _path_of(name)
    if path is None:
        return None
    content = path.read_bytes()
    packed = gzip.compress(content, 6, mtime=0) if len(content) >= _PACK_FROM else None
    return Asset(content, packed, _TYPES[path.suffix])


@cache
def address(name: str) -> str:
    """The address of a file, with its version."""
    if name == "plotly.js":
        return f"/static/{name}?v={version('plotly')}"
    if name.startswith("swagger"):
        return f"/static/{name}?v={version('swagger-ui-bundle')}"
    found = asset(name)
    assert found is not None, name
    return f"/static/{name}?v={blake2b(found.content, digest_size=6).hexdigest()}"


def answer(name: str, request: Request) -> Response:
    """A file as an answer; kept by the browser for good where it asked by version."""
    found = asset(name)
    if found is None:
        return problem(404, f"there is no file {name[:100]!r}")
    headers = {"Vary": "Accept-Encoding"}
    if request.query_params.get("v"):
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
    content = found.content
    if found.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = found.packed, "gzip"
    return Response(content, media_type=found.media_type, headers=headers)
