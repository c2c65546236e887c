"""pa.Arrays of the numbers that partitions have, as topics and true partitions, and back."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joins.plan.stream_topics import SPAN, StreamTopics

_BITS = pa.scalar(SPAN.bit_length() - 1, pa.int32())
_MASK = pa.scalar(SPAN - 1, pa.int32())


def true_partitions(numbers: pa.Array) -> pa.Array:
    return pc.bit_wise_and(numbers.cast(pa.int32()), _MASK)


def topic_names(topics: StreamTopics, numbers: pa.Array) -> pa.Array:
    if not topics.are_several:
        return pa.repeat(pa.scalar(topics.first.name, pa.string()), len(numbers))
    return pc.take(pa.array(topics.names, pa.string()), _indexes(numbers))


def of_topics(records: pa.RecordBatch, indexes: Sequence[int]) -> pa.RecordBatch:
    own = pc.is_in(_indexes(records.column("partition")), pa.array(indexes, pa.int32()))
    return records if pc.all(own).as_py() else records.filter(own)


def _indexes(numbers: pa.Array) -> pa.Array:
    return pc.shift_right(numbers.cast(pa.int32()), _BITS)


def numbered(topics: StreamTopics, names: pa.Array, partitions: pa.Array) -> pa.Array:
    """The numbers of places that tables have by topic and true partition, as they are without one.

    A place of no topic of the stream, as rows of windows have, stays what it is.
    """
    if not topics.are_several:
        return partitions
    indexes = pc.fill_null(pc.index_in(names, pa.array(topics.names, pa.string())), 0)
    return pc.add(pc.shift_left(indexes, _BITS), partitions.cast(pa.int32()))
