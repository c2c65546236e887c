"""Connections: TLS as the table asks, no password for those who listen, one server for one copy."""

import ast
import socket
import ssl
import struct
import time
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

import joins
from joins.adapters.mysql.charsets import server_charsets
from joins.adapters.mysql.chunks import Chunk, chunk_bounds, read_chunk
from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    SafeConnection,
    connected,
    open_connection,
    rows,
    translated,
)
from joins.adapters.mysql.events.transactions import FileOpened
from joins.adapters.mysql.position import (
    binlog_still_has,
    same_history,
    server_identity,
    take_high,
    take_low,
)
from joins.adapters.mysql.source import check_source, choose_server_id, estimate_rows
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.adapters.mysql.text import result_columns
from joins.adapters.network import within
from joins.plan.errors import (
    ServerChangedError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import Field, MysqlTls, TlsMode
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.certificates import self_signed
from tests.support.sockets import balanced, listening
from tests.support.sql import new_schema, run_sql

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("v", SqlType(TypeName.STRING)))
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))"
GRANTS = "SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"
PASSWORD = "k4n4r13nv0g3l"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory, processes):
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory, processes):
    return self_signed(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def with_tls(tmp_path_factory, database_home, certificate):
    """Another server than the shared one; it offers TLS."""
    cert, key = (str(path) for path in certificate)
    options = {"ssl": "ON", "ssl-cert": cert, "ssl-key": key, "ssl-ca": cert, "server-id": "2"}
    place = tmp_path_factory.mktemp("tls") / "db"
    with MariaDb(place, database_home, DatabaseSettings(options=options)) as database:
        yield database


@pytest.fixture(scope="module")
def accounts(mariadb, with_tls):
    """Accounts of one name and password on both servers: any, over TLS, with a certificate."""
    asking = {"any": "NONE", "ssl": "SSL", "x509": "X509"}
    for database in (mariadb, with_tls):
        for name, requirement in asking.items():
            user = f"balanced_{name}@'127.0.0.1'"
            run_sql(
                database,
                f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}' REQUIRE {requirement}",
                f"GRANT {GRANTS} ON *.* TO {user}",
            )
    yield {name: f"balanced_{name}" for name in asking}
    for name in asking:
        run_sql(mariadb, f"DROP USER balanced_{name}@'127.0.0.1'")


def config_of(port, user, schema="mysql", **more):
    return MysqlConnectionConfig("127.0.0.1", port, user, PASSWORD, schema, "t", **more)


WAITS = {"wait_timeout": 28_800, "net_write_timeout": 60, "idle_transaction_timeout": 0}


@pytest.fixture
def impatient(with_tls):
    """A server that ends a session which reads nothing, or says nothing, for a second."""
    run_sql(with_tls, *(f"SET GLOBAL {name} = 1" for name in WAITS))
    yield with_tls
    run_sql(with_tls, *(f"SET GLOBAL {name} = {value}" for name, value in WAITS.items()))


def test_a_session_that_is_slow_or_idle_is_not_ended(impatient, accounts):
    with connected(config_of(impatient.port, accounts["any"])) as connection:
        wide = "SELECT seq, REPEAT('x', 4000) FROM mysql.seq_1_to_20000"
        pieces = result_columns(connection, wide, 2)
        count = len(next(pieces)[0])
        time.sleep(3)
        assert count + sum(len(piece[0]) for piece in pieces) == 20_000
        rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        rows(connection, "SELECT * FROM mysql.seq_1_to_2")
        time.sleep(3)
        assert rows(connection, "SELECT 1") == [(1,)]


def test_a_table_of_any_size_is_read(with_tls, accounts):
    """A server may refuse a SELECT that reads more rows than it says."""
    run_sql(with_tls, "SET GLOBAL max_join_size = 10")
    try:
        with connected(config_of(with_tls.port, accounts["any"])) as connection:
            assert (
                len(rows(connection, "SELECT seq FROM mysql.seq_1_to_1000 WHERE seq + 0")) == 1000
            )
    finally:
        run_sql(with_tls, "SET GLOBAL max_join_size = DEFAULT")


def test_a_lock_that_is_not_released_is_named_and_not_the_server(mariadb, accounts):
    with (
        new_schema(mariadb, TABLE) as schema,
        mariadb.connect() as locking,
        locking.cursor() as cursor,
    ):
        cursor.execute(f"LOCK TABLES {schema}.t WRITE")
        with (
            pytest.raises(SourceUnavailableError, match="refuses for now: Lock wait") as error,
            connected(config_of(mariadb.port, accounts["any"], schema)) as connection,
        ):
            rows(connection, f"SET STATEMENT lock_wait_timeout = 1 FOR SELECT * FROM {schema}.t")
        assert "SHOW FULL PROCESSLIST" in error.value.hint


def test_an_account_whose_connections_are_limited_is_waited_for(mariadb):
    user = "limited@'127.0.0.1'"
    limit = "WITH MAX_USER_CONNECTIONS 1"
    run_sql(mariadb, f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}' {limit}")
    try:
        with (
            connected(config_of(mariadb.port, "limited")),
            pytest.raises(SourceUnavailableError, match=r"for now.*max_user_connections") as error,
            connected(config_of(mariadb.port, "limited")),
        ):
            pass
        assert "of the account" in error.value.hint
    finally:
        run_sql(mariadb, f"DROP USER {user}")


OF_A_WHILE = {
    "too_many_of_one_user": (1203, "User x already has more than 'max_user_connections' active"),
    "node_that_joins": (1047, "WSREP has not yet prepared node for application use"),
    "offline": (3032, "The server is currently in offline mode"),
    "killed_query": (1317, "Query execution was interrupted"),
}


@pytest.mark.parametrize("answer", OF_A_WHILE.values(), ids=OF_A_WHILE)
def test_what_a_server_refuses_for_a_while_is_no_fault_of_the_table(answer):
    error = translated(config_of(1, "x"), pymysql.err.OperationalError(*answer))
    assert isinstance(error, SourceUnavailableError)
    assert answer[1] in error.message
    assert "retries" in error.hint


# TLS
# --------------------------------------------------------------------------------------------------


def tls(mode, certificate, *, own=None):
    ca = certificate[0].read_text() if mode.startswith("verify") else None
    cert, key = (None, None) if own is None else (path.read_text() for path in own)
    return MysqlTls(TlsMode(mode), ca=ca, cert=cert, key=key)


def cipher(config):
    with connected(config) as connection:
        return rows(connection, "SHOW STATUS LIKE 'Ssl_cipher'")[0][1]


def test_rows_come_over_tls_as_they_are(with_tls, accounts):
    config = config_of(with_tls.port, accounts["ssl"], tls=MysqlTls(TlsMode.REQUIRED))
    statement = "SELECT seq, REPEAT('é', seq % 300) FROM mysql.seq_1_to_30000"
    with connected(config) as connection:
        pieces = list(result_columns(connection, statement, 2))
        assert rows(connection, "SELECT 1") == [(1,)]
    assert [n for piece in pieces for n in piece[0].to_pylist()] == [
        b"%d" % n for n in range(1, 30_001)
    ]
    texts = (text for piece in pieces for text in piece[1].to_pylist())
    assert all(text.decode() == "é" * (n % 300) for n, text in enumerate(texts, 1))


@pytest.mark.parametrize("mode", TlsMode)
def test_a_server_with_tls_is_spoken_to_as_the_mode_says(with_tls, accounts, certificate, mode):
    found = cipher(config_of(with_tls.port, accounts["any"], tls=tls(mode, certificate)))
    assert bool(found) == (mode is not TlsMode.DISABLED)


@pytest.mark.parametrize("mode", [TlsMode.DISABLED, TlsMode.PREFERRED])
def test_a_server_without_tls_serves_those_who_do_not_insist(mariadb, accounts, certificate, mode):
    assert not cipher(config_of(mariadb.port, accounts["any"], tls=tls(mode, certificate)))


@pytest.mark.parametrize("mode", ["required", "verify_ca", "verify_identity"])
def test_a_server_without_tls_is_refused_by_those_who_insist(mariadb, accounts, certificate, mode):
    with pytest.raises(SourceError, match="does not offer TLS") as caught:
        cipher(config_of(mariadb.port, accounts["any"], tls=tls(mode, certificate)))
    assert "database.ssl" in caught.value.hint


@pytest.mark.parametrize("mode", ["verify_ca", "verify_identity"])
def test_a_certificate_of_another_authority_is_refused(with_tls, accounts, stranger, mode):
    with pytest.raises(SourceError, match=r"does not offer TLS.*certificate verify failed"):
        cipher(config_of(with_tls.port, accounts["any"], tls=tls(mode, stranger)))


def test_a_certificate_of_another_host_is_refused_where_the_identity_counts(
    with_tls, accounts, certificate
):
    config = config_of(with_tls.port, accounts["any"])
    elsewhere = replace(config, hostname="localhost")
    assert cipher(replace(elsewhere, tls=tls("verify_ca", certificate)))
    with pytest.raises(SourceError, match="certificate verify failed"):
        cipher(replace(elsewhere, tls=tls("verify_identity", certificate)))


def test_an_account_may_ask_for_our_certificate(with_tls, accounts, certificate):
    config = config_of(with_tls.port, accounts["x509"], tls=tls("verify_ca", certificate))
    with pytest.raises(SourceError, match="refused user"):
        cipher(config)
    assert cipher(replace(config, tls=tls("verify_ca", certificate, own=certificate)))


NO_PEM = {
    "ca": {"ca": "no certificate"},
    "cert": {"cert": "no certificate", "key": "no key"},
    "key": {"key": "no key"},
}


@pytest.mark.parametrize("wrong", NO_PEM.values(), ids=NO_PEM)
def test_what_is_no_certificate_is_an_error_that_does_not_repeat_it(certificate, wrong):
    given = tls("verify_ca", certificate, own=certificate)
    with pytest.raises(SourceError, match="cannot be used") as caught:
        open_connection(config_of(1, "any", tls=replace(given, **wrong)))
    assert "no key" not in caught.value.message


def test_the_binlog_is_streamed_over_tls_too(with_tls, accounts, certificate):
    with new_schema(with_tls, TABLE) as schema:
        config = config_of(
            with_tls.port, accounts["ssl"], schema, tls=tls("verify_identity", certificate)
        )
        table, low = check_source(config, FIELDS, ("id",)), take_low(config, 0)
        place = StreamStart(choose_server_id(config), low.file_name, low.position.pos)
        assert opened_file(config, table, place)


def test_connections_of_one_mode_share_its_context(mariadb, accounts):
    config = config_of(mariadb.port, accounts["any"])
    with connected(config) as first, connected(config) as second:
        assert first.ctx is second.ctx


# Passwords
# --------------------------------------------------------------------------------------------------

_PROTOCOL, _TLS, _SECURE, _PLUGINS = 0x200, 0x800, 0x8000, 0x80000


def packet(number, payload):
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def greeting(plugin, offers=0):
    """The first packet of a server that proposes `plugin`, and `offers` more of capabilities."""
    capabilities = _PROTOCOL | _SECURE | _PLUGINS | offers
    salt = b"12345678901234567890"
    low, high = struct.pack("<H", capabilities & 0xFFFF), struct.pack("<H", capabilities >> 16)
    head = b"\x0a8.0.0\0" + struct.pack("<I", 1) + salt[:8] + b"\0" + low + b"\x2d\x02\0" + high
    return packet(0, head + b"\x15" + bytes(10) + salt[8:] + b"\0" + plugin + b"\0")


KEY = b"-----BEGIN PUBLIC KEY-----\nMFwwDQ==\n-----END PUBLIC KEY-----\n"
FULL = b"\x01\x04"
SWITCHES = {
    "clear": [b"\xfemysql_clear_password\0"],
    "dialog": [b"\xfedialog\0\x05Password: "],
    "old": [b"\xfemysql_old_password\x0012345678\0"],
    "unknown": [b"\xfeone_of_the_future\0"],
    "sha256": [b"\xfesha256_password\0" + b"1" * 20 + b"\0", b"\x01" + KEY],
    "full_after_a_switch": [
        b"\xfecaching_sha2_password\0" + b"1" * 20 + b"\0",
        FULL,
        b"\x01" + KEY,
    ],
    "full": [FULL, b"\x01" + KEY],
}


PROPOSED = {
    f"{name}_behind_{plugin}": (f"{plugin}_password".encode(), answers)
    for name, answers in SWITCHES.items()
    for plugin in ("mysql_native", "caching_sha2")
    if answers[0] != FULL or plugin == "caching_sha2"
}


@pytest.mark.parametrize(("proposed", "answers"), PROPOSED.values(), ids=PROPOSED)
def test_no_server_gets_the_password_over_a_plain_connection(proposed, answers):
    heard = []

    def ask(client, _):
        client.sendall(greeting(proposed))
        heard.append(client.recv(4096))
        for answer in answers:
            if not heard[-1]:
                break
            client.sendall(packet(heard[-1][3] + 1, answer))
            heard.append(client.recv(4096))

    with listening(ask) as port, pytest.raises(SourceError, match="asks for the password") as told:
        open_connection(config_of(port, "somebody"))
    assert "database.ssl.mode" in told.value.hint
    assert heard
    assert not any(PASSWORD.encode() in data for data in heard)


@pytest.mark.parametrize("mode", [TlsMode.PREFERRED, TlsMode.REQUIRED])
def test_a_server_that_falls_silent_in_the_handshake_of_tls_is_waited_for_as_any_other(mode):
    def ask(client, _):
        client.sendall(greeting(b"mysql_native_password", _TLS))
        while client.recv(4096):
            pass

    with (
        listening(ask) as port,
        within(0.5),
        pytest.raises(SourceUnavailableError),
        connected(config_of(port, "somebody", tls=MysqlTls(mode))),
    ):
        pass


def test_a_connection_that_is_cut_in_the_handshake_of_tls_is_read_no_further(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    opened = []

    def ask(client, _):
        client.sendall(greeting(b"mysql_native_password", _TLS))
        client.recv(36)  # that it wants TLS
        client.recv(1, socket.MSG_PEEK)  # it has begun
        opened[0].cut()
        with context.wrap_socket(client, server_side=True) as over_tls:
            over_tls.sendall(packet(3, b"\xff\x15\x04#28000who are you"))
            while over_tls.recv(4096):
                pass

    with listening(ask) as port:
        opened.append(SafeConnection(host="127.0.0.1", port=port, user="u", defer_connect=True))
        with pytest.raises(pymysql.err.OperationalError, match="was cut"):
            opened[0].connect()


# One server
# --------------------------------------------------------------------------------------------------


def opened_file(config, table, start):
    stream = BinlogStream(config, table, start)
    try:
        return next(event for event in stream.events() if isinstance(event, FileOpened))
    finally:
        stream.close()


@pytest.fixture(scope="module")
def copied(mariadb, accounts):
    """(configuration, table, LOW) of a copy that has begun; the configuration is of its server."""
    with new_schema(mariadb, TABLE) as schema:
        config = config_of(mariadb.port, accounts["any"], schema)
        config = config.of_server(server_identity(config))
        yield config, check_source(config, FIELDS, ("id",)), take_low(config, 0)


def start_of(low):
    return StreamStart(4_000_000, low.file_name, low.position.pos)


QUESTIONS = {
    "check_source": lambda c, t, low: check_source(c, FIELDS, ("id",)),
    "choose_server_id": lambda c, t, low: choose_server_id(c),
    "estimate_rows": lambda c, t, low: estimate_rows(c),
    "take_low": lambda c, t, low: take_low(c, 0),
    "take_high": lambda c, t, low: take_high(c, 0),
    "binlog_still_has": lambda c, t, low: binlog_still_has(c, low),
    "same_history": lambda c, t, low: same_history(c, low),
    "server_charsets": lambda c, t, low: server_charsets(c),
    "chunk_bounds": lambda c, t, low: list(chunk_bounds(c, t, rows_each=1)),
    "read_chunk": lambda c, t, low: list(read_chunk(c, t, Chunk(None, None))),
    "stream": lambda c, t, low: opened_file(c, t, start_of(low)),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_whatever_is_asked_of_another_server_is_not_answered(copied, question):
    config, table, low = copied
    question(config, table, low)
    restored = replace(config.identity, server_uid="restored-elsewhere")
    with pytest.raises(ServerChangedError, match="is another one"):
        question(config.of_server(restored), table, low)


@pytest.mark.parametrize("astray", range(3))
def test_a_stream_is_of_one_server_whichever_connection_goes_astray(copied, with_tls, astray):
    config, table, low = copied
    made = []

    def port_of(number):
        made.append(number)
        return with_tls.port if number == astray else config.port

    with balanced(port_of) as port:
        with pytest.raises(ServerChangedError, match=r"server id 2, .* than the one that we read"):
            opened_file(replace(config, port=port), table, start_of(low))
        assert made == list(range(astray + 1))
    with balanced(lambda number: config.port) as port:
        assert opened_file(replace(config, port=port), table, start_of(low))


def test_connections_are_made_in_one_place():
    """So that each is compared, speaks TLS and keeps its password."""
    makers = {"connect", "Connection", "SafeConnection"}
    for path in (Path(joins.__file__).parent).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        calls = any(f"{maker}(" in text for maker in makers)
        for node in ast.walk(ast.parse(text)) if calls else ():
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            owner = getattr(getattr(node.func, "value", None), "id", "")
            of_pymysql = name in makers and owner in ("", "pymysql")
            assert not of_pymysql or path.parts[-2:] == ("mysql", "connection.py"), path
