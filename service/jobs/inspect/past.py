"""Opens a job's history from its directory: replays and explanations, without a runner."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from joins.durable.checkpoint import Checkpoint
from joins.lookback.explain_row import RowExplainer
from joins.lookback.history import History, HistoryPlaces
from joins.lookback.past_indexes import PastIndexes
from joins.lookback.plan_preview import PlanPreview
from joins.lookback.replay import Replayer
from joins.plan.errors import QuestionError, UnknownBatchError, UnknownDimensionError
from joins.plan.plan import DatagenSource, Dimension, JoinPlan
from service.config import Settings
from service.connectors.registry import sink_connector
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.security.resolution import (
    with_login,
    with_output_logins,
    with_registry_logins,
)
from service.security.secrets import SecretResolver
from service.wiring.context import JobContext
from service.wiring.past import history_places as past_places


@contextmanager
def open_replayer(job_dir: Path, sink: str | None = None) -> Iterator[Replayer]:
    """Replays batches of the INSERT that `sink` names (`insert_of`)."""
    history = History(history_places(job_dir, sink))
    with PastIndexes(history.places) as indexes, closing(Replayer(history, indexes)) as replayer:
        yield replayer


@contextmanager
def open_explainer(
    job_dir: Path, sink: str | None = None, topic: str = ""
) -> Iterator[RowExplainer]:
    """Explains records of the job; without `sink`, of the first INSERT that reads `topic`."""
    plan = plan_of(JobLayout(job_dir))
    number = insert_of(plan, sink) if sink is not None else _reading(plan, topic)
    history = History(_places(job_dir, plan, number))
    with (
        PastIndexes(history.places) as indexes,
        closing(RowExplainer(history, indexes)) as explainer,
    ):
        yield explainer


@contextmanager
def open_preview(job_dir: Path, other: JoinPlan, number: int) -> Iterator[PlanPreview]:
    """Compares INSERT `number`, from 0, of the job's plan with that of the plan `other`."""
    history = History(_places(job_dir, plan_of(JobLayout(job_dir)), number))
    with closing(PlanPreview(history, _places(job_dir, other, number))) as preview:
        yield preview


def history_places(job_dir: Path, sink: str | None = None) -> HistoryPlaces:
    """Where the job's files and tables are; only the logins of Kafka are resolved.

    Raises CheckpointError if the job was never started, SecretError for a missing login,
    QuestionError if `sink` names no INSERT or several.
    """
    plan = plan_of(JobLayout(job_dir))
    return _places(job_dir, plan, insert_of(plan, sink))


def histories(job_dir: Path) -> tuple[History, ...]:
    """The history of each INSERT of the job; raises as `history_places`."""
    plan = plan_of(JobLayout(job_dir))
    return tuple(History(_places(job_dir, plan, n)) for n in range(len(plan.inserts)))


def _places(job_dir: Path, plan: JoinPlan, number: int) -> HistoryPlaces:
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    if meta is None:
        raise UnknownBatchError(
            f'job "{job_dir.name}" has no batch yet',
            hint="Its runner has not started; look again when the job is JOINING.",
        )
    secrets = SecretResolver.of(settings, job_dir)
    plan = with_output_logins(plan, secrets)
    places = past_places(JobContext(plan, settings, layout, checkpoint, meta), number)
    columns = with_registry_logins(places.kernel.columns, secrets)
    return replace(
        places,
        kernel=replace(places.kernel, columns=columns),
        probe_kafka=with_login(places.probe_kafka, secrets),
        sink=sink_connector(places.sink).with_logins(places.sink, secrets),
        places_of=lambda older: _places(job_dir, JobPlans(layout).read(older), number),
    )


def insert_of(plan: JoinPlan, sink: str | None) -> int:
    """The 0-based number of the INSERT into table `sink`, or with the 1-based number `sink`.

    None means the first one. Raises QuestionError for none or several.
    """
    tables = [insert.sink_table for insert in plan.inserts]
    numbers = [number for number, table in enumerate(tables) if sink in (None, table)]
    if not numbers and sink is not None and sink.isdecimal() and 0 < int(sink) <= len(tables):
        return int(sink) - 1
    if not numbers or (sink is not None and len(numbers) > 1):
        what = f'several INSERTs into table "{sink}"' if numbers else f'no INSERT into "{sink}"'
        known = ", ".join(f'{number} INTO "{t}"' for number, t in enumerate(tables, start=1))
        raise QuestionError(
            f"the job has {what}, it has {known}",
            hint="Name the table as the script does, or the number of the INSERT.",
        )
    return numbers[0]


def _reading(plan: JoinPlan, topic: str) -> int:
    own = (number for number, i in enumerate(plan.inserts) if topic in i.probe.topic_names)
    return next(own, 0)


def generated_stream(plan: JoinPlan) -> str | None:
    """The table whose records the job generates: a name for its internal topic; None without."""
    return plan.probe.table if isinstance(plan.probe.source, DatagenSource) else None


def dimension_of(plan: JoinPlan, name: str) -> Dimension:
    """The table `name` of the job. Raises UnknownDimensionError."""
    for dimension in plan.dimensions:
        if dimension.name == name:
            return dimension
    known = ", ".join(f'"{each.name}"' for each in plan.dimensions) or "none"
    raise UnknownDimensionError(
        f'job joins no table "{name}", it joins {known}',
        hint="Use the name that the script gives the table in CREATE TABLE.",
    )


def plan_of(layout: JobLayout) -> JoinPlan:
    """The job's newest plan. Raises CheckpointError if there is none."""
    return JobPlans(layout).newest()
