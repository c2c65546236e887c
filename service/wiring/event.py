"""What a job with event time or windows has beside the rest: its files and its tables."""

from collections.abc import Callable

import pyarrow as pa

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.state_log import StateColumns, StateLog
from joins.batch.event_batch import EventTables
from joins.batch.event_stages import WAITING_COLUMNS, WINDOW_COLUMNS
from joins.batch.event_state import EventSpec
from joins.durable.checkpoint import late_app_id
from joins.job.parts import EventJob
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from joins.plan.plan import DeltaSink, SinkWriter
from joins.worker.event_task import (
    EventPlaces,
    EventTask,
    event_task,
    waiting_schema,
    windows_schema,
)
from joins.worker.probe_task import ProbeTask
from service.security.resolution import output_path
from service.wiring.context import JobContext


def event_places(job: JobContext) -> EventPlaces:
    """The places of a plan that needs event batches.

    Raises:
        NotAllowedError: the operator has not allowed tables where the late records go.
    """
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
    """What event batches need, its tables made; None if the plan needs none.

    Raises:
        SluiceError: the plan cannot be run so, or a table cannot be used.
    """
    if not job.plan.needs_event_batches:
        return None
    places = event_places(job)
    _check_late_path(job, places)
    task = event_task(job.plan, probe, places)
    return EventJob(EventSpec.of(job.plan), task, _event_tables(job, task, dead_letters))


def _check_late_path(job: JobContext, places: EventPlaces) -> None:
    sink = job.plan.sink
    if isinstance(sink, DeltaSink) and output_path(sink, job.settings) == places.late.root:
        path = job.plan.probe.late_records_path
        raise SinkError(
            f'late records and output of job "{job.plan.name}" have one path, "{path}"',
            hint="Give 'late-records.path' a table of its own.",
        )


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
