"""Bodies of record batches: kafka-python's own decoder reads back what was written."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2
from kafka.record import MemoryRecords

from joins.adapters.kafka.client import compressed
from joins.kernels.changelog.envelope import RECORDS_SCHEMA
from joins.kernels.records.encode import KEYLESS_RUN, Places, encode_bodies
from joins.kernels.records.layout import (
    BODIES,
    BatchHeader,
    BatchOrigin,
    plain_bodies,
    record_batch,
)
from joins.plan.plan import Compression
from tests.support.laws import examples

TEXT = st.binary(max_size=9) | st.binary(min_size=120, max_size=140)
ROW = st.tuples(
    st.none() | TEXT | st.binary(min_size=4, max_size=4),
    st.none() | TEXT,
    st.none() | st.integers(0, 2**63 - 1).map(lambda number: str(number).encode()),
)
ORIGIN = BatchOrigin(producer_id=2**40, producer_epoch=7, sequence=12)


def binary(values):
    return pa.array(values, pa.binary())


def bodies_of(rows, places, skipped=0):
    keys, values, marks = (binary([row[at] for row in rows]).slice(skipped) for at in range(3))
    headers = {"batch": b"41", "größe": marks, "empty": b""}
    return encode_bodies(keys, values, headers, places.of(keys), places.body_bytes)


def decoded(bodies, compression=Compression.NONE):
    """(partition, records) of each batch, as kafka-python reads it."""
    found = []
    for row in compressed(bodies, compression).to_pylist():
        whole = record_batch(row["body"], row["records"], compression, 1_700_000_000_123, ORIGIN)
        batch = MemoryRecords(whole).next_batch()
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**40, 7, 12)
        records = list(batch)
        assert len(records) == row["records"] == batch.last_offset_delta + 1
        assert [record.offset for record in records] == list(range(len(records)))
        assert {record.timestamp for record in records} == {1_700_000_000_123}
        found.append((row["partition"], records))
    return found


def as_written(row):
    key, value, mark = row
    headers = [("batch", b"41"), ("größe", mark), ("empty", b"")]
    return key, value, [each for each in headers if each[1] is not None]


def as_read(record):
    return record.key, record.value, record.headers


@settings(max_examples=examples(200))
@given(
    st.lists(ROW, max_size=12),
    st.integers(0, 4),
    st.integers(1, 5),
    st.integers(1, 900),
    st.sampled_from(Compression),
)
def test_each_row_is_read_back_from_the_partition_of_its_key_in_its_order(
    rows, skipped, partitions, body_bytes, compression
):
    bodies = bodies_of(rows, Places(partitions, 3, body_bytes), skipped)
    rows = rows[skipped:]
    found = {number: [] for number in range(partitions)}
    for number, records in decoded(bodies, compression):
        found[number] += map(as_read, records)
    expected = {number: [] for number in range(partitions)}
    for row in rows:
        hashed = 3 if row[0] is None else murmur2(row[0]) & 0x7FFFFFFF
        expected[hashed % partitions].append(as_written(row))
    assert found == expected


@settings(max_examples=examples(100))
@given(st.lists(ROW, min_size=1, max_size=12), st.integers(1, 900))
def test_a_body_is_no_larger_than_allowed_unless_one_record_is(rows, body_bytes):
    for row in bodies_of(rows, Places(1, 0, body_bytes)).to_pylist():
        assert len(row["body"]) <= body_bytes or row["records"] == 1


@settings(max_examples=examples(200))
@given(st.lists(ROW, max_size=12), st.integers(1, 5), st.integers(1, 900))
def test_a_body_is_the_same_with_and_without_compiled_code(rows, partitions, body_bytes):
    keys, values = (binary([row[at] for row in rows]) for at in range(2))
    chosen = Places(partitions, 1, body_bytes).of(keys)
    records = pa.record_batch([keys, values, pa.array(chosen)], schema=RECORDS_SCHEMA)
    plain = plain_bodies(records, body_bytes)
    assert plain.schema.equals(BODIES)
    assert plain.to_pylist() == encode_bodies(keys, values, {}, chosen, body_bytes).to_pylist()


def test_rows_without_a_key_take_turns_in_runs():
    rows = [(None, b"v", None)] * (2 * KEYLESS_RUN + 1)
    found = decoded(bodies_of(rows, Places(3, 2, 1 << 20)))
    assert [(number, len(records)) for number, records in found] == [
        (0, KEYLESS_RUN),
        (1, 1),
        (2, KEYLESS_RUN),
    ]


@pytest.mark.parametrize("compression", Compression)
def test_the_same_rows_give_the_same_bytes(compression):
    rows = [(b"%d" % number, b"x" * number, None) for number in range(300)]
    once, again = (compressed(bodies_of(rows, Places(2, 0, 4_000)), compression) for _ in range(2))
    assert once.equals(again)


def test_the_header_has_the_size_that_limits_reckon_with():
    assert len(record_batch(b"body", 1, Compression.NONE, 0, ORIGIN)) == BatchHeader.SIZE + 4
