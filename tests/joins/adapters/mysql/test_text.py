"""Packets of a result as columns: as PyMySQL reads them, wherever the network has cut them."""

import contextlib
import struct

import pyarrow as pa
import pymysql
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysql.constants import CR, ER

from joins.adapters.mysql.connection import MysqlConnectionConfig, open_connection, rows
from joins.adapters.mysql.table import in_zone
from joins.adapters.mysql.text import result_columns, row_pieces
from tests.support.laws import examples

LARGEST = (1 << 24) - 1
EOF = b"\xfe\0\0\2\0"
SHUTDOWN = b"\xff\x1d\x04#08S01Server shutdown"
# What stands beside the borders of a length's forms, and what looks like something else.
VALUE = (
    st.none()
    | st.binary(max_size=3)
    | st.sampled_from([249, 250, 251, 252, 253, 65_535, 65_536]).map(lambda n: b"\xfe" * n)
    | st.sampled_from([b"\xfb", b"\xff", b"\xfe", b"\0"])
)
TABLES = st.integers(1, 4).flatmap(
    lambda columns: st.lists(st.tuples(*[VALUE] * columns), max_size=8)
)


def length_of(value):
    size = len(value)
    if size < 251:
        return bytes([size])
    if size < 1 << 16:
        return b"\xfc" + struct.pack("<H", size)
    if size < 1 << 24:
        return b"\xfd" + struct.pack("<I", size)[:3]
    return b"\xfe" + struct.pack("<Q", size)


def payload(row):
    return b"".join(b"\xfb" if v is None else length_of(v) + v for v in row)


def packets(payloads, sequence=0):
    """As a server writes them: one of 16 MiB less 1 byte goes on in the next one."""
    out = []
    for each in payloads:
        parts = [each[at : at + LARGEST] for at in range(0, len(each) + 1, LARGEST)]
        for part in parts:
            out += [struct.pack("<I", len(part))[:3], bytes([sequence % 256]), part]
            sequence += 1
    return b"".join(out)


def reading(data, cuts=(1 << 30,)):
    """What gives `data` in parts of such sizes, in turn; nothing comes behind it."""
    at, turn = 0, 0

    def read(view):
        nonlocal at, turn
        count = min(len(view), cuts[turn % len(cuts)], len(data) - at)
        assert count > 0, "more is read than there is"
        view[:count] = data[at : at + count]
        at, turn = at + count, turn + 1
        return count

    return read


def read_all(data, columns, *, sequence=0, cuts=(1 << 30,)):
    pieces = row_pieces(reading(data, cuts), sequence, columns)
    return [row for piece in pieces for row in zip(*(c.to_pylist() for c in piece), strict=True)]


@given(TABLES, st.integers(0, 255), st.lists(st.integers(1, 70_000), min_size=1, max_size=4))
@settings(max_examples=examples(400))
def test_rows_are_what_was_written_however_they_come(table, sequence, cuts):
    columns = len(table[0]) if table else 2
    data = packets([*map(payload, table), EOF], sequence)
    assert read_all(data, columns, sequence=sequence, cuts=(*cuts, 50_000)) == table


@given(TABLES, st.integers(0, 1 << 20), st.integers(0, 255))
@settings(max_examples=examples(400))
def test_damaged_packets_are_errors_or_rows_and_never_read_beyond(table, place, byte):
    data = bytearray(packets([*map(payload, table), EOF]))
    data[place % len(data)] = byte
    columns = len(table[0]) if table else 2
    short = reading(bytes(data))

    def read(view):
        try:
            return short(view)
        except AssertionError:
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, "nothing comes") from None

    with contextlib.suppress(pymysql.err.MySQLError):
        for piece in row_pieces(read, 0, columns):
            for column in piece:
                column.validate(full=True)


@pytest.mark.parametrize("size", [LARGEST - 10, LARGEST - 6, LARGEST - 5, LARGEST, 2 * LARGEST])
def test_a_row_may_be_larger_than_a_packet(size):
    large = (b"%d;" % size) * (size // 9 + 1)
    table = [(b"before", None), (large[:size], b"behind it"), (None, b"after")]
    data = packets([*map(payload, table), EOF], 254)
    assert read_all(data, 2, sequence=254, cuts=(100_000,)) == table


def test_more_rows_than_a_piece_has_come_in_several():
    table = [(b"%d" % n,) for n in range(25_000)]
    data = packets([*map(payload, table), EOF])
    sizes = [len(piece[0]) for piece in row_pieces(reading(data), 0, 1)]
    assert len(sizes) == 3
    assert sum(sizes) == 25_000
    assert read_all(data, 1) == table


def test_an_error_behind_rows_is_raised_when_they_are_read():
    pieces = row_pieces(reading(packets([payload((b"1",)), SHUTDOWN])), 0, 1)
    assert next(pieces)[0].to_pylist() == [b"1"]
    with pytest.raises(pymysql.err.OperationalError) as raised:
        next(pieces)
    assert raised.value.args == (ER.SERVER_SHUTDOWN, "Server shutdown")


def test_a_packet_with_number_0_is_the_end_of_the_server():
    data = packets([payload((b"1",))], 7) + packets([SHUTDOWN])
    with pytest.raises(pymysql.err.OperationalError) as raised:
        read_all(data, 1, sequence=7)
    assert raised.value.args[0] == CR.CR_SERVER_LOST


DAMAGED = {
    "wrong_number": packets([payload((b"1",))], 3),
    "value_beyond_the_packet": packets([b"\x05abc"]),
    "length_beyond_the_packet": packets([b"\xfc\x01"]),
    "negative_length": packets([b"\xfe" + b"\xff" * 8]),
    "column_missing": packets([b"\x01a", EOF]),
    "column_too_many": packets([b"\x01a\x01b\x01c"]),
    "no_length": packets([b"\x01a\xff" + b"b" * 300]),
    "nothing": packets([b""]),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_row_is_refused(data):
    with pytest.raises(pymysql.err.InternalError, match="damaged"):
        read_all(data, 2)


# On a server
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def config(mariadb):
    return MysqlConnectionConfig(
        "127.0.0.1", mariadb.port, mariadb.cdc_user, mariadb.cdc_password, "mysql", "t"
    )


def selected(config, statement, columns):
    connection = open_connection(config)
    try:
        return [
            row
            for piece in result_columns(connection, statement, columns)
            for row in zip(*(c.to_pylist() for c in piece), strict=True)
        ]
    finally:
        connection.close()


MANY = (
    "SELECT seq, IF(seq % 3, CONCAT('é', seq), NULL), REPEAT('x', seq % 600), UNHEX(HEX(seq)), "
    "seq / 7, NOW(6) - INTERVAL seq MICROSECOND, b'101' FROM mysql.seq_1_to_30000"
)


def test_rows_are_those_that_pymysql_reads(config):
    connection = open_connection(config)
    try:
        connection.query("SET @@timestamp = 1790000000")
        theirs = open_connection(config, use_unicode=False, conv={})
        theirs.query("SET @@timestamp = 1790000000")
        ours = [
            row
            for piece in result_columns(connection, MANY, 7)
            for row in zip(*(c.to_pylist() for c in piece), strict=True)
        ]
        assert ours == rows(theirs, MANY)
        assert rows(connection, "SELECT 1") == [(1,)], "the connection goes on"
        theirs.close()
    finally:
        connection.close()


def test_an_empty_result_has_no_piece(config):
    assert selected(config, "SELECT 1, 2 FROM DUAL WHERE FALSE", 2) == []


def test_a_value_of_many_packets_comes_whole(config):
    connection = open_connection(config)
    try:
        (limit,) = rows(connection, "SELECT @@max_allowed_packet")[0]
        statement = f"SELECT REPEAT('ab', {min(limit, 40 << 20) // 2}), 'behind'"
        ((large, behind),) = [
            tuple(c[0].as_py() for c in piece) for piece in result_columns(connection, statement, 2)
        ]
    finally:
        connection.close()
    assert large == b"ab" * (len(large) // 2)
    assert len(large) == min(limit, 40 << 20) // 2 * 2
    assert behind == b"behind"


def test_an_error_in_the_middle_of_a_result_is_the_servers(config):
    statement = (
        "SELECT IF(seq < 20000, seq, (SELECT seq FROM mysql.seq_1_to_2)) FROM mysql.seq_1_to_30000"
    )
    with pytest.raises(pymysql.err.OperationalError) as raised:
        selected(config, statement, 1)
    assert raised.value.args[0] == ER.SUBQUERY_NO_1_ROW


def test_a_result_that_is_left_ends_the_connection(config):
    connection = open_connection(config)
    pieces = result_columns(connection, MANY, 7)
    next(pieces)
    pieces.close()
    with pytest.raises(pymysql.err.MySQLError):
        rows(connection, "SELECT 1")
    connection.close()


def test_a_connection_that_is_cut_says_so(config):
    connection = open_connection(config)
    pieces = result_columns(connection, MANY, 7)
    next(pieces)
    connection.cut()
    with pytest.raises(pymysql.err.OperationalError) as raised:
        list(pieces)
    assert raised.value.args[0] == CR.CR_SERVER_LOST
    connection.close()


ZONES = {
    "east": ("Asia/Shanghai", "2026-07-01T14:07:08.900000Z"),
    "summer": ("Europe/Berlin", "2026-07-01T08:07:08.900000Z"),
    "offset": ("-03:30", "2026-07-01T02:37:08.900000Z"),
}


@pytest.mark.parametrize(("zone", "expected"), ZONES.values(), ids=ZONES)
def test_an_instant_is_moved_to_the_clock_of_the_servers_time_zone(zone, expected):
    instants = pa.array(["2026-07-01T06:07:08.9Z", None])
    assert in_zone(instants, zone).to_pylist() == [expected, None]
    assert in_zone(instants, "UTC") is instants
