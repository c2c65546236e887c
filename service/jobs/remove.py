"""Removes what a job made outside its directory: topics, indexes, and its output when asked."""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from joins.adapters.kafka_cluster import KafkaCluster
from joins.errors import IndexDirectoryError
from joins.node_directory import on_this_node
from joins.plan import DatagenSource, DeltaSink, JoinPlan, KafkaOptions
from service.config import Settings
from service.jobs.layout import JobLayout
from service.jobs.plan_codec import load
from service.resolution import index_directory, internal_kafka, output_path
from service.secrets import SecretResolver


def remove_job(job_dir: Path, settings: Settings, *, output: bool) -> None:
    """Delete the job's topics and, if `output`, its delta tables; may be called again.

    The plan is the last thing of a job to go: where it is missing, an earlier call came this far.

    Raises:
        SourceUnavailableError: the cluster does not answer; call again later.
        SecretError: the cluster's login is not provided any more; other secrets are not needed.
    """
    layout = JobLayout(job_dir)
    try:
        plan = load(layout.plan.read_bytes())
    except FileNotFoundError:
        return
    cluster = KafkaCluster(_cluster_of(plan, settings, job_dir))
    for dimension in plan.dimensions:
        cluster.delete(f"sluice.{job_dir.name}.{dimension.name}")
    if isinstance(plan.probe.source, DatagenSource):
        cluster.delete(f"sluice.{job_dir.name}.probe")
    if settings.index_dir is not None:
        with suppress(IndexDirectoryError):  # not a node that has one
            shutil.rmtree(on_this_node(index_directory(layout, settings)), ignore_errors=True)
    for insert in plan.inserts if output else ():
        if isinstance(insert.sink, DeltaSink):
            shutil.rmtree(output_path(insert.sink, settings), ignore_errors=True)


def _cluster_of(plan: JoinPlan, settings: Settings, job_dir: Path) -> KafkaOptions:
    """The cluster of the job's own topics with its login, and no other secret."""
    secrets = SecretResolver.of(settings, job_dir)
    kafka = internal_kafka(plan, settings)
    return replace(
        kafka, properties=tuple((name, secrets.resolve(value)) for name, value in kafka.properties)
    )
