"""The connection to Ray, and what can go wrong with it in words. Ray is imported only here, when it is used.

Of Ray only actors and tasks are used. Its dashboard stays off, and it sends no reports about its use.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from afresh.values.errors import AfreshError, UsageError

NAMESPACE = "afresh"
_ANSWER_S, _CONNECT_S, _WATCH_EVERY_S = 30.0, 5.0, 1.0


class ClusterError(AfreshError):
    """The Ray cluster cannot be reached, or one of its nodes or processes was lost."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node of the cluster that is alive, and the name of the machine on which it runs."""

    id: str
    host: str


def import_ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"a cluster needs Ray: 'pip install afresh[ray]' ({error})") from error
    return ray


@contextmanager
def ray_session(address: str | None) -> Iterator[ModuleType]:
    """Connect to the Ray cluster at ``address`` (HOST:PORT, ``auto`` or ``ray://HOST:PORT``), or start one on
    this machine if it is None. Disconnect at the end, which also ends the processes that were started."""
    ray = import_ray()
    if address is not None and not ray.is_initialized():
        _check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read by Ray when it starts
    options: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options["include_dashboard"] = False
        # Ray gives its workers the lowest priorities. On a busy machine shards would hardly run then.
        os.environ.setdefault("RAY_worker_niceness", "0")
    else:
        options["address"] = address
    is_ours = not ray.is_initialized()
    with ray_thread() as thread:
        try:
            if is_ours:
                thread.submit(ray.init, **options).result()
        except (ConnectionError, ValueError, RuntimeError, TimeoutError, OSError) as error:
            where = f"at {address}" if address else "on this machine"
            words = str(error).strip().splitlines()
            raise ClusterError(
                f"the Ray cluster {where} cannot be reached: {words[0] if words else type(error).__name__}"
            ) from None
        try:
            yield ray
        finally:
            if is_ours:
                ray.shutdown()


def ray_thread() -> ThreadPoolExecutor:
    """Return a thread in which ``ray.init`` is to be called. It must live as long as Ray is used.

    In the main thread Ray would replace the handler of SIGTERM. Its own ends the process at once, with
    another exit code, and nothing could be saved. In another thread it cannot set handlers, so that no signal
    is lost, also while Ray starts. The processes that Ray starts end with the thread that started them.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="ray")


class HeadLostError(ClusterError):
    """The head of the Ray cluster is lost, and with it everything that runs there."""


def check_head(address: str) -> None:
    """Raise ``HeadLostError`` if the head of the cluster, at HOST:PORT, does not answer. Calls of Ray would
    wait for a minute, and then end this process."""
    try:
        _check_reachable(address)
    except ClusterError:
        raise HeadLostError(
            f"the head of the Ray cluster at {address} is lost: this run ends, and nothing is lost that was "
            "saved. Start Ray and 'afresh cluster run' again: it goes on"
        ) from None


@contextmanager
def head_watch(address: str, tell: Callable[[HeadLostError], None]) -> Iterator[None]:
    """Call ``tell`` in a thread if the head of the cluster does not answer any more. A call of Ray that is
    under way then waits for a minute, and Ray ends this process: the one who waits could not say why."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_WATCH_EVERY_S):
            try:
                check_head(address)
            except HeadLostError as error:
                tell(error)
                return

    threading.Thread(target=watch, name="head-watch", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _check_reachable(address: str) -> None:
    """Raise ``ClusterError`` if nothing answers at ``address``. Ray itself would try for half a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto", for which Ray looks by itself
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        words = error.strerror or str(error)
        raise ClusterError(f"the Ray cluster at {address} cannot be reached: {words}") from None


def living_nodes(ray: ModuleType) -> list[RayNode]:
    """Return the nodes that are alive, in the order of their ids."""
    nodes = [RayNode(node["NodeID"], node["NodeManagerHostname"]) for node in ray.nodes() if node["Alive"]]
    return sorted(nodes, key=lambda node: node.id)


def ask_actor(ray: ModuleType, call: Any, who: str, timeout_s: float = _ANSWER_S) -> Any:
    """Wait for the answer to a call of an actor; ``who`` names the actor in error messages."""
    try:
        return ray.get(call, timeout=timeout_s)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, AfreshError):
            raise cause from None
        raise ClusterError(f"{who} failed: {cause!r}") from None
    except ray.exceptions.GetTimeoutError:
        raise ClusterError(f"{who} has not answered for {timeout_s:g} seconds") from None
    except ray.exceptions.RayError as error:
        words = str(error).strip().splitlines()  # the last line is the cause
        raise ClusterError(f"{who} is lost: {words[-1] if words else type(error).__name__}") from None


async def answer_of(call: Any, timeout_s: float) -> Any:
    """Return the answer to a call of an actor on the event loop of the caller; None if there is none."""
    from ray.exceptions import RayError

    try:
        return await asyncio.wait_for(asyncio.wrap_future(call.future()), timeout_s)
    except (RayError, TimeoutError):
        return None


def on_node(ray: ModuleType, node_id: str) -> Any:
    """Return the scheduling strategy for a process that must run on one node."""
    del ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def find_actor(ray: ModuleType, name: str) -> Any | None:
    """Return the actor with this name, or None if there is none."""
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None


def read_versions(ray: ModuleType, nodes: Sequence[RayNode]) -> list[tuple[str, str]]:
    """Return a tuple (name of the machine, version of afresh there) for each node; the version is empty if
    afresh is not installed. Several nodes may have one name."""
    ask = ray.remote(num_cpus=0)(_version_reader())
    asked = [ask.options(scheduling_strategy=on_node(ray, node.id)).remote() for node in nodes]
    pairs = zip(nodes, asked, strict=True)
    return [(node.host, ask_actor(ray, call, f"node {node.host}", 2 * _ANSWER_S)) for node, call in pairs]


def _version_reader() -> Callable[[], str]:
    def read() -> str:  # sent to the node as code, because the node may have no afresh or an old one
        try:
            from afresh.version import __version__ as found
        except ImportError:
            return ""
        return str(found)

    return read


def check_versions(found: Sequence[tuple[str, str]], own: str) -> None:
    """Raise ``ClusterError`` unless all nodes have the version ``own``.

    >>> check_versions([("one", "1.2.0")], "1.2.0")
    >>> check_versions([("one", "1.2.0"), ("two", "1.1.0")], "1.2.0")
    Traceback (most recent call last):
    afresh.cluster.ray_session.ClusterError: node two has afresh 1.1.0, and this machine 1.2.0: install \
the same version on all nodes
    """
    for host, version in sorted(found):
        if version != own:
            has = f"afresh {version}, and this machine {own}" if version else f"no afresh, this machine {own}"
            raise ClusterError(f"node {host} has {has}: install the same version on all nodes")
