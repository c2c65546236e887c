"""Connectors of tables that other programs write (Delta, files), and of other jobs' tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from joins.adapters.delta.source import (
    DeltaFeedConfig,
    DeltaFeedState,
    check_source_table,
)
from joins.adapters.delta.version_read import VersionRead
from joins.adapters.files.listing import FileFeedConfig, FileFeedState
from joins.adapters.files.readers import check_files
from joins.durable.checkpoint import read_document
from joins.kernels.changelog.envelope import CapturedColumn
from joins.plan.errors import VerificationError
from joins.plan.plan import DeltaTableSource, Dimension, FileSource, SharedSource
from joins.source.coordinator import SourceCoordinator
from joins.source.feed_coordinator import DeltaCoordinator, FileCoordinator, SharedCoordinator
from service.config import Settings
from service.connectors.port import Compared, Copy, SecondRead, SourceConnector, SourceParts
from service.connectors.shared import look, shared_meta
from service.jobs.doctor.check import Check, Patient, bad, good
from service.security.allowed import check_table
from service.security.resolution import (
    files_path,
    internal_kafka,
    output_path,
    with_store_login,
)
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # they load Spark
    from service.wiring.context import JobContext


class DeltaTables(SourceConnector[DeltaTableSource, DeltaFeedState]):
    """`delta` as a dimension: one version, then each later commit."""

    def check_allowed(self, table: str, source: DeltaTableSource, settings: Settings) -> None:
        check_table(source, settings)

    def with_logins(self, source: DeltaTableSource, secrets: SecretResolver) -> DeltaTableSource:
        return with_store_login(source, secrets)

    def check(self, dimension: Dimension, source: DeltaTableSource, settings: Settings) -> None:
        path = output_path(source, settings)
        check_source_table(path, dimension.fields, dimension.primary_key)

    def examine(
        self, patient: Patient, dimension: Dimension, source: DeltaTableSource
    ) -> Iterator[Check]:
        path = output_path(source, patient.settings)
        table = check_source_table(path, dimension.fields, dimension.primary_key)
        what = f'delta table "{path}" at version {table.version} fits its declaration'
        yield good(f"source {dimension.name}", what)
        kept = read_document(patient.checkpoint.source_file(dimension.name), DeltaFeedState)
        if kept is None:
            return
        title = f"versions of source {dimension.name}"
        if kept.table_id != table.table_id:
            yield bad(
                title,
                "the table was replaced since it was copied",
                "No action is needed: Sluice copies it again.",
            )
        else:
            behind = table.version - kept.version
            what = f"{kept.version} is read, {behind} newer, generation {kept.generation}"
            yield good(title, what)

    def coordinator(self, parts: SourceParts, source: DeltaTableSource) -> SourceCoordinator:
        job, dimension = parts.job, parts.runtime.dimension
        kafka = internal_kafka(job.plan, job.settings)
        config = DeltaFeedConfig(
            path=output_path(source, job.settings),
            fields=dimension.fields,
            primary_key=dimension.primary_key,
            kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
            partitions=job.partitions(dimension),
            state_file=job.checkpoint.source_file(dimension.name),
            monitor_interval_ms=source.monitor_interval_ms,
            freshness_s=job.settings.freshness_interval_s,
        )
        return DeltaCoordinator(dimension.name, config, parts.stalls, parts.runtime.topic)

    def copied(self, dimension: Dimension, state_file: Path) -> tuple[DeltaFeedState, Copy] | None:
        state = read_document(state_file, DeltaFeedState)
        if state is None or not state.copied or state.needed is not None:
            return None
        return state, (state.epoch, state.generation)

    @contextmanager
    def read_again(
        self, of: Compared, source: DeltaTableSource, state: DeltaFeedState
    ) -> Iterator[SecondRead]:
        fields, key = of.dimension.fields, of.dimension.primary_key
        table = check_source_table(output_path(source, of.job.settings), fields, key)
        yield SecondRead(VersionRead(table, fields, key, state.epoch))


class FileTables(SourceConnector[FileSource, FileFeedState]):
    """`filesystem`: files that are read once."""

    def check_allowed(self, table: str, source: FileSource, settings: Settings) -> None:
        check_table(source, settings)

    def check(self, dimension: Dimension, source: FileSource, settings: Settings) -> None:
        check_files(files_path(source, settings), source, dimension.declared_fields)

    def freshest(self, source: FileSource, settings: Settings) -> None:
        return None

    def examine(
        self, patient: Patient, dimension: Dimension, source: FileSource
    ) -> Iterator[Check]:
        title = f"source {dimension.name}"
        kept = read_document(patient.checkpoint.source_file(dimension.name), FileFeedState)
        if kept is not None and kept.is_copied:
            yield good(title, f"all files were read, generation {kept.generation}")
            return
        path = files_path(source, patient.settings)
        count = check_files(path, source, dimension.declared_fields)
        yield good(title, f'{count} files at "{path}" fit the declaration, as far as is looked at')

    def coordinator(self, parts: SourceParts, source: FileSource) -> SourceCoordinator:
        dimension = parts.runtime.dimension
        config = file_feed(parts.job, dimension, source)
        return FileCoordinator(dimension.name, config, parts.stalls, parts.runtime.topic)

    def copied(self, dimension: Dimension, state_file: Path) -> tuple[FileFeedState, Copy] | None:
        state = read_document(state_file, FileFeedState)
        if state is None or not state.is_copied:
            return None
        return state, (state.generation - 1, state.generation)  # epoch and generation

    @contextmanager
    def read_again(
        self, of: Compared, source: FileSource, state: FileFeedState
    ) -> Iterator[SecondRead]:
        from service.jobs.inspect.second_read import place_of_read, read_files_again

        with place_of_read(of.job) as place:
            config = file_feed(of.job, of.dimension, source)
            yield read_files_again(config, place, state, of.rows_per_s)


def file_feed(
    job: "JobContext", dimension: Dimension, source: FileSource, path: Path | None = None
) -> FileFeedConfig:
    """How to read the source's files; `path` instead of theirs, to compare a copy of them."""
    kafka = internal_kafka(job.plan, job.settings)
    return FileFeedConfig(
        path=path or files_path(source, job.settings),
        source=source,
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
    )


class SharedTables(SourceConnector[SharedSource, None]):
    """A table that another job copies; it was checked when that job was created."""

    def check_allowed(self, table: str, source: SharedSource, settings: Settings) -> None:
        """Its own job was checked."""

    def check(self, dimension: Dimension, source: SharedSource, settings: Settings) -> None:
        """Its own job was checked."""

    def examine(
        self, patient: Patient, dimension: Dimension, source: SharedSource
    ) -> Iterator[Check]:
        title = f"source {dimension.name}"
        fault = look(patient.layout, source).fault
        if fault is not None:
            yield bad(title, fault.message, fault.hint)
        else:
            yield good(title, f"kept by job {source.job_id}, which goes on")

    def captured(
        self, job: "JobContext", dimension: Dimension, source: SharedSource
    ) -> tuple[CapturedColumn, ...]:
        shared_meta(job.layout, source)  # raises until its own job has created the table
        return super().captured(job, dimension, source)

    def coordinator(self, parts: SourceParts, source: SharedSource) -> SourceCoordinator:
        name, seen = parts.runtime.dimension.name, partial(look, parts.job.layout, source)
        return SharedCoordinator(name, seen, parts.stalls)

    def copied(self, dimension: Dimension, state_file: Path) -> None:
        assert isinstance(dimension.source, SharedSource)
        job_id = dimension.source.job_id
        raise VerificationError(
            f'table "{dimension.name}" is the shared table of job {job_id}, which copies it',
            hint=f"Verify it there: sluice verify {job_id}.",
        )
