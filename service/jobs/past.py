"""From a job's directory to what looks back on it: replays and explanations, without a runner."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from joins.checkpoint import Checkpoint
from joins.errors import CheckpointError, UnknownBatchError
from joins.explain_row import RowExplainer
from joins.history import History, HistoryPlaces, PastEvent
from joins.kernels.probe import index_spec, kernel_spec
from joins.past_indexes import PastIndexes
from joins.plan import DeltaSink, Dimension, JoinPlan, KafkaOptions, KafkaSink, KafkaSource, Sink
from joins.probe_task import IndexPlace
from joins.replay import Replayer
from service.config import Settings
from service.event_places import event_places
from service.jobs.layout import JobLayout
from service.jobs.plan_codec import load
from service.resolution import index_directory, internal_kafka, output_path
from service.secrets import SecretResolver


@contextmanager
def open_replayer(job_dir: Path) -> Iterator[Replayer]:
    """Replays batches of the job in `job_dir`; one connection and one scratch directory for all.

    Raises:
        SluiceError: the job's files cannot be used.
    """
    history = History(history_places(job_dir))
    with PastIndexes(history.places) as indexes:
        replayer = Replayer(history, indexes)
        try:
            yield replayer
        finally:
            replayer.close()


@contextmanager
def open_explainer(job_dir: Path) -> Iterator[RowExplainer]:
    """Explains records of the job in `job_dir`.

    Raises:
        SluiceError: the job's files cannot be used.
    """
    history = History(history_places(job_dir))
    with PastIndexes(history.places) as indexes:
        explainer = RowExplainer(history, indexes)
        try:
            yield explainer
        finally:
            explainer.close()


def history_places(job_dir: Path) -> HistoryPlaces:
    """Where everything of the job is; only the logins of Kafka are resolved.

    Raises:
        CheckpointError: the directory is not one of a job that was started.
        SecretError: a login of Kafka is not provided any more.
    """
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    plan = plan_of(layout)
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    if meta is None:
        raise UnknownBatchError(
            f'job "{job_dir.name}" has no batch yet',
            hint="Its runner has not started; look again when the job is JOINING.",
        )
    secrets = SecretResolver.of(settings, job_dir)
    return HistoryPlaces(
        app_id=f"sluice:{job_dir.name}:{meta.incarnation}",
        checkpoint=checkpoint,
        kernel=replace(kernel_spec(plan), topic=meta.probe_topic),
        roles=_roles(plan, settings, layout),
        tables={d.name: layout.tables / d.name for d in plan.dimensions},
        dimensions={d.name: d for d in plan.dimensions},
        dead_letters=layout.dead_letters,
        replays=layout.checkpoint / "replays",
        output=output_path(plan.sink, settings) if isinstance(plan.sink, DeltaSink) else None,
        probe_kafka=_with_login(_probe_kafka(plan, settings, meta.probe_topic), secrets),
        sink=_sink(plan.sink, secrets),
        event=_event(plan, layout, settings),
    )


def _event(plan: JoinPlan, layout: JobLayout, settings: Settings) -> PastEvent | None:
    if not plan.needs_event_batches:
        return None
    return PastEvent(plan, event_places(plan, layout, settings))


def plan_of(layout: JobLayout) -> JoinPlan:
    """The job's frozen plan.

    Raises:
        CheckpointError: the directory is none of a job.
    """
    try:
        return load(layout.plan.read_bytes())
    except FileNotFoundError as exc:
        raise CheckpointError(
            f'directory "{layout.job_dir}" has no plan.json',
            hint="Name the directory of a job, as in `sluice jobs get JOB`.",
        ) from exc


def _roles(plan: JoinPlan, settings: Settings, layout: JobLayout) -> dict[str, IndexPlace]:
    def partitions(dimension: Dimension) -> int:
        return dimension.source.changelog_partitions or settings.changelog_partitions

    known = {d.name: d for d in plan.dimensions}
    directory = index_directory(layout, settings)
    return {
        j.alias: IndexPlace(
            j.dimension,
            directory / j.dimension,
            index_spec(plan, j, partitions(known[j.dimension])),
        )
        for j in plan.joins
    }


def _probe_kafka(plan: JoinPlan, settings: Settings, topic: str) -> KafkaOptions:
    source = plan.probe.source
    if isinstance(source, KafkaSource):
        return source.kafka
    return replace(internal_kafka(plan, settings), topic=topic)


def _with_login(kafka: KafkaOptions, secrets: SecretResolver) -> KafkaOptions:
    return replace(kafka, properties=tuple((k, secrets.resolve(v)) for k, v in kafka.properties))


def _sink(sink: Sink, secrets: SecretResolver) -> Sink:
    if isinstance(sink, KafkaSink):
        return replace(sink, kafka=_with_login(sink.kafka, secrets))
    return sink
