"""Streams of changes: outputs have the row of each key's newest record, however batches are cut."""

import json
import pickle
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.source import captured_columns
from joins.kernels.changelog.envelope import (
    RECORDS_SCHEMA,
    SOURCE_SCHEMA,
    BinlogPosition,
    Envelopes,
    encode_records,
    encode_snapshot,
    encode_watermark,
)
from joins.kernels.changelog.row_kinds import DELETE, SIGNS
from joins.kernels.probe.probe import join_batch, kernel_spec
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import (
    DimensionJoin,
    Field,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MetadataField,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
    TableStream,
)
from joins.plan.types import Call, Cast, Constant
from tests.joins.kernels.probe.test_probe import (
    BIGINT,
    BOOLEAN,
    CONTEXT,
    INSTANT,
    INT,
    STRING,
    attached,
    column,
    plan,
)
from tests.support.laws import examples

USERS = {1: "Oslo", 2: "Rome", 3: "Oslo"}
DEBEZIUM = RecordFormat(KafkaFormat.DEBEZIUM_JSON)
FORMS = ("rows", "rows without the key", "debezium")


def source(form):
    key = RecordKey(("k",), JSON_FORMAT, is_in_value=form == "rows")
    if form == "debezium":
        return KafkaSource(KafkaOptions("b:9092", "s"), value=DEBEZIUM, changes_by=("k",))
    return KafkaSource(KafkaOptions("b:9092", "s"), key=key, changes_by=("k",))


def change_plan(form, join_type=JoinType.INNER, where=None):
    probe = ProbeSource(
        "s",
        "s",
        source(form),
        (Field("k", BIGINT, nullable=False), Field("u", BIGINT), Field("n", STRING)),
    )
    output = (
        OutputColumn("k", column("s", "k"), nullable=False),
        OutputColumn("name", Cast(column("s", "k"), STRING)),
        OutputColumn("shop", Constant("north", STRING)),
        OutputColumn("n", Cast(column("s", "n", STRING), INT)),
        OutputColumn("city", column("u", "city", STRING), nullable=join_type is JoinType.LEFT),
    )
    by_id = DimensionJoin("u", "users", join_type, (KeyPair(column("s", "u"), "id"),))
    made = plan(joins=(by_id,), where=where, output=output)
    return replace(made, probe=probe)


def record(form, change):
    """Key and value; `change` is (key, user, text), or (key,) for a deletion."""
    key, *row = change
    if form == "debezium":
        full = {"k": key, "u": row[0], "n": row[1]} if row else None
        before = None if row else {"k": key, "u": None, "n": None}
        return None, {"op": "u" if row else "d", "before": before, "after": full, "source": {}}
    own = {"k": key} if form == "rows" else {}
    return {"k": key}, {**own, "u": row[0], "n": row[1]} if row else None


def as_records(pairs, first=0):
    def raw(value):
        return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()

    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([raw(key) for key, _ in pairs], pa.binary()),
            "value": pa.array([raw(value) for _, value in pairs], pa.binary()),
            "topic": pa.array(["s"] * len(pairs)),
            "partition": pa.array([0] * len(pairs), pa.int32()),
            "offset": pa.array(range(first, first + len(pairs)), pa.int64()),
            "timestamp": pa.array([5_000] * len(pairs), pa.int64()),
        }
    )


def answered(directory, the_plan, pairs, first=0):
    spec = pickle.loads(pickle.dumps(kernel_spec(the_plan)))
    return join_batch(spec, as_records(pairs, first), attached(directory, the_plan), CONTEXT)


def applied(rows, answer):
    """What a table by key is after the rows of an answer."""
    for row, kind in zip(answer.rows.to_pylist(), answer.kinds.to_pylist(), strict=True):
        if kind == DELETE:
            assert (row["name"], row["shop"]) == (str(row["k"]), "north")
            rows.pop(row["k"], None)
        else:
            rows[row["k"]] = row
    return rows


def expected(changes, join_type, least):
    """The rows, and how many records are dead letters: the row before such a record stays."""
    rows, dead = {}, 0
    for key, *row in changes:
        city = USERS.get(row[0]) if row else None
        has_match = bool(row) and (join_type is JoinType.LEFT or city is not None)
        if has_match and row[1] == "bad":
            dead += 1
            continue
        rows.pop(key, None)
        if has_match and int(row[1]) >= least:
            own = {"k": key, "name": str(key), "shop": "north"}
            rows[key] = {**own, "n": int(row[1]), "city": city}
    return rows, dead


KEYS = st.integers(0, 3)
CHANGES = st.lists(
    st.one_of(
        st.tuples(KEYS),
        st.tuples(KEYS, st.integers(0, 4), st.sampled_from(["1", "5", "9", "bad"])),
    ),
    max_size=12,
)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(400), deadline=None)
@given(CHANGES, st.sets(st.integers(0, 12)), st.sampled_from(JoinType), st.sampled_from((0, 5)))
def test_the_output_has_the_row_of_the_newest_record_of_each_key(
    form, changes, cuts, join_type, least
):
    where = Call(">=", (Cast(column("s", "n", STRING), INT), Constant(str(least), INT)), BOOLEAN)
    the_plan = change_plan(form, join_type, where)
    ends = sorted({0, *(cut for cut in cuts if cut < len(changes)), len(changes)})
    rows, dead = {}, 0
    with tempfile.TemporaryDirectory() as directory:
        indexes = attached(Path(directory), the_plan)
        spec = kernel_spec(the_plan)
        for first, end in pairwise(ends):
            pairs = [record(form, change) for change in changes[first:end]]
            answer = join_batch(spec, as_records(pairs, first), indexes, CONTEXT)
            assert len(answer.kinds) == answer.rows.num_rows
            alive = end - first - answer.dead_letters.num_rows
            assert answer.rows.num_rows == answer.matched + answer.unmatched == alive
            offsets = answer.coordinates.column("offset").to_pylist()
            assert offsets == sorted(offsets)
            dead += answer.dead_letters.num_rows
            applied(rows, answer)
    assert (rows, dead) == expected(changes, join_type, least)


def kinds_and_keys(answer):
    kinds = [SIGNS[kind] for kind in answer.kinds.to_pylist()]
    return list(zip(kinds, answer.rows.column("k").to_pylist(), strict=True))


def reasons(answer):
    return answer.dead_letters.column("reason").to_pylist()


def test_records_of_debezium_that_are_no_change_have_no_row_and_no_deletion(tmp_path):
    """A tombstone deletes its key again; other tables' records and messages are left out."""
    row, gone = {"k": 1, "u": 1, "n": "7"}, {"k": 1, "u": None, "n": None}
    table = {"db": "shop", "table": "s"}
    form = replace(DEBEZIUM, options=(("source.db", "shop"), ("source.table", "s")))
    the_plan = change_plan("debezium")
    kafka = replace(the_plan.probe.source, value=form)
    the_plan = replace(the_plan, probe=replace(the_plan.probe, source=kafka))
    answer = answered(
        tmp_path,
        the_plan,
        [
            ({"k": 1}, {"op": "r", "after": row, "source": table}),
            ({"k": 1}, {"op": "c", "after": row, "source": {**table, "table": "t"}}),
            (None, {"op": "m", "source": table, "message": {}}),
            ({"k": 1}, {"op": "d", "before": gone, "after": None, "source": table}),
            ({"k": 1}, None),
            (None, {"op": "t", "source": table}),
        ],
    )
    assert kinds_and_keys(answer) == [("+U", 1), ("-D", 1), ("-D", 1)]
    assert answer.coordinates.column("offset").to_pylist() == [0, 3, 4]
    assert [reason[:19] for reason in reasons(answer)] == ["it is a TRUNCATE, w"]


BAD = {
    "a null value without a key": ("rows", (None, None), "key"),
    "a value of another key": ("rows", ({"k": 2}, {"k": 1, "u": 1, "n": "1"}), "its key"),
    "no object": ("rows without the key", ({"k": 2}, b"[1]"), ""),
    "an update of the key": (
        "debezium",
        (
            {"k": 2},
            {"op": "u", "before": {"k": 1}, "after": {"k": 2, "u": 1, "n": "1"}, "source": {}},
        ),
        "its key is not that of the row before",
    ),
    "a deletion without its row": (
        "debezium",
        (None, {"op": "d", "before": None, "after": None, "source": {}}),
        "key",
    ),
}


@pytest.mark.parametrize(("form", "pair", "reason"), BAD.values(), ids=BAD)
def test_a_record_whose_key_is_not_known_is_a_dead_letter(tmp_path, form, pair, reason):
    answer = answered(tmp_path, change_plan(form), [pair])
    assert (answer.rows.num_rows, answer.matched, answer.unmatched) == (0, 0, 0)
    assert len(reasons(answer)) == 1
    assert reason in reasons(answer)[0]


def test_a_deletion_has_no_value_that_a_not_null_column_misses(tmp_path):
    output = (
        OutputColumn("k", column("s", "k"), nullable=False),
        OutputColumn("n", column("s", "n", STRING), nullable=False),
    )
    the_plan = replace(change_plan("rows", JoinType.LEFT), output=output)
    pairs = [record("rows", (1, 1, None)), record("rows", (1,)), record("rows", (2, 9, "x"))]
    answer = answered(tmp_path, the_plan, pairs)
    assert kinds_and_keys(answer) == [("-D", 1), ("+U", 2)]
    assert reasons(answer) == ['column "n" of the sink is NOT NULL and would be NULL']


def test_the_time_of_a_change_in_its_database_is_a_column(tmp_path):
    the_plan = change_plan("debezium", JoinType.LEFT)
    times = MetadataField("at", "value.source.timestamp", INSTANT)
    output = (
        OutputColumn("k", column("s", "k"), nullable=False),
        OutputColumn("at", column("s", "at", INSTANT)),
    )
    the_plan = replace(
        the_plan, probe=replace(the_plan.probe, metadata_fields=(times,)), output=output
    )
    row = {"k": 1, "u": 1, "n": "7"}
    value = {"op": "c", "after": row, "source": {"ts_ms": 1_700_000_000_123}}
    (found,) = answered(tmp_path, the_plan, [(None, value)]).rows.to_pylist()
    assert found["at"].timestamp() == 1_700_000_000.123


def test_a_row_of_a_stream_replaces_the_row_of_its_columns(tmp_path):
    """Without a match, or if WHERE is not true, its key has no row; a null value is no deletion."""
    the_plan = change_plan("rows")
    kafka = KafkaSource(KafkaOptions("b:9092", "s"))
    the_plan = replace(the_plan, probe=replace(the_plan.probe, source=kafka, newest_by=("k",)))
    values = [{"k": 1, "u": 1, "n": "7"}, {"k": 2, "u": 9, "n": "7"}, None, {"k": 1, "u": 2}]
    spec = kernel_spec(the_plan)
    assert "key" not in spec.record_columns
    answer = answered(tmp_path, the_plan, [(None, value) for value in values])
    assert kinds_and_keys(answer) == [("+U", 1), ("-D", 2), ("+U", 1)]
    assert len(reasons(answer)) == 1


def test_records_of_a_captured_table_are_its_rows_and_deletions(tmp_path):
    """As the copy and the binlog write them: watermark records have no row."""
    table = MysqlCdcSource("localhost", 3306, "cdc", "", "shop", "s")
    the_plan = change_plan("rows", JoinType.LEFT)
    probe = replace(the_plan.probe, source=TableStream(table, ("k",)))
    spec = kernel_spec(replace(the_plan, probe=probe))
    assert spec.changes is not None
    captured = captured_columns(probe.fields)
    spec = replace(spec, changes=replace(spec.changes, captured=captured))
    rows = pa.RecordBatch.from_pylist([{"k": k, "u": 1, "n": str(k)} for k in (1, 2, 3)])
    low, high = BinlogPosition(0, 1, 4), BinlogPosition(0, 1, 9)
    copied = encode_snapshot(rows, ("k",), low, generation=1, partitions=1)
    places = [(0, 1, 8, at, 1, 1_700_000_000_000) for at in range(3)]
    columns = [pa.array(values) for values in zip(*places, strict=True)]
    source = pa.RecordBatch.from_arrays(columns, names=SOURCE_SCHEMA.names).cast(SOURCE_SCHEMA)
    changed = encode_records(
        Envelopes(pa.array(["u", "d", "c"]), source, rows, rows), ("k",), partitions=1
    )
    mark = pa.RecordBatch.from_arrays(
        [pa.array([None], pa.binary()), pa.array([encode_watermark(high, 1)]), pa.array([0])],
        names=RECORDS_SCHEMA.names,
    ).cast(RECORDS_SCHEMA)
    sent = pa.Table.from_batches([copied, mark, changed]).combine_chunks().to_batches()[0]
    pairs = list(zip(*(sent.column(name).to_pylist() for name in ("key", "value")), strict=True))
    answer = join_batch(spec, as_records(pairs), attached(tmp_path, the_plan), CONTEXT)
    kinds = [*[("+U", k) for k in (1, 2, 3)], ("+U", 1), ("-D", 2), ("+U", 3)]
    assert kinds_and_keys(answer) == kinds
    assert answer.coordinates.column("offset").to_pylist() == [0, 1, 2, 4, 5, 6]
    assert answer.rows.column("n").to_pylist() == [1, 2, 3, 1, None, 3]
