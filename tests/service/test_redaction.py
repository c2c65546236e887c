"""Resolved secrets are in no text: every option that takes one, every refusal of a server."""

import gc
import io
import json
import logging
import pickle
import sys
import traceback
from contextlib import contextmanager
from itertools import cycle, product
from urllib.parse import quote

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql.connection import MysqlConnectionConfig, connected
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.sender import CdcConfig
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.network import within
from joins.adapters.process.process import SourceProcess
from joins.adapters.process.sessions import redact_standard_error
from joins.durable.codec import as_json, from_json
from joins.durable.requests import Fault
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.causes import detail_of
from joins.plan.plan import KafkaOptions
from service.config import Settings
from service.connectors.plans import resolve_secrets
from service.errors import NotAllowedError
from service.jobs.doctor.check import made
from service.jobs.submit.preflight import preflight
from service.logs import configure_logs
from service.security.resolution import connection_of
from service.security.secrets import SecretResolver
from service.sql.catalog.connectors import CONNECTORS
from service.sql.planner.planner import plan
from tests.support.certificates import self_signed
from tests.support.lanes import some_of
from tests.support.laws import examples
from tests.support.sockets import listening, silent
from tests.support.topics import create_topic, delete_topics
from tests.support.wait import wait_until
from watermark.errors import Secret, SluiceError, redacted, secrets_in

CANARY = 'c4n4ry it\'s "the" one\\ ü'
HISTORY = "history."
TAKES_ONE = [
    (connector.name, option.key)
    for connector in CONNECTORS.values()
    for option in connector.options
    if option.reference
]


# The rule
# --------------------------------------------------------------------------------------------------

printable = st.characters(exclude_categories=["Cs", "Cc"])
values = st.text(printable, min_size=4, max_size=60)
long_values = st.text(printable, min_size=21, max_size=60)
WRITTEN = {
    "plain": str,
    "json": lambda value: json.dumps({"x": value}),
    "json_of_utf8": lambda value: json.dumps(value, ensure_ascii=False),
    "python": repr,
    "bytes": lambda value: repr(value.encode()),
    "sql": lambda value: "'" + value.replace("'", "''") + "'",
    "address": lambda value: f"http://user:{quote(value, safe='')}@host",
}


@settings(max_examples=examples(50))
@given(values, st.sampled_from(sorted(WRITTEN)))
def test_a_secret_is_replaced_however_it_is_written(value, form):
    secret = Secret(value, "\N{SNOWMAN}")
    shown = redacted(f"server: {WRITTEN[form](value)} refused")
    assert "\N{SNOWMAN}" in shown
    assert secret not in shown


@settings(max_examples=examples(50))
@given(long_values, st.integers(16, 20))
def test_of_a_secret_that_is_cut_short_nothing_is_left(value, kept):
    secret = Secret(value, "\N{SNOWMAN}")
    assert secret[:kept] not in redacted(f"user '{secret[:kept]}'@'x'")


def test_a_short_secret_is_replaced_where_it_is_a_word():
    secret = Secret("ab", "${secret:x}")
    assert redacted("ab is refused, cab is not, 'ab'") == (
        "${secret:x} is refused, cab is not, '${secret:x}'"
    )
    assert secret == "ab"


def test_a_secret_that_nobody_holds_any_more_is_an_ordinary_text():
    first, second = Secret(CANARY, "${secret:x}"), Secret(CANARY, "${secret:y}")
    del first
    assert redacted(f"a {CANARY}") == f"a {second.reference}"
    del second
    gc.collect()
    assert redacted(f"a {CANARY}") == f"a {CANARY}"


def test_copies_in_other_processes_are_secrets_too():
    secret = Secret(CANARY, "${secret:x}")
    copy = pickle.loads(pickle.dumps(secret))
    told = json.loads(json.dumps(secrets_in({"a": [("b", secret)], "c": "d"})))
    del secret
    assert redacted(copy) == copy.reference == repr(copy) == "${secret:x}"
    del copy
    gc.collect()
    assert told == {CANARY: "${secret:x}"}


# Every option, every refusal
# --------------------------------------------------------------------------------------------------


def echo(client, _):
    """A database that refuses the login and repeats all that it could know."""
    salt = b"12345678901234567890"
    greeting = b"\x0a8.0.0\0" + bytes(4) + salt[:8] + b"\0\0\x82\x2d\x02\0\x08\0\x15" + bytes(10)
    _send(client, 0, greeting + salt[8:] + b"\0mysql_native_password\0")
    login = client.recv(4096)
    forms = " ".join(write(CANARY) for write in WRITTEN.values())
    if login:
        _send(client, login[3] + 1, b"\xff\x15\x04#28000Access denied " + forms.encode())


def _send(client, number, payload):
    client.sendall(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


def garbage(client, _):
    client.sendall(CANARY.encode() * 40)
    client.recv(4096)


@contextmanager
def closed():
    with silent() as port:
        pass
    yield port


REFUSALS = {
    "says_nothing": silent,
    "is_not_there": closed,
    "speaks_another_protocol": lambda: listening(garbage),
    "repeats_what_it_knows": lambda: listening(echo),
}
MYSQL = {
    "hostname": "127.0.0.1", "username": "cdc", "password": "wrong",
    "database-name": "d", "table-name": "t",
}  # fmt: skip
KAFKA = {
    "topic": "t", "properties.security.protocol": "SASL_PLAINTEXT",
    "properties.sasl.mechanism": "PLAIN", "properties.sasl.username": "me",
    "properties.sasl.password": "wrong",
}  # fmt: skip

KAFKA_TLS = {"topic": "t", "properties.security.protocol": "SSL"}
TOKEN = "properties.sasl.oauthbearer."
REGISTRY = ("avro-confluent", "debezium-avro-confluent")


def table(connector, columns, options):
    told = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"({columns}) WITH ('connector' = '{connector}', {told});\n"


def script(connector, given, broker, topic):
    """A script in which one table of `connector` has the options `given`."""
    mysql, kafka = {**MYSQL, "port": 1}, {"topic": topic, "properties.bootstrap.servers": broker}
    avro = next((form for form in REGISTRY if f"{form}.url" in given), None)
    sink = table("kafka", "k BIGINT", {**kafka, "format": "json"})
    stream = table("kafka", "k BIGINT, p AS PROCTIME()", {**kafka, "format": "json"})
    dimension = table("mysql-cdc", "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", mysql)
    if connector in ("mysql-cdc", "mysql"):
        dimension = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", mysql | given)
    elif connector == "jdbc":
        own = {"username": "u", "password": "${secret:canary}", "table-name": "d"} | given
        dimension = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", own)
    elif connector == "delta":
        dimension = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", given)
    elif any(key.startswith("late-records.") for key in given):
        own = {**kafka, "format": "json"} if connector == "kafka" else {}
        columns = "k BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts"
        stream = table(connector, columns, {**own, **given})
    elif any(key.startswith(HISTORY) for key in given):
        formats = ["key.format", "value.format"] if connector == "upsert-kafka" else ["format"]
        own = {**kafka, **dict.fromkeys(formats, "json"), "scan.startup.mode": "earliest-offset"}
        own |= {f"{HISTORY}connector": "delta", **given}
        dimension = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", own)
    elif connector == "upsert-kafka":
        own = {**kafka, "key.format": "json", "value.format": avro or "json", **given}
        sink = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", own)
    elif avro == "debezium-avro-confluent":
        own = {**kafka, "format": avro, **given}
        dimension = table(connector, "k BIGINT, PRIMARY KEY (k) NOT ENFORCED", own)
    else:
        own = {**kafka, "format": avro or "json", **given}
        stream = table(connector, "k BIGINT, p AS PROCTIME()", own)
    return (
        f"CREATE TABLE d {dimension} CREATE TABLE s {stream} CREATE TABLE o {sink}"
        "INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.k;"
    )


@pytest.fixture(scope="module")
def world(kafka, tmp_path_factory):
    """(settings with the secrets `canary` and `pem`, a broker that answers, its topic)."""
    directory = tmp_path_factory.mktemp("secrets")
    cert, key = self_signed(directory)
    (directory / "canary").write_text(CANARY, encoding="utf-8")
    topic = create_topic(kafka.bootstrap_servers)
    yield (
        Settings.load(data_dir=directory / "data", secrets_dir=directory),
        kafka.bootstrap_servers,
        topic,
    )
    delete_topics(kafka.bootstrap_servers, topic)
    cert.unlink()
    key.unlink()


def with_secret(key):
    """The options of a table whose option `key` is the secret, and what else it needs."""
    given = {key: "${secret:canary}"}
    if key.startswith("database.ssl"):
        given |= {"database.ssl.mode": "verify_identity"}
    if key in ("database.ssl.cert", "database.ssl.key"):
        given |= dict.fromkeys(("database.ssl.cert", "database.ssl.key"), "${secret:canary}")
    if "s3." in key or "azure." in key:
        return given | beside_in_store(key)
    owner, _, own = key.partition(".")
    if own.startswith("basic-auth"):
        given |= {f"{owner}.basic-auth.credentials-source": "USER_INFO"}
    if owner != "database" and own.startswith("ssl.key"):
        parts = ("certificate.chain", "key")
        given |= {f"{owner}.ssl.keystore.{part}": "${secret:canary}" for part in parts}
    return given


def beside_in_store(key):
    """The other half of a credential of an object store."""
    prefix = next((each for each in ("late-records.", HISTORY) if key.startswith(each)), "")
    if "azure." in key:
        return {f"{prefix}path": "abfss://lake@shop.dfs.core.windows.net/t"}
    halves = {f"{prefix}s3.access-key": "id", f"{prefix}s3.secret-key": "${secret:canary}"}
    return {f"{prefix}path": "s3://lake/t"} | {k: v for k, v in halves.items() if k != key}


def endpoint_of(key, port):
    name = key[: key.index("azure." if "azure." in key else "s3.")]
    name += "azure.endpoint" if "azure." in key else "s3.endpoint"
    return {name: f"http://127.0.0.1:{port}"}


def of_client(key, port):
    """The options of Kafka's client that `key` has an effect with; all is asked at `port`."""
    servers = {"properties.bootstrap.servers": f"127.0.0.1:{port}"}
    if key.startswith("properties.ssl."):
        return {**KAFKA_TLS, **servers}
    if not key.startswith(TOKEN):
        return {**KAFKA, **servers}
    names = (f"{TOKEN}client.credentials.client.{name}" for name in ("id", "secret"))
    credentials = dict.fromkeys(names, "x")
    return {
        "topic": "t",
        "properties.security.protocol": "SASL_PLAINTEXT",
        "properties.sasl.mechanism": "OAUTHBEARER",
        f"{TOKEN}token.endpoint.url": f"http://127.0.0.1:{port}/token",
        **credentials,
        **servers,
    }


@contextmanager
def logged():
    """What the logs of a process of ours write in the block."""
    stream, before = io.StringIO(), sys.stderr
    root = logging.getLogger()
    handlers, configured = root.handlers[:], structlog.get_config()
    sys.stderr = stream
    try:
        configure_logs("DEBUG", as_json=True)
        yield stream
    finally:
        sys.stderr = before
        root.handlers = handlers
        structlog.configure(**configured)


def texts_of(error):
    """All that may come of an error: answers, states, checks, logs and tracebacks."""
    yield from (error.message, error.hint, str(Fault.of(error)), error.detail, detail_of(error))
    yield "".join(traceback.format_exception(error))
    with logged() as stream:
        logging.getLogger("service").error("failed", exc_info=error)
        logging.getLogger("kafka").error("refused %s", error)
    yield stream.getvalue()


def refused(sql, world_settings):
    """Every text of the refusal of a script, from preflight and from a doctor's check."""
    planned, secrets = plan(sql), SecretResolver.of(world_settings, None)
    told = []

    def look():
        try:
            preflight(planned, world_settings, secrets)
        except SluiceError as error:
            told.extend(texts_of(error))
            raise
        raise AssertionError("nothing was refused")

    with within(0.5):
        (check,) = made("outside", look)
    return [*told, str(check.as_json())]


GENERATED = {f"{c}_{o}_{r}": (c, o, r) for (c, o), r in product(TAKES_ONE, REFUSALS)}
# Each option meets the server that tells most, and by turns one of the others.
IN_EVERY_RUN = {
    f"{connector}_{option}_{refusal}"
    for (connector, option), by_turns in zip(TAKES_ONE, cycle(list(REFUSALS)[:-1]), strict=False)
    for refusal in ("repeats_what_it_knows", by_turns)
}


@pytest.mark.parametrize(("connector", "key", "refusal"), some_of(GENERATED, *IN_EVERY_RUN))
def test_no_refusal_shows_a_secret(world, connector, key, refusal):
    world_settings, broker, topic = world
    with REFUSALS[refusal]() as port:
        given = with_secret(key)
        if connector in ("mysql-cdc", "mysql"):
            given |= {"port": port}
        elif connector == "jdbc":
            given |= {"url": f"jdbc:mysql://127.0.0.1:{port}/shop"}
        elif "s3." in key or "azure." in key:
            given |= endpoint_of(key, port)
        elif (owner := key.partition(".")[0]) in REGISTRY:
            scheme = "https" if ".ssl." in key else "http"
            given |= {f"{owner}.url": f"{scheme}://127.0.0.1:{port}"}
        else:
            given = {**of_client(key, port), **given}
        told = refused(script(connector, given, broker, topic), world_settings)
    for text, write in product(told, WRITTEN.values()):
        assert write(CANARY).strip("b'\"") not in text


def test_a_refused_login_shows_the_reference(world, mariadb):
    world_settings, broker, topic = world
    given = {**with_secret("username"), "port": mariadb.port}
    told = refused(script("mysql-cdc", given, broker, topic), world_settings)
    assert "refused user" in told[0]
    assert "${secret:canary}" in told[0]
    assert not any("c4n4ry" in text for text in told)


def test_a_worker_that_is_refused_shows_no_secret(world):
    """It has the configuration from the task, and what it raises is printed as a traceback."""
    world_settings, broker, topic = world
    with listening(echo) as port:
        given = {**with_secret("username"), "port": port}
        planned = plan(script("mysql-cdc", given, broker, topic))
        resolved = resolve_secrets(planned, SecretResolver.of(world_settings, None))
        task = pickle.dumps(connection_of(resolved.dimensions[0].source))
        del resolved
        gc.collect()
        with pytest.raises(SluiceError) as caught, connected(pickle.loads(task)):
            pass
    assert "Access denied" in caught.value.message
    assert not any("c4n4ry" in text for text in texts_of(caught.value))


def test_the_configuration_of_a_process_keeps_its_secrets(world):
    world_settings, broker, topic = world
    planned = plan(script("mysql-cdc", with_secret("password"), broker, topic))
    resolved = resolve_secrets(planned, SecretResolver.of(world_settings, None))
    config = connection_of(resolved.dimensions[0].source)
    told = json.loads(json.dumps(as_json(config)))
    assert secrets_in(config) == {CANARY: "${secret:canary}"}
    assert from_json(MysqlConnectionConfig, told) == config
    assert "c4n4ry" not in repr(config)


def test_a_source_process_that_is_refused_tells_no_secret(world, tmp_path, capfd):
    world_settings, broker, topic = world
    events = []
    with listening(echo) as port:
        given = {**with_secret("username"), "port": port}
        planned = plan(script("mysql-cdc", given, broker, topic))
        resolved = resolve_secrets(planned, SecretResolver.of(world_settings, None))
        config = CdcConfig(
            connection=connection_of(resolved.dimensions[0].source),
            table=CapturedTable("d", "t", (), ()),
            server_id=5,
            low=BinlogMark(BinlogPosition(0, 1, 4), "binlog", 6, None),
            generation=1,
            kafka=KafkaOptions(broker, topic),
            partitions=1,
            offset_file=tmp_path / "t.cdc.json",
        )
        process = SourceProcess("joins.adapters.mysql.binlog", config, events.append)
        try:
            wait_until(lambda: events or not process.running, what="it is refused")
        finally:
            process.stop()
    told = f"{events}{capfd.readouterr()}"
    assert "Access denied ${secret:canary}" in told
    assert "c4n4ry" not in told


def test_what_python_prints_itself_is_redacted(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    redact_standard_error()
    secret = Secret(CANARY, "${secret:x}")
    try:
        raise ValueError(f"server said {secret} and {secret!r}")
    except ValueError:
        sys.excepthook(*sys.exc_info())
    assert "ValueError: server said ${secret:x}" in stream.getvalue()
    assert "c4n4ry" not in stream.getvalue()


# Which server may get which secret
# --------------------------------------------------------------------------------------------------

ALLOWED = {
    "any": (None, True),
    "this_one": ("canary@127.0.0.1:3306", True),
    "by_patterns": ("x@y:1,can*@127.*:*", True),
    "another_server": ("canary@127.0.0.1:3307", False),
    "another_secret": ("shop@127.0.0.1:3306", False),
    "any_secret_of_another_server": ("*@x:1", False),
}


@pytest.mark.parametrize(("allowed", "works"), ALLOWED.values(), ids=ALLOWED)
@pytest.mark.parametrize("key", ["username", "password", "database.ssl.ca"])
def test_a_server_gets_the_secrets_that_are_allowed_to_it(world, key, allowed, works):
    world_settings, broker, topic = world
    listed = world_settings.model_copy(update={"allowed_secrets": allowed})
    given = {**with_secret(key), "port": 3306}
    planned = plan(script("mysql-cdc", given, broker, topic))
    secrets = SecretResolver.of(listed, None)
    if works:
        assert resolve_secrets(planned, secrets)
        return
    with pytest.raises(NotAllowedError, match='secret "canary" is not allowed to server') as caught:
        resolve_secrets(planned, secrets)
    assert "SLUICE_ALLOWED_SECRETS" in caught.value.hint


def test_every_broker_of_a_list_must_be_allowed(world):
    world_settings, _, topic = world
    listed = world_settings.model_copy(update={"allowed_secrets": "canary@a:1"})
    given = {**KAFKA, **with_secret("properties.sasl.password")}
    for servers, works in (("a:1", True), ("a:1,b:2", False), ("a:1, b:2", False)):
        options = {**given, "properties.bootstrap.servers": servers}
        planned = plan(script("kafka", options, "c:3", topic))
        secrets = SecretResolver.of(listed, None)
        if works:
            resolve_secrets(planned, secrets)
            continue
        with pytest.raises(NotAllowedError):
            resolve_secrets(planned, secrets)
