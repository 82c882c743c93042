"""What tests of several layers share."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hypothesis
import psycopg
import pytest
from tests import docstring_examples, leftovers
from tests.cluster.ray_cluster import RayCluster, SharedRayCluster
from tests.servers.postgres import PostgresServer, running_postgres, shared_postgres
from tests.servers.quick_afresh import QuickAfresh, shared_quick_afresh
from tests.stores.dropping import drop_schemas
from tests.waiting_first import kept_together, waiting_first

# Tests run side by side: threads of the linear algebra would only spin beside each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The process of this run that we are, if it has several; empty if it has not.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

# The same examples every time: what fails once fails again, and what lands was seen to pass.
# Six in every run, since the same ones prove nothing new the next time, and most properties run for many
# objectives, estimators or decays. The slow tests use "thorough"; a test may ask for another number.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None, max_examples=6)
hypothesis.settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("steady")


# Thousands of tests are millions of objects that stay to the end. Looking through them for cycles, again and
# again, took a sixth of the run: they are collected without it, and then left out of it.
gc.disable()


def pytest_collection_finish() -> None:
    """From now on cycles are collected, but those of what the collection made.

    After what was frozen, Python takes the heap for small and would look through all of it at every turn.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_unconfigure() -> None:
    """Look for cycles once; pytest does so five times, and each time looks at all that is left then."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # after the order was drawn and slow tests were left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that wait come first; a slow test may take an hour, where it says nothing else."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = waiting_first(
        items, workers, lambda item: bool(item.get_closest_marker("waits")), kept_together
    )


def pytest_configure(config: pytest.Config) -> None:
    """At the end of the run, look for what the tests left behind; a plugin also sees the files of ``src``."""
    config.pluginmanager.register(leftovers, "tests.leftovers")
    config.pluginmanager.register(docstring_examples, "tests.docstring_examples")


@pytest.fixture(autouse=True)
def working_directory() -> Iterator[None]:
    """Every test begins in the folder in which the run was started; ``afresh -C`` goes to another one."""
    before = Path.cwd()
    yield
    os.chdir(before)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run, also where several processes share its tests.

    Tests take a schema or database of their own in it. Those that stop or break a server start their own.
    """
    folder = tmp_path_factory.getbasetemp()
    with shared_postgres((folder.parent if WORKER else folder) / "postgres") as server:
        yield server


@pytest.fixture(scope="session")
def quick_afresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickAfresh]:
    """``afresh`` commands that begin at once, for the whole run."""
    folder = tmp_path_factory.getbasetemp()
    with shared_quick_afresh((folder.parent if WORKER else folder) / "quick") as quick:
        yield quick


@pytest.fixture(scope="session")
def ray_cluster(request: pytest.FixtureRequest) -> Iterator[SharedRayCluster]:
    shared = SharedRayCluster()
    request.config.pluginmanager.register(shared)
    with closing(shared):
        yield shared


@pytest.fixture
def ray_nodes(ray_cluster: SharedRayCluster) -> RayCluster:
    """A Ray cluster of two nodes. Tests that use it have the mark ``waits(together="ray")``: it ends after
    the last of them, because even an idle one takes processor time."""
    return ray_cluster.nodes


@pytest.fixture(scope="session")
def one_own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this process alone; tests take it as ``own_postgres``."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres(one_own_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A PostgreSQL server that the test may stop; it runs again for the next test, as an ordinary one."""
    with psycopg.connect(one_own_postgres.url(), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    standby = one_own_postgres.folder / "data" / "standby.signal"
    yield one_own_postgres
    if standby.exists():
        standby.unlink()
        one_own_postgres.stop("immediate")
    if not one_own_postgres.is_running:
        one_own_postgres.start()


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A PostgreSQL for the whole session: that of ``AFRESH_TEST_POSTGRES``, or one of our own.

    One that was given outlives the run: the schemas that tests made in it are dropped.
    """
    given = os.environ.get("AFRESH_TEST_POSTGRES")
    if given:
        yield given
        drop_schemas(given)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        yield server.url()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into (pytest's own are for their owner alone)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
