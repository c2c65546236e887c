"""Removes what a job created outside its directory; objects of others stay."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from joins.adapters.delta.removal import remove_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.store_path import StorePath
from joins.durable.checkpoint import Checkpoint, job_app_id, late_app_id, output_app_id
from joins.plan.errors import IndexDirectoryError, SourceUnavailableError
from joins.plan.plan import (
    DatagenSource,
    DeltaSink,
    JoinPlan,
    KafkaOptions,
    SharedSource,
    TableStream,
)
from joins.worker.index_source import on_this_node
from service.config import Settings
from service.errors import SecretError
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.security.resolution import (
    index_directory,
    internal_kafka,
    output_path,
    with_login,
    with_output_logins,
)
from service.security.secrets import SecretResolver


def remove_job(job_dir: Path, settings: Settings, *, output: bool) -> tuple[str, ...]:
    """Delete the job's topics and, if `output`, its outputs; returns what is left and why.

    Topics stay if the layout's `leave_topics` says that their cluster is gone. Idempotent. The plan
    goes last: without it, an earlier call was complete. Raises SinkError or SourceUnavailableError
    for a later retry, SecretError if the cluster's login is missing.
    """
    layout = JobLayout(job_dir)
    if not layout.plan.exists():
        _clear_store(layout)
        return ()
    plans = JobPlans(layout)
    plan = plans.newest()
    tables = []
    for dimension in plans.dimensions():
        if isinstance(dimension.source, SharedSource):
            _remove_lease(layout, dimension.source)
        else:
            tables.append(dimension.name)
    if isinstance(plan.probe.source, DatagenSource | TableStream):
        tables.append("probe")
    topics = [f"sluice.{job_dir.name}.{name}" for name in tables]
    logins = SecretResolver.of(settings, job_dir)
    left = _remove_topics(layout, topics, internal_kafka(plan, settings), logins)
    if settings.index_dir is not None:
        with suppress(IndexDirectoryError):  # this node has none
            shutil.rmtree(on_this_node(index_directory(layout, settings)), ignore_errors=True)
    if output:
        left.extend(_remove_outputs(plan, job_dir, settings, logins))
    _clear_store(layout)
    return tuple(left)


def _remove_topics(
    layout: JobLayout, topics: list[str], kafka: KafkaOptions, logins: SecretResolver
) -> list[str]:
    if layout.leave_topics.exists():
        return [f'topic "{name}" of {kafka.bootstrap_servers} is left' for name in topics]
    try:
        cluster = KafkaCluster(with_login(kafka, logins))
        for name in topics:
            cluster.delete(name)
    except (SourceUnavailableError, SecretError) as exc:
        left = f"sluice jobs rm {layout.job_dir.name} --leave-topics"
        exc.hint += f" If the cluster is gone for good, leave its topics: {left}"
        raise
    return []


def _remove_lease(layout: JobLayout, source: SharedSource) -> None:
    lease, stored = layout.lease(source), layout.stored_of_shared(source)
    if stored is not None:
        stored.remove(lease)
    lease.unlink(missing_ok=True)


def _clear_store(layout: JobLayout) -> None:
    root = layout.tables_root
    if isinstance(root, StorePath):
        root.clear()


def _remove_outputs(
    plan: JoinPlan, job_dir: Path, settings: Settings, logins: SecretResolver
) -> Iterator[str]:
    meta = Checkpoint(JobLayout(job_dir).checkpoint).read_meta()
    if meta is None:
        return  # the job has never run
    plan = with_output_logins(plan, logins)
    app_id = job_app_id(job_dir.name, meta.incarnation)
    writers = [output_app_id(app_id, number) for number in range(len(plan.inserts))]
    writers.append(late_app_id(app_id))
    sinks = [insert.sink for insert in plan.inserts if isinstance(insert.sink, DeltaSink)]
    if plan.probe.late_records is not None:
        sinks.append(plan.probe.late_records)
    for path in dict.fromkeys(output_path(sink, settings) for sink in sinks):
        left = remove_table(path, app_id, writers)
        if left is not None:
            yield left
