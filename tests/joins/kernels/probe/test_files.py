"""Staged files: whole or absent, and described by what pyarrow finds in them."""

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from joins.adapters.delta.log import DeltaLog, create_table
from joins.kernels.probe import files
from joins.kernels.probe.files import FileOrigin, ParquetStage, writer_tag
from tests.support.changelog import stage
from tests.support.laws import examples

ORIGIN = FileOrigin(epoch=2, batch=17, task=3, attempt=41)
SCHEMA = pa.schema(
    [
        ("tiny", pa.int8()),
        ("big", pa.int64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float64()),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us")),
        ("instant", pa.timestamp("us", tz="UTC")),
    ]
)
BOUNDED = ("tiny", "big", "flag", "day", "at", "instant")
INSTANTS = st.integers(-(2**50), 2**50) | st.integers(-(2**40), 2**40).map(lambda ms: ms * 1000)
ROWS = st.fixed_dictionaries(
    {
        "tiny": st.none() | st.integers(-(2**7), 2**7 - 1),
        "big": st.none() | st.integers(-(2**63), 2**63 - 1),
        "flag": st.none() | st.booleans(),
        "day": st.none() | st.dates(),
        "price": st.none() | st.decimals(-99_999_999, 99_999_999, places=2),
        "ratio": st.none() | st.floats(allow_nan=False),
        "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "raw": st.none() | st.binary(),
        "at": st.none() | INSTANTS,
        "instant": st.none() | INSTANTS,
    }
)
BATCHES = st.lists(st.lists(ROWS, max_size=5), max_size=4)


def batch_of(rows):
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def plain(value):
    """A value as statistics have it; times must be whole milliseconds."""
    if not isinstance(value, dt.datetime):
        return value.isoformat() if isinstance(value, dt.date) else value
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if value.tzinfo is None else f"{text}Z"


def is_exact(value):
    return not isinstance(value, dt.datetime) or value.microsecond % 1000 == 0


@settings(max_examples=examples(60))
@given(batches=BATCHES, short_lived=st.booleans())
def test_a_staged_file_has_the_rows_and_the_statistics_of_its_batches(
    tmp_path_factory, batches, short_lived
):
    root = tmp_path_factory.mktemp("table")
    with ParquetStage(root, SCHEMA, ORIGIN, short_lived=short_lived) as staging:
        for rows in batches:
            staging.write(batch_of(rows))
        staged = staging.finish()
    table = pa.Table.from_batches([batch_of(rows) for rows in batches], schema=SCHEMA)
    if table.num_rows == 0:
        assert staged is None
        assert list(root.iterdir()) == []
        return
    assert staged is not None
    path = root / staged.path
    assert [staged.rows, staged.size_bytes] == [table.num_rows, path.stat().st_size]
    assert pq.read_table(path).equals(table)
    stats = json.loads(staged.stats)
    assert stats["numRecords"] == table.num_rows
    assert stats["nullCount"] == {name: table.column(name).null_count for name in SCHEMA.names}
    bounds = {name: bounds_of(table.column(name)) for name in BOUNDED}
    whole = {name: pair for name, pair in bounds.items() if pair and all(map(is_exact, pair))}
    assert stats["minValues"] == {name: plain(low) for name, (low, _) in whole.items()}
    assert stats["maxValues"] == {name: plain(high) for name, (_, high) in whole.items()}


def bounds_of(column):
    return () if column.null_count == len(column) else tuple(pc.min_max(column).as_py().values())


def test_only_columns_whose_values_repeat_have_a_dictionary(tmp_path):
    rows = 5_000
    columns = {
        "unique": pa.array(range(rows)),
        "repeated": pa.array(["Oslo", "Rome"] * (rows // 2)),
        "nothing": pa.nulls(rows, pa.int64()),
    }
    staged = stage(tmp_path, pa.record_batch(columns))
    group = pq.ParquetFile(tmp_path / staged.path).metadata.row_group(0)
    found = [group.column(at).has_dictionary_page for at in range(2)]
    assert found == [False, True]
    assert pq.read_table(tmp_path / staged.path).to_pydict() == pa.table(columns).to_pydict()


def test_small_batches_are_one_row_group_and_many_rows_are_several(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_GROUP_ROWS", 4)
    with ParquetStage(tmp_path, SCHEMA, ORIGIN) as staging:
        for count in (1, 2, 3, 1, 9, 1):
            staging.write(batch_of([dict.fromkeys(SCHEMA.names)] * count))
        staged = staging.finish()
    metadata = pq.read_metadata(tmp_path / staged.path)
    groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    assert groups == [6, 10, 1]


def test_a_transfer_keeps_its_batches_apart(tmp_path):
    with ParquetStage(tmp_path, SCHEMA, ORIGIN, kept=False) as staging:
        for _ in range(3):
            staging.write(batch_of([dict.fromkeys(SCHEMA.names)]))
        staged = staging.finish()
    assert pq.read_metadata(tmp_path / staged.path).num_row_groups == 3


def test_a_short_lived_file_keeps_nested_columns(tmp_path):
    nested = pa.record_batch(
        {"list": [[{"x": 1, "y": "long" * 99}], None], "of": [1, None], "d": [Decimal(1), None]}
    )
    with ParquetStage(tmp_path, nested.schema, ORIGIN, short_lived=True) as staging:
        staging.write(nested)
        staged = staging.finish()
    assert pq.read_table(tmp_path / staged.path).to_pylist() == nested.to_pylist()


def test_a_file_that_is_not_finished_does_not_stay(tmp_path):
    def write_half():
        with ParquetStage(tmp_path, SCHEMA, ORIGIN) as staging:
            staging.write(batch_of([dict.fromkeys(SCHEMA.names)]))
            assert len(list(tmp_path.iterdir())) == 1
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_schema_are_refused(tmp_path):
    with ParquetStage(tmp_path, SCHEMA, ORIGIN) as staging, pytest.raises((ValueError, TypeError)):
        staging.write(pa.RecordBatch.from_pydict({"other": [1]}))
    assert list(tmp_path.iterdir()) == []


def test_a_day_outside_of_the_calendar_leaves_its_column_without_bounds(tmp_path):
    days = pa.array([-800_000, 0], pa.int32()).cast(pa.date32())
    staged = stage(tmp_path, pa.RecordBatch.from_arrays([days], names=["day"]))
    stats = json.loads(staged.stats)
    assert (stats["minValues"], stats["nullCount"]) == ({}, {"day": 0})


def test_a_name_tells_who_wrote_the_file_and_is_never_used_twice():
    names = {ORIGIN.file_name() for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("part-00002-0000000017-00003-41-") for name in names)
    tagged = replace(ORIGIN, writer=writer_tag("sluice:job:life"))
    assert [FileOrigin.of_name(o.file_name()) for o in (ORIGIN, tagged)] == [ORIGIN, tagged]
    assert FileOrigin.of_name("part-00000-c000.snappy.parquet") is None


# Spark skips files by these statistics.

SKIPPED = (
    "tiny > 2",
    "big = 9007199254740993",
    "flag",
    "day = DATE'2024-02-29'",
    "day < DATE'1600-01-01'",
    "price = 1.10",
    "name = 'b'",
    "at >= TIMESTAMP_NTZ'1970-01-01 00:00:01'",
    "tiny IS NULL AND big IS NULL",
)


def spark_rows(number):
    day = (dt.date(1500, 1, 1), dt.date(2024, 2, 29), None, dt.date(9999, 12, 31))[number % 4]
    return {
        "tiny": (number % 7) - 3 if number % 5 else None,
        "big": (2**53 + 1, -(2**63), 2**63 - 1, None, 0)[number % 5],
        "flag": (True, False, None)[number % 3],
        "day": day,
        "price": Decimal(number) / 10,
        "ratio": (float("nan"), 0.25, None, 0.75)[number % 4],
        "name": ("a", "b", None, "x" * 60)[number % 4],
        "raw": b"\x00" if number % 2 else None,
        "at": number * 500_000,
        "instant": -number,
    }


def test_spark_finds_the_same_rows_with_and_without_data_skipping(tmp_path, spark: SparkSession):
    create_table(tmp_path, SCHEMA)
    rows = [spark_rows(n) for n in range(24)]
    files = [stage(tmp_path, batch_of(rows[at : at + 4])) for at in range(0, len(rows), 4)]
    files.append(stage(tmp_path, batch_of([dict.fromkeys(SCHEMA.names)])))
    DeltaLog(tmp_path, "app").commit(0, 1, files, {})
    session = spark.newSession()
    answers = {}
    for skipping in ("true", "false"):
        session.conf.set("spark.databricks.delta.stats.skipping", skipping)
        frame = session.read.format("delta").load(str(tmp_path))
        found = [
            frame.where(condition).select(f.lit(condition), f.col("price").cast("string"))
            for condition in SKIPPED
        ]
        answers[skipping] = sorted(map(str, reduce(DataFrame.unionAll, found).collect()))
    assert answers["true"] == answers["false"]
    assert all(any(condition in row for row in answers["true"]) for condition in SKIPPED)
