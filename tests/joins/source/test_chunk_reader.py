"""Groups of chunks: so large as their rows allow, each row once, and what a task could not read."""

import socket
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from joins.adapters.kafka.client import decompressed
from joins.adapters.mysql.chunks import Chunk, SnapshotTask, chunk_bounds
from joins.adapters.mysql.source import check_source
from joins.kernels.changelog.envelope import BinlogPosition
from joins.kernels.records.decode import KEY, decode
from joins.kernels.records.layout import BatchOrigin, record_batch
from joins.plan.causes import fault_in
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import COMPRESSION_TYPE, Field, KafkaOptions
from joins.plan.types import SqlType, TypeName
from joins.source.chunk_reader import COMPRESSION, ChunkReader, ChunkStage, GroupSize, in_background
from joins.worker.row_files import RowFiles
from tests.support.sql import cdc_connection, new_schema

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("v", SqlType(TypeName.STRING)))
ROWS = 1_000
TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(50))",
    f"INSERT INTO t SELECT seq, CONCAT('v', seq) FROM seq_1_to_{ROWS}",
)

# how groups are to be, chunks and bytes of the group before, chunks of the next one
SIZES = {
    "so_many_rows": (GroupSize(2, 1_000, 200_000), (2, 400_000), 200),
    "so_many_bytes": (GroupSize(2, 1_000, 200_000), (2, 4 << 20), 32),
    "a_chunk_for_each_task_at_the_least": (GroupSize(4, 50_000, 200_000), (4, 1 << 30), 4),
    "as_many_for_each_task": (GroupSize(4, 1_000, 10_500), (4, 1), 8),
    "chunks_that_are_larger_than_a_group": (GroupSize(2, 500_000, 200_000), (2, 1), 2),
    "not_all_bounds_of_a_table_of_tiny_chunks": (GroupSize(2, 1, 200_000), (2, 300), 1_000),
    "nothing_was_read": (GroupSize(2, 100, 1_000), (2, 0), 10),
}


@pytest.mark.parametrize(("size", "before", "expected"), SIZES.values(), ids=SIZES)
def test_a_group_is_as_large_as_the_rows_before_allow(size, before, expected):
    assert size.first() == size.tasks
    assert size.following(*before) == expected


@pytest.mark.parametrize(
    "chunk", [Chunk(None, None), Chunk(("1", "é'\\\n"), None), Chunk(None, ("", "x"))]
)
def test_a_chunk_is_itself_behind_its_text(chunk):
    assert Chunk.from_text(chunk.as_text()) == chunk


def stage_of(mariadb, schema, directory):
    config = cdc_connection(mariadb, schema)
    table = check_source(config, FIELDS, ("id",))
    return ChunkStage(
        SnapshotTask(config, table, BinlogPosition(0, 1, 4), 1, 2), 9_000, directory, 1 << 20
    )


def keys_of(files: RowFiles, report) -> list[bytes]:
    keys = []
    for path in files.paths(report):
        for row in pq.read_table(path).to_pylist():
            origin = BatchOrigin(-1, -1, -1)
            batch = record_batch(row["body"], row["records"], COMPRESSION, 0, origin)
            keys += decode(batch, (0, 1 << 40), (), decompressed).texts(KEY).to_pylist()
    return keys


def test_each_row_is_in_one_group_of_neighbouring_chunks(spark, mariadb, tmp_path):
    files = RowFiles(tmp_path / "staged")
    with new_schema(mariadb, *TABLE) as schema:
        stage = stage_of(mariadb, schema, files.place)
        bounds = list(chunk_bounds(stage.task.config, stage.task.table, rows_each=30))
        groups = list(ChunkReader(spark, stage, GroupSize(2, 30, 250)).groups(iter(bounds)))
    assert [len(chunks) for chunks, _ in groups] == [2, 8, 8, 8, 8]
    assert [chunk for chunks, _ in groups for chunk in chunks] == bounds
    assert all(len(files.staged(report)) == 2 for _, report in groups), "a file of each task"
    first, *others = ([*keys_of(files, report)] for _, report in groups)
    assert sorted(first) == sorted(b'{"id":%d}' % n for n in range(1, 61))
    everything = sorted(first + [key for keys in others for key in keys])
    assert everything == sorted(b'{"id":%d}' % n for n in range(1, ROWS + 1))
    for _, report in groups:
        files.remove(report)
    assert list(files.place.iterdir()) == []


def test_a_server_that_is_gone_is_told_with_its_hint(spark, mariadb, tmp_path):
    with new_schema(mariadb, *TABLE) as schema, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        stage = stage_of(mariadb, schema, tmp_path)
        gone = replace(stage.task.config, port=closed.getsockname()[1])
        stage = replace(stage, task=replace(stage.task, config=gone))
        groups = ChunkReader(spark, stage, GroupSize(2, 500, 500)).groups(iter([Chunk(None, None)]))
        with pytest.raises((PySparkException, Py4JError)) as raised:
            next(groups)
    known = fault_in(str(raised.value))
    assert isinstance(known, SourceUnavailableError)
    assert "cannot be reached" in known.message
    assert known.hint.startswith("Start the server")


def test_records_are_compressed_as_a_copy_does_whatever_a_sink_of_the_cluster_does():
    kafka = KafkaOptions("broker:9092", "t", ((COMPRESSION_TYPE, "zstd"), ("acks", "")))
    compressing = kafka.compressing(COMPRESSION)
    assert compressing.compression is COMPRESSION
    assert dict(compressing.properties) == {COMPRESSION_TYPE: "lz4", "acks": ""}


def test_an_error_in_the_background_is_raised_where_it_is_waited_for():
    assert in_background(lambda: 7, "a test").result() == 7
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 // 0, "a test").result()
