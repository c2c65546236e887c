"""The probe side: one micro-batch is a pure function of (Kafka offsets, pin).

Order: Spark's offset log, the pin, the join on the workers, the look at the topic's identity, the
dead letters' commit, the commit of each output. A retry reads the same pin, completes what is
missing and repeats nothing.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.options import reader_options
from joins.batch.inserts import Counts, Inserts, StagedBatch, counts_of_all
from joins.batch.lookups import Lookups
from joins.durable.pins import LoggedBatch, Pin, PinStore, pin_json, read_offset_log
from joins.durable.probe_lives import Life
from joins.plan.errors import (
    CheckpointError,
    LogsDisagreeError,
    StoppingError,
)
from joins.plan.plan import KafkaOptions
from joins.stream.bounds import cut, is_reached
from joins.stream.guards import first_offsets
from joins.worker.staging import QueryGuards, in_few_tasks, limit_arrow_batches, no_room


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch whose outputs are committed.

    Attributes:
        counts: `joined`, `matched`, `unmatched`, `dead_letters`; of several INSERTs the sums.
    """

    pin: Pin
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Settings of the probe query.

    Attributes:
        checkpoint: Spark's directory of the life; the life also says where the stream ends.
        start_offsets: where the life begins, for the partitions that are there.
    """

    kafka: KafkaOptions
    checkpoint: Path
    life: Life
    start_offsets: Mapping[int, int]
    trigger_ms: int = 100
    max_records_per_batch: int = 500_000


@dataclass(frozen=True, slots=True)
class ProbeHooks:
    """What the probe query uses, asks and tells, all on Spark's batch thread.

    Attributes:
        versions: dimension → newest version that can be looked up.
        source_times: versions → when the newest change in each was made, None if unknown.
        lookups: bring the rows of dimensions without an index, of a job with event batches.
        small_records: whether records are so small that counting them limits an Arrow batch.
        restore: make the indexes of pinned versions anew, which are lost or damaged.
        on_pin: a batch begins under this pin.
        check: see, once a batch has read, that it read what it was meant to.
        on_finish: a batch whose output is committed.
        turn: held while a batch runs, also one whose query Spark has given up.
    """

    pins: PinStore
    dead_letters: DeltaLog
    versions: Callable[[], Mapping[str, int]]
    source_times: Callable[[Mapping[str, int]], Mapping[str, int | None]]
    lookups: Lookups
    small_records: Callable[[], bool]
    restore: Callable[[Mapping[str, int]], None]
    on_pin: Callable[[Pin], None]
    check: Callable[[Pin], None]
    on_finish: Callable[[FinishedBatch], None]
    guards: QueryGuards
    turn: threading.Lock


class ProbeSide:
    """The streaming query of the probe; started once the gate is open."""

    def __init__(
        self,
        spark: SparkSession,
        inserts: Inserts,
        settings: ProbeSettings,
        hooks: ProbeHooks,
    ) -> None:
        self._spark = spark
        self._inserts = inserts
        self._task = inserts.first.task
        self._settings = settings
        self._hooks = hooks
        self._ended = False

    def start(self) -> StreamingQuery:
        """Start the query from the held offsets, or where its checkpoint stands."""
        topic = self._task.topic
        held = {str(p): offset for p, offset in sorted(self._settings.start_offsets.items())}
        reader = (
            self._spark.readStream.format("kafka")
            .options(**reader_options(self._settings.kafka))
            .options(**self._subscription())
            .option("startingOffsets", json.dumps({topic: held}))
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", self._settings.max_records_per_batch)
        )
        return (
            reader.load()
            .select("value", "partition", "offset", "timestamp")
            .writeStream.queryName("probe")
            .option("checkpointLocation", str(self._settings.checkpoint))
            .trigger(processingTime=f"{self._settings.trigger_ms} milliseconds")
            .foreachBatch(self._hooks.guards.guarded(self._run_batch))
            .start()
        )

    def _subscription(self) -> dict[str, str]:
        """A stream with an end consists of the partitions that have one; others come and grow."""
        topic, end = self._task.topic, self._settings.life.end_offsets
        if end is None:
            return {"subscribe": topic}
        return {"assign": json.dumps({topic: sorted(end)})}

    def pin(self, spark_batch: int) -> Pin:
        """The pin of a batch: the one that is there, else a new one, durable when this returns.

        Raises:
            CheckpointError: Spark's offset log has no entry for the batch, or an older pin is
                newer.
            GuardError: Spark has planned what would repeat or lose records.
        """
        logged = self._logged(spark_batch)
        number = self._settings.life.first_batch + spark_batch
        pin = self._hooks.pins.read(number)
        if pin is not None:
            if dict(pin.end_offsets) != dict(logged.end_offsets):
                raise logs_disagree(number)
            return pin
        start = self._start_of(spark_batch, logged)
        first = self._settings.life.versions if spark_batch == 0 else None
        versions = dict(self._hooks.versions() if first is None else first)
        # a pin binds newer runners, too
        self._hooks.dead_letters.batches.check_epoch(self._task.epoch)
        return self._hooks.pins.create(
            Pin(
                batch=number,
                topic=self._task.topic,
                start_offsets=start,
                end_offsets=logged.end_offsets,
                versions=versions,
                batch_timestamp_ms=logged.batch_timestamp_ms,
                epoch=self._task.epoch,
                source_ts_ms=dict(self._hooks.source_times(versions)),
            )
        )

    def _logged(self, spark_batch: int) -> LoggedBatch:
        """What Spark has planned, up to the stream's end."""
        planned = self._planned(spark_batch)
        return replace(
            planned, end_offsets=cut(planned.end_offsets, self._settings.life.end_offsets)
        )

    def _planned(self, spark_batch: int) -> LoggedBatch:
        checkpoint = self._settings.checkpoint
        logged = read_offset_log(checkpoint, spark_batch, self._task.topic)
        if logged is None:
            raise CheckpointError(
                f'offset log of "{checkpoint}" has no entry for batch {spark_batch}',
                hint="The checkpoint was changed from outside; restore it from a backup.",
            )
        return logged

    def _start_of(self, spark_batch: int, logged: LoggedBatch) -> dict[int, int]:
        """Where the batch begins: where the one before it ended, by Spark's log and by its pin."""
        topic, checkpoint, life = self._task.topic, self._settings.checkpoint, self._settings.life
        if spark_batch == 0:
            before = dict(self._settings.start_offsets)
        else:
            before = dict(self._logged(spark_batch - 1).end_offsets)
            pinned = self._hooks.pins.read(life.first_batch + spark_batch - 1)
            if pinned is None or dict(pinned.end_offsets) != before:
                raise logs_disagree(life.first_batch + spark_batch - 1)
        plan = f' in the plan of batch {spark_batch} of "{checkpoint}"'
        start = first_offsets(topic, before, logged.end_offsets, life, plan)
        if any(p not in before and offset > 0 for p, offset in start.items()):
            raise logs_disagree(life.first_batch + spark_batch)
        return start

    def _join(self, frame: DataFrame, pin: Pin, committed: Sequence[Counts | None]) -> StagedBatch:
        """Join on the workers; where they fail, see that the index files are not the reason."""
        try:
            return self._inserts.stage(frame, pin, committed)
        except Exception as exc:
            disk_error = no_room(exc)
            if disk_error is not None:
                raise disk_error from exc
            self._hooks.restore(pin.versions)
            raise

    def end(self) -> None:
        """No batch of this query commits anything any more, not even one that Spark gave up."""
        self._ended = True

    def _run_batch(self, frame: DataFrame, spark_batch: int) -> None:
        with self._hooks.turn:
            if self._ended:
                raise StoppingError(
                    f"batch {spark_batch} of an ended query does not start",
                    hint="The query was started again.",
                )
            self._run(frame, spark_batch)

    def _is_beyond_the_end(self, spark_batch: int) -> bool:
        """Whether the batch before has reached the stream's end: Spark knows of none."""
        if self._settings.life.end_offsets is None:
            return False
        before = self._settings.start_offsets
        if spark_batch > 0:
            before = self._logged(spark_batch - 1).end_offsets
        return is_reached(before, self._settings.life.end_offsets)

    def _run(self, frame: DataFrame, spark_batch: int) -> None:
        if self._is_beyond_the_end(spark_batch):
            return
        hit = self._hooks.guards.failpoints.hit
        number = self._settings.life.first_batch + spark_batch
        hit("C2", number)
        is_retry = self._hooks.pins.read(number) is not None
        pin = self.pin(spark_batch)
        hit("C3", number)
        self._hooks.on_pin(pin)
        committed = self._inserts.committed(pin)
        done = counts_of_all(committed)
        if done is not None:
            self._hooks.on_finish(FinishedBatch(pin, done))
            return
        self._inserts.attach(pin.versions)
        hit("C4", number)
        limit_arrow_batches(frame, by_bytes=is_retry or not self._hooks.small_records())
        records = up_to(frame, self._planned(spark_batch).end_offsets, pin)
        staged = self._join(in_few_tasks(records, pin.records()), pin, committed)
        self._hooks.check(pin)
        hit("C6", number)
        self._hooks.dead_letters.commit(
            number, self._task.epoch, staged.dead_letters, pin_json(pin)
        )
        hit("C7", number)
        self._inserts.commit(staged, pin, self._task.epoch, lambda: hit("C14", number))
        hit("C8", number)
        self._hooks.on_finish(FinishedBatch(pin, staged.counts))
        hit("C9", number)


def up_to(frame: DataFrame, planned: Mapping[int, int], pin: Pin) -> DataFrame:
    """The records of `frame` in the range of `pin`; Spark has `planned` up to there or beyond."""
    for partition, offset in sorted(planned.items()):
        end = pin.end_offsets.get(partition, 0)
        if offset > end:
            frame = frame.filter(f"`partition` <> {partition} OR `offset` < {end}")
    return frame


def logs_disagree(batch: int) -> LogsDisagreeError:
    """What Spark has planned for `batch`, or before it, is not what its pin says."""
    return LogsDisagreeError(
        f"pin of batch {batch} and spark's offset log have different offsets",
        hint="Files of the checkpoint were lost or changed. Acknowledge it to go on where the "
        "committed output ends.",
    )
