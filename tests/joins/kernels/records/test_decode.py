"""Record batches as columns: what kafka-python has written, read as its own consumer reads it."""

import struct

import crc32c
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from joins.adapters.kafka.client import decompressed
from joins.kernels.records.decode import KEY, OFFSET, TIMESTAMP, VALUE, decode
from joins.kernels.records.layout import BatchHeader, RecordFormatError
from tests.support.laws import examples

TEXT = st.none() | st.binary(max_size=9) | st.binary(min_size=120, max_size=140)
HEADER = st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3))
RECORD = st.tuples(
    st.integers(0, 2**41), TEXT, TEXT, st.lists(HEADER, max_size=3), st.integers(0, 3)
)
BATCH = st.tuples(st.lists(RECORD, min_size=1, max_size=6), st.sampled_from(range(5)))
WHOLE = (0, 1 << 60)
TRANSACTIONAL, CONTROL, APPEND_TIME = 1 << 4, 1 << 5, 1 << 3


def written(records, codec=0, *, offset=0, producer=None):
    """A batch as a producer writes it; a record's last item is how many offsets are left out."""
    builder = MemoryRecordsBuilder(2, codec, 1 << 20)
    if producer is not None:
        builder.set_producer_state(producer, 0, 0, True)
    for timestamp, key, value, headers, skipped in records:
        if skipped and builder.next_offset():
            builder.skip(skipped)
        assert builder.append(timestamp, key, value, headers) is not None
    builder.close()
    return placed(bytes(builder.buffer()), offset)


def placed(batch, offset=0, *, flags=0, max_ms=None):
    """A batch as the broker has it: with its offset, and what else it has found out."""
    batch = bytearray(batch)
    struct.pack_into(">q", batch, 0, offset)
    (attributes,) = struct.unpack_from(">h", batch, 21)
    struct.pack_into(">h", batch, 21, attributes | flags)
    if max_ms is not None:
        struct.pack_into(">q", batch, 35, max_ms)
    struct.pack_into(">I", batch, 17, crc32c.crc32c(batch[21:]))
    return bytes(batch)


def behind(data):
    *_, last = batches_of(data)
    return last.next_offset


def batches_of(data):
    records = MemoryRecords(data)
    while records.has_next():
        yield records.next_batch()


def joined(batches):
    data = b""
    for records, codec in batches:
        data += written(records, codec, offset=behind(data) if data else 7)
    return data


def read(data, bounds=WHOLE, aborted=()):
    return decode(data, bounds, aborted, decompressed)


def rows(found):
    columns = (found.column(OFFSET), found.column(TIMESTAMP), found.texts(KEY), found.texts(VALUE))
    listed = zip(*(column.tolist() for column in columns), strict=True)
    return [(*row, found.headers(at)) for at, row in enumerate(listed)]


def expected(data):
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for batch in batches_of(data)
        for record in batch
    ]


@settings(max_examples=examples(200))
@given(st.lists(BATCH, max_size=4), st.data())
def test_records_are_those_that_the_client_reads(batches, data):
    whole = joined(batches)
    found = read(whole)
    assert rows(found) == expected(whole)
    assert found.texts(KEY).type == pa.binary()
    found.texts(VALUE).validate(full=True)
    assert found.next_offset == (behind(whole) if whole else None)
    first, end = sorted(data.draw(st.tuples(*[st.integers(0, 40)] * 2)))
    inside = [row for row in expected(whole) if first <= row[0] < end]
    assert rows(read(whole, (first, end))) == inside


@settings(max_examples=examples(100))
@given(st.lists(BATCH, min_size=1, max_size=3), st.data())
def test_what_the_broker_cuts_off_comes_with_the_next_fetch(batches, data):
    whole = joined(batches)
    cut = data.draw(st.integers(0, len(whole)))
    found = read(whole[:cut])
    known = rows(found)
    assert known == expected(whole)[: len(known)]
    rest = [row for row in expected(whole) if row[0] >= (found.next_offset or 0)]
    assert known + rest == expected(whole)


@settings(max_examples=examples(200))
@given(BATCH, st.data())
def test_a_byte_that_is_not_as_it_was_sent_is_never_read(batch, data):
    whole = bytearray(joined([batch]))
    at = data.draw(st.integers(16, len(whole) - 1))  # before it: its place and how long it is
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RecordFormatError, match="offset 7"):
        read(bytes(whole))


@settings(max_examples=examples(200))
@given(BATCH, st.data())
def test_a_damaged_record_is_found_even_under_a_right_checksum(batch, data):
    records, _ = batch
    whole = bytearray(joined([(records, 0)]))
    at = data.draw(st.integers(BatchHeader.SIZE, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        found = rows(read(placed(whole, 7)))
    except RecordFormatError:
        return
    assert len(found) == len(records)


PLAIN = [(1, b"k", b"v", [], 0)]


def in_transactions():
    marker = [(1, struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0), [], 0)]
    parts = [
        written(PLAIN, offset=0, producer=5),
        written(PLAIN, offset=1, producer=6),
        written(PLAIN, offset=2, producer=5),
        placed(written(marker, producer=5), 3, flags=CONTROL),
        placed(written(marker, producer=6), 4, flags=CONTROL),
        written(PLAIN, offset=5, producer=5),
        written(PLAIN, offset=6),
    ]
    return b"".join(parts)


def test_records_of_aborted_transactions_and_their_ends_are_left_out():
    committed = read(in_transactions(), aborted=[(5, 0)])
    assert committed.column(OFFSET).tolist() == [1, 5, 6]
    assert committed.next_offset == 7
    assert read(in_transactions()).column(OFFSET).tolist() == [0, 1, 2, 5, 6]


def test_a_response_that_ends_with_the_end_of_a_transaction_leads_behind_it():
    marker = placed(written(PLAIN, producer=5), 9, flags=CONTROL)
    found = read(marker)
    assert (len(found), found.next_offset) == (0, 10)


def test_the_time_is_the_broker_s_where_the_topic_says_so():
    records = [(at, None, b"v", [], 0) for at in (1_000, 2_000)]
    whole = placed(written(records), flags=APPEND_TIME, max_ms=9_000)
    assert read(whole).column(TIMESTAMP).tolist() == [9_000, 9_000]


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_refused(magic):
    builder = MemoryRecordsBuilder(magic, 0, 1 << 20)
    builder.append(1, b"k", b"v")
    builder.close()
    with pytest.raises(RecordFormatError, match=f"format v{magic}, not v2"):
        read(bytes(builder.buffer()))


@pytest.mark.parametrize("count", [-1, 2**31 - 1])
def test_a_batch_that_has_no_room_for_its_records_is_refused(count):
    batch = bytearray(written(PLAIN))
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(RecordFormatError, match=f"{count} records"):
        read(placed(batch))


def test_a_codec_that_kafka_has_not_is_refused():
    with pytest.raises(RecordFormatError, match="codec 7"):
        read(placed(written(PLAIN), flags=7))
