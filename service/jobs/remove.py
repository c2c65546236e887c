"""Removes what a job made outside its directory: topics, and its output when asked."""

import shutil
from pathlib import Path

from joins.adapters.kafka_cluster import KafkaCluster
from joins.plan import DatagenSource, DeltaSink
from service.config import Settings
from service.jobs.layout import JobLayout
from service.jobs.plan_codec import load
from service.secrets import SecretResolver
from service.wiring import internal_kafka, output_path, resolve_secrets


def remove_job(job_dir: Path, settings: Settings, *, output: bool) -> None:
    """Delete the job's topics and, if `output`, its delta table; may be called again.

    Raises:
        SourceUnavailableError: the cluster does not answer; call again later.
    """
    layout = JobLayout(job_dir)
    plan = load(layout.plan.read_bytes())
    plan = resolve_secrets(plan, SecretResolver(settings.secrets_dir, job_dir))
    cluster = KafkaCluster(internal_kafka(plan, settings))
    for dimension in plan.dimensions:
        cluster.delete(f"sluice.{job_dir.name}.{dimension.name}")
    if isinstance(plan.probe.source, DatagenSource):
        cluster.delete(f"sluice.{job_dir.name}.probe")
    if output and isinstance(plan.sink, DeltaSink):
        shutil.rmtree(output_path(plan.sink, settings), ignore_errors=True)
