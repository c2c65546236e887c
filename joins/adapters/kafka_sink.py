"""The `kafka` sink: JSON objects, at least once, with the coordinates to de-duplicate by.

A replayed batch gives the same bytes, so two records with the same source coordinates are one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from joins.adapters.kafka_cluster import spark_options
from joins.adapters.record_producer import RecordProducer
from joins.checkpoint import read_json, write_json_atomically
from joins.errors import SinkError
from joins.kernels.json_encode import encode_objects, join_text
from joins.kernels.probe import JoinedBatch
from joins.kernels.render import with_text_times
from joins.pins import Pin
from joins.plan import KafkaSink, OutputColumn
from joins.probe_task import ProbeTask
from joins.row_stage import REPORT, REPORT_COLUMN_DDL, PersistedRows, stage_rows
from joins.staging import BatchReport, merge_reports

FEW_RECORDS = 2_000
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", pa.list_(_HEADER))])
_RECORDS_DDL = "key binary, value binary, headers array<struct<key:string,value:binary>>"
_DDL = f"{_RECORDS_DDL}, {REPORT_COLUMN_DDL}"
HEADER_NAMES = (
    "sluice-batch",
    "sluice-src-topic",
    "sluice-src-partition",
    "sluice-src-offset",
    "sluice-dim-version",
)


def _headers(batch: JoinedBatch, pin: Pin) -> pa.Array:
    """`list<struct<key, value>>`, five entries a row, in the order of `HEADER_NAMES`.

    The values of a row, joined, are five values in a row of memory once their ends are known.
    """
    count, width = batch.rows.num_rows, len(HEADER_NAMES)
    texts = [
        pa.scalar(str(pin.batch)),
        *(column.cast(pa.string()) for column in batch.coordinates.columns),
        pa.scalar(pin.versions_text()),
    ]
    lengths = np.empty((count, width), dtype=np.int32)
    for place, text in enumerate(texts):
        lengths[:, place] = _byte_lengths(text)
    data = join_text(texts).buffers()[2] if count else pa.py_buffer(b"")
    values = _binary(pa.binary(), lengths.ravel(), data)
    names = [name.encode() for name in HEADER_NAMES]
    keys = _binary(
        pa.string(),
        np.tile(np.array([len(name) for name in names], dtype=np.int32), count),
        pa.py_buffer(b"".join(names) * count),
    )
    offsets = pa.array(np.arange(0, count * width + 1, width, dtype=np.int32))
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays([keys, values], ["key", "value"])
    )


def _byte_lengths(text: pa.StringArray | pa.StringScalar) -> npt.NDArray[np.int32] | int:
    if isinstance(text, pa.Scalar):
        return len(text.as_py().encode())
    lengths: npt.NDArray[np.int32] = pc.binary_length(text).to_numpy()
    return lengths


def _binary(kind: pa.DataType, lengths: npt.NDArray[np.int32], data: pa.Buffer) -> pa.Array:
    """Values of `kind` that lie one behind the other in `data`."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=ends[1:])
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(ends), data])


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """Rows as records of a topic; picklable."""

    output: tuple[OutputColumn, ...]
    key_fields: tuple[str, ...]

    def __call__(self, batch: JoinedBatch, pin: Pin) -> pa.RecordBatch:
        """Key, value and headers of each row."""
        rows = with_text_times(batch.rows, self.output)
        keys = pa.nulls(rows.num_rows, pa.binary())
        if self.key_fields:
            keys = encode_objects(rows.select(list(self.key_fields))).cast(pa.binary())
        values = encode_objects(rows).cast(pa.binary())
        return pa.record_batch([keys, values, _headers(batch, pin)], schema=_SCHEMA)


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

    def run(self, frame: DataFrame, task: ProbeTask, pin: Pin) -> BatchReport:
        """Join on the workers once and keep the encoded records for `commit`."""
        encode = RecordEncoding(task.kernel.output, self._sink.key_fields)
        stage = partial(stage_rows, task=task, pin=pin, encode=encode, schema=_SCHEMA)
        records = frame.mapInArrow(stage, _DDL)
        self._collected = None
        if pin.records() > self._few_records:
            return self._staged.run(records)
        collected = records.toArrow()
        is_report = collected.column(REPORT.name).is_valid()
        self._collected = collected.filter(pc.invert(is_report))
        return merge_reports(collected.filter(is_report).column(REPORT.name).to_pylist())

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Send the records; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        if self._collected is not None:
            collected, self._collected = self._collected, None
            self._producer.send(collected)
        else:
            with self._staged.taken() as records:
                _send(records, self._sink)
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

    def __init__(
        self, sink: KafkaSink, output: tuple[OutputColumn, ...], spark: SparkSession
    ) -> None:
        self._sink = sink
        self._encode = RecordEncoding(output, sink.key_fields)
        self._spark = spark

    def committed(self, number: int) -> None:
        """The topic does not tell; the replay runs again."""

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Send the rows; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        records = pa.Table.from_batches([self._encode(b, p) for b, p in parts], _SCHEMA)
        if records.num_rows == 0:
            return
        try:
            # One task: the rows keep their order.
            _send(self._spark.createDataFrame(records).coalesce(1), self._sink)
        except (PySparkException, Py4JError) as exc:
            raise SinkError(
                f'replayed rows cannot be sent to topic "{self._sink.kafka.topic}": {exc}',
                hint="Repair what the message names, and replay the dead letters again.",
            ) from exc
