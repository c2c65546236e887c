"""The probe side: one micro-batch is a pure function of (Kafka offsets, pin).

Order: Spark's offset log, the pin, the join on the workers, the dead letters' commit, the output's
    commit. A
retry reads the same pin, completes what is missing and repeats nothing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta_log import DeltaLog
from joins.adapters.kafka_cluster import spark_options
from joins.errors import CheckpointError, IndexBuildError
from joins.pins import Pin, PinStore, pin_json, read_offset_log
from joins.plan import KafkaOptions
from joins.ports import BatchWriter
from joins.probe_task import DEAD_LETTERS, ProbeTask
from joins.staging import QueryGuards


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch whose output is committed.

    Attributes:
        counts: `joined`, `matched`, `unmatched`, `dead_letters`.
    """

    pin: Pin
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Settings of the probe query."""

    kafka: KafkaOptions
    checkpoint: Path
    start_offsets: Mapping[int, int]
    trigger_ms: int = 100
    max_records_per_batch: int = 500_000


@dataclass(frozen=True, slots=True)
class ProbeHooks:
    """What the probe query uses, asks and tells, all on Spark's batch thread.

    Attributes:
        versions: dimension → newest version with a usable index.
        restore: make the indexes of pinned versions anew, which are lost or damaged.
        on_finish: a batch whose output is committed.
    """

    pins: PinStore
    dead_letters: DeltaLog
    versions: Callable[[], Mapping[str, int]]
    restore: Callable[[Mapping[str, int]], None]
    on_finish: Callable[[FinishedBatch], None]
    guards: QueryGuards


class ProbeSide:
    """The streaming query of the probe; started once the gate is open."""

    def __init__(
        self,
        spark: SparkSession,
        task: ProbeTask,
        settings: ProbeSettings,
        writer: BatchWriter,
        hooks: ProbeHooks,
    ) -> None:
        self._spark = spark
        self._task = task
        self._settings = settings
        self._writer = writer
        self._hooks = hooks

    def start(self) -> StreamingQuery:
        """Start the query from the held offsets, or where its checkpoint stands."""
        topic = self._task.topic
        held = {str(p): offset for p, offset in sorted(self._settings.start_offsets.items())}
        reader = (
            self._spark.readStream.format("kafka")
            .options(**spark_options(self._settings.kafka))
            .option("subscribe", topic)
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

    def pin(self, batch: int) -> Pin:
        """The pin of `batch`: the one that is there, else a new one, durable when this returns.

        Raises:
            CheckpointError: Spark's offset log has no entry for the batch, or an older pin is
                newer.
        """
        found = self._hooks.pins.read(batch)
        if found is not None:
            return found
        topic, checkpoint = self._task.topic, self._settings.checkpoint
        logged = read_offset_log(checkpoint, batch, topic)
        if logged is None:
            raise CheckpointError(
                f'offset log of "{checkpoint}" has no entry for batch {batch}',
                hint="The checkpoint was changed from outside; restore it from a backup.",
            )
        before = read_offset_log(checkpoint, batch - 1, topic) if batch > 0 else None
        start = dict(self._settings.start_offsets) if before is None else dict(before.end_offsets)
        return self._hooks.pins.create(
            Pin(
                batch=batch,
                topic=topic,
                start_offsets={p: start.get(p, 0) for p in logged.end_offsets},
                end_offsets=logged.end_offsets,
                versions=dict(self._hooks.versions()),
                batch_timestamp_ms=logged.batch_timestamp_ms,
                epoch=self._task.epoch,
            )
        )

    def _attach(self, versions: Mapping[str, int]) -> None:
        """See that the pinned indexes can be used; the index directory is a cache."""
        try:
            self._task.attach(versions)
        except IndexBuildError:
            self._hooks.restore(versions)
            self._task.attach(versions)

    def _run_batch(self, frame: DataFrame, batch: int) -> None:
        self._hooks.guards.failpoints.hit("C2")
        pin = self.pin(batch)
        self._hooks.guards.failpoints.hit("C3")
        committed = self._writer.committed_counts(pin)
        if committed is not None:
            self._hooks.on_finish(FinishedBatch(pin, committed))
            return
        self._attach(pin.versions)
        self._hooks.guards.failpoints.hit("C4")
        report = self._writer.run(frame, self._task, pin)
        self._hooks.guards.failpoints.hit("C6")
        self._hooks.dead_letters.commit(
            batch, self._task.epoch, report.files.get(DEAD_LETTERS, ()), pin_json(pin)
        )
        self._hooks.guards.failpoints.hit("C7")
        self._writer.commit(report, pin, self._task.epoch)
        self._hooks.guards.failpoints.hit("C8")
        self._hooks.on_finish(FinishedBatch(pin, report.counts))
        self._hooks.guards.failpoints.hit("C9")
