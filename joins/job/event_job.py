"""The part of a job that has event time or windows: what its loop is made of, and how it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from joins.batch.batch_plan import EventParts
from joins.batch.batches import ProbeHooks, ProbeSettings
from joins.batch.event_batch import EventBatches, EventBatchParts, EventTables
from joins.batch.event_state import EventSpec
from joins.batch.event_view import EventView
from joins.batch.inserts import ProbeInsert
from joins.batch.probe_steps import ProbeSteps
from joins.dimension.dimension import DimensionRuntime
from joins.worker.event_task import EventTask
from joins.worker.topic_reader import TopicReader


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
        self, job: EventJob, dimensions: Sequence[DimensionRuntime], insert: ProbeInsert
    ) -> None:
        self._job = job
        self._insert = insert
        self._versioned = {
            each.dimension.name: each
            for each in dimensions
            if each.dimension.name in job.spec.versioned
        }
        self.view: EventView | None = None

    @property
    def is_drained(self) -> bool:
        return self.view is not None and self.view.is_drained

    def steps(
        self, spark: SparkSession, reader: TopicReader, settings: ProbeSettings, hooks: ProbeHooks
    ) -> ProbeSteps:
        """Of a new loop; the one before has ended, or soon does."""
        job = self._job
        batches = EventBatches(
            EventBatchParts(
                spark=spark,
                spec=job.spec,
                task=job.task.reading(settings.topics),
                reader=reader,
                tables=job.tables,
                writer=self._insert.writer,
                hooks=hooks,
            )
        )
        parts = EventParts(
            spec=job.spec,
            tables=job.tables,
            heard=self._heard,
            seen=self._seen,
            trim=self._trim,
        )
        return ProbeSteps(batches, settings, hooks, parts)

    def _heard(self, versions: Mapping[str, int]) -> dict[str, dict[str, Any]]:
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
