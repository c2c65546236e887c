"""The part of a job that has event time or windows: what its loop is made of, and how it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from joins.batch.event_batch import EventBatches, EventBatchParts, EventTables, reading_session
from joins.batch.event_loop import EventLoop
from joins.batch.event_plan import EventParts
from joins.batch.event_state import EventSpec
from joins.batch.event_view import EventView
from joins.batch.probe_side import ProbeHooks, ProbeSettings
from joins.dimension.dimension import DimensionRuntime
from joins.sinks.port import BatchWriter
from joins.worker.event_task import EventTask


@dataclass(frozen=True, slots=True)
class EventJob:
    """What the wiring has put together for event batches."""

    spec: EventSpec
    task: EventTask
    tables: EventTables


class EventSide:
    """The stream's side of a job with event batches, over all of its loops.

    Attributes:
        view: how the time stands; None before the first look. Any thread may read it.
    """

    def __init__(
        self, job: EventJob, dimensions: Sequence[DimensionRuntime], writer: BatchWriter
    ) -> None:
        self._job = job
        self._writer = writer
        self._versioned = {
            each.dimension.name: each
            for each in dimensions
            if each.dimension.name in job.spec.versioned
        }
        self.view: EventView | None = None

    @property
    def is_drained(self) -> bool:
        """Whether a bounded stream has ended, nothing waits and nothing is open."""
        return self.view is not None and self.view.is_drained

    def loop(self, spark: SparkSession, settings: ProbeSettings, hooks: ProbeHooks) -> EventLoop:
        """A new loop, not yet started; the one before has ended, or soon does."""
        job = self._job
        batches = EventBatches(
            EventBatchParts(
                session=spark.newSession(),
                reader=reading_session(spark),
                spec=job.spec,
                task=job.task,
                kafka=settings.kafka,
                tables=job.tables,
                writer=self._writer,
                lookups=hooks.lookups,
                restore=hooks.restore,
                check=hooks.check,
                small_records=hooks.small_records,
                failpoints=hooks.guards.failpoints,
            )
        )
        parts = EventParts(
            spec=job.spec,
            epoch=job.task.epoch,
            tables=job.tables,
            heard=self._heard,
            seen=self._seen,
            trim=self._trim,
        )
        return EventLoop(spark, batches, settings, hooks, parts)

    def _heard(self, versions: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """What versioned dimensions have said as of `versions`."""
        return {
            name: {
                str(partition): list(watermark)
                for partition, watermark in sorted(watermarks.items())
            }
            for name, watermarks in (
                (name, runtime.event_watermarks(versions[name]))
                for name, runtime in self._versioned.items()
            )
        }

    def _seen(self, view: EventView) -> None:
        self.view = view

    def _trim(self, watermark_ms: int) -> None:
        for runtime in self._versioned.values():
            runtime.trim_to(watermark_ms)
