"""Runs the steps over parts as tasks of Ray Core, on a cluster or on a Ray of its own on this machine.

Ray itself runs a task again whose worker or node was lost. The dashboard is off. Every node needs the same
version of afresh, and must reach the files: a file system that all nodes share, or an object store."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self, TypeVar

from afresh.cli.planning.datasets.executor import in_order
from afresh.cluster.ray_session import ray_thread
from afresh.values.errors import AfreshError, InputError, UsageError
from afresh.values.formatting import one_line
from afresh.version import __version__

Job = TypeVar("Job")
Result = TypeVar("Result")
PORT = 6379  # of the head of a Ray cluster
_OBJECTS_BYTES = 256 << 20  # of shared memory; results of steps take a few megabytes
_RETRIES = 3
_CONNECT_S = 5.0
_ANSWER_S = 60.0


def import_ray() -> Any:
    """Return the module ``ray``; raise ``UsageError`` if it is not installed."""
    if find_spec("ray") is None:
        raise UsageError("--on ray needs Ray: pip install 'afresh[ray]'")
    import ray

    return ray


class RayExecutor:
    """Runs jobs as tasks of Ray. ``address`` is ``HOST`` or ``HOST:PORT`` of the head of a cluster to which
    this machine belongs. Without it, Ray starts on this machine and is ended with the executor, unless the
    variable ``RAY_ADDRESS`` names a cluster."""

    def __init__(self, address: str | None) -> None:
        self._ray = import_ray()
        self._thread = ray_thread()
        # Ray itself would read the variable too, but refuses then what is meant for a Ray of its own.
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        self._address = None if address == "local" else _complete(address)

    @property
    def workers(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yield the results in order; a job whose worker or node is lost is run again, up to three times."""
        task = self._ray.remote(num_cpus=1, max_retries=_RETRIES)(function)
        return in_order(task.remote, self._wait, jobs, 2 * self.workers)

    def _wait(self, reference: Any) -> Any:
        ray = self._ray
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AfreshError):
                raise error.cause from None
            raise InputError(f"a task of Ray failed: {one_line(error.cause)}") from None
        except ray.exceptions.RayError as error:
            words = f"Ray lost a part {_RETRIES + 1} times: {one_line(error)}"
            raise InputError(f"{words}. Parts already written are kept: run the command again") from None

    def __enter__(self) -> Self:
        ray = self._ray
        logging.getLogger("ray").setLevel(logging.ERROR)
        options: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECTS_BYTES}
        if self._address is not None:
            _refuse_unreachable(self._address)
            options = {"address": self._address}
        try:
            self._thread.submit(
                ray.init, logging_level=logging.ERROR, log_to_driver=False, **options
            ).result()
        except (ConnectionError, RuntimeError, ValueError) as error:
            self._thread.shutdown()
            where = "on this machine" if self._address is None else f"to the cluster {self._address}"
            raise InputError(f"Ray did not start {where}: {one_line(error)}") from None
        try:
            self._refuse_other_versions()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._ray.shutdown()
        self._thread.shutdown()

    def _refuse_other_versions(self) -> None:
        """Raise ``UsageError`` if a node of the cluster has no afresh, another version, or another Python."""
        ray = self._ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = self._living_nodes()
        ask = ray.remote(num_cpus=0)(versions)
        asked = {
            node: ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
            for node in nodes
        }
        for node, host in nodes.items():
            try:
                found = ray.get(asked[node], timeout=_ANSWER_S)
            except ray.exceptions.GetTimeoutError:
                raise InputError(f"the Ray node {host} does not answer within {_ANSWER_S:g} s") from None
            except ray.exceptions.RayTaskError as error:
                problem = f"the Ray node {host} cannot run afresh: {one_line(error.cause)}"
                raise UsageError(f"{problem}; install afresh {__version__} there") from None
            except ray.exceptions.RayError as error:
                # Ray finds out only after some seconds that a node is gone. Such a node gets no jobs.
                if node not in self._living_nodes():
                    continue
                raise InputError(f"the Ray node {host} was lost: {one_line(error)}") from None
            refuse_other_version(host, found)

    def _living_nodes(self) -> dict[str, str]:
        """Return the addresses of the nodes that Ray takes to be alive, by their ids."""
        return {node["NodeID"]: node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]}


def versions() -> tuple[str, str]:
    """Return a tuple (version of afresh, version of Python) of the process that runs this function."""
    return __version__, f"{sys.version_info.major}.{sys.version_info.minor}"


def refuse_other_version(host: str, found: tuple[str, str]) -> None:
    """Raise ``UsageError`` if a node has other versions than this process.

    >>> refuse_other_version("10.0.0.7", ("0.0.1", "3.11"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: the Ray node 10.0.0.7 has afresh 0.0.1 on Python 3.11, this machine ...
    """
    if found != versions():
        own = versions()
        here = f"this machine afresh {own[0]} on Python {own[1]}"
        there = f"the Ray node {host} has afresh {found[0]} on Python {found[1]}"
        raise UsageError(f"{there}, {here}: install the same version everywhere")


def _complete(address: str) -> str:
    """Return HOST:PORT for an address with or without a port.

    >>> _complete("head"), _complete("10.0.0.1:6380")
    ('head:6379', '10.0.0.1:6380')
    """
    host, colon, port = address.rstrip("/").rpartition(":")
    if not colon:
        host, port = port, str(PORT)
    if not host or not port.isdigit():
        raise UsageError(f"--on ray://{address}: is no address: give ray://HOST or ray://HOST:{PORT}")
    return f"{host}:{port}"


def _refuse_unreachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_CONNECT_S):
            pass
    except OSError as error:
        problem = one_line(error.strerror or error)
        hint = f"is a Ray head running there (ray start --head --port={port})?"
        raise InputError(f"the Ray cluster at {address} cannot be reached: {problem}; {hint}") from None
