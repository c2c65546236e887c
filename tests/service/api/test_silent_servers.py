"""Servers that accept and say nothing: whoever asks about them is answered, and so is all else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from joins.adapters.connect import ConnectOffsets
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.options import TokenProvider, TokenUnavailableError
from joins.adapters.mysql.connection import MysqlConnectionConfig, connected
from joins.adapters.network import within
from joins.adapters.registry import SchemaRegistry
from joins.plan.connections import CLIENT_ID, CLIENT_SECRET, TOKEN_URL, RegistryOptions
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import KafkaOptions
from service.api.server import ControlPlane
from service.jobs.submit import submission
from tests.support.control_plane import settings_in
from tests.support.sockets import listening, silent
from tests.support.topics import create_topic, delete_topics
from tests.support.wait import wait_until

ASKED_AT_ONCE = 45
SCRIPT = """
CREATE TABLE d (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH
    ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'port'='{database}', 'username'='u',
     'password'='p', 'database-name'='s', 'table-name'='d');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH ('connector'='kafka', 'topic'='{topic}',
    'properties.bootstrap.servers'='{broker}', 'format'='json');
CREATE TABLE o (k BIGINT, v STRING) WITH ('connector'='blackhole');
INSERT INTO o SELECT s.k, d.v FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.k;
"""

pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture
def http(tmp_path):
    """A client of a control plane whose checks of servers last while all requests arrive."""
    with (
        ControlPlane(settings_in(tmp_path, check_timeout_s=4.0)) as plane,
        httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("silent_one", ["database", "broker"])
def test_silent_servers_take_down_neither_health_nor_the_rest(http, kafka, silent_one):
    topic = create_topic(kafka.bootstrap_servers)
    with silent() as port, ThreadPoolExecutor(ASKED_AT_ONCE) as clients:
        broker = f"127.0.0.1:{port}" if silent_one == "broker" else kafka.bootstrap_servers
        sql = SCRIPT.format(database=port, broker=broker, topic=topic)
        asked = [
            clients.submit(http.post, "/v1/jobs:validate", json={"sql": sql})
            for _ in range(ASKED_AT_ONCE)
        ]
        wait_until(lambda: any(answer.done() for answer in asked), what="the first is answered")
        assert not all(answer.done() for answer in asked)
        for path in ("/livez", "/readyz", "/v1/jobs", "/v1/version"):
            assert http.get(path, timeout=10).status_code == 200, path
        told = [answer.result().json()["type"].rpartition(":")[2] for answer in asked]
    assert set(told) == {"busy", "source-unavailable"}
    busy = next(a.result() for a in asked if a.result().json()["type"].endswith("busy"))
    assert busy.status_code == 503
    assert "Retry-After" in busy.headers
    delete_topics(kafka.bootstrap_servers, topic)


def test_seats_are_given_back(http):
    with silent() as port:
        sql = SCRIPT.format(database=port, broker=f"127.0.0.1:{port}", topic="t")
        for _ in range(2):
            with ThreadPoolExecutor(ASKED_AT_ONCE) as clients:
                asked = list(
                    clients.map(
                        lambda _: http.post("/v1/jobs:validate", json={"sql": sql}),
                        range(submission._MOST_OUTSIDE),
                    )
                )
            assert {a.json()["type"] for a in asked} == {"urn:sluice:problem:source-unavailable"}


def threads_of_clients():
    return {t for t in threading.enumerate() if t.name.startswith("kafka-io")}


def test_a_broker_that_says_nothing_leaves_no_client_behind():
    before = threads_of_clients()
    with silent() as port, within(0.5):
        cluster = KafkaCluster(KafkaOptions(f"127.0.0.1:{port}", "t"))
        with pytest.raises(SourceUnavailableError, match="cannot be reached"):
            cluster.reach()
        with pytest.raises(SourceUnavailableError, match="was not asked"):
            cluster.reach()
    assert threads_of_clients() == before


def dribbling(beginning):
    """The port of a server that says `beginning`, and then a byte at a time without an end."""

    pause = threading.Event()

    def dribble(client, _):
        with suppress(OSError):
            client.sendall(beginning)
            while client.send(b"x"):
                pause.wait(0.05)

    return listening(dribble)


def test_a_database_that_dribbles_is_cut_at_the_deadline():
    packet_of_64_kib = b"\xff\xff\x00\x00"
    with (
        dribbling(packet_of_64_kib) as port,
        within(0.5),
        pytest.raises(SourceUnavailableError),
        connected(MysqlConnectionConfig("127.0.0.1", port, "u", "p", "d", "t")),
    ):
        pass


OVER_HTTP = {
    "registry": lambda url: SchemaRegistry(RegistryOptions(url)).newest_avro_schema("s"),
    "connect": lambda url: ConnectOffsets(url, "c").require(),
    "token_endpoint": lambda url: TokenProvider(
        {TOKEN_URL: url, CLIENT_ID: "c", CLIENT_SECRET: "none"}
    ),
}
SLOW = {"says_nothing": silent, "dribbles": lambda: dribbling(b"HTTP/1.1 200 OK\r\nA: ")}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
@pytest.mark.parametrize("ask", OVER_HTTP.values(), ids=OVER_HTTP)
def test_a_server_over_http_is_cut_at_the_deadline_and_not_asked_behind_it(ask, slow):
    with slow() as port, within(1.0):
        with pytest.raises((SourceUnavailableError, TokenUnavailableError), match="answer"):
            ask(f"http://127.0.0.1:{port}")
        with pytest.raises(SourceUnavailableError, match="was not asked"):
            ask(f"http://127.0.0.1:{port}")
