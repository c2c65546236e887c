"""Tables of databases that are read again and again, by queries."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from joins.adapters.mysql.source import check_readable_table
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.polled.table import PolledConfig, PolledState
from joins.durable.checkpoint import read_document
from joins.kernels.changelog.envelope import CapturedColumn
from joins.plan.errors import VerificationError
from joins.plan.plan import Database, Dimension, PolledSource
from joins.source.coordinator import SourceCoordinator
from joins.source.feed_coordinator import PolledCoordinator
from service.config import Settings
from service.connectors.mysql import as_first_seen, check_database, with_database_login
from service.connectors.port import Freshest, SourceConnector, SourceParts
from service.jobs.doctor.check import Check, Patient, good
from service.security.resolution import connection_of, internal_kafka
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # it loads Spark
    from service.wiring.context import JobContext


class PolledTables(SourceConnector[PolledSource, PolledState]):
    """`jdbc`."""

    def check_allowed(self, table: str, source: PolledSource, settings: Settings) -> None:
        check_database(table, source, settings)

    def with_logins(self, source: PolledSource, secrets: SecretResolver) -> PolledSource:
        return with_database_login(source, secrets)

    def check(self, dimension: Dimension, source: PolledSource, settings: Settings) -> None:
        config, fields, key = connection_of(source), dimension.fields, dimension.primary_key
        if source.database_kind is Database.POSTGRESQL:
            from joins.adapters.polled.postgres import check_table  # its client is large

            check_table(config, fields, key)
        else:
            check_readable_table(config, fields, key)

    def freshest(self, source: PolledSource, settings: Settings) -> Freshest:
        return Freshest(
            source.refresh_ms if source.column is None else source.whole_refresh_ms,
            lower="'scan.refresh-interval', or with a column 'scan.whole-refresh-interval'.",
        )

    def examine(
        self, patient: Patient, dimension: Dimension, source: PolledSource
    ) -> Iterator[Check]:
        self.check(dimension, source, patient.settings)
        what = f'table "{source.table}" of "{source.hostname}:{source.port}" fits its declaration'
        kept = read_document(patient.checkpoint.source_file(dimension.name), PolledState)
        if kept is not None and kept.is_copied:
            ago_s = time.time() - kept.started_ms / 1000
            what += f", read {kept.sent} began {ago_s:.0f} s ago, generation {kept.generation}"
        yield good(f"source {dimension.name}", what)

    def captured(
        self, job: "JobContext", dimension: Dimension, source: PolledSource
    ) -> tuple[CapturedColumn, ...]:
        read = _read_by_queries(job, dimension, source)
        return super().captured(job, dimension, source) if read is None else read.captured

    def coordinator(self, parts: SourceParts, source: PolledSource) -> SourceCoordinator:
        job, dimension = parts.job, parts.runtime.dimension
        kafka = internal_kafka(job.plan, job.settings)
        config = PolledConfig(
            connection=connection_of(source),
            captured=_read_by_queries(job, dimension, source),
            fields=dimension.fields,
            primary_key=dimension.primary_key,
            kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
            partitions=job.partitions(dimension),
            state_file=job.checkpoint.source_file(dimension.name),
            refresh_ms=source.refresh_ms,
            column=source.column,
            whole_refresh_ms=source.whole_refresh_ms,
        )
        return PolledCoordinator(dimension.name, config, parts.stalls, parts.runtime.topic)

    def copied(self, dimension: Dimension, state_file: Path) -> None:
        raise VerificationError(
            f'table "{dimension.name}" is compared with its database by each read of all rows',
            hint="Nothing to do; a lower 'scan.refresh-interval' compares it more often.",
        )


def _read_by_queries(
    job: "JobContext", dimension: Dimension, source: PolledSource
) -> CapturedTable | None:
    """A table of MySQL as first seen; None of PostgreSQL, whose columns are as declared."""
    if source.database_kind is Database.POSTGRESQL:
        return None
    config, fields, key = connection_of(source), dimension.fields, dimension.primary_key
    return as_first_seen(job, dimension, lambda: check_readable_table(config, fields, key))
