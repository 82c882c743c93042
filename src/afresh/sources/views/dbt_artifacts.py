"""Reads the files that dbt writes into its folder ``target``: manifest, run results and source freshness.

Only what is needed of each is read, so that the schemas of several versions of dbt fit. The key of a node is
its name, which is also what ``dbt --select`` takes; if two packages have a node of one name, it is
``package.name``. The key of a source is ``schema.table``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from afresh.values.errors import InputError

MANIFEST, RUN_RESULTS, SOURCES = "manifest.json", "run_results.json", "sources.json"
_BUILT = ("model", "seed", "snapshot")
_UNSTORED = ("view", "ephemeral")
_DONE = {
    "success": "built",
    "error": "failed",
    "runtime error": "failed",
    "fail": "failed",
    "skipped": "skipped",
}
Found = TypeVar("Found")

BuildResult: TypeAlias = Literal["built", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class DbtNode:
    """A model, seed, snapshot or source of a dbt project. ``relation`` is its table, ``schema.table``.
    ``is_stored`` is True if a build writes rows, which are then as old as the build: not for views, ephemeral
    models, seeds and sources. ``is_selectable`` is True if ``dbt --select`` builds it. ``checksum``
    identifies its definition, ``below`` are the keys of what it is computed from."""

    key: str
    resource: str
    relation: str
    is_stored: bool
    is_selectable: bool
    checksum: str = ""
    below: tuple[str, ...] = ()

    @property
    def holds_rows(self) -> bool:
        """Whether it is a table of the database whose changes matter."""
        return self.is_stored or self.resource == "source"


@dataclass(frozen=True)
class DbtProject:
    """The nodes of a dbt project by key, and the keys by unique id (``model.shop.daily``)."""

    nodes: Mapping[str, DbtNode]
    keys: Mapping[str, str]

    @property
    def models(self) -> tuple[str, ...]:
        """The keys of the nodes whose builds write rows: the views of the source."""
        return tuple(key for key, node in self.nodes.items() if node.is_stored)


@dataclass(frozen=True, slots=True)
class ModelBuild:
    """What became of one node in a run: it was built, failed or skipped. ``started_s`` is the Unix time of
    the start, 0 if it was skipped, and ``seconds`` the duration. ``problem`` says why it failed."""

    key: str
    result: BuildResult
    started_s: float = 0.0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DbtRun:
    """One invocation of dbt, which took ``seconds`` from its start to its end. ``builds`` are those of
    models, seeds and snapshots, in the order in which they were built."""

    invocation: str
    seconds: float
    ended_s: float
    builds: tuple[ModelBuild, ...]

    @property
    def overhead_s(self) -> float:
        """The seconds that no build took: reading the project, tests, the start of Python."""
        return max(self.seconds - sum(build.seconds for build in self.builds), 0.0)


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """When each source was loaded last (Unix seconds, by key), according to a reading at ``time_s``."""

    time_s: float
    loaded_s: Mapping[str, float]


def read_project(target: Path) -> DbtProject:
    """Read ``manifest.json``; raise ``InputError`` if it is missing or is no manifest."""
    return _reading(target / MANIFEST, _project)


def read_run(target: Path, project: DbtProject) -> DbtRun | None:
    """Read ``run_results.json``; return None if there is none."""
    path = target / RUN_RESULTS
    return _reading(path, lambda found: _run(found, project)) if path.exists() else None


def read_freshness(target: Path, project: DbtProject) -> SourceFreshness | None:
    """Read ``sources.json``, which ``dbt source freshness`` writes; return None if there is none."""
    path = target / SOURCES
    return _reading(path, lambda found: _freshness(found, project)) if path.exists() else None


class DbtTarget:
    """The folder ``target`` of a dbt project, whose manifest is parsed again only after it was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: tuple[object, DbtProject] | None = None

    def read(self) -> tuple[DbtProject, SourceFreshness | None]:
        """Return the project and, if it is known, the freshness of its sources. Raise ``InputError``."""
        try:
            stat = (self.folder / MANIFEST).stat()
            mark: object = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        except OSError:
            mark = None
        if mark is None or self._read is None or self._read[0] != mark:
            self._read = (mark, read_project(self.folder))
        project = self._read[1]
        return project, read_freshness(self.folder, project)


def _reading(path: Path, parse: Callable[[Any], Found]) -> Found:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            "is missing: give the folder target of a dbt project, after 'dbt parse' or 'dbt build'",
            path=str(path),
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from None
    try:
        return parse(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        words = f"no {key!r}" if isinstance(error, KeyError) and (key := error.args[0]) else str(error)
        raise InputError(f"is not as dbt writes it: {words}", path=str(path)) from None


def _project(found: Mapping[str, Any]) -> DbtProject:
    nodes = {uid: node for uid, node in found["nodes"].items() if node["resource_type"] in _BUILT}
    names = Counter(_name(node) for node in nodes.values())
    keys = {
        uid: name if names[name := _name(node)] == 1 else f"{node['package_name']}.{name}"
        for uid, node in nodes.items()
    }
    keys |= {uid: _relation(source) for uid, source in found["sources"].items()}
    made = {}
    for uid, node in nodes.items():
        below = (keys[each] for each in node.get("depends_on", {}).get("nodes", ()) if each in keys)
        materialized, resource = node["config"]["materialized"], node["resource_type"]
        made[keys[uid]] = DbtNode(
            keys[uid],
            resource,
            _relation(node),
            is_stored=resource != "seed" and materialized not in _UNSTORED,
            is_selectable=materialized != "ephemeral",
            checksum=f"{node['checksum']['checksum']} {materialized}",
            below=tuple(dict.fromkeys(below)),
        )
    for uid, source in found["sources"].items():
        made[keys[uid]] = DbtNode(keys[uid], "source", _relation(source), False, False)
    return DbtProject(made, keys)


def _name(node: Mapping[str, Any]) -> str:
    version = node.get("version")
    return f"{node['name']}.v{version}" if version is not None else str(node["name"])


def _relation(node: Mapping[str, Any]) -> str:
    return f"{node['schema']}.{node.get('identifier') or node.get('alias') or node['name']}"


def _run(found: Mapping[str, Any], project: DbtProject) -> DbtRun:
    about, builds = found["metadata"], []
    ended_s = _time_s(about["generated_at"])
    for result in found["results"]:
        key = project.keys.get(result["unique_id"])
        done = _DONE.get(result["status"])
        if key is not None and done is not None:
            times = [_time_s(part["started_at"]) for part in result["timing"] if part["started_at"]]
            seconds = float(result["execution_time"])
            started_s = max(times, default=ended_s - seconds)
            said = " ".join(str(result.get("message") or "").split())
            builds.append(_build(key, done, started_s, seconds, said))
    builds.sort(key=lambda build: build.started_s)
    began = about.get("invocation_started_at")  # older versions of dbt do not write it
    seconds = ended_s - _time_s(began) if began else float(found["elapsed_time"])
    return DbtRun(str(about["invocation_id"]), max(seconds, 0.0), ended_s, tuple(builds))


def _build(key: str, done: str, started_s: float, seconds: float, said: str) -> ModelBuild:
    if done == "built":
        return ModelBuild(key, "built", started_s, seconds)
    if done == "skipped":
        return ModelBuild(key, "skipped", problem=said)
    return ModelBuild(key, "failed", started_s, seconds, said[:200] or "dbt gives no reason")


def _freshness(found: Mapping[str, Any], project: DbtProject) -> SourceFreshness:
    loaded = {
        project.keys[result["unique_id"]]: _time_s(result["max_loaded_at"])
        for result in found["results"]
        if result.get("max_loaded_at") and result["unique_id"] in project.keys
    }
    return SourceFreshness(_time_s(found["metadata"]["generated_at"]), loaded)


def _time_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
