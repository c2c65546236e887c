"""Lookups without an index on disk: in memory, and shuffled; both answer as the index does."""

import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.changes import Progress, read_changes
from joins.kernels.index import packets as packets_module
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.index.exchange import (
    ShuffledRole,
    ask,
    fold,
    gather,
    match,
    pack,
    read_changelog,
)
from joins.kernels.index.index import IndexSpec, advance, build
from joins.kernels.index.packets import PACKETS
from joins.kernels.probe.probe import (
    BatchContext,
    index_spec,
    join_batch,
    joins_before,
    kernel_spec,
    lookup_keys,
)
from joins.plan.expressions import Call, Cast, Column, Constant
from joins.plan.plan import DimensionJoin, JoinType, KeyPair, OutputColumn
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import batch_of
from tests.support.histories import KEYS, PARTITIONS, histories
from tests.support.laws import examples
from tests.support.probe import BIGINT, PLAN, STRING, USERS

BY_ID = IndexSpec(("id",), ("id",), USERS.fields, PARTITIONS)
BY_NAME = IndexSpec(("id",), ("name",), USERS.fields, PARTITIONS)
BY_BOTH = IndexSpec(("id",), ("name", "id"), USERS.fields, PARTITIONS)
NULL_NAME = IndexSpec(("id",), ("name",), USERS.fields, PARTITIONS, null_safe=(0,))
NULL_BOTH = IndexSpec(("id",), ("name", "id"), USERS.fields, PARTITIONS, null_safe=(0,))
CONTEXT = BatchContext(proctime_ms=1_000, batch_id=7, versions=(("users", 1),))


def answers(index, keys):
    """Rows are numbered differently, so what is compared is what they hold."""
    at, rows = index.lookup(keys)
    padded = np.concatenate([rows, [-1], rows[::-1]])
    return at.tolist(), index.take(padded, ["name", "id"]).to_pylist(), index.num_rows


def keys_of(commits, spec):
    names = sorted({row["name"] for rows in commits for row in rows if row["name"]})
    ids = [None, *range(KEYS + 1)] * (len(names) + 1)
    text = [name for name in [None, *names] for _ in range(KEYS + 2)]
    columns = {"id": pa.array(ids, pa.int64()), "name": pa.array(text, pa.string())}
    return [columns[name].slice(1) for name in spec.join_key]


@settings(max_examples=examples(80), deadline=None)
@given(commits=histories, spec=st.sampled_from([BY_ID, BY_NAME, BY_BOTH, NULL_NAME, NULL_BOTH]))
def test_an_index_in_memory_answers_as_the_one_on_disk(commits, spec):
    keys = keys_of(commits, spec)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        changes = None
        for version, rows in enumerate(commits):
            batches = [batch_of(rows)]
            if changes is None:
                build(directory, version, spec, batches)
                changes = read_changes(batches, spec, Progress())
            else:
                advance(directory, version - 1, version, spec, batches)
                changes = changes.followed_by(batches, spec)
            on_disk = DimensionIndex.attach(directory, version, spec)
            in_memory = DimensionIndex.of_rows(changes.visible(spec), spec)
            assert answers(in_memory, keys) == answers(on_disk, keys)


def test_an_index_of_no_rows_answers_nothing():
    index = DimensionIndex.of_rows(BY_NAME.schema.empty_table(), BY_NAME)
    assert answers(index, [pa.array(["x", None])]) == ([], [{"name": None, "id": None}], 0)


# Shuffled
# --------------------------------------------------------------------------------------------------


def in_order(batches, *columns):
    """What Spark's sort does, one packet a batch."""
    table = pa.Table.from_batches(batches, PACKETS)
    return table.sort_by([(name, "ascending") for name in columns]).to_batches(max_chunksize=1)


def rows_by_bucket(commits, role, directory):
    """The packets of a dimension, from changelog files."""
    paths = []
    for at, rows in enumerate(commits):
        paths.append(str(directory / f"{role.alias}-{at}.parquet"))
        pq.write_table(pa.Table.from_batches([batch_of(rows)]), paths[-1])
    files = [pa.record_batch([[path]], names=["path"]) for path in paths]
    read = read_changelog(files, Path(), role.spec, 3)
    return list(fold(in_order(read, "bucket"), role.spec, role.buckets))


def gathered(records, matched, roles):
    ordered = in_order([*records, *matched], "partition", "offset", "role")
    return gather(ordered, roles)


def shuffled(plan, commits, batches, directory, buckets):
    """The joined parts of `batches`, every role shuffled."""
    kernel = kernel_spec(plan)
    records, matched, done = list(pack(batches)), [], {}
    for ordinal, join in enumerate(plan.joins):
        role = ShuffledRole(join.alias, ordinal, index_spec(plan, join, PARTITIONS), buckets)
        before = [done[needed.alias] for needed in joins_before(plan.joins, join.alias)]
        keys = partial(asked, kernel, join.alias)
        asks = pa.Table.from_batches(ask(gathered(records, matched, before), role, keys), PACKETS)
        rows = pa.Table.from_batches(rows_by_bucket(commits, role, directory), PACKETS)
        for bucket in range(buckets):
            mine = [t.filter(pa.compute.field("bucket") == bucket) for t in (asks, rows)]
            matched += match(*mine, role).to_batches()
        done[join.alias] = role
    return [
        join_batch(kernel, part.records, part.indexes, CONTEXT)
        for part in gathered(records, matched, list(done.values()))
    ]


def asked(kernel, alias, part):
    return lookup_keys(kernel, part.records, part.indexes, CONTEXT, alias)


def told(parts):
    """Rows with their places, dead letters and counts; rows in order within each partition."""
    rows, letters = [], []
    for part in parts:
        places = [(row["partition"], row["offset"]) for row in part.coordinates.to_pylist()]
        rows += zip(places, part.rows.to_pylist(), strict=True)
        letters += part.dead_letters.to_pylist()
    rows.sort(key=lambda pair: pair[0][0])  # stable: the order of a partition stays
    letters.sort(key=lambda letter: (letter["partition"], letter["offset"]))
    return rows, letters, [sum(getattr(p, c) for p in parts) for c in ("matched", "unmatched")]


def column(relation, name, kind=BIGINT):
    return Column(relation, name, kind)


NOT_ITSELF = Call("<>", (column("n", "id"), column("u", "id")), SqlType(TypeName.BOOLEAN))
BY_USER = DimensionJoin("u", "users", JoinType.LEFT, (KeyPair(column("c", "user_id"), "id"),))
BY_NAMESAKE = DimensionJoin(
    "n", "users", JoinType.LEFT, (KeyPair(column("u", "name", STRING), "name"),), NOT_ITSELF
)
BY_BOTH_KEYS = DimensionJoin(
    "b",
    "users",
    JoinType.INNER,
    (KeyPair(column("n", "name", STRING), "name"), KeyPair(column("n", "id"), "id")),
)
BY_NAME_OR_NONE = replace(
    BY_NAMESAKE, keys=(KeyPair(column("u", "name", STRING), "name", null_safe=True),)
)
SMALL = Cast(column("c", "user_id"), SqlType(TypeName.TINYINT))
CHAINS = {
    "one_join": (BY_USER,),
    "inner": (replace(BY_USER, join_type=JoinType.INNER),),
    "a_key_that_may_fail": (replace(BY_USER, keys=(KeyPair(Cast(SMALL, BIGINT), "id"),)),),
    "a_later_key_reads_an_earlier_dimension": (BY_USER, BY_NAMESAKE),
    "null_is_a_key": (BY_USER, BY_NAME_OR_NONE),
    "three_of_them": (BY_USER, BY_NAMESAKE, BY_BOTH_KEYS),
}
VALUES = st.sampled_from([0, 1, 1, 2, 3, 4, 9, None, 300, "x", b"{", None])


def plan_of(joins):
    last = joins[-1].alias
    output = (
        OutputColumn("user_id", column("c", "user_id")),
        OutputColumn("id", column(last, "id")),
        OutputColumn("name", column(last, "name", STRING)),
    )
    where = Call("<>", (column("c", "user_id"), Constant("4", BIGINT)), NOT_ITSELF.type)
    return replace(PLAN, joins=joins, output=output, where=where)


def kafka(draws):
    """Batches of records: (partition, gap before it, value), offsets ascending in a partition."""
    offsets, batches = {}, []
    for partition_, found in enumerate(draws):
        rows = []
        for gap, value in found:
            offsets[partition_] = offsets.get(partition_, 0) + gap
            body = value if isinstance(value, bytes) else json.dumps({"user_id": value}).encode()
            rows.append({"value": body, "partition": partition_, "offset": offsets[partition_]})
        schema = [("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64())]
        whole = pa.Table.from_pylist(rows, schema=pa.schema(schema))
        batches += whole.to_batches(max_chunksize=3)
    return batches


RECORDS = st.lists(st.lists(st.tuples(st.integers(1, 4), VALUES), max_size=12), max_size=3)


@pytest.mark.parametrize("joins", CHAINS.values(), ids=CHAINS)
@settings(max_examples=examples(40), deadline=None)
@given(commits=histories, records=RECORDS, buckets=st.integers(1, 4))
def test_a_shuffled_join_is_the_join_with_the_index(joins, commits, records, buckets):
    plan, batches = plan_of(joins), kafka(records)
    chunk, packets_module.CHUNK_OFFSETS = packets_module.CHUNK_OFFSETS, 4
    try:
        with tempfile.TemporaryDirectory() as name:
            parts = shuffled(plan, commits, batches, Path(name), buckets)
            indexes = {}
            for join in joins:
                spec = index_spec(plan, join, PARTITIONS)
                build(Path(name), 1, spec, [batch_of(rows) for rows in commits])
                indexes[join.alias] = DimensionIndex.attach(Path(name), 1, spec)
            expected = [join_batch(kernel_spec(plan), b, indexes, CONTEXT) for b in batches]
            assert told(parts) == told(expected)
    finally:
        packets_module.CHUNK_OFFSETS = chunk
