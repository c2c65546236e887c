"""Checks at submission: what can be known before a job starts is an error now."""

from dataclasses import replace

from joins.adapters.kafka_cluster import KafkaCluster
from joins.adapters.mysql_source import check_source
from joins.errors import SinkError
from joins.plan import DeltaSink, JoinPlan, KafkaSink, KafkaSource, StartupMode
from service.config import Settings
from service.secrets import SecretResolver
from service.wiring import (
    connection_of,
    internal_kafka,
    output_path,
    resolve_secrets,
    resolve_start_offsets,
)


def preflight(plan: JoinPlan, settings: Settings, secrets: SecretResolver) -> JoinPlan:
    """See that every topic, table and place of `plan` is there and may be used.

    Returns:
        The plan with the probe's start offsets resolved to numbers: they are kept from here on.

    Raises:
        SluiceError: what is missing or refused.
    """
    resolved = resolve_secrets(plan, secrets)
    KafkaCluster(internal_kafka(resolved, settings)).describe("sluice.preflight")
    for dimension in resolved.dimensions:
        check_source(
            connection_of(dimension),
            dimension.fields,
            dimension.primary_key,
            server_id=dimension.source.server_id,
        )
    _check_sink(resolved, settings)
    source = resolved.probe.source
    if not isinstance(source, KafkaSource) or not isinstance(plan.probe.source, KafkaSource):
        return plan
    offsets = tuple(sorted(resolve_start_offsets(source).items()))
    held = replace(plan.probe.source, startup_mode=StartupMode.SPECIFIC, startup_offsets=offsets)
    return replace(plan, probe=replace(plan.probe, source=held))


def _check_sink(plan: JoinPlan, settings: Settings) -> None:
    if isinstance(plan.sink, KafkaSink):
        KafkaCluster(plan.sink.kafka).require(plan.sink.kafka.topic)
    if isinstance(plan.sink, DeltaSink):
        path = output_path(plan.sink, settings)
        if path.exists() and not path.is_dir():
            raise SinkError(
                f'path "{path}" of table "{plan.sink_table}" is a file, expected a directory',
                hint="Give the delta table a directory of its own.",
            )
