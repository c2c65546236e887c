"""Compressed events and transactions are what they are uncompressed, or are refused."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql.events import compressed as codec
from joins.adapters.mysql.events.row_events import PARTIAL_JSON
from joins.adapters.mysql.events.transactions import Begin, Boundary, RowImages
from joins.plan.errors import SnapshotNeededError
from tests.support import binlogs
from tests.support.binlogs import DELETE, GTID, PAYLOAD, QUERY, TABLE_MAP, UPDATE, WRITE, XID
from tests.support.laws import examples

END = 4_096
# By MySQL's documentation of Transaction_payload_event: the fields of the algorithm (zstd), of the
# size without and with it, an end, and in a frame of zstd the events BEGIN, table map of d.t, rows
# (1, 'a') and XID, without checksums.
INSERTED = bytes.fromhex(
    "020100" "0301a3" "010171" "00"
    "28b52ffd20a3450300f28513209029690cc7feffffffffff680f86004d311ac3"
    "20ebc2957827c3f80aed6f99027fc2e12ba0934600b5980f814e4a5923a9c0c2ac6eb5ac32a8936d7602"
    "c567402785381a8cc5e63e9ef80a9d340900508baf91c31806d2abe603712b55bb7201182c0075"
)  # fmt: skip


def transaction(*changes):
    """The events of a transaction on d.t, behind that of its GTID."""
    yield QUERY, binlogs.query("BEGIN")
    for kind, images in changes:
        yield TABLE_MAP, binlogs.table_map()
        yield kind, binlogs.rows(kind, images)
    yield XID, struct.pack("<Q", 9)


def plain(events, at=0):
    *some, last = (binlogs.event(kind, body) for kind, body in events)
    return [begun(at), *some, last[:13] + struct.pack("<I", END + at) + last[17:]]


def begun(at=0):
    return binlogs.event(GTID, binlogs.gtid(5), 200 + at)


def in_one(events, at=0, **options):
    inside = [binlogs.event(kind, body, 77) for kind, body in events]
    return [begun(at), binlogs.event(PAYLOAD, binlogs.payload(inside, **options), END + at)]


def one_by_one(events):
    """As MariaDB compresses them."""
    return plain(
        binlogs.compressed(kind, body) if kind in (2, 23, 24, 25, 30, 31, 32) else (kind, body)
        for kind, body in events
    )


def shown(events):
    """Each event of a stream by its content."""
    return [
        (told.op, told.changes()) if isinstance(told, RowImages) else told
        for told in binlogs.told(events)
    ]


def test_a_transaction_of_mysql_is_read_as_its_events():
    written = [begun(), binlogs.event(PAYLOAD, INSERTED, END)]
    begin = Begin(1, 200 - len(begun()) - 4)
    assert shown(written) == [begin, ("c", [(None, [1, "a"])]), Boundary(1, END)]


@pytest.mark.parametrize("algorithm", [binlogs.ZSTD, binlogs.NONE, None])
def test_a_transaction_is_read_by_its_algorithm(algorithm):
    events = list(transaction((WRITE, [(1, "é" * 5_000)]), (DELETE, [(1, "é" * 5_000)])))
    assert shown(in_one(events, algorithm=algorithm)) == shown(plain(events))


CHANGES = st.one_of(
    st.tuples(st.sampled_from([WRITE, DELETE, 23, 25]), st.integers(1, 4)),
    st.tuples(st.sampled_from([UPDATE, 24]), st.sampled_from([2, 4])),
)
TEXTS = st.one_of(st.text(max_size=40), st.integers(0, 70_000).map(lambda count: "x" * count))


@st.composite
def changes(draw):
    made = draw(st.lists(CHANGES, max_size=4))
    row = st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS)
    return [(kind, draw(st.lists(row, min_size=n, max_size=n))) for kind, n in made]


@settings(max_examples=examples(100))
@given(changes())
def test_a_compressed_transaction_is_what_it_is_uncompressed(changed):
    events = list(transaction(*changed))
    expected = shown(plain(events))
    assert shown(in_one(events)) == expected
    assert shown(one_by_one(events)) == expected


@pytest.mark.parametrize("kind", [23, WRITE])
@pytest.mark.parametrize("size", [255, 256, 65_535, 65_536, (1 << 24) - 1, 1 << 24])
def test_a_length_of_one_to_four_bytes_is_read(kind, size):
    row = (1, "x" * (size - 13))  # the rest is a row's NULLs, its id and its text's length
    events = list(transaction((kind, [row])))
    assert shown(one_by_one(events)) == shown(plain(events))


def test_a_compressed_statement_is_judged_as_any_other():
    sql = "TRUNCATE TABLE t /* " + "é" * 300 + " */"
    events = [(QUERY, binlogs.query(sql))]
    assert shown(one_by_one(events)) == shown(plain(events))
    assert shown(one_by_one(events))[1].text == sql


def test_memory_is_limited_by_an_event_and_not_by_its_transaction(monkeypatch):
    monkeypatch.setattr(codec, "MOST_EVENT_BYTES", 10_000)
    events = list(transaction(*[(WRITE, [(i, "x" * 9_000)]) for i in range(20)]))
    assert shown(in_one(events)) == shown(plain(events))
    one_is_large = list(transaction((WRITE, [(1, "x" * 10_000)])))
    for way in (in_one, one_by_one):
        with pytest.raises(SnapshotNeededError, match=r"more than the 10000 of the largest packet"):
            shown(way(one_is_large))


def payload_of(*fields, data=b""):
    head = b"".join(
        binlogs.packed(kind) + binlogs.packed(len(value)) + value for kind, value in fields
    )
    return [begun(), binlogs.event(PAYLOAD, head + b"\0" + data, END)]


def statement_of(data):
    return [begun(), binlogs.event(165, binlogs.query("") + data, END)]


DATA = zlib.compress(b"TRUNCATE t")
REFUSED = {
    "algorithm_of_a_transaction": (payload_of((2, b"\1"), (1, b"\0")), "algorithm 1"),
    "field": (payload_of((4, b"\0"), (1, b"\0")), "field 4, which is not known"),
    "field_twice": (payload_of((1, b"\0"), (1, b"\0")), "field 1"),
    "long_field": (payload_of((1, b"\0\0")), "field 1 of a compressed transaction is too long"),
    "no_size": (payload_of((2, b"\0")), "declares no bytes"),
    "size_of_the_data": (payload_of((1, b"\5"), data=b"ab"), "declares 5 bytes, and has 2"),
    "no_end": ([begun(), binlogs.event(PAYLOAD, b"\1\1\0", END)], "1 bytes are expected"),
    "no_zstd": (payload_of((2, b"\0"), (1, b"\3"), data=b"abc"), "cannot be uncompressed"),
    "header_without_event": (
        payload_of((1, b"\x13"), data=binlogs.event(XID, b"12345678")[:19]),
        "ends within an event",
    ),
    "no_header": (payload_of((1, b"\x03"), data=b"abc"), "ends within an event"),
    "length_of_an_event": (payload_of((1, b"\x13"), data=b"\0" * 19), "has 0 bytes"),
    "no_compression": (statement_of(b"\0" + DATA), "begins with 0x00"),
    "no_length": (statement_of(b"\x80" + DATA), "begins with 0x80"),
    "long_length": (statement_of(b"\x85\0\0\0\0\x0a" + DATA), "begins with 0x85"),
    "algorithm_of_an_event": (statement_of(b"\xa1\x0a" + DATA), "algorithm 2"),
    "more_than_declared": (statement_of(b"\x81\x09" + DATA), "has not the 9 bytes"),
    "less_than_declared": (statement_of(b"\x81\x0b" + DATA), "has not the 11 bytes"),
    "cut": (statement_of(b"\x81\x0a" + DATA[:-3]), "has not the 10 bytes"),
    "no_zlib": (statement_of(b"\x81\x0aabc"), "cannot be uncompressed"),
    "nothing": (statement_of(b""), "1 bytes are expected"),
    "large": (statement_of(b"\x84\x40\0\0\1" + DATA), "1073741825 bytes"),
    "uncompressed_size": (in_one([(XID, b"12345678")], size=28), "28 bytes was uncompressed to 27"),
    **{
        f"type_{kind}_inside": (in_one([(kind, b"\0" * 30)]), f"has an event of type {kind}")
        for kind in (4, 15, 33, 34, PAYLOAD, 42, 162)
    },
    "unknown_type_inside": (in_one([(199, b"")]), "type 199, which is not known"),
    "partial_json_without_its_table": (in_one([(39, b"\0" * 30)]), "was not described before"),
}


@pytest.mark.parametrize(("events", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_as_documented_is_refused(events, text):
    with pytest.raises(SnapshotNeededError, match=text) as caught:
        shown(events)
    assert "copied again" in caught.value.hint


def test_partial_updates_of_other_tables_are_none_of_ours():
    before, behind = transaction((WRITE, [(1, "a")])), transaction((DELETE, [(1, "a")]))
    of_u = [
        (QUERY, binlogs.query("BEGIN")),
        (TABLE_MAP, binlogs.table_map("u")),
        (PARTIAL_JSON, binlogs.rows(PARTIAL_JSON, [(1, "a"), (1, "b")])),  # without their options
        (XID, struct.pack("<Q", 9)),
    ]
    other = plain(of_u, 10_000)
    events = [*plain(list(before)), *other, *in_one(list(behind), 20_000)]
    rows = [told for told in shown(events) if isinstance(told, tuple)]
    assert rows == [("c", [(None, [1, "a"])]), ("d", [([1, "a"], None)])]


@settings(max_examples=examples(50))
@given(changes(), st.data())
def test_a_transaction_that_is_cut_is_refused(changed, data):
    inside = [binlogs.event(kind, body) for kind, body in transaction(*changed)]
    body = binlogs.payload(inside)
    end = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ValueError, match=r"byte|begin|event"):
        list(codec.payload_events(body[:end]))
