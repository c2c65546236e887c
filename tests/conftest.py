"""Real services for the tests: one of each a run, started when the first test asks.

A test whose fixtures lead to one of `PROCESSES` is marked `servers`; any other may start no
process at all, so that `make test-quick` runs what needs none, and the mark cannot be wrong.
What has this mark or is `slow`, and shows no promise (`tests/promises.toml`), is left to
`.ci/run`, by the mark `matrix`.
"""

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
from hypothesis import HealthCheck, settings

from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import Java, find_java, provide_class_archive
from service.embedded.postgres import PostgreSql
from service.embedded.server import EmbeddedServer
from service.footprint import kept_for_good
from tests.support.apicurio import ApicurioRegistry
from tests.support.durations import (
    TEST,
    Durations,
    Recorder,
    TimeLeft,
    function_of,
    lane_of,
    shares_of,
    unit,
)
from tests.support.promises import named_tests
from tests.support.scheduling import ByFile
from tests.support.services import home_that_installs_once
from tests.support.shared_services import SHARED, Place, SharedServices, ask, shared
from tests.support.used_time import used_cpu_s

PROCESSES = "processes"
_STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"})
_quick: list[str] = []  # the test that runs and may start no process
_older_threads: set[int] = set()  # of fixtures that several tests share: they may go on
_places = pytest.StashKey[Callable[[str], Place]]()
_answering = pytest.StashKey[tuple[str, int, str]]()
_expected_s = pytest.StashKey[float]()
_time_left = TimeLeft(float(os.environ.get("TESTS_END_AT", "inf")))
_began_s = time.monotonic()
os.environ.setdefault("SLUICE_CHECK_TIMEOUT_S", "300")  # a busy machine answers slowly
Server = TypeVar("Server", bound=EmbeddedServer)
# No test asserts a time: an example that takes long says that the machine is busy.
settings.register_profile("sluice", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sluice")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-durations",
        action="store_true",
        help="write what the files of this run took into tests/durations.json",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark what needs servers or other processes, and what is slow; the longest file runs first.

    With `TESTS_SHARE=2/3` the files that take long are dealt into three shares; the others run in
    each.
    """
    durations, shown = Durations(), named_tests()
    for item in items:
        function = function_of(item.nodeid)
        if PROCESSES in getattr(item, "fixturenames", ()):
            item.add_marker("servers")
        elif function in durations.slow:
            item.add_marker("slow")
        else:
            continue
        if _lane(item) == TEST and function not in shown:
            item.add_marker("matrix")
    yield  # the lane is selected by its marks
    parts = defaultdict[tuple[str, str], list[pytest.Item]](list)
    for item in items:
        parts[unit(item.nodeid), _lane(item)].append(item)
    seconds = defaultdict[str, float](float)
    for (name, lane), tests in parts.items():
        recorded_s = durations.seconds(name, lane)
        took_s = max(map(_guess_s, tests)) if recorded_s is None else recorded_s
        seconds[name] += took_s
        for test in tests:
            test.stash[_expected_s] = took_s / len(tests)
    items.sort(key=lambda item: -seconds[unit(item.nodeid)])
    share = os.environ.get("TESTS_SHARE")
    if share:
        own, count = map(int, share.split("/"))
        shares = shares_of(seconds, count)
        kept, others = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            (kept if shares.get(unit(item.nodeid), own) == own else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def _lane(item: pytest.Item) -> str:
    return lane_of({mark.name for mark in item.iter_markers()})


def _guess_s(item: pytest.Item) -> float:
    """Seconds of a file that no run has recorded."""
    if item.get_closest_marker("experiment"):
        return 120.0
    return 20.0 if item.get_closest_marker("servers") else 0.0


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    with kept_for_good():
        return (yield)


@pytest.hookimpl(trylast=True)  # the temporary directory is known
def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes that a test starts without having said so; share the servers."""
    sys.addaudithook(_refuse_processes)
    # A control plane that a fixture keeps running logs on, while another test reads what
    # a program has printed.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))
    if hasattr(config, "workerinput"):
        config.stash[_places] = partial(ask, *config.workerinput["services"])
        return
    directory = config._tmp_path_factory.getbasetemp() / "services"  # type: ignore[attr-defined]
    services = SharedServices(directory, partial(_say, config))
    config.add_cleanup(services.kill)
    if config.getoption("record_durations"):
        config.pluginmanager.register(Recorder(Durations()))
    config.stash[_places] = services.place
    if config.getoption("numprocesses", None):
        config.stash[_answering] = services.answer()


def _say(config: pytest.Config, line: str) -> None:
    capture = config.pluginmanager.getplugin("capturemanager")
    reporter = config.pluginmanager.getplugin("terminalreporter")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        reporter.ensure_newline()
        reporter.write_line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["services"] = node.config.stash[_answering]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """The last line but one: what the run took."""
    try:
        return (yield)
    finally:
        took_s = time.monotonic() - _began_s
        terminalreporter.write_line(f"{took_s:.0f} s of wall, {used_cpu_s():.0f} s of CPU")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of the test's timeout
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test runs, and whether it may start processes; have its shared servers run."""
    _older_threads.clear()
    _older_threads.update(t.ident or 0 for t in threading.enumerate())
    _older_threads.discard(threading.get_ident())
    for name in _shared_servers(item):
        with suppress(Exception):  # the fixture raises it
            item.config.stash[_places](name)
    _quick[:] = [] if item.get_closest_marker("servers") else [item.nodeid]
    began_s = time.monotonic()
    try:
        return (yield)
    finally:
        _quick.clear()
        _time_left.add(item.stash[_expected_s], time.monotonic() - began_s)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if not _time_left.is_enough_for(item.stash[_expected_s]):
        pytest.skip("not run: it could not end before TESTS_END_AT; CI_WITHIN_S gives more time")


def _shared_servers(item: pytest.Item) -> list[str]:
    """Those that fixtures of this file stand for; a test file may have its own of that name."""
    info = getattr(item, "_fixtureinfo", None)
    fixtures = {} if info is None else info.name2fixturedefs
    return [name for name in SHARED & fixtures.keys() if _is_ours(fixtures[name][-1])]


def _is_ours(fixture: pytest.FixtureDef[Any]) -> bool:
    return bool(fixture.func.__module__ == __name__)


def _refuse_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS and _quick and threading.get_ident() not in _older_threads:
        raise RuntimeError(
            f"{_quick[0]} starts a process ({event} {arguments[:1]}): it must ask for the "
            f'fixture "{PROCESSES}", or a fixture that does'
        )


@pytest.fixture(scope="session")
def processes() -> None:
    """Whoever asks for it, also through other fixtures, may start processes."""


@pytest.fixture(scope="session")
def java(processes: None) -> Java:
    """The Java of this machine; child processes, Spark's too, get it from here on."""
    found = find_java(Settings.load().cache_dir)
    os.environ.update(found.environment())
    return found


@pytest.fixture(scope="session")
def jar_cache(java: Java) -> JarCache:
    return JarCache(Settings.load().cache_dir, java)


@pytest.fixture(scope="session")
def spark_jars(jar_cache: JarCache) -> list[Path]:
    return jar_cache.jars(JarSet.SPARK)


@pytest.fixture(scope="session")
def class_archive(java: Java, jar_cache: JarCache, spark_jars: list[Path]) -> Path | None:
    return provide_class_archive(jar_cache.directory, java, spark_jars)


@pytest.fixture(scope="session")
def broker_jars(jar_cache: JarCache) -> list[Path]:
    return jar_cache.jars(JarSet.BROKER)


@pytest.fixture(scope="session")
def database_home(jar_cache: JarCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.getbasetemp()
    of_all_workers = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return home_that_installs_once(
        own / "database-home", jar_cache.database_home(), of_all_workers / "system-tables"
    )


def shared_server(config: pytest.Config, name: str, make: Callable[[Path], Server]) -> Server:
    place = config.stash[_places](name)
    return shared(make(place.directory), place.pid)


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config, java: Java) -> KafkaBroker:
    return shared_server(pytestconfig, "kafka", lambda at: KafkaBroker(at, java, []))


@pytest.fixture(scope="session")
def mariadb(pytestconfig: pytest.Config, processes: None) -> MariaDb:
    return shared_server(pytestconfig, "mariadb", lambda at: MariaDb(at, at))


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config, processes: None) -> PostgreSql:
    return shared_server(pytestconfig, "postgres", lambda at: PostgreSql(at, at))


@pytest.fixture(scope="session")
def connect(pytestconfig: pytest.Config, java: Java, kafka: KafkaBroker) -> KafkaConnect:
    servers = kafka.bootstrap_servers
    return shared_server(pytestconfig, "connect", lambda at: KafkaConnect(at, java, [], servers))


@pytest.fixture(scope="session")
def registry(pytestconfig: pytest.Config, java: Java) -> ApicurioRegistry:
    return shared_server(pytestconfig, "registry", lambda at: ApicurioRegistry(at, java, at))


@pytest.fixture(scope="module")
def own_broker(
    tmp_path_factory: pytest.TempPathFactory, java: Java, broker_jars: list[Path]
) -> Iterator[KafkaBroker]:
    directory = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(directory, java, broker_jars, BrokerSettings(heap="384m")) as broker:
        yield broker


@pytest.fixture(scope="module")
def own_database(
    tmp_path_factory: pytest.TempPathFactory, database_home: Path
) -> Iterator[MariaDb]:
    with MariaDb(tmp_path_factory.mktemp("mariadb"), database_home) as database:
        yield database


@pytest.fixture(scope="module")
def own_postgres(
    tmp_path_factory: pytest.TempPathFactory, jar_cache: JarCache
) -> Iterator[PostgreSql]:
    with PostgreSql(tmp_path_factory.mktemp("postgres"), jar_cache.postgres_home()) as database:
        yield database


@pytest.fixture(scope="module")
def own_connect(
    tmp_path_factory: pytest.TempPathFactory, java: Java, jar_cache: JarCache, kafka: KafkaBroker
) -> Iterator[KafkaConnect]:
    """A Connect that a file of tests may stop and kill."""
    directory = tmp_path_factory.mktemp("connect")
    jars = jar_cache.jars(JarSet.CONNECT)
    with KafkaConnect(directory, java, jars, kafka.bootstrap_servers) as worker:
        yield worker


@pytest.fixture(scope="module")
def store(processes: None) -> Iterator[Any]:
    """An `ObjectStore`, whose clients most runs need not load."""
    from tests.support.object_store import object_store

    with object_store() as server:
        yield server
