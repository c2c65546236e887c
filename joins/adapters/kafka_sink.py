"""The `kafka` sink: JSON objects, at least once, with the coordinates to de-duplicate by.

A replayed batch gives the same bytes, so two records with the same source coordinates are one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from joins.adapters.kafka_cluster import spark_options
from joins.adapters.record_producer import Record, RecordProducer
from joins.checkpoint import read_json, write_json_atomically
from joins.kernels.json_encode import encode_objects
from joins.kernels.probe import JoinedBatch
from joins.kernels.render import with_text_times
from joins.pins import Pin
from joins.plan import KafkaSink, OutputColumn
from joins.probe_task import BatchTask
from joins.row_stage import REPORT, REPORT_COLUMN_DDL, PersistedRows, stage_rows
from joins.staging import BatchReport, merge_reports

_Text = TypeVar("_Text", str, Column)
FEW_RECORDS = 2_000
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
_DDL = f"key binary, value binary, partition int, offset bigint, {REPORT_COLUMN_DDL}"
HEADER_NAMES = (
    "sluice-batch",
    "sluice-src-topic",
    "sluice-src-partition",
    "sluice-src-offset",
    "sluice-dim-version",
)


def _texts(pin: Pin, partition: _Text, offset: _Text) -> tuple[str | _Text, ...]:
    """The values of `HEADER_NAMES` for a record at this place."""
    return (str(pin.batch), pin.topic, partition, offset, pin.versions_text())


def _records(rows: pa.Table | pa.RecordBatch, pin: Pin) -> Iterator[Record]:
    """Few rows, with their headers, for the driver."""
    columns = (column.to_pylist() for column in rows.columns)
    for key, value, partition, offset in zip(*columns, strict=True):
        texts = _texts(pin, str(partition), str(offset))
        headers = [(n, t.encode()) for n, t in zip(HEADER_NAMES, texts, strict=True)]
        yield Record(key, value, headers)


def _with_headers(rows: DataFrame, pin: Pin) -> DataFrame:
    """The same, for many rows: headers are more bytes than most values, so they come last."""
    partition, offset = (f.col(name).cast("string") for name in ("partition", "offset"))
    texts = _texts(pin, partition, offset)
    headers = [
        f.struct(f.lit(name).alias("key"), f.lit(text).cast("binary").alias("value"))
        for name, text in zip(HEADER_NAMES, texts, strict=True)
    ]
    return rows.select("key", "value", f.array(*headers).alias("headers"))


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """Rows as records of a topic; picklable."""

    output: tuple[OutputColumn, ...]
    key_fields: tuple[str, ...]

    def __call__(self, batch: JoinedBatch, _: Pin) -> pa.RecordBatch:
        """Key and value of each row, and the coordinates that its headers tell."""
        rows = with_text_times(batch.rows, self.output)
        keys = pa.nulls(rows.num_rows, pa.binary())
        if self.key_fields:
            keys = encode_objects(rows.select(list(self.key_fields))).cast(pa.binary())
        values = encode_objects(rows).cast(pa.binary())
        place = [batch.coordinates.column(name) for name in ("partition", "offset")]
        columns = [c.cast(t) for c, t in zip((keys, values, *place), _SCHEMA.types, strict=True)]
        return pa.record_batch(columns, schema=_SCHEMA)


def _send(records: DataFrame, sink: KafkaSink) -> None:
    """Write `key`, `value` and `headers`; all are acknowledged when this returns."""
    (
        records.select("key", "value", "headers")
        .write.format("kafka")
        .options(**spark_options(sink.kafka))
        .option("topic", sink.kafka.topic)
        .option("includeHeaders", "true")
        .save()
    )


class KafkaSinkWriter:
    """Sends each batch and then notes it as done.

    A large batch stays in Spark and is sent by Spark's Kafka writer, from all cores. Of a small one
    that writer's job would be a third of the time: the driver takes its records and sends them.
    """

    def __init__(self, sink: KafkaSink, progress: Path, *, few_records: int = FEW_RECORDS) -> None:
        """Write to `sink`; a batch that has read `few_records` or less is sent by the driver."""
        self._sink = sink
        self._progress = progress
        self._few_records = few_records
        self._staged = PersistedRows()
        self._producer = RecordProducer(sink.kafka)
        self._collected: pa.Table | None = None

    def run(self, frame: DataFrame, task: BatchTask, pin: Pin) -> BatchReport:
        """Join on the workers once and keep the encoded records for `commit`."""
        encode = RecordEncoding(task.kernel.output, self._sink.key_fields)
        stage = partial(stage_rows, task=task, pin=pin, encode=encode, schema=_SCHEMA)
        records = frame.mapInArrow(stage, _DDL)
        self._collected = None
        if pin.records() > self._few_records:
            return self._staged.run(records)
        collected = records.toArrow()
        is_report = collected.column(REPORT.name).is_valid()
        self._collected = collected.filter(pc.invert(is_report)).select(_SCHEMA.names)
        return merge_reports(collected.filter(is_report).column(REPORT.name).to_pylist())

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Send the records; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        if self._collected is not None:
            collected, self._collected = self._collected, None
            self._producer.send(_records(collected, pin))
        else:
            with self._staged.taken() as records:
                _send(_with_headers(records, pin), self._sink)
        note = {"batch": pin.batch, "epoch": epoch, "counts": dict(report.counts)}
        write_json_atomically(self._progress, note)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Of the batch that was noted as sent; a crash before the note sends it again."""
        noted = read_json(self._progress)
        if noted is None or noted["batch"] < pin.batch:
            return None
        return dict(noted["counts"]) if noted["batch"] == pin.batch else {}


class KafkaLetterWriter:
    """Sends the rows of replayed dead letters; after a crash it sends the same bytes again."""

    def __init__(self, sink: KafkaSink, output: tuple[OutputColumn, ...]) -> None:
        self._encode = RecordEncoding(output, sink.key_fields)
        self._producer = RecordProducer(sink.kafka)

    def committed(self, number: int) -> None:
        """The topic does not tell; the replay runs again."""

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Send the rows in their order; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        try:
            for batch, pin in parts:
                self._producer.send(_records(self._encode(batch, pin), pin))
        finally:
            self._producer.close()
