"""Broker and database: start, stop, start again, and end with their parent."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pymysql
import pytest

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from service.embedded.process import Command, ServerStartError
from service.embedded.server import DatabaseSettings, EmbeddedServer, side_by_side
from tests.support.sql import run_sql
from tests.support.topics import consume_json, create_topic, produce
from tests.support.wait import wait_until

BrokerFactory = Callable[..., KafkaBroker]
OPTIONS = {
    "row_image_minimal": ({"binlog-row-image": "MINIMAL"}, "binlog_row_image", "MINIMAL"),
    "statement_binlog": ({"binlog-format": "STATEMENT"}, "binlog_format", "STATEMENT"),
    "binlog_off": ({"skip-log-bin": None}, "log_bin", "OFF"),
    "semi_sync": (
        {"rpl-semi-sync-master-enabled": "ON", "rpl-semi-sync-master-timeout": "100"},
        "rpl_semi_sync_master_enabled",
        "ON",
    ),
}


@pytest.fixture
def new_broker(tmp_path: Path, java: Java, broker_jars: list[Path]) -> BrokerFactory:
    def make(name: str = "kafka", **settings: object) -> KafkaBroker:
        options = BrokerSettings(heap="256m", **settings)  # type: ignore[arg-type]
        return KafkaBroker(tmp_path / name, java, broker_jars, options)

    return make


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.experiment
def test_a_broker_keeps_topics_and_port_over_a_stop_and_a_kill(new_broker: BrokerFactory) -> None:
    with new_broker() as broker:
        servers = broker.bootstrap_servers
        topic = create_topic(servers)
        produce(servers, topic, [{"n": 1}])
        broker.stop()
        assert not broker.running
        assert not broker.healthy()
        broker.start()
        assert broker.bootstrap_servers == servers
        produce(servers, topic, [{"n": 2}])
        pid = broker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not broker.running, what="end of the broker")
        broker.start()
        assert consume_json(servers, topic, count=2) == [{"n": 1}, {"n": 2}]
    with new_broker() as again:
        assert again.bootstrap_servers == servers


def test_a_broker_does_not_invent_topics(kafka: KafkaBroker) -> None:
    assert "auto.create.topics.enable=false" in (kafka.log.parent / "kraft.properties").read_text()


@pytest.mark.experiment
def test_a_database_keeps_rows_port_and_passwords(tmp_path: Path, database_home: Path) -> None:
    with MariaDb(tmp_path, database_home) as database:
        run_sql(database, "CREATE DATABASE s", "CREATE TABLE s.t (id INT)", "INSERT s.t VALUES (7)")
        before = (database.port, database.root_password, database.cdc_password)
        pid = database.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not database.running, what="end of the database")
        database.start()
        assert run_sql(database, "SELECT id FROM s.t") == [(7,)]
    with MariaDb(tmp_path, database_home) as again:
        assert (again.port, again.root_password, again.cdc_password) == before
        assert run_sql(again, "SELECT id FROM s.t") == [(7,)]
    assert [path.name for path in tmp_path.glob("*.sql")] == []


def test_a_database_that_starts_leaves_temporary_tables_of_others_alone(
    tmp_path: Path, database_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    theirs = shared / "#sql-temptable-1-1-1.MAI"
    theirs.touch()
    monkeypatch.setenv("TMPDIR", str(shared))
    with MariaDb(tmp_path / "own", database_home) as database:
        assert database.healthy()
    assert theirs.exists()


def test_nobody_gets_in_without_a_password(mariadb: MariaDb) -> None:
    assert run_sql(mariadb, "SELECT 1 FROM mysql.user WHERE user = ''") == []
    for user in ("root", "cdc", "anybody"):
        with pytest.raises(pymysql.OperationalError, match="Access denied"):
            mariadb.connect(user=user, password="")


def test_the_cdc_user_may_read_everything_and_write_nothing(mariadb: MariaDb) -> None:
    connection = mariadb.connect(user=mariadb.cdc_user, password=mariadb.cdc_password)
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        assert cursor.fetchone() is not None
        cursor.execute("SELECT COUNT(*) FROM mysql.db")
        with pytest.raises(pymysql.OperationalError, match="denied"):
            cursor.execute("CREATE DATABASE mine")


@pytest.mark.parametrize(("options", "variable", "value"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_of_the_server_replaces_ours(
    options: dict[str, str | None],
    variable: str,
    value: str,
    tmp_path: Path,
    database_home: Path,
) -> None:
    with MariaDb(tmp_path, database_home, DatabaseSettings(options=options)) as database:
        assert run_sql(database, f"SHOW GLOBAL VARIABLES LIKE '{variable}'") == [(variable, value)]


def test_a_port_in_use_is_told_in_one_line(
    new_broker: BrokerFactory, tmp_path: Path, database_home: Path, taken_port: int
) -> None:
    servers = [
        new_broker(port=taken_port),
        MariaDb(tmp_path / "db", database_home, DatabaseSettings(port=taken_port)),
    ]
    for server in servers:
        with pytest.raises(ServerStartError, match=f"{taken_port}: address already") as caught:
            server.start()
        assert "port" in caught.value.hint
        assert "\n" not in caught.value.message
        assert not server.running


def test_a_directory_in_use_is_told_in_one_line(
    mariadb: MariaDb, kafka: KafkaBroker, java: Java, database_home: Path
) -> None:
    second = [
        KafkaBroker(kafka.log.parent, java, []),
        MariaDb(mariadb.log.parent, database_home),
    ]
    for server in second:
        with pytest.raises(ServerStartError, match="another process has it"):
            server.start()


def test_a_broker_that_cannot_run_names_its_log(tmp_path: Path, java: Java) -> None:
    with pytest.raises(ServerStartError, match=r"Could not find or load main class"):
        KafkaBroker(tmp_path, java, [tmp_path / "nothing.jar"]).start()


class Program(EmbeddedServer):
    """A server that is a line of Python; it serves once there is a file of its name."""

    name = "program"
    role = "the program"
    state_file = "program.json"

    def __init__(self, root: Path, line: str) -> None:
        super().__init__(root, ready_timeout_s=300.0)
        self._line = line

    def _prepare(self) -> None:
        self._keep_state(None)

    def _command(self) -> Command:
        return Command([sys.executable, "-c", self._line], self.log, {}, self._dir)

    def _answers(self) -> bool:
        return (self._dir / "serves").exists()


SERVES = "open('serves', 'w').close(); import time; time.sleep(300)"
NEVER_SERVES = "import time; time.sleep(300)"


def test_servers_start_side_by_side_and_stop_with_the_block(
    processes: None, tmp_path: Path
) -> None:
    """Each serves once the other one lives: one after the other they never would."""
    line = "import os, time\nwhile not os.path.exists('../{}/program.log'): time.sleep(0.01)\n"
    one, other = (
        Program(tmp_path / name, line.format(another) + SERVES)
        for name, another in (("one", "other"), ("other", "one"))
    )
    with side_by_side(one, other):
        assert one.healthy()
        assert other.healthy()
    assert not one.running
    assert not other.running


def test_when_one_server_does_not_start_nobody_waits_for_the_others(
    processes: None, tmp_path: Path
) -> None:
    fails = Program(tmp_path / "fails", "raise SystemExit('no such thing')")
    waits = Program(tmp_path / "waits", NEVER_SERVES)
    with pytest.raises(ServerStartError, match="no such thing"), side_by_side(waits, fails):
        pytest.fail("one of them does not serve")
    assert not waits.running
    with side_by_side(Program(tmp_path / "waits", SERVES)):
        pass


PARENT = """
import json, sys, threading, time
from pathlib import Path
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java

root, home, jars, database_home = sys.argv[1:]
settings = BrokerSettings(heap="256m")
broker = KafkaBroker(Path(root) / "k", Java(Path(home), 17), jars.split(":"), settings)
database = MariaDb(Path(root) / "d", Path(database_home))
for server in (broker, database):  # each from a thread that ends at once
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
time.sleep(0.2)
print(json.dumps([broker.pid, database.pid, broker.healthy() and database.healthy()]), flush=True)
sys.stdin.read()
"""


@pytest.mark.experiment
def test_both_end_when_their_parent_is_killed_but_not_with_the_thread_that_started_them(
    tmp_path: Path, java: Java, broker_jars: list[Path], database_home: Path
) -> None:
    arguments = [tmp_path, java.home, ":".join(map(str, broker_jars)), database_home]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    with parent:
        assert parent.stdout is not None
        broker, database, healthy = json.loads(parent.stdout.readline())
        assert healthy
        assert psutil.pid_exists(broker)
        assert psutil.pid_exists(database)
        parent.kill()
    wait_until(lambda: not _alive(broker) and not _alive(database), deadline_s=10, what="their end")


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
