"""The documentation of Python and PostgreSQL, from Debian's packages, behind nginx."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACE = Path(__file__).parent.parent / "build" / "bench-docs"
DOCS = PLACE / "www"
NGINX = PLACE / "packages" / "usr" / "sbin" / "nginx"
STARTS = ("/python/", "/postgresql/")
_PACKAGES = ("nginx", "python3.11-doc", "postgresql-doc-15")
_FOLDERS = {
    "python": "usr/share/doc/python3.11/html",
    "postgresql": "usr/share/doc/postgresql-doc-15/html",
}
_SETTINGS = """
daemon off; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/plain txt; text/css css; application/javascript js; }}
  access_log off; client_body_temp_path {folder}/t1;
  proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; root {root}; index index.html; }}
}}
"""


def get_packages() -> None:
    """Download the packages and unpack them, without installing them (``make bench-docs``)."""
    unpacked = PLACE / "packages"
    unpacked.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *_PACKAGES], cwd=PLACE, check=True)
    for package in PLACE.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, unpacked], check=True)
    shutil.rmtree(DOCS, ignore_errors=True)
    for name, folder in _FOLDERS.items():
        # Links to files of other packages lead nowhere, and are left out.
        shutil.copytree(unpacked / folder, DOCS / name, ignore_dangling_symlinks=True)


@contextmanager
def nginx_site(root: Path) -> Iterator[str]:
    """Serve the folder ``root`` by nginx; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = root.parent / "nginx"
    folder.mkdir()
    for path in (root.parent, folder):
        path.chmod(0o777)  # nginx gives up the rights of root
    settings = folder / "nginx.conf"
    settings.write_text(_SETTINGS.format(folder=folder, port=port, root=root))
    command = [str(NGINX), "-p", str(folder), "-c", str(settings), "-e", "stderr"]
    server = subprocess.Popen(command, env={**os.environ})
    try:
        _wait_until_open(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except ConnectionRefusedError:
            continue
        return
    raise SystemExit(f"nginx ended with the exit code {server.returncode}")


if __name__ == "__main__":
    get_packages()
