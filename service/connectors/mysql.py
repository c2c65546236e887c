"""Tables of MySQL and MariaDB, by their binlog."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from joins.adapters.mysql.clock import ask
from joins.adapters.mysql.connection import MysqlConnectionConfig, connected, is_mariadb, rows
from joins.adapters.mysql.position import binlog_still_has, server_identity
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import CapturedTable, advice
from joins.durable.checkpoint import read_document, write_document
from joins.kernels.changelog.envelope import CapturedColumn
from joins.plan.plan import Dimension, MysqlCdcSource, PolledSource
from joins.plan.types import TypeName
from joins.source.coordinator import SourceCoordinator
from service.config import Settings
from service.connectors.port import (
    Compared,
    Copy,
    Freshest,
    SecondRead,
    SourceConnector,
    SourceParts,
    settings_ms,
)
from service.jobs.doctor.check import Check, Patient, bad, good, unknown
from service.security.allowed import check_server
from service.security.resolution import connection_of, internal_kafka
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # they load Spark
    from pyspark.sql import SparkSession

    from joins.durable.requests import Stalls
    from joins.source.chunk_reader import SourceState
    from joins.source.snapshot import SourceSettings
    from service.wiring.context import JobContext

Databases = TypeVar("Databases", MysqlCdcSource, PolledSource)
_QUESTIONS = 3
_CLOCK_S = 2.0


class MysqlTables(SourceConnector[MysqlCdcSource, "SourceState"]):
    """`mysql-cdc`: a snapshot in chunks, then the binlog."""

    def check_allowed(self, table: str, source: MysqlCdcSource, settings: Settings) -> None:
        check_database(table, source, settings)

    def with_logins(self, source: MysqlCdcSource, secrets: SecretResolver) -> MysqlCdcSource:
        return with_database_login(source, secrets)

    def check(self, dimension: Dimension, source: MysqlCdcSource, settings: Settings) -> None:
        _now(dimension, source)

    def advice(
        self, dimension: Dimension, with_logins: Callable[[], MysqlCdcSource]
    ) -> tuple[str, ...]:
        types = {field.name: field.type.name for field in dimension.fields}
        is_text_key = any(types[name] is TypeName.STRING for name in dimension.primary_key)
        if not is_text_key and TypeName.TIMESTAMP not in types.values():
            return ()
        return advice(_now(dimension, with_logins()))

    def freshest(self, source: MysqlCdcSource, settings: Settings) -> Freshest:
        """The longest of a few answers."""
        with connected(connection_of(source)) as connection:
            mariadb = is_mariadb(connection)
            answers = [ask(connection, mariadb=mariadb) for _ in range(_QUESTIONS)]
        times = (2 * (answer.within_ms or 0) for answer in answers if answer is not None)
        return Freshest(settings_ms(settings), max(times, default=0))

    def examine(
        self, patient: Patient, dimension: Dimension, source: MysqlCdcSource
    ) -> Iterator[Check]:
        from joins.source.chunk_reader import SourceState

        config = connection_of(source)
        table = check_source(config, dimension.fields, dimension.primary_key)
        what = f'user "{config.username}" has its grants, the binlog its settings'
        yield good(f"source {dimension.name}", what)
        for text in advice(table):
            yield unknown(f"declaration of source {dimension.name}", text)
        yield _clock(dimension, config)
        kept = read_document(patient.checkpoint.source_file(dimension.name), SourceState)
        if kept is not None:
            yield _binlog(dimension, config, kept)

    def captured(
        self, job: "JobContext", dimension: Dimension, source: MysqlCdcSource
    ) -> tuple[CapturedColumn, ...]:
        return captured_columns(job, dimension)

    def coordinator(self, parts: SourceParts, source: MysqlCdcSource) -> SourceCoordinator:
        from joins.dimension.rows_sum import sum_at
        from joins.source.snapshot import SnapshotCoordinator

        job, dimension = parts.job, parts.runtime.dimension
        settings = _settings_of(job, dimension, source, job.meta.changelog_topics[dimension.name])
        table = _first_seen(job, dimension, source)
        runtime, kafka = parts.runtime, settings.kafka
        return SnapshotCoordinator(
            parts.spark,
            dimension,
            table,
            settings,
            parts.stalls,
            runtime.topic,
            partial(sum_at, runtime, kafka),
        )

    def copied(self, dimension: Dimension, state_file: Path) -> tuple["SourceState", Copy] | None:
        from joins.source.chunk_reader import SourcePhase, SourceState

        state = read_document(state_file, SourceState)
        if state is None or state.phase is not SourcePhase.FOLLOWING:
            return None
        return state, (state.epoch, state.generation)

    @contextmanager
    def read_again(
        self, of: Compared, source: MysqlCdcSource, state: "SourceState"
    ) -> Iterator[SecondRead]:
        from joins.adapters.mysql.consistent_read import consistent_read

        connection = connection_of(source).of_server(state.server)
        with consistent_read(connection, state.table, state.epoch) as read:
            yield SecondRead(read)


def _settings_of(
    job: "JobContext", dimension: Dimension, source: MysqlCdcSource, topic: str
) -> "SourceSettings":
    from joins.source.snapshot import SourceSettings

    return SourceSettings(
        connection=connection_of(source),
        kafka=internal_kafka(job.plan, job.settings),
        topic=topic,
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
        offset_file=job.checkpoint.cdc_file(dimension.name),
        staged=job.row_files(f"snapshot_{dimension.name}"),
        tasks=job.settings.snapshot_parallelism,
        rows_per_job=job.settings.snapshot_job_rows,
        freshness_s=job.settings.freshness_interval_s,
    )


def captured_columns(job: "JobContext", table: Dimension) -> tuple[CapturedColumn, ...]:
    """The columns of a captured table that is the stream."""
    assert isinstance(table.source, MysqlCdcSource), "no other table is a stream"
    return _first_seen(job, table, table.source).captured


def stream_coordinator(
    job: "JobContext", spark: "SparkSession", table: Dimension, stalls: "Stalls"
) -> SourceCoordinator:
    """Sends a captured `table` to the topic of the stream."""
    from joins.source.table_stream import TableStreamCoordinator

    source = table.source
    assert isinstance(source, MysqlCdcSource), "no other table is a stream"
    settings = _settings_of(job, table, source, job.meta.probe_topic)
    seen = _first_seen(job, table, source)
    return TableStreamCoordinator(spark, table, seen, settings, stalls)


def check_database(table: str, source: MysqlCdcSource | PolledSource, settings: Settings) -> None:
    server, allowed = f"{source.hostname}:{source.port}", settings.allowed_databases
    check_server(table, "database server", server, allowed, "SLUICE_ALLOWED_DATABASES")


def with_database_login(source: Databases, secrets: SecretResolver) -> Databases:
    resolve = partial(secrets.resolve, servers=f"{source.hostname}:{source.port}")
    ca, cert, key = (
        None if text is None else resolve(text)
        for text in (source.tls.ca, source.tls.cert, source.tls.key)
    )
    tls = replace(source.tls, ca=ca, cert=cert, key=key)
    username, password = resolve(source.username), resolve(source.password)
    return replace(source, username=username, password=password, tls=tls)


def _now(dimension: Dimension, source: MysqlCdcSource) -> CapturedTable:
    """The table as its server has it now."""
    return check_source(
        connection_of(source),
        dimension.fields,
        dimension.primary_key,
        server_id=source.server_id,
    )


def _first_seen(job: "JobContext", dimension: Dimension, source: MysqlCdcSource) -> CapturedTable:
    config, fields, key = connection_of(source), dimension.fields, dimension.primary_key
    return as_first_seen(job, dimension, lambda: check_source(config, fields, key))


def as_first_seen(
    job: "JobContext", dimension: Dimension, look_at: Callable[[], CapturedTable]
) -> CapturedTable:
    """The table as first seen: a restart joins without the database."""
    path = job.checkpoint.directory / "sources" / f"{dimension.name}.table.json"
    kept = read_document(path, CapturedTable)
    if kept is None:
        kept = look_at()
        write_document(path, kept)
    return kept


def _clock(dimension: Dimension, config: MysqlConnectionConfig) -> Check:
    title = f"clock of source {dimension.name}"
    with connected(config) as connection:
        before = time.time()
        theirs = float(rows(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
        after = time.time()
    ahead_s = theirs - (before + after) / 2
    side = "ahead of" if ahead_s > 0 else "behind"
    detail = f"the database's clock is {abs(ahead_s):.3f} s {side} ours"
    if abs(ahead_s) <= _CLOCK_S:
        return good(title, detail)
    return bad(title, detail, "Let both machines take their time from the same NTP servers.")


def _binlog(dimension: Dimension, config: MysqlConnectionConfig, state: "SourceState") -> Check:
    title = f"binlog of source {dimension.name}"
    if not server_identity(config).same_server(state.server):
        return bad(
            title,
            "another server answers than the one that was copied",
            "After a failover nothing is to be done: the table is followed there by GTIDs, or "
            "the job copies it again.",
        )
    if state.high is None and not binlog_still_has(config.of_server(state.server), state.low):
        return bad(
            title,
            f"{state.low.file_name} with the snapshot's beginning is gone",
            "Keep binlogs longer (binlog_expire_logs_seconds); the table is copied again.",
        )
    return good(title, f"it is the server that was copied, generation {state.generation}")
