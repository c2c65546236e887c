"""Limits and logins of all that a plan names."""

from dataclasses import replace

from joins.plan.plan import Dimension, JoinPlan, KafkaSource, TableStream
from service.config import Settings
from service.connectors.registry import sink_connector, source_connector
from service.security.allowed import check_table, check_topic_place
from service.security.resolution import (
    topic_with_logins,
    with_history_login,
    with_late_login,
    with_registry_logins,
)
from service.security.secrets import SecretResolver


def check_allowed(plan: JoinPlan, settings: Settings) -> None:
    """Raise NotAllowedError for a place that the operator's lists do not have."""
    for insert in plan.inserts:
        if isinstance(insert.probe.source, KafkaSource):
            check_topic_place(insert.probe.table, insert.probe.source, settings)
            if insert.probe.source.history is not None:
                check_table(insert.probe.source.history.files, settings)
    named = [(dimension.name, dimension.source) for dimension in plan.dimensions]
    if isinstance(plan.probe.source, TableStream):
        named.append((plan.probe.table, plan.probe.source.table))
    for name, source in named:
        source_connector(source).check_allowed(name, source, settings)
    for insert in plan.inserts:
        sink_connector(insert.sink).check_allowed(insert.sink_table, insert.sink, settings)
    if plan.probe.late_records is not None:
        check_table(plan.probe.late_records, settings)


def resolve_secrets(plan: JoinPlan, secrets: SecretResolver) -> JoinPlan:
    """`plan` with every secret reference replaced by its value; never store or show it."""

    def dimension(declared: Dimension) -> Dimension:
        source = declared.source
        return replace(declared, source=source_connector(source).with_logins(source, secrets))

    dimensions = tuple(dimension(d) for d in plan.dimensions)
    probe = plan.probe
    if isinstance(probe.source, KafkaSource):
        stream = with_history_login(topic_with_logins(probe.source, secrets), secrets)
        probe = replace(probe, source=stream)
    elif isinstance(probe.source, TableStream):
        own = probe.source.table
        table = source_connector(own).with_logins(own, secrets)
        probe = replace(probe, source=replace(probe.source, table=table))
    probe = with_late_login(probe, secrets)
    sink, *others = (sink_connector(i.sink).with_logins(i.sink, secrets) for i in plan.inserts)
    tables = (i.table and with_registry_logins(i.table, secrets) for i in plan.more_inserts)
    more = tuple(
        replace(insert, sink=own, table=table)
        for insert, own, table in zip(plan.more_inserts, others, tables, strict=True)
    )
    return replace(plan, dimensions=dimensions, probe=probe, sink=sink, more_inserts=more)
