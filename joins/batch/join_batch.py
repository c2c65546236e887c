"""A batch of a job that joins records as they come: one stage for each INSERT, then the commits.

Order: the join on the workers, the dead letters' commit, the commit of each output. A retry under
the same pin completes what is missing and repeats nothing.
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from joins.batch.batches import FinishedBatch, ProbeHooks, StageClock, records_work, worker_errors
from joins.batch.event_state import EventState
from joins.batch.inserts import Inserts
from joins.durable.pins import Pin, pin_json
from joins.worker.topic_reader import TopicReader
from joins.worker.work import Work


class JoinBatches:
    """Runs batches of one job; one at a time."""

    def __init__(
        self, spark: SparkSession, inserts: Inserts, reader: TopicReader, hooks: ProbeHooks
    ) -> None:
        self._spark = spark
        self._inserts = inserts
        self._reader = reader
        self._hooks = hooks

    def sweep(self) -> None:
        """There is nothing that an earlier runner leaves: a batch removes what it needs to."""

    def newest_state(self) -> EventState:
        return EventState()

    def committed(self, pin: Pin) -> FinishedBatch | None:
        counts = self._inserts.committed_counts(pin)
        return None if counts is None else FinishedBatch(pin, counts)

    def run(self, pin: Pin) -> FinishedBatch:
        """Run the batch of `pin`, commit it and say what it has counted.

        Raises:
            SluiceError: a part of it failed; nothing is visible, or the rest is not yet.
        """
        hit, number, epoch = self._hooks.guards.failpoints.hit, pin.batch, self._hooks.epoch
        clock, committed = StageClock(), self._inserts.committed(pin)
        self._inserts.attach(pin.versions)
        clock.ends("index")
        hit("C4", number)
        with worker_errors(self._reader.topics, pin, self._hooks.restore):
            staged = self._inserts.stage(self._work_of, pin, committed)
        self._hooks.check()
        clock.ends("join")
        hit("C6", number)
        self._hooks.dead_letters.commit(number, epoch, staged.dead_letters, pin_json(pin))
        hit("C7", number)
        self._inserts.commit(staged, pin, epoch, lambda: hit("C14", number))
        clock.ends("commit")
        hit("C8", number)
        return FinishedBatch(pin, staged.counts, stages_ms=clock.stages_ms)

    def _work_of(self, pin: Pin, reads: Sequence[int]) -> Work:
        return records_work(self._spark, self._reader, pin, reads=reads)
