"""The `kafka` sink: JSON objects, at least once, with the coordinates to de-duplicate by.

A replayed batch gives the same bytes, so two records with the same source coordinates are one.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from joins.adapters.kafka.options import spark_options
from joins.adapters.kafka.record_producer import ProducerRecord, RecordProducer
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.pins import Pin
from joins.kernels.changelog.change_encode import debezium_values, upsert_values
from joins.kernels.changelog.row_kinds import UPDATE_BEFORE, is_any
from joins.kernels.json.encode import encode_objects
from joins.kernels.json.render import with_text_times
from joins.kernels.probe.files import StagedFile
from joins.kernels.probe.probe import JoinedBatch
from joins.plan.plan import KafkaFormat, KafkaSink, OutputColumn
from joins.worker.probe_task import BatchTask
from joins.worker.row_files import RowEncoding, RowFiles, reading_session
from joins.worker.staging import BatchReport

FEW_RECORDS = 2_000
HEADER_NAMES = (
    "sluice-batch",
    "sluice-src-topic",
    "sluice-src-partition",
    "sluice-src-offset",
    "sluice-dim-version",
    "sluice-watermark",
)
_OF_ROWS = {  # header → column with its text; a row without one has no such header
    "sluice-src-partition": "partition",
    "sluice-src-offset": "offset",
    "sluice-watermark": "watermark",
}
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.binary()),
        ("offset", pa.binary()),
        ("watermark", pa.binary()),
    ]
)
_SPARK_SCHEMA = from_arrow_schema(_SCHEMA)
# Spark hands on one record after another: without these the producer sends them in requests of a
# few, which cost both it and the broker more than the records do.
_PRODUCER = {"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)}


def _of_all(pin: Pin) -> dict[str, bytes]:
    """The headers that are the same in all records of a batch."""
    return {
        "sluice-batch": str(pin.batch).encode(),
        "sluice-src-topic": pin.topic.encode(),
        "sluice-dim-version": pin.versions_text().encode(),
    }


def _records(rows: pa.Table | pa.RecordBatch, pin: Pin) -> Iterator[ProducerRecord]:
    """Few rows, with their headers, for the driver."""
    for row in rows.to_pylist():
        texts = _of_all(pin)
        texts |= {n: row[c] for n, c in _OF_ROWS.items() if row[c] is not None}
        headers = [(name, texts[name]) for name in HEADER_NAMES if name in texts]
        yield ProducerRecord(row["key"], row["value"], headers)


def _with_headers(rows: DataFrame, files: Sequence[StagedFile], pin: Pin) -> DataFrame:
    """The same, for many rows: headers are more bytes than most values, so they come last."""
    nulls = [json.loads(file.stats)["nullCount"] for file in files]
    count = sum(file.rows for file in files)
    missing = {name: sum(one[column] for one in nulls) for name, column in _OF_ROWS.items()}
    texts = {name: f.lit(text) for name, text in _of_all(pin).items()}
    texts |= {n: f.col(c) for n, c in _OF_ROWS.items() if missing[n] < count}
    headers = f.array(
        *(
            f.struct(f.lit(name).alias("key"), texts[name].alias("value"))
            for name in HEADER_NAMES
            if name in texts
        )
    )
    if any(0 < nulls < count for nulls in missing.values()):
        headers = f.filter(headers, lambda header: header["value"].isNotNull())
    return rows.select("key", "value", headers.alias("headers"))


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """Rows as records of a topic; picklable."""

    output: tuple[OutputColumn, ...]
    key_fields: tuple[str, ...]
    format: KafkaFormat = KafkaFormat.JSON
    upsert: bool = False

    @staticmethod
    def of(sink: KafkaSink, output: tuple[OutputColumn, ...]) -> "RecordEncoding":
        """What `sink` asks for."""
        return RecordEncoding(output, sink.key_fields, sink.format, sink.upsert)

    def __call__(self, batch: JoinedBatch, _: Pin) -> pa.RecordBatch:
        """Key and value of each row, and what its headers tell."""
        rows = with_text_times(batch.rows, self.output)
        keys = pa.nulls(rows.num_rows, pa.string())
        if self.key_fields:
            keys = encode_objects(rows.select(list(self.key_fields)))
        place = [batch.coordinates.column(name) for name in ("partition", "offset")]
        marks = batch.watermarks
        if marks is None:
            marks = pa.nulls(rows.num_rows, pa.string())
        columns = (keys, self.values(rows, batch.kinds), *place, marks)
        typed = [column.cast(pa.string()).cast(pa.binary()) for column in columns]
        records = pa.record_batch(typed, schema=_SCHEMA)
        if self.upsert and batch.kinds is not None:  # a key has its newest row, no older ones
            records = records.filter(pc.invert(is_any(batch.kinds, (UPDATE_BEFORE,))))
        return records

    def values(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.StringArray:
        """The value of each row's record."""
        objects = encode_objects(rows)
        if self.format is KafkaFormat.DEBEZIUM_JSON:
            return debezium_values(objects, kinds)
        return upsert_values(objects, kinds) if self.upsert else objects


def _send(records: DataFrame, sink: KafkaSink) -> None:
    """Write `key`, `value` and `headers`; all are acknowledged when this returns."""
    (
        records.write.format("kafka")
        .options(**{**_PRODUCER, **spark_options(sink.kafka)})
        .option("topic", sink.kafka.topic)
        .option("includeHeaders", "true")
        .save()
    )


class KafkaSinkWriter:
    """Sends each batch and then notes it as done.

    The records wait in files for `commit`. Many are sent by Spark's Kafka writer, from all cores.
    Of few its job would be a third of the batch's time: the driver reads and sends them.
    """

    def __init__(
        self,
        sink: KafkaSink,
        progress: Path,
        staged: RowFiles,
        *,
        few_records: int = FEW_RECORDS,
    ) -> None:
        """Write to `sink`; a batch that gives `few_records` or less is sent by the driver."""
        self._sink = sink
        self._progress = progress
        self._few_records = few_records
        self._staged = staged
        self._producer = RecordProducer(sink.kafka)
        self._session: SparkSession | None = None

    def run(self, frame: DataFrame, task: BatchTask, pin: Pin) -> BatchReport:
        """Join on the workers once and keep the encoded records for `commit`."""
        if self._session is None:
            self._session = reading_session(frame.sparkSession)
        encode = RecordEncoding.of(self._sink, task.kernel.output)
        return self._staged.run(frame, task, pin, RowEncoding(_SCHEMA, encode))

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Send the records; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        if sum(file.rows for file in self._staged.staged(report)) <= self._few_records:
            for path in self._staged.paths(report):
                self._producer.send(_records(pq.read_table(path), pin))
        else:
            self._send(report, pin)
        self._staged.clear(epoch)
        note = {"batch": pin.batch, "epoch": epoch, "counts": dict(report.counts)}
        write_json_atomically(self._progress, note)

    def _send(self, report: BatchReport, pin: Pin) -> None:
        """From all cores of Spark."""
        assert self._session is not None, "the batch was run by this writer"
        rows = self._session.read.schema(_SPARK_SCHEMA).parquet(*self._staged.paths(report))
        _send(_with_headers(rows, self._staged.staged(report), pin), self._sink)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Of the batch that was noted as sent; a crash before the note sends it again."""
        noted = read_json(self._progress)
        if noted is None or noted["batch"] < pin.batch:
            return None
        return dict(noted["counts"]) if noted["batch"] == pin.batch else {}


class KafkaLetterWriter:
    """Sends the rows of replayed dead letters; after a crash it sends the same bytes again."""

    def __init__(self, sink: KafkaSink, output: tuple[OutputColumn, ...]) -> None:
        self._encode = RecordEncoding.of(sink, output)
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
