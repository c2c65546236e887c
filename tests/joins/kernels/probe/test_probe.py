"""One micro-batch from Kafka records to joined rows and dead letters."""

import json
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index.index import DimensionIndex, advance, build
from joins.kernels.probe.probe import BatchContext, index_spec, join_batch, kernel_spec
from joins.plan.plan import (
    ComputedField,
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    FurtherInsert,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MetadataField,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
)
from joins.plan.types import Call, Cast, Column, Constant, ProcTime, SqlType, TypeName
from tests.support.laws import examples

BIGINT = SqlType(TypeName.BIGINT)
INT = SqlType(TypeName.INT)
STRING = SqlType(TypeName.STRING)
BOOLEAN = SqlType(TypeName.BOOLEAN)
INSTANT = SqlType(TypeName.TIMESTAMP_LTZ, 3)
CONTEXT = BatchContext(proctime_ms=1_000, batch_id=7, versions=(("users", 12), ("items", 3)))

USERS = [
    {"id": 1, "city": "Oslo", "age": 30},
    {"id": 2, "city": "Rome", "age": 40},
    {"id": 3, "city": "Oslo", "age": 50},
]


def column(relation, name, kind=BIGINT):
    return Column(relation, name, kind)


def dimension(name):
    source = MysqlCdcSource("localhost", 3306, "cdc", "${secret:shop}", "shop", name)
    fields = (Field("id", BIGINT, nullable=False), Field("city", STRING), Field("age", INT))
    return Dimension(name, source, fields, ("id",))


def plan(*, join_type=JoinType.INNER, joins=None, where=None, output=None, row_metadata=False):
    probe = ProbeSource(
        alias="c",
        table="clicks",
        source=KafkaSource(KafkaOptions("localhost:9092", "clicks")),
        fields=(Field("user_id", BIGINT), Field("town", STRING), Field("amount", STRING)),
        metadata_fields=(
            MetadataField("at", "timestamp", INSTANT),
            MetadataField("place", "offset", BIGINT),
        ),
        computed_fields=(ComputedField("price", Cast(column("c", "amount", STRING), INT)),),
    )
    by_id = DimensionJoin("u", "users", join_type, (KeyPair(column("c", "user_id"), "id"),))
    shown = (("c", "user_id", BIGINT), ("u", "city", STRING))
    return JoinPlan(
        name="job",
        sql="",
        probe=probe,
        dimensions=(dimension("users"), dimension("items")),
        joins=joins or (by_id,),
        where=where,
        output=output
        or tuple(OutputColumn(name, column(alias, name, kind)) for alias, name, kind in shown),
        sink_table="enriched",
        sink=DeltaSink("enriched", row_metadata=row_metadata),
    )


def clicks(*values):
    count = len(values)
    raw = [json.dumps(item).encode() if isinstance(item, dict) else item for item in values]
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(raw, pa.binary()),
            "topic": pa.array(["clicks"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array([100 + at for at in range(count)], pa.int64()),
            "timestamp": pa.array([5_000] * count, pa.int64()),
        }
    )


def changelog(rows, *, op="r", pos=4):
    return pa.RecordBatch.from_pylist(
        [
            {
                **row,
                "_op": op,
                "_epoch": 0,
                "_file": 1,
                "_pos": pos,
                "_row": 0,
                "_partition": 0,
                "_offset": pos * 100 + at,
                "_generation": 1,
            }
            for at, row in enumerate(rows)
        ],
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("city", pa.string()),
                ("age", pa.int32()),
                ("_op", pa.string()),
                ("_epoch", pa.int32()),
                ("_file", pa.int64()),
                ("_pos", pa.int64()),
                ("_row", pa.int64()),
                ("_partition", pa.int32()),
                ("_offset", pa.int64()),
                ("_generation", pa.int32()),
            ]
        ),
    )


def attached(directory, the_plan, rows=None):
    found = {}
    for join in the_plan.joins:
        spec = index_spec(the_plan, join, 1)
        build(directory / join.dimension, 0, spec, [changelog(USERS if rows is None else rows)])
        found[join.alias] = DimensionIndex.attach(directory / join.dimension, 0, spec)
    return found


def joined(directory, the_plan, *values):
    spec = pickle.loads(pickle.dumps(kernel_spec(the_plan)))
    return join_batch(spec, clicks(*values), attached(directory, the_plan), CONTEXT)


def tuples(batch):
    return [tuple(row.values()) for row in batch.to_pylist()]


TYPES = {
    "inner_drops_the_unmatched": (JoinType.INNER, [(1, "Oslo"), (2, "Rome")]),
    "left_pads_the_unmatched": (
        JoinType.LEFT,
        [(1, "Oslo"), (9, None), (None, None), (2, "Rome")],
    ),
}


@pytest.mark.parametrize(("join_type", "expected"), TYPES.values(), ids=TYPES)
def test_unmatched_records_follow_the_join_type(tmp_path, join_type, expected):
    values = [{"user_id": 1}, {"user_id": 9}, {"town": "x"}, {"user_id": 2}]
    answer = joined(tmp_path, plan(join_type=join_type), *values)
    assert tuples(answer.rows) == expected
    assert (answer.matched, answer.unmatched) == (2, 2)
    assert answer.dead_letters.num_rows == 0


def test_fan_out_is_ordered_by_record_and_then_by_primary_key(tmp_path):
    by_city = DimensionJoin(
        "u", "users", JoinType.LEFT, (KeyPair(column("c", "town", STRING), "city"),)
    )
    output = (
        OutputColumn("place", column("c", "place")),
        OutputColumn("id", column("u", "id")),
    )
    the_plan = plan(joins=(by_city,), output=output)
    spec = index_spec(the_plan, by_city, 1)
    build(tmp_path, 0, spec, [changelog([USERS[2], USERS[1]])])
    advance(tmp_path, 0, 1, spec, [changelog([{**USERS[0]}], op="c", pos=9)])
    index = DimensionIndex.attach(tmp_path, 1, spec)
    records = clicks({"town": "Oslo"}, {"town": "Bonn"}, {"town": "Rome"}, {"town": "Oslo"})
    answer = join_batch(kernel_spec(the_plan), records, {"u": index}, CONTEXT)
    assert tuples(answer.rows) == [
        (100, 1), (100, 3), (101, None), (102, 2), (103, 1), (103, 3),
    ]  # fmt: skip
    assert answer.coordinates.column("offset").to_pylist() == [100, 100, 101, 102, 103, 103]
    assert (answer.matched, answer.unmatched) == (3, 1)


def older_than(age):
    limit = Constant(str(age), INT)
    return Call(">", (column("u", "age", INT), limit), BOOLEAN)


def test_the_rest_of_on_belongs_to_the_match_and_where_does_not(tmp_path):
    keys = (KeyPair(column("c", "user_id"), "id"),)
    condition = DimensionJoin("u", "users", JoinType.LEFT, keys, older_than(35))
    values = [{"user_id": 1}, {"user_id": 2}]
    answer = joined(tmp_path / "on", plan(joins=(condition,)), *values)
    assert tuples(answer.rows) == [(1, None), (2, "Rome")]
    assert (answer.matched, answer.unmatched) == (1, 1)
    filtered = plan(join_type=JoinType.LEFT, where=older_than(35))
    assert tuples(joined(tmp_path / "where", filtered, *values).rows) == [(2, "Rome")]


def test_dimensions_chain_and_a_later_key_may_read_an_earlier_dimension(tmp_path):
    first = DimensionJoin("u", "users", JoinType.LEFT, (KeyPair(column("c", "user_id"), "id"),))
    second = DimensionJoin(
        "n", "users", JoinType.LEFT, (KeyPair(column("u", "city", STRING), "city"),)
    )
    output = (
        OutputColumn("place", column("c", "place")),
        OutputColumn("mine", column("u", "id")),
        OutputColumn("neighbour", column("n", "id")),
    )
    the_plan = plan(joins=(first, second), output=output)
    answer = joined(tmp_path, the_plan, {"user_id": 3}, {"user_id": 8}, {"user_id": 2})
    assert tuples(answer.rows) == [
        (100, 3, 1), (100, 3, 3), (101, None, None), (102, 2, 2),
    ]  # fmt: skip
    assert (answer.matched, answer.unmatched) == (2, 1)


def test_a_record_is_answered_or_dead_never_both(tmp_path):
    output = (
        OutputColumn("user_id", column("c", "user_id")),
        OutputColumn("price", column("c", "price", INT)),
        OutputColumn("city", column("u", "city", STRING), nullable=False),
    )
    answer = joined(
        tmp_path,
        plan(join_type=JoinType.LEFT, output=output),
        {"user_id": 1, "amount": " 12 "},
        b"not json",
        {"user_id": 2, "amount": "twelve"},
        {"user_id": 99, "amount": "1"},
        None,
        {"user_id": "one"},
    )
    assert tuples(answer.rows) == [(1, 12, "Oslo")]
    letters = answer.dead_letters
    assert letters.column("offset").to_pylist() == [101, 102, 103, 104, 105]
    assert letters.column("reason").to_pylist() == [
        "the value is not one JSON object",
        'column "price": cannot cast "twelve" to INT',
        'column "city" of the sink is NOT NULL and would be NULL',
        "the value is null",
        'field "user_id": expected number, found string',
    ]
    assert letters.column("value").to_pylist()[0] == b"not json"
    assert (answer.matched, answer.unmatched) == (1, 0)


def test_a_computed_column_that_nothing_reads_kills_no_record(tmp_path):
    answer = joined(tmp_path, plan(), {"user_id": 1, "amount": "twelve", "town": 5})
    assert tuples(answer.rows) == [(1, "Oslo")]


def test_row_metadata_and_the_pinned_time_are_in_the_rows(tmp_path):
    output = (
        OutputColumn("at", column("c", "at", INSTANT)),
        OutputColumn("now", ProcTime(INSTANT)),
    )
    answer = joined(tmp_path, plan(output=output, row_metadata=True), {"user_id": 1})
    row = answer.rows.to_pylist()[0]
    assert [row["at"].timestamp(), row["now"].timestamp()] == [5.0, 1.0]
    assert list(row.values())[2:] == ["clicks", 0, 100, 7, "users=12,items=3"]
    assert answer.rows.schema.equals(
        kernel_spec(plan(output=output, row_metadata=True)).output_schema
    )


def test_an_empty_batch_has_no_rows_and_the_right_schema(tmp_path):
    answer = joined(tmp_path, plan(row_metadata=True))
    assert answer.rows.num_rows == answer.dead_letters.num_rows == 0
    assert answer.rows.schema.names[:2] == ["user_id", "city"]


CITIES = st.sampled_from(["Oslo", "Rome", None, "Bonn"])


@settings(max_examples=examples(60))
@given(
    towns=st.lists(CITIES, max_size=8),
    cities=st.lists(CITIES, max_size=8),
    limit=st.one_of(st.none(), st.integers(0, 8)),
    join_type=st.sampled_from(JoinType),
)
def test_the_join_is_that_of_two_nested_loops(towns, cities, limit, join_type, tmp_path_factory):
    key = (KeyPair(column("c", "town", STRING), "city"),)
    condition = None if limit is None else older_than(limit)
    join = DimensionJoin("u", "users", join_type, key, condition)
    output = (
        OutputColumn("place", column("c", "place")),
        OutputColumn("id", column("u", "id")),
    )
    the_plan = plan(joins=(join,), output=output)
    rows = [{"id": at, "city": city, "age": at} for at, city in enumerate(cities)]
    indexes = attached(tmp_path_factory.mktemp("join"), the_plan, rows)
    records = clicks(*({"town": town} for town in towns))
    expected = []
    for at, town in enumerate(towns):
        matches = [
            (100 + at, row["id"])
            for row in rows
            if town is not None and row["city"] == town and (limit is None or row["age"] > limit)
        ]
        expected += matches or ([(100 + at, None)] if join_type is JoinType.LEFT else [])
    answer = join_batch(kernel_spec(the_plan), records, indexes, CONTEXT)
    assert tuples(answer.rows) == expected
    assert answer.matched + answer.unmatched == len(towns)


def test_joins_of_one_dimension_on_the_same_columns_share_an_index():
    keys = (KeyPair(column("c", "user_id"), "id"),)
    first = DimensionJoin("u", "users", JoinType.LEFT, keys)
    second = replace(first, alias="v")
    output = (
        OutputColumn("city", column("u", "city", STRING)),
        OutputColumn("age", column("v", "age", INT)),
    )
    the_plan = plan(joins=(first, second), output=output)
    assert index_spec(the_plan, first, 4).digest == index_spec(the_plan, second, 4).digest
    assert [item.name for item in index_spec(the_plan, first, 4).fields] == ["id", "city", "age"]


# Statement sets


def set_of_two():
    """The second INSERT calls the stream `e` and reads its `amount` as a number."""
    first = plan(join_type=JoinType.LEFT)
    by_town = DimensionJoin("d", "users", JoinType.INNER, (KeyPair(column("e", "user_id"), "id"),))
    price = ComputedField("price", Cast(column("e", "amount", STRING), INT))
    more = FurtherInsert(
        alias="e",
        computed_fields=(price,),
        joins=(by_town,),
        where=None,
        output=(
            OutputColumn("age", column("d", "age", INT)),
            OutputColumn("ratio", Cast(column("e", "town", STRING), INT)),
        ),
        sink_table="ratios",
        sink=DeltaSink("ratios", row_metadata=False),
    )
    return replace(first, more_inserts=(more,))


def test_a_record_that_cannot_be_parsed_is_one_letter_and_has_rows_in_no_output(tmp_path):
    both = set_of_two()
    records = clicks(
        {"user_id": 1, "town": "5"},
        {"user_id": 1, "town": "\ud800"},  # only the second INSERT reads it
        {"user_id": 2, "town": "many"},
        b"{",
        {"user_id": 9, "town": "7"},
    )
    answers = [
        join_batch(kernel_spec(both, n), records, attached(tmp_path / str(n), part), CONTEXT)
        for n, part in enumerate(both.inserts)
    ]
    assert [row["user_id"] for row in answers[0].rows.to_pylist()] == [1, 2, 9]
    assert answers[1].rows.to_pylist() == [{"age": 30, "ratio": 5}]
    letters = [answer.dead_letters.to_pylist() for answer in answers]
    assert [letter["offset"] for letter in letters[0]] == [101, 103]
    assert [letter["offset"] for letter in letters[1]] == [102]
    assert letters[1][0]["reason"].startswith('INSERT 2 INTO "ratios": ')
    assert not any(letter["reason"].startswith("INSERT") for letter in letters[0])
    first, second = (kernel_spec(both, n).member for n in (0, 1))
    assert [first.is_told(x["reason"]) for x in letters[0] + letters[1]] == [True, True, False]
    assert [second.is_told(x["reason"]) for x in letters[0] + letters[1]] == [True, True, True]


def test_inserts_share_an_index_that_has_the_columns_of_both(tmp_path):
    both = set_of_two()
    specs = {index_spec(both, join, 1) for part in both.inserts for join in part.joins}
    (shared,) = specs
    assert [item.name for item in shared.fields] == ["id", "city", "age"]


def test_a_plan_of_one_insert_is_its_own_only_part():
    assert plan().inserts == (plan(),)
    assert kernel_spec(plan()).member is None
