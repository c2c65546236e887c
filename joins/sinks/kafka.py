"""The `kafka` sink: at least once with coordinates for deduplication, or transactional."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from joins.adapters.kafka.batch_producer import (
    BatchProducer,
    ProducerIdentity,
    Sent,
    admitted,
    sent_together,
    topic_id_of,
)
from joins.adapters.kafka.client import compressed
from joins.adapters.kafka.fencing_producer import FencingProducer
from joins.adapters.kafka.transactional_producer import CommitNote, TransactionalProducer
from joins.adapters.registry import shared_registry
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.failpoints import Failpoints
from joins.durable.pins import Pin
from joins.kernels.changelog.row_kinds import UPDATE_BEFORE, is_any
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.formats.encoders import NumberOf, ValueEncoder, encoder_of, without_gone
from joins.kernels.probe.files import ParquetStage
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import JoinedBatch
from joins.kernels.records.encode import Places, encode_bodies
from joins.kernels.records.layout import true_partitions
from joins.plan.errors import (
    OutputTopicChangedError,
    SinkError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.formats import SUBJECT, RecordFormat
from joins.plan.plan import Compression, Field, KafkaOptions, KafkaSink, OutputColumn
from joins.worker.probe_task import DEAD_LETTERS, BatchTask, TaskCounts
from joins.worker.staging import BatchReport, current_origin, telling_cause
from joins.worker.turns import SendTurns, Turns
from joins.worker.work import Work

HEADER_NAMES = (
    "sluice-batch",
    "sluice-src-topic",
    "sluice-src-partition",
    "sluice-src-offset",
    "sluice-dim-version",
    "sluice-watermark",
)
_OF_ROWS = {  # header → column with its text; a row without one has no such header
    "sluice-src-topic": "topic",
    "sluice-src-partition": "partition",
    "sluice-src-offset": "offset",
    "sluice-watermark": "watermark",
}
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.binary()),
        ("partition", pa.binary()),
        ("offset", pa.binary()),
        ("watermark", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """Rows as records of a topic; picklable. Records without a key have `keys` None.

    An `upsert` emits only the newest row of a key, and a null value for a deletion.
    """

    columns: RecordColumns
    keys: ValueEncoder | None
    values: ValueEncoder
    upsert: bool = False

    @staticmethod
    def of(sink: KafkaSink, output: tuple[OutputColumn, ...]) -> "RecordEncoding":
        """The encoding for `sink`; registers schemas. Raises SinkError, SourceUnavailableError."""
        fields = tuple(Field(item.name, item.expression.type, item.nullable) for item in output)
        columns = RecordColumns(fields, sink.value, sink.key)
        topic, keys = sink.kafka.topic, None
        if sink.key is not None:
            of_key = _numbers_under(f"{topic}-key")
            keys = encoder_of(sink.key.format, columns.of_key, of_key)
        values = encoder_of(sink.value, columns.of_value, _numbers_under(f"{topic}-value"))
        return RecordEncoding(columns, keys, values, sink.upsert)

    def __call__(self, batch: JoinedBatch, pin: Pin) -> pa.RecordBatch:
        rows, kinds = batch.rows, batch.kinds
        topics, numbers, offsets = batch.coordinates.columns
        if pin.has_several_topics:
            topics = topics.fill_null(pin.topic)
        else:  # a header that is the same for all tells it
            topics = pa.nulls(len(numbers), pa.string())
        place = (topics, true_partitions(numbers), offsets)
        marks = batch.watermarks
        if marks is None:
            marks = pa.nulls(rows.num_rows, pa.string())
        texts = [column.cast(pa.string()) for column in (*place, marks)]
        columns = (self._keys(rows), self._values(rows, kinds), *texts)
        records = pa.record_batch([column.cast(pa.binary()) for column in columns], schema=_SCHEMA)
        if self.upsert and kinds is not None:  # a key has its newest row, no older ones
            records = records.filter(pc.invert(is_any(kinds, (UPDATE_BEFORE,))))
        return records

    def _keys(self, rows: pa.RecordBatch) -> pa.Array:
        key = self.columns.key
        if self.keys is None or key is None:
            return pa.nulls(rows.num_rows, pa.binary())
        named = rows.select(list(key.fields)).rename_columns(list(map(key.name_of, key.fields)))
        return self.keys.encode(named, None)

    def _values(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.Array:
        chosen = rows.select([item.name for item in self.columns.of_value])
        values = self.values.encode(chosen, kinds)
        return without_gone(values, kinds) if self.upsert else values


def _numbers_under(subject: str) -> NumberOf:
    def number_of(form: RecordFormat, schema: str) -> int:
        assert form.registry is not None, "such a format has a registry"
        try:
            registry = shared_registry(form.registry)
            return registry.number_of(form.text(SUBJECT, subject), schema)
        except SourceUnavailableError:
            raise
        except SourceError as exc:
            raise SinkError(exc.message, hint=exc.hint) from exc

    return number_of


@dataclass(frozen=True, slots=True)
class BodyEncoding:
    """Rows as the bodies of record batches; picklable."""

    records: RecordEncoding
    places: Places
    compression: Compression

    def __call__(self, batch: JoinedBatch, pin: Pin) -> pa.RecordBatch:
        rows = self.records(batch, pin)
        of_all = {
            "sluice-batch": str(pin.batch).encode(),
            "sluice-src-topic": pin.topic.encode(),
            "sluice-dim-version": pin.versions_text().encode(),
        }
        if pin.has_several_topics:
            del of_all["sluice-src-topic"]
        headers = {
            name: of_all[name] if name in of_all else rows.column(_OF_ROWS[name])
            for name in HEADER_NAMES
        }
        keys, places = rows.column("key"), self.places
        columns = (keys, rows.column("value"), headers, places.of(keys))
        return compressed(encode_bodies(*columns, places.body_bytes), self.compression)


def _body_encoding(
    sink: KafkaSink, producer: BatchProducer, output: tuple[OutputColumn, ...], number: int
) -> BodyEncoding:
    """Raises SinkError if the cluster does not describe the topic."""
    partitions = producer.partitions()
    places = Places(partitions, number % partitions, producer.body_bytes())
    return BodyEncoding(RecordEncoding.of(sink, output), places, sink.kafka.compression)


class OutputTopic:
    """The topic of an output, known by Kafka's UUID and by the ends of what was sent to it.

    The file `progress` has both beside the newest batch.
    """

    def __init__(self, name: str, producer: BatchProducer, progress: Path) -> None:
        self._name = name
        self._producer = producer
        self._progress = progress
        noted = read_json(progress) or {}
        self._id: str = noted.get("topic_id", "")
        self._ends = {int(p): end for p, end in noted.get("ends", {}).items()}
        self._is_shown = False  # its change was, so that an operator may accept it

    def checked_id(self) -> str:
        """Kafka's UUID of the topic; OutputTopicChangedError if rows were sent to another one."""
        there = topic_id_of(self._producer, self._name)
        if self._id and there != self._id:
            raise self._changed(
                f'output topic "{self._name}" has id {there}, expected {self._id}: it was deleted '
                "and created again, and lacks the rows that were sent before"
            )
        return there

    def take(self, sent: Sent) -> None:
        """OutputTopicChangedError if a partition ended before rows that were sent earlier."""
        for partition, (first, end) in sent.items():
            if first < self._ends.get(partition, 0):
                raise self._changed(
                    f'partition {partition} of output topic "{self._name}" ended at offset '
                    f"{first}, expected {self._ends[partition]} or more: its broker has lost rows "
                    "that were sent before"
                )
            self._ends[partition] = end

    def write(self, note: Mapping[str, Any]) -> None:
        self._id = note["topic_id"]
        write_json_atomically(self._progress, {**note, "ends": self._ends})

    def _changed(self, message: str) -> OutputTopicChangedError:
        self._is_shown = True
        return OutputTopicChangedError(message, hint=_ACCEPT)

    def accept(self) -> None:
        """Go on with the topic as it is, if its change was shown."""
        if self._is_shown:
            noted = read_json(self._progress)
            if noted is not None:
                del noted["format_version"]
                write_json_atomically(self._progress, {**noted, "topic_id": "", "ends": {}})
            self._id, self._ends, self._is_shown = "", {}, False


_ACCEPT = (
    "Restore its rows, or submit the job again for all of them; acknowledge it to go on with the "
    "topic as it is."
)


_TASK_SILENCE_S = 30.0  # a task that fails runs again
_SENT = "sent"
Send = Callable[[list[pa.RecordBatch]], Sent]
"""Sends the bodies of a task, acknowledged; picklable."""


@cache
def _producer_of(kafka: KafkaOptions, _: type) -> BatchProducer:
    """The producer that this worker keeps for a topic and a kind of send."""
    return BatchProducer(kafka, silence_s=_TASK_SILENCE_S)


@dataclass(frozen=True, slots=True)
class OwnSend:
    """Each task sends at once, by the idempotent producer of its process."""

    kafka: KafkaOptions

    def __call__(self, bodies: list[pa.RecordBatch]) -> Sent:
        return _producer_of(self.kafka, OwnSend).send_whole(bodies)


@dataclass(frozen=True, slots=True)
class SendInTurn:
    """Tasks send in their order, as the driver's producer."""

    kafka: KafkaOptions
    turns: Turns

    def __call__(self, bodies: list[pa.RecordBatch]) -> Sent:
        records: dict[int, int] = {}
        for body in bodies:
            for partition, count in zip(*(body.column(n).to_pylist() for n in (0, 1)), strict=True):
                records[partition] = records.get(partition, 0) + count
        context = TaskContext.get()
        item = 0 if context is None else context.partitionId()
        with self.turns.turn(item, records) as granted:
            identity = ProducerIdentity(*granted["producer"])
            for partition, sequence in granted["sequences"].items():
                identity.acknowledge(int(partition), sequence)
            return _producer_of(self.kafka, SendInTurn).send_whole(bodies, identity)


def _send(
    batches: Iterator[pa.RecordBatch],
    *,
    task: BatchTask,
    pin: Pin,
    send: Send,
    encode: BodyEncoding,
) -> Iterator[pa.RecordBatch]:
    """Join all records, then send the rows: what fails before has sent none."""
    counts, bodies = TaskCounts(), list[pa.RecordBatch]()
    origin = current_origin(task.epoch, pin.batch)
    with ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead:
        for batch in task.answers(batches, pin, counts):
            bodies.append(encode(batch, pin))
            dead.write(batch.dead_letters)
        counts.stage(DEAD_LETTERS, dead.finish())
    with telling_cause():
        sent = send(bodies)
    counts.detail[_SENT] = [[partition, *offsets] for partition, offsets in sent.items()]
    yield counts.report.to_batch()


class KafkaSinkWriter:
    """Tasks send their rows, once the pin is durable; `commit` records the batch in `progress`.

    Rows of a batch that fails may be there before it runs again, in any order, so this is for
    topics to which rows are only appended. A key keeps its order if one task has all records of a
    partition.
    """

    shows_early = True
    keeps_order = False  # of its tasks

    def __init__(
        self, sink: KafkaSink, progress: Path, producer: BatchProducer | None = None
    ) -> None:
        self._sink = sink
        self._producer = producer or BatchProducer(sink.kafka)
        self._progress = progress
        self._topic = OutputTopic(sink.kafka.topic, self._producer, progress)
        self._topic_id = ""

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join and send. After a SinkError some rows may be written.

        Raises OutputTopicChangedError for another topic of that name.
        """
        self._topic_id = self._topic.checked_id()
        encode = _body_encoding(self._sink, self._producer, task.kernel.output, pin.batch)
        send = self.sending(work)
        return work.report(partial(_send, task=task, pin=pin, send=send, encode=encode))

    def sending(self, work: Work) -> Send:
        return OwnSend(self._sink.kafka)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Record the batch; raises OutputTopicChangedError for a topic that has lost rows."""
        rows = [{p: (first, end)} for each in report.details for p, first, end in each[_SENT]]
        self._topic.take(sent_together(rows))
        note = {"batch": pin.batch, "epoch": epoch, "counts": dict(report.counts)}
        self.end(note)
        self._topic.write({**note, "topic_id": self._topic_id})

    def end(self, note: Mapping[str, Any]) -> None:
        """Called when all records of the batch are acknowledged, before the batch is recorded."""

    def accept(self) -> None:
        self._topic.accept()

    def newest_batch(self) -> int | None:
        noted = read_json(self._progress)
        return None if noted is None else int(noted["batch"])

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Counts of the batch recorded as sent; a crash before that sends again.

        Raises SinkError if the cluster does not answer.
        """
        noted: Mapping[str, Any] | None = read_json(self._progress)
        if noted is None or noted["batch"] < pin.batch:
            noted = self.newest_sent()
        if noted is None or noted["batch"] < pin.batch:
            return None
        return dict(noted["counts"]) if noted["batch"] == pin.batch else {}

    def newest_sent(self) -> Mapping[str, Any] | None:
        return None


class OrderedSinkWriter(KafkaSinkWriter):
    """Tasks send in their order, as one producer, whose next identity fences what was given up."""

    # reads better deep: what a batch is and when it is recorded are the same.

    keeps_order = True

    def __init__(self, sink: KafkaSink, progress: Path, producer: BatchProducer) -> None:
        super().__init__(sink, progress, producer)
        self._turns = SendTurns(self)
        self._identity: ProducerIdentity | None = None  # by which a batch sends
        self._has_begun = False

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        try:
            return super().run(work, task, pin)
        except BaseException:
            self._give_up()
            raise

    def sending(self, work: Work) -> Send:
        if self._has_begun:
            self._give_up()  # sent, and not committed
        self._has_begun = True
        return SendInTurn(self._sink.kafka, self._turns.begin(work.spark.sparkContext))

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Like a plain commit; a failed attempt is given up, never resumed."""
        try:
            super().commit(report, pin, epoch)
        except BaseException:
            self._give_up()
            raise
        self._has_begun = False

    def _give_up(self) -> None:
        self._turns.end()
        self._producer.close()
        self._identity, self._has_begun = None, False

    def admit(self, records: Mapping[int, int]) -> Mapping[str, Any]:
        identity = self._identity = admitted(self._producer, records)
        known = {str(p): n for p, n in identity.sequences.items() if p in records}
        who = (identity.producer_id, identity.epoch, identity.transactional_id)
        return {"producer": who, "sequences": known}

    def acknowledge(self, records: Mapping[int, int]) -> None:
        assert self._identity is not None, "a task was admitted"
        for partition, count in records.items():
            self._identity.acknowledge(partition, count)


class TransactionalSinkWriter(OrderedSinkWriter):
    """Sends each batch in a transaction that carries its note; one id an output of a job."""

    # reads better deep: it is the sink whose tasks send in order, inside of a transaction.

    def __init__(
        self, sink: KafkaSink, progress: Path, transactional_id: str, failpoints: Failpoints
    ) -> None:
        self._transactions = TransactionalProducer(sink.kafka, transactional_id)
        self._hit = failpoints.hit
        super().__init__(sink, progress, self._transactions)

    def end(self, note: Mapping[str, Any]) -> None:
        """Commit the records and the note; raises SinkError if the outcome is unknown.

        `newest_sent` finds it out.
        """
        self._hit("C15", note["batch"])
        self._transactions.commit(CommitNote(note["batch"], json.dumps(note)), self._identity)
        self._hit("C16", note["batch"])

    def newest_sent(self) -> Mapping[str, Any] | None:
        newest = self._transactions.newest()
        return None if newest is None else dict(json.loads(newest.text))


def kafka_writer(
    sink: KafkaSink,
    progress: Path,
    output: str,
    epoch: int,
    failpoints: Failpoints,
    *,
    has_event_batches: bool,
) -> KafkaSinkWriter:
    """The writer of a job's output, whose name `output` is unique: part of a transactional id.

    `epoch` is the runner's.
    """
    if sink.transactional_id_prefix is not None:
        own = f"{sink.transactional_id_prefix}-{output}"
        return TransactionalSinkWriter(sink, progress, own, failpoints)
    if sink.upsert or has_event_batches:
        noted = progress.with_name(f"{progress.stem}_producer.json")
        return OrderedSinkWriter(sink, progress, FencingProducer(sink.kafka, noted, epoch))
    return KafkaSinkWriter(sink, progress)


class KafkaLetterWriter:
    """Sends the rows of replayed dead letters; after a crash it sends the same bytes again.

    `progress` is the file of the batches' writer.
    """

    def __init__(self, sink: KafkaSink, output: tuple[OutputColumn, ...], progress: Path) -> None:
        self._sink = sink
        self._producer = BatchProducer(sink.kafka)
        self._output = output
        self._progress = progress

    def committed(self, number: int) -> None:
        """None: the topic does not record replays, so the replay runs again."""

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Send the rows in order and await all; after a SinkError some may be written."""
        OutputTopic(self._sink.kafka.topic, self._producer, self._progress).checked_id()
        encode = _body_encoding(self._sink, self._producer, self._output, number)
        try:
            self._producer.send(encode(batch, pin) for batch, pin in parts)
        finally:
            self._producer.close()
