"""How an output is fenced for Spark's writer, without a JVM: what Spark would leave is in the log.

`test_spark_delta_sink` does the same with Spark.
"""

import json

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table, txn_number
from joins.adapters.delta.output import OutputLog, SparkAppend
from joins.plan.errors import FencedError, SinkError

SCHEMA = pa.schema([("id", pa.int64())])


class NoSession:
    """Where a session is asked for rows, and there are none."""

    def createDataFrame(self, rows, schema):  # noqa: N802 (Spark's name)
        assert rows == []


def commit_as_spark(path, transaction, metadata):
    loaded = DeltaTable(str(path))
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(metadata)},
        app_transactions=[Transaction("app:spark", transaction)],
    )
    loaded.create_write_transaction([], "append", loaded.schema(), commit_properties=properties)


class Output(OutputLog):
    """An output whose commits by Spark are entries of its log.

    `meanwhile` happens after the next look at the newest batch but `after`.
    """

    def __init__(self, path) -> None:
        super().__init__(path, "app", Appends(SCHEMA), NoSession())
        self.meanwhile = None
        self.after = 0
        self.by_spark = []
        self.look, self.batches.last_in_log = self.batches.last_in_log, self.last_in_log
        self.spark.save = self.save

    def last_in_log(self, table):
        found = self.look(table)
        self.after -= 1
        if self.meanwhile is not None and self.after < 0:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return found

    def save(self, table, transaction, append):
        before = int(table.version())
        self.by_spark.append(transaction)
        known = newest(self.path)
        if known is None or known < transaction:  # else Delta skips it
            commit_as_spark(self.path, transaction, append.metadata)
        return self.spark.committed_as(transaction, range(before + 1, self.version() + 1))[0]


@pytest.fixture
def path(tmp_path):
    create_table(tmp_path / "out", SCHEMA)
    DeltaTable(str(tmp_path / "out")).alter.add_constraint({"small": "id < 9"})
    return tmp_path / "out"


def newest(path):
    return DeltaTable(str(path)).transaction_version("app:spark")


def batch_of(path, epoch, batch):
    return lambda: commit_as_spark(path, txn_number(epoch, batch), {"batch": batch})


def test_an_epoch_is_committed_without_spark_where_that_is_possible(path):
    output = Output(path)
    output.commit_epoch(1)
    output.commit_epoch(1)
    assert (newest(path), output.batches.last_batch(), output.by_spark) == (
        txn_number(1, None),
        None,
        [],
    )
    output.append(0, 1, SparkAppend(None, 0, {"batch": 0}))
    version = output.version()
    assert (output.batches.last_batch(), output.batches.version_of(0)) == (0, version)
    assert output.append(0, 1, SparkAppend(None, 0, {"batch": 0})) == version
    Output(path).commit_epoch(2)
    assert newest(path) == txn_number(2, 0)
    with pytest.raises(FencedError, match="epoch 2"):
        output.append(1, 1, SparkAppend(None, 0, {"batch": 1}))
    with pytest.raises(FencedError):
        DeltaLog(path, "app").commit(1, 1, (), {})


@pytest.mark.parametrize("after", [1, 3], ids=["delta_rs", "spark"])
def test_a_batch_of_an_older_runner_in_between_is_known(path, after):
    """The first look decides, the second one is for delta-rs, and then it is Spark's turn."""
    Output(path).commit_epoch(1)
    batch_of(path, 1, 0)()
    output = Output(path)
    if after == 3:
        output._write_epoch = refuse
        after = 2  # the look for delta-rs is left out
    output.after, output.meanwhile = after, batch_of(path, 1, 1)
    output.commit_epoch(2)
    assert output.meanwhile is None
    assert output.by_spark
    assert (newest(path), output.batches.last_batch()) == (txn_number(2, 1), 1)
    assert output.batches.version_of(1) is not None
    output.append(1, 2, SparkAppend(None, 0, {"batch": 1}))
    assert newest(path) == txn_number(2, 1)


def refuse(table, epoch, *, for_spark):
    raise SinkError("unsupported table features", hint="None.")


def test_what_spark_skips_is_no_commit(path):
    output = Output(path)
    output.commit_epoch(1)
    Output(path).commit_epoch(2)
    with pytest.raises(FencedError, match="epoch 2"):
        output.save(output.versions.fresh(), txn_number(1, 0), SparkAppend(None, 0))
