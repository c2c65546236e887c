"""Arrays and maps as rows, held to what a loop over Python's values says."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies

from joins.kernels.probe.probe import BatchContext, join_batch, kernel_spec, unnested
from joins.plan.plan import JoinType
from service.sql.planner.planner import plan

CONTEXT = BatchContext(proctime_ms=0, batch_id=1, versions=())
ROW = pa.struct([("a", pa.int64()), ("b", pa.string())])
SQL = """
CREATE TABLE s (id BIGINT, tags ARRAY<STRING>, rows ARRAY<ROW<a BIGINT, b STRING>>,
    labels MAP<STRING, BIGINT>) WITH ('connector' = 'kafka', 'topic' = 's',
    'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'scan.startup.mode' =
    'earliest-offset');
CREATE TABLE o WITH ('connector' = 'delta', 'path' = 'o', 'row-metadata' = 'false') AS
"""
RECORDS = [
    b'{"id": 1, "tags": ["x", null, "y"], "rows": [{"a": 1, "b": "p"}, null], "labels": {"k": 7}}',
    b'{"id": 2, "tags": [], "labels": {}}',
    b'{"id": 3, "tags": null, "rows": [{"a": 2}]}',
    b"no json",
    b'{"id": 4, "tags": ["z"], "rows": [], "labels": {"l": null, "m": 8}}',
]
QUERIES = {
    "array": (
        "SELECT id, t.x FROM s CROSS JOIN UNNEST(tags) AS t (x)",
        [(1, "x"), (1, None), (1, "y"), (4, "z")],
    ),
    "outer": (
        "SELECT id, t.x FROM s LEFT JOIN UNNEST(tags) AS t (x) ON TRUE WHERE id < 4",
        [(1, "x"), (1, None), (1, "y"), (2, None), (3, None)],
    ),
    "rows": (
        "SELECT id, r.a, r.b FROM s CROSS JOIN UNNEST(s.rows) AS r",
        [(1, 1, "p"), (1, None, None), (3, 2, None)],
    ),
    "map": (
        "SELECT id, k, v FROM s, UNNEST(labels) AS m (k, v)",
        [(1, "k", 7), (4, "l", None), (4, "m", 8)],
    ),
    "two": (
        "SELECT id, x, k FROM s CROSS JOIN UNNEST(tags) AS t (x) "
        "CROSS JOIN UNNEST(labels) AS m (k, v) WHERE x IS NOT NULL",
        [(1, "x", "k"), (1, "y", "k"), (4, "z", "l"), (4, "z", "m")],
    ),
    "made": (
        "SELECT id, x FROM s CROSS JOIN UNNEST(ARRAY[id, id * 2]) AS t (x) WHERE id = 4",
        [(4, 4), (4, 8)],
    ),
}


@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
def test_a_row_comes_of_each_element(query, expected):
    offsets = pa.array(range(len(RECORDS)), pa.int64())
    partitions = pa.array([0] * len(RECORDS), pa.int32())
    records = pa.RecordBatch.from_arrays(
        [pa.array(RECORDS, pa.binary()), partitions, offsets], ["value", "partition", "offset"]
    )
    answer = join_batch(kernel_spec(plan(SQL + query)), records, {}, CONTEXT)
    assert [tuple(row.values()) for row in answer.rows.to_pylist()] == expected
    assert answer.dead_letters.column("offset").to_pylist() == [3]
    assert answer.coordinates.column("offset").to_pylist() == sorted(
        answer.coordinates.column("offset").to_pylist()
    )


LISTS = strategies.lists(
    strategies.none() | strategies.lists(strategies.none() | strategies.integers(0, 9), max_size=3),
    max_size=8,
)


@given(LISTS, strategies.integers(0, 3), strategies.sampled_from(JoinType))
def test_elements_are_those_of_a_loop(values, skipped, join_type):
    """Also of a slice, and where rows are picked from what comes."""
    at, elements = unnested(pa.array(values, pa.list_(pa.int64())).slice(skipped), join_type)
    expected = [
        (row, element)
        for row, value in enumerate(values[skipped:])
        for element in (value or ([None] if join_type is JoinType.LEFT else []))
    ]
    got = elements.taken("element").to_pylist()
    assert list(zip(at.tolist(), got, strict=True)) == expected
    backwards = elements.picked(np.arange(len(at))[::-1])
    assert backwards.taken("element").to_pylist() == got[::-1]


MAPS = strategies.lists(
    strategies.none()
    | strategies.dictionaries(strategies.sampled_from("abc"), strategies.integers(0, 9)),
    max_size=8,
)


@given(MAPS, strategies.integers(0, 3), strategies.sampled_from(JoinType))
def test_entries_are_those_of_a_loop(values, skipped, join_type):
    pairs = [None if value is None else list(value.items()) for value in values]
    array = pa.array(pairs, pa.map_(pa.string(), pa.int64())).slice(skipped)
    at, elements = unnested(array, join_type)
    expected = [
        (row, *entry)
        for row, value in enumerate(pairs[skipped:])
        for entry in (value or ([(None, None)] if join_type is JoinType.LEFT else []))
    ]
    columns = (elements.taken(name).to_pylist() for name in ("key", "value"))
    assert list(zip(at.tolist(), *columns, strict=True)) == expected


def test_the_fields_of_a_row_that_is_null_are_null():
    rows = pa.array([[{"a": 1, "b": "x"}, None]], pa.list_(ROW))
    _, elements = unnested(rows, JoinType.INNER)
    assert elements.taken("a").to_pylist() == [1, None]
