"""The sink of an INSERT, its replayed dead letters, and tables of event time."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.state_log import StateColumns, StateLog
from joins.batch.event_batch import EventTables
from joins.batch.event_stages import WAITING_COLUMNS, WINDOW_COLUMNS
from joins.batch.event_state import EventSpec
from joins.durable.checkpoint import late_app_id, output_app_id
from joins.durable.failpoints import Failpoints
from joins.job.parts import EventJob
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import ProbeKernelSpec
from joins.kernels.table_path import TablePath
from joins.lookback.history import sent_note
from joins.lookback.letter_rows import LetterWriter
from joins.plan.errors import SinkError
from joins.plan.plan import DeltaSink, Sink, SinkWriter
from joins.sinks.port import BatchWriter
from joins.worker.event_task import (
    EventPlaces,
    EventTask,
    event_task,
    waiting_schema,
    windows_schema,
)
from joins.worker.probe_task import ProbeTask
from joins.worker.row_files import RowFiles
from service.connectors.port import SinkParts
from service.connectors.registry import sink_connector
from service.jobs.supervise.runner_process import RunnerLog
from service.security.resolution import output_path
from service.wiring.context import JobContext


def event_places(job: JobContext) -> EventPlaces:
    spec, state = EventSpec.of(job.plan), job.layout.state
    return EventPlaces(
        scratch=job.exchange / "scratch" / "event_batches",
        waiting=state / "waiting" if spec.waits else None,
        windows=state / "windows" if spec.window is not None else None,
        late=DeltaLog(_late_path(job), late_app_id(job.app_id)).shared,
    )


def _late_path(job: JobContext) -> TablePath:
    table = job.plan.probe.late_records
    return job.layout.late_records if table is None else output_path(table, job.settings)


def event_job(job: JobContext, probe: ProbeTask, dead_letters: DeltaLog) -> EventJob | None:
    """The parts that event batches need, with their tables created; None if the plan needs none."""
    if not job.plan.needs_event_batches:
        return None
    places = event_places(job)
    sink = job.plan.sink
    if isinstance(sink, DeltaSink) and output_path(sink, job.settings) == places.late.root:
        path = job.plan.probe.late_records_path
        raise SinkError(
            f'late records and output of job "{job.plan.name}" have one path, "{path}"',
            hint="Give 'late-records.path' a separate table.",
        )
    task = event_task(job.plan, probe, places)
    return EventJob(EventSpec.of(job.plan), task, _event_tables(job, task, dead_letters))


def _event_tables(job: JobContext, task: EventTask, dead_letters: DeltaLog) -> EventTables:
    late, appends = task.places.late.root, Appends(LATE_RECORDS, SinkWriter.COLUMNAR)
    create_table(late, LATE_RECORDS, creator=job.app_id)
    DeltaLog(late, job.app_id).choose_writer(appends)
    places = task.places
    return EventTables(
        dead_letters=dead_letters,
        late=DeltaLog(late, late_app_id(job.app_id), appends),
        waiting=_state(job, places.waiting, WAITING_COLUMNS, lambda: waiting_schema(task)),
        windows=_state(job, places.windows, WINDOW_COLUMNS, lambda: windows_schema(task)),
    )


def _state(
    job: JobContext, path: TablePath | None, columns: StateColumns, schema: Callable[[], pa.Schema]
) -> StateLog | None:
    if path is None:
        return None
    StateLog.create(path, schema())
    return StateLog(DeltaLog(path, f"{job.app_id}:{path.name}"), columns)


@dataclass(frozen=True, slots=True)
class InsertSink:
    """The sink of INSERT `number`, from 0."""

    job: JobContext
    number: int

    @property
    def _sink(self) -> Sink:
        return self.job.plan.inserts[self.number].sink

    @property
    def kernel(self) -> ProbeKernelSpec:
        return self.job.kernel(self.number)

    @property
    def staged(self) -> RowFiles:
        return self.job.staged_rows(self.number)

    @property
    def noted(self) -> Path:
        return self.job.checkpoint.directory / sent_note(self.number)

    @property
    def app_id(self) -> str:
        return output_app_id(self.job.app_id, self.number)

    def prepare(self) -> None:
        """Check or create the output before a JVM starts. Raises SluiceError."""
        sink_connector(self._sink).prepare(self, self._sink)

    def writer(
        self, spark: SparkSession, log: RunnerLog, failpoints: Failpoints
    ) -> tuple[BatchWriter, tuple[DeltaLog, ...]]:
        parts = SinkParts(self, spark, log, failpoints)
        return sink_connector(self._sink).writer(parts, self._sink)

    def letter_writer(self, spark: SparkSession, log: RunnerLog) -> LetterWriter:
        parts = SinkParts(self, spark, log, Failpoints())
        return sink_connector(self._sink).letter_writer(parts, self._sink)
