"""Serves scripts and styles: files of afresh, and plotly.js from its installed package.

The address of each file contains its version, so that a browser may cache the file for ever. Large files are
compressed once per process.
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

from afresh.web.error_responses import error_response

_COMPRESSED_FROM_BYTES = 100_000
_MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """The content of a file, and its gzip-compressed content if the file is large."""

    content: bytes
    compressed: bytes | None
    media_type: str


@cache
def _asset_paths() -> dict[str, Path]:
    """Return the path of each file that may be requested, by its name."""
    own = (Path(str(files("afresh.web"))) / "static").iterdir()
    plotly = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
    return {path.name: path for path in own if path.suffix in _MEDIA_TYPES} | {"plotly.js": plotly}


@cache
def load_asset(name: str) -> Asset | None:
    path = _asset_paths().get(name)
    if path is None:
        return None
    content = path.read_bytes()
    is_large = len(content) >= _COMPRESSED_FROM_BYTES
    compressed = gzip.compress(content, 6, mtime=0) if is_large else None
    return Asset(content, compressed, _MEDIA_TYPES[path.suffix])


@cache
def asset_url(name: str) -> str:
    if name == "plotly.js":
        return f"/static/{name}?v={version('plotly')}"
    asset = load_asset(name)
    assert asset is not None, name
    return f"/static/{name}?v={blake2b(asset.content, digest_size=6).hexdigest()}"


def asset_response(name: str, request: Request) -> Response:
    """Return the response with a file. If the request has a version, the browser may cache it for ever."""
    asset = load_asset(name)
    if asset is None:
        return error_response(404, f"there is no file {name[:100]!r}")
    headers = {"Vary": "Accept-Encoding"}
    if request.query_params.get("v"):
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
    content = asset.content
    if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = asset.compressed, "gzip"
    return Response(content, media_type=asset.media_type, headers=headers)
