"""Table maps and row images by their bytes: what is not as the format says is never a row."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql.charsets import Charsets
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.events.row_events import (
    VECTOR,
    Fragments,
    RowsEvent,
    rows_event,
    table_map,
)
from joins.adapters.mysql.events.transactions import RowImages
from joins.adapters.mysql.row_images import RowDecoder
from joins.adapters.mysql.table import CapturedTable, ServerColumn, capture
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.laws import examples

CHARSETS = Charsets(
    MysqlConnectionConfig("nowhere", 1, "nobody", "", "x", "h2"),
    {8: "latin1", 45: "utf8mb4", 63: "binary"},
)
INT, TEXT = SqlType(TypeName.INT), SqlType(TypeName.STRING)
INT_COLUMN = ServerColumn("w", "int", "int(11)", 10, 0, None)
TEXT_COLUMN = ServerColumn("v", "text", "text", 0, 0, "utf8mb4")
ID_COLUMN = ServerColumn("id", "int", "int(11)", 10, 0, None)
TABLE = CapturedTable(
    "x",
    "h2",
    capture(
        "x.h2",
        (Field("id", INT), Field("v", TEXT), Field("w", INT)),
        [ID_COLUMN, TEXT_COLUMN, INT_COLUMN],
    ),
    ("id",),
)
# As MariaDB 11.4.5 wrote them: h2(id INT PRIMARY KEY, v TEXT, w INT, UNIQUE (v)), whose hash of v
# is a hidden column; INSERT (1, 'a', 5), then UPDATE h2 SET w = 7 by a session with FULL_NODUP.
HASHED = bytes.fromhex(
    "2500000000000100" "0178" "00" "026832" "00" "04" "03fc0308" "01" "02" "0e"
    "010120" "02012d" "0415" "026964" "0176" "0177" "0d44425f524f575f484153485f31" "080100"
)  # fmt: skip
INSERTED = bytes.fromhex(
    "2500000000000100" "04" "0f" "f0" "01000000" "010061" "05000000" "4446020000000000"
)  # fmt: skip
UPDATED = bytes.fromhex(
    "2500000000000100" "04" "0f" "0c" "f0" "01000000" "010061" "05000000" "4446020000000000"
    "fc" "07000000" "4446020000000000"
)  # fmt: skip


def decoder_of(body, *, is_mariadb=True):
    known = table_map(body, 8, is_mariadb=is_mariadb)
    return RowDecoder(known, TABLE, CHARSETS, is_mariadb=is_mariadb)


def changes(event, decoder=None):
    return RowImages(decoder or decoder_of(HASHED), event, 0).changes()


def test_the_servers_hidden_columns_are_passed_over():
    assert changes(rows_event(23, INSERTED, 8)) == [(None, [1, "a", 5])]


def test_what_an_image_after_an_update_does_not_have_was_not_changed():
    assert changes(rows_event(24, UPDATED, 8)) == [([1, "a", 5], [1, "a", 7])]


def test_collations_are_the_default_one_but_for_some_places():
    """As MariaDB 11.4.5 writes it of (v VARCHAR, place POINT, id6 INET6, u UUID)."""
    columns = [ID, ("v", 15, b"\xa0\0"), ("p", 255, b"\x04"), *[("u", 254, b"\xfe\x10")] * 2]
    body = map_of(*columns, extra=b"\x02\x03\x3f\0\x2d")
    found = table_map(body, 8, is_mariadb=True).columns
    assert [column.collation for column in found] == [None, 45, 63, 63, 63]
    body = map_of(*columns, extra=b"\x03\x03\x2d\x3f\x08")
    found = table_map(body, 8, is_mariadb=False).columns
    assert [column.collation for column in found] == [None, 45, None, 63, 8]


def packed(*parts):
    return b"".join(bytes([len(part)]) + part for part in parts)


def map_of(*columns, extra=b""):
    names = packed(*(name.encode() for name, _, _ in columns))
    return b"".join(
        [
            b"\x25\0\0\0\0\0\x01\0",
            b"\x01x\0\x02h2\0",
            bytes([len(columns)]),
            bytes(kind for _, kind, _ in columns),
            packed(b"".join(meta for _, _, meta in columns)),
            bytes((len(columns) + 7) // 8),
            b"\x04" + packed(names),
            extra,
        ]
    )


ID, V, W = ("id", 3, b""), ("v", 252, b"\x02"), ("w", 3, b"")
# What MySQL 9 has, by its documentation: VECTOR is a text for the list of collations.
OTHERS = {
    "vector": (("x", VECTOR, b"\x04"), struct.pack("<I2f", 8, 1.0, 2.0), b"\x02\x01\x2d"),
    "array_of_numbers": (("x", 20, b"\x08"), b"\x05\0\0\0\x02\0\0\0\0", b"\x02\x01\x2d"),
    "array_of_texts": (("x", 20, b"\x0f\x28\0\0"), b"\x03\0\0\0abc", b"\x02\x01\x2d"),
    "geometry": (("x", 255, b"\x04"), b"\x02\0\0\0ab", b"\x02\x01\x2d"),
    "json": (("x", 245, b"\x04"), b"\x02\0\0\0\x04\x01", b"\x02\x01\x2d"),
    "generated_primary_key": (("my_row_id", 8, b""), bytes(8), b"\x02\x01\x2d"),
    "compressed": (("x", 141, b"\x0a\0"), b"\x02\0a", b"\x02\x01\x2d"),
}


@pytest.mark.parametrize(("column", "value", "charset"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_column_of_another_type_is_passed_over_by_its_metadata(column, value, charset, place):
    columns, values = [ID, V, W], [b"\x01\0\0\0", b"\x01\0a", b"\x05\0\0\0"]
    columns.insert(place, column)
    values.insert(place, value)
    decoder = decoder_of(map_of(*columns, extra=charset), is_mariadb=False)
    images = b"\xf0" + b"".join(values)
    assert changes(RowsEvent("c", 1, 4, 15, 15, images), decoder) == [(None, [1, "a", 5])]
    assert changes(RowsEvent("d", 1, 4, 15, 15, images * 2), decoder) == [([1, "a", 5], None)] * 2


def test_a_type_that_is_not_known_is_no_table():
    with pytest.raises(ValueError, match="field type 241"):
        table_map(map_of(ID, V, W, ("x", 241, b"")), 8, is_mariadb=False)


def test_times_of_mariadb_5_3_do_not_say_how_long_they_are():
    body = map_of(ID, ("ts", 7, b""), V, W, extra=b"\x02\x01\x2d")
    with pytest.raises(SnapshotNeededError, match='"ts" in the format of MariaDB') as told:
        decoder_of(body)
    assert "mysql56_temporal_format" in told.value.hint
    assert decoder_of(body, is_mariadb=False)  # MySQL had none with fractions


def test_a_collation_that_the_server_does_not_list_stops_the_source():
    with pytest.raises(SourceError, match="collation number 99") as told:
        decoder_of(map_of(ID, V, W, extra=b"\x02\x01\x63"))
    assert type(told.value) is SourceError


def image(*, present=0x0F, id_=b"\x01\0\0\0", null=0xF0):
    parts = ((0, id_), (1, b"\x01\0a"), (2, b"\x05\0\0\0"), (3, bytes(8)))
    return bytes([null]) + b"".join(part for at, part in parts if present >> at & 1)


DAMAGED = {
    "too_short": RowsEvent("c", 1, 4, 15, 15, image()[:-1]),
    "too_long": RowsEvent("c", 1, 4, 15, 15, image() + b"\0"),
    "other_columns": RowsEvent("c", 1, 5, 31, 31, image()),
    "update_without_image_after": RowsEvent("u", 1, 4, 15, 15, image()),
    "key_is_null": RowsEvent("c", 1, 4, 15, 15, image(present=0x0E, null=0xF1)),
    "key_before_is_null": RowsEvent("d", 1, 4, 15, 15, image(present=0x0E, null=0xF1)),
    "key_after_is_null": RowsEvent("u", 1, 4, 15, 1, image() + b"\xff"),
    "insert_without_a_column": RowsEvent("c", 1, 4, 13, 13, image(present=13)),
    "update_before_without_a_column": RowsEvent("u", 1, 4, 1, 4, image(present=1) * 2),
    "no_utf8": RowsEvent("c", 1, 4, 15, 15, image().replace(b"a", b"\xff")),
}


@pytest.mark.parametrize("event", DAMAGED.values(), ids=DAMAGED)
def test_an_image_that_is_not_understood_is_copied_again_with_the_reason(event):
    with pytest.raises(SnapshotNeededError) as told:
        changes(event)
    assert told.value.hint


def test_no_row_of_an_event_comes_before_its_last_image_was_read():
    images = RowImages(decoder_of(HASHED), RowsEvent("c", 1, 4, 15, 15, image() * 2 + b"\0"), 0)
    with pytest.raises(SnapshotNeededError):
        iter(images.changes())


def test_a_column_that_is_not_captured_may_be_missing():
    event = RowsEvent("c", 1, 4, 7, 7, image(present=7))
    assert changes(event) == [(None, [1, "a", 5])]


@given(st.integers(1, 15), st.integers(0, 15), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@settings(max_examples=examples(300))
def test_both_bitmaps_are_honoured_whatever_they_are(present, after, nulls):
    """Against the plainest reading: by name, absent is unknown before and unchanged after."""
    values = {0: b"\x02\0\0\0", 1: b"\x02\0bc", 2: b"\x06\0\0\0", 3: bytes(8)}
    told = {0: 2, 1: "bc", 2: 6}

    def written(bitmap, is_after):
        places = [at for at in range(4) if bitmap >> at & 1]
        is_null = [nulls[at] & (2 if is_after else 1) for at in places]
        null = sum(1 << n for n, one in enumerate(is_null) if one)
        data = b"".join(values[at] for at, one in zip(places, is_null, strict=True) if not one)
        row = {at: None if one else told.get(at) for at, one in zip(places, is_null, strict=True)}
        return null.to_bytes((len(places) + 7) // 8, "little") + data, row

    first, before = written(present, is_after=False)
    second, changed = written(after, is_after=True)
    event = RowsEvent("u", 1, 4, present, after, first + second)
    expected = {**before, **changed}
    if not {0, 1, 2} <= before.keys() or None in (before[0], expected[0]):
        with pytest.raises(SnapshotNeededError):
            changes(event)
        return
    assert changes(event) == [([before[n] for n in range(3)], [expected[n] for n in range(3)])]


@given(st.binary(max_size=60), st.integers(0, 15), st.sampled_from("cud"))
@settings(max_examples=examples(500))
def test_bytes_are_rows_to_their_end_or_nothing(images, present, op):
    try:
        found = changes(RowsEvent(op, 1, 4, present, present, images))
    except SnapshotNeededError:
        return
    assert all(row is None or row[0] is not None for change in found for row in change)


@given(st.binary(max_size=80), st.integers(0, 79))
@settings(max_examples=examples(500))
def test_a_damaged_table_map_is_no_table_or_one_with_all_its_columns(data, place):
    body = HASHED[:place] + data
    try:
        found = table_map(body, 8, is_mariadb=True)
    except (ValueError, LookupError):
        return
    assert all(column.kind for column in found.columns)


# Parts of row events
# --------------------------------------------------------------------------------------------------


def whole_event(*, checksum=False):
    size = 19 + len(INSERTED) + (4 if checksum else 0)
    event = struct.pack("<IBIIIH", 1, 23, 1, size, 0, 0) + INSERTED
    return event + (zlib.crc32(event).to_bytes(4, "little") if checksum else b"")


def parts_of(event, size):
    """As MariaDB documents PARTIAL_ROW_DATA_EVENT; the first part says how long the whole is."""
    chunks = [event[at : at + size] for at in range(0, len(event), size)]
    for number, chunk in enumerate(chunks, 1):
        flags = struct.pack("<BQ", 1, len(event)) if number == 1 else b"\0"
        yield struct.pack("<II", len(chunks), number) + flags + chunk


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_a_row_event_in_parts_is_put_together(size, checksum):
    fragments = Fragments()
    for _ in range(2):
        *first, last = (fragments.add(p) for p in parts_of(whole_event(checksum=checksum), size))
        assert first == [None] * len(first)
        assert last == (23, INSERTED)
        assert changes(rows_event(*last, 8)) == [(None, [1, "a", 5])]


BROKEN = {
    "a_part_is_missing": lambda parts: [parts[0], parts[2]],
    "it_begins_in_the_middle": lambda parts: parts[1:],
    "two_are_mixed": lambda parts: [parts[0], struct.pack("<IIB", 9, 2, 0) + b"x"],
    "it_is_cut": lambda parts: [*parts[:-1], parts[-1][:-1]],
    "it_has_no_header": lambda parts: list(parts_of(INSERTED, 8)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_parts_that_do_not_make_an_event_are_refused(broken):
    fragments = Fragments()
    with pytest.raises(ValueError, match="row event"):
        list(map(fragments.add, broken(list(parts_of(whole_event(), 8)))))
