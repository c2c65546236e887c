"""A table gets the columns of a job's newer plan, and takes the rows of each of its plans."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.kernels.probe.files import FileOrigin
from joins.plan.errors import SinkError

OLD = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("_batch", pa.int64())]
)
NEW = pa.schema([OLD.field("id"), OLD.field("name"), ("extra", pa.string()), OLD.field("_batch")])
APP = "sluice:job:one"


def log_of(path, schema):
    return DeltaLog(path, APP, Appends(schema, grows=True))


def committed(log, schema, batch, **row):
    with log.shared.stage(schema, FileOrigin(1, batch, 0, 0)) as stage:
        stage.write(pa.RecordBatch.from_pylist([row], schema=schema))
        staged = stage.finish()
    log.commit(batch, 1, [staged], {})


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    create_table(path, OLD)
    committed(log_of(path, OLD), OLD, 0, id=1, name="a", _batch=0)
    return path


def rows(path):
    return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def test_new_columns_are_added_once_and_older_rows_have_null(table):
    log = log_of(table, NEW)
    for _ in range(2):
        log.upkeep.grow(Appends(NEW, grows=True))
    assert log.version() == 2
    log.choose_writer(Appends(NEW, grows=True))
    committed(log, NEW, 1, id=2, name="b", extra="x", _batch=1)
    assert rows(table) == [
        {"id": 1, "name": "a", "_batch": 0, "extra": None},
        {"id": 2, "name": "b", "_batch": 1, "extra": "x"},
    ]
    assert log_of(table, NEW).batches.last_batch() == 1


def test_a_table_that_has_grown_takes_the_rows_of_an_older_plan(table):
    log_of(table, NEW).upkeep.grow(Appends(NEW, grows=True))
    old = log_of(table, OLD)
    old.upkeep.grow(Appends(OLD, grows=True))
    assert not old.choose_writer(Appends(OLD, grows=True)).is_spark
    committed(old, OLD, 1, id=2, name="b", _batch=1)
    assert rows(table)[1] == {"id": 2, "name": "b", "_batch": 1, "extra": None}


def test_a_writer_that_was_open_sees_the_columns(table):
    old = log_of(table, OLD)
    old.version()
    log_of(table, NEW).upkeep.grow(Appends(NEW, grows=True))
    committed(old, OLD, 1, id=2, name="b", _batch=1)
    assert rows(table)[1]["extra"] is None


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([OLD.field("name"), OLD.field("_batch")]),  # id is NOT NULL
        pa.schema([OLD.field("id"), ("name", pa.int64()), OLD.field("_batch")]),
        pa.schema([*OLD, pa.field("strict", pa.string(), nullable=False)]),
    ],
    ids=["without a NOT NULL column", "of another type", "with a NOT NULL column more"],
)
def test_other_columns_are_refused(table, schema):
    log = log_of(table, schema)
    log.upkeep.grow(Appends(schema, grows=True))
    with pytest.raises(SinkError, match="has columns"):
        log.choose_writer(Appends(schema, grows=True))


def test_a_job_that_was_never_changed_keeps_the_order_of_its_columns(table):
    log_of(table, NEW).upkeep.grow(Appends(NEW, grows=True))
    for schema in (OLD, NEW):
        with pytest.raises(SinkError, match="has columns"):
            log_of(table, schema).choose_writer(Appends(schema))
