"""Where a job with event time or windows keeps its files."""

from pathlib import Path

from joins.adapters.delta.log import DeltaLog
from joins.batch.event_state import EventSpec
from joins.durable.app_ids import late_app_id
from joins.plan.plan import DeltaSink, JoinPlan
from joins.worker.event_task import EventPlaces
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.security.resolution import output_path


def event_places(plan: JoinPlan, layout: JobLayout, settings: Settings, app_id: str) -> EventPlaces:
    """The places of a plan that needs event batches.

    Raises:
        NotAllowedError: the operator has not allowed tables where the late records go.
    """
    spec, state = EventSpec.of(plan), layout.state
    return EventPlaces(
        scratch=layout.job_dir / "scratch" / "event_batches",
        waiting=state / "waiting" if spec.waits else None,
        windows=state / "windows" if spec.window is not None else None,
        late=DeltaLog(_late_path(plan, layout, settings), late_app_id(app_id)).shared,
    )


def _late_path(plan: JoinPlan, layout: JobLayout, settings: Settings) -> Path:
    given = plan.probe.late_records_path
    return layout.late_records if given is None else output_path(DeltaSink(given), settings)
