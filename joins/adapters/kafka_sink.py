"""The `kafka` sink: JSON objects, at least once, with the coordinates to de-duplicate by.

A replayed batch gives the same bytes, so two records with the same source coordinates are one.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from joins.adapters.kafka_cluster import spark_options
from joins.checkpoint import read_json, write_json_atomically
from joins.kernels.files import ParquetStage
from joins.kernels.json_encode import encode_objects
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import JoinedBatch
from joins.kernels.render import with_text_times
from joins.pins import Pin
from joins.plan import KafkaSink, OutputColumn
from joins.probe_task import DEAD_LETTERS, ProbeTask, TaskCounts, joined
from joins.staging import BatchReport, TaskReport, current_origin, merge_reports

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
        ("report", pa.string()),
    ]
)
_DDL = "key binary, value binary, headers array<struct<key:string,value:binary>>, report string"
HEADER_NAMES = (
    "sluice-batch",
    "sluice-src-topic",
    "sluice-src-partition",
    "sluice-src-offset",
    "sluice-dim-version",
)


def _headers(batch: JoinedBatch, pin: Pin) -> pa.Array:
    """`list<struct<key, value>>`, five entries a row, in the order of `HEADER_NAMES`."""
    count = batch.rows.num_rows
    columns = [
        pa.array([str(pin.batch)] * count, pa.string()),
        *(column.cast(pa.string()) for column in batch.coordinates.columns),
        pa.array([pin.versions_text()] * count, pa.string()),
    ]
    width = len(HEADER_NAMES)
    order = pa.array([c * count + r for r in range(count) for c in range(width)], pa.int64())
    values = pa.concat_arrays(columns).take(order).cast(pa.binary())
    keys = pa.array(list(HEADER_NAMES) * count, pa.string())
    offsets = pa.array(range(0, count * width + 1, width), pa.int32())
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays([keys, values], ["key", "value"])
    )


def _records(
    batch: JoinedBatch, pin: Pin, output: tuple[OutputColumn, ...], key_fields: tuple[str, ...]
) -> pa.RecordBatch:
    count = batch.rows.num_rows
    rows = with_text_times(batch.rows, output)
    keys = pa.nulls(count, pa.binary())
    if key_fields:
        keys = encode_objects(rows.select(list(key_fields))).cast(pa.binary())
    values = encode_objects(rows).cast(pa.binary())
    return pa.record_batch(
        [keys, values, _headers(batch, pin), pa.nulls(count, pa.string())], schema=_SCHEMA
    )


def _stage(
    batches: Iterator[pa.RecordBatch], *, task: ProbeTask, pin: Pin, key_fields: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    counts = TaskCounts()
    with ParquetStage(
        task.dead_letters, DEAD_LETTER_SCHEMA, current_origin(task.epoch, pin.batch)
    ) as dead:
        for batch in joined(batches, task, pin):
            dead.write(batch.dead_letters)
            counts.add(batch)
            yield _records(batch, pin, task.kernel.output, key_fields)
        staged = dead.finish()
    files = {} if staged is None else {DEAD_LETTERS: staged}
    report = TaskReport(files=files, counts=counts.values).to_batch().column(0)
    empty = [pa.nulls(1, field.type) for field in _SCHEMA][:-1]
    yield pa.record_batch([*empty, report], schema=_SCHEMA)


class KafkaSinkWriter:
    """Sends each batch with Spark's Kafka writer and then notes it as done."""

    def __init__(self, sink: KafkaSink, progress: Path) -> None:
        self._sink = sink
        self._progress = progress
        self._staged: DataFrame | None = None

    def run(self, frame: DataFrame, task: ProbeTask, pin: Pin) -> BatchReport:
        """Join on the workers once and keep the encoded records for `commit`."""
        self._forget()  # what a failed attempt has left
        stage = partial(_stage, task=task, pin=pin, key_fields=self._sink.key_fields)
        staged = frame.mapInArrow(stage, _DDL).persist()
        self._staged = staged
        try:
            reports = staged.filter("report is not null").select("report").collect()
        except (PySparkException, Py4JError):
            self._forget()
            raise
        return merge_reports(row.report for row in reports)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Send the records; all are acknowledged when this returns."""
        if self._staged is not None:
            try:
                self._send(self._staged)
            finally:
                self._forget()
        note = {"batch": pin.batch, "epoch": epoch, "counts": dict(report.counts)}
        write_json_atomically(self._progress, note)

    def _send(self, staged: DataFrame) -> None:
        (
            staged.filter("report is null")
            .select("key", "value", "headers")
            .write.format("kafka")
            .options(**spark_options(self._sink.kafka))
            .option("topic", self._sink.kafka.topic)
            .option("includeHeaders", "true")
            .save()
        )

    def _forget(self) -> None:
        if self._staged is not None:
            staged, self._staged = self._staged, None
            staged.unpersist()

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Of the batch that was noted as sent; a crash before the note sends it again."""
        noted = read_json(self._progress)
        if noted is None or noted["batch"] < pin.batch:
            return None
        return dict(noted["counts"]) if noted["batch"] == pin.batch else {}
