"""The optional packages: which extra of ``pip install`` brings what, and what to say if one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from afresh.values.errors import UsageError

EXTRA_OF_PACKAGE = {
    "fastapi": "web",
    "starlette": "web",
    "uvicorn": "web",
    "plotly": "web",
    "prometheus_client": "web",
    "jinja2": "web",
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "psycopg": "postgres",
    "numba": "fast",
    "uvloop": "fast",
    "playwright": "browser",
    "ray": "ray",
    "duckdb": "duckdb",
    "scrapy": "scrapy",
    "trafilatura": "text",
    "pypdf": "text",
    "apprise": "notify",
    "obstore": "objects",
    "sqlalchemy": "sqlalchemy",
}
_NEEDED = {
    "web": "fastapi",
    "plots": "matplotlib",
    "parquet": "pyarrow",
}  # a package that tells whether the extra is installed


def has_extra(extra: str) -> bool:
    """Return whether the packages of ``extra`` are installed: ``web``, ``plots`` or ``parquet``."""
    return find_spec(_NEEDED[extra]) is not None


def require_extra(extra: str, what: str) -> None:
    """Raise ``UsageError`` unless the packages of ``extra`` are installed. ``what`` needs them.

    >>> require_extra("web", "the dashboard")
    """
    if not has_extra(extra):
        raise UsageError(f"{what} needs more packages: {install_line(extra)}")


def install_line(extra: str) -> str:
    """Return the command that installs an extra.

    >>> install_line("web")
    "pip install 'afresh[web]'"
    """
    return f"pip install 'afresh[{extra}]'"


def missing_package_message(error: ModuleNotFoundError) -> str | None:
    """Return what to tell people about an import that failed, or None if no extra brings the package.

    >>> missing_package_message(ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn.config"))
    "the package uvicorn is missing: pip install 'afresh[web]'"
    >>> missing_package_message(ModuleNotFoundError("No module named 'nothing'", name="nothing")) is None
    True
    """
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF_PACKAGE.get(package)
    return None if extra is None else f"the package {package} is missing: {install_line(extra)}"
