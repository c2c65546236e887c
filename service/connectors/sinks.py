"""Sinks: Delta tables, topics, and rows that are printed or dropped."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from joins.adapters.delta.entries import LogEntries
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.kafka.cluster import KafkaCluster, cluster_id
from joins.adapters.kafka.pool import OpenClusters
from joins.adapters.registry import check_registries
from joins.adapters.store_path import StorePath, prove_conditional_puts
from joins.durable.checkpoint import replay_app_id
from joins.kernels.local_files import nearest_existing
from joins.kernels.probe.probe import kernel_spec
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from joins.plan.plan import BlackholeSink, DeltaSink, JoinPlan, KafkaSink, PrintSink
from service.config import Settings
from service.connectors.port import SinkConnector, SinkParts
from service.jobs.doctor.check import Check, good
from service.jobs.store.plans import JobPlans
from service.jobs.submit.places import check_new_table, check_surroundings_in_store
from service.security.allowed import check_table, check_topic_place, store_address
from service.security.resolution import output_path, topic_with_logins, with_store_login
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # they load Spark
    from joins.lookback.letter_rows import LetterWriter
    from joins.sinks.console import Lines
    from joins.sinks.port import BatchWriter
    from service.wiring.sinks import InsertSink

S = TypeVar("S")


class DeltaSinks(SinkConnector[DeltaSink]):
    """`delta` as an output."""

    def check_allowed(self, table: str, sink: DeltaSink, settings: Settings) -> None:
        check_table(sink, settings)

    def with_logins(self, sink: DeltaSink, secrets: SecretResolver) -> DeltaSink:
        return with_store_login(sink, secrets)

    def checked(
        self, plan: JoinPlan, sink: DeltaSink, settings: Settings, clusters: OpenClusters
    ) -> DeltaSink:
        assert isinstance(plan.sink, DeltaSink)
        check_delta(plan.sink_table, output_path(plan.sink, settings))
        output_writer(plan, settings)
        return sink

    def prepare(self, insert: "InsertSink", sink: DeltaSink) -> None:
        job, appends = insert.job, _appends(insert, sink)
        path = output_path(sink, job.settings)
        check_new_table(sink, job.settings)
        create_table(path, appends.rows, creator=job.app_id, partition_by=appends.partition_by)
        log = DeltaLog(path, job.app_id)
        if appends.grows:
            log.upkeep.grow(appends)
        log.choose_writer(appends)

    def writer(
        self, parts: SinkParts, sink: DeltaSink
    ) -> tuple["BatchWriter", tuple[DeltaLog, ...]]:
        from joins.adapters.delta.merge import MergedOutput
        from joins.adapters.delta.output import OutputLog
        from joins.sinks.delta import DeltaOutputWriter, MergeSinkWriter

        insert, spark = parts.insert, parts.spark
        path, appends = output_path(sink, insert.job.settings), _appends(insert, sink)
        if sink.merge_key:
            merged = MergedOutput(path, insert.app_id, appends, spark)
            return MergeSinkWriter(merged, insert.staged), (merged.log,)
        output = OutputLog(path, insert.app_id, appends, spark)
        return DeltaOutputWriter(output), (output,)

    def letter_writer(self, parts: SinkParts, sink: DeltaSink) -> "LetterWriter":
        from joins.adapters.delta.output import OutputLog
        from joins.sinks.delta import DeltaOutputLetterWriter

        insert, spark = parts.insert, parts.spark
        path, app_id = output_path(sink, insert.job.settings), replay_app_id(insert.app_id)
        output = OutputLog(path, app_id, _appends(insert, sink), spark)
        output.commit_epoch(insert.job.meta.epoch)
        return DeltaOutputLetterWriter(output, spark)


def _appends(insert: "InsertSink", sink: DeltaSink) -> Appends:
    has_updates = JobPlans(insert.job.layout).newest_number > 1
    return Appends.into(sink, insert.kernel.output_schema, grows=has_updates)


class KafkaSinks(SinkConnector[KafkaSink]):
    """`kafka` and `upsert-kafka` as outputs."""

    def check_allowed(self, table: str, sink: KafkaSink, settings: Settings) -> None:
        check_topic_place(table, sink, settings)

    def with_logins(self, sink: KafkaSink, secrets: SecretResolver) -> KafkaSink:
        return topic_with_logins(sink, secrets)

    def checked(
        self, plan: JoinPlan, sink: KafkaSink, settings: Settings, clusters: OpenClusters
    ) -> KafkaSink:
        assert isinstance(plan.sink, KafkaSink)
        cluster = clusters.of(plan.sink.kafka)
        cluster.require(plan.sink.kafka.topic)
        check_registries(plan.sink.value, plan.sink.key)
        return replace(sink, cluster_id=cluster_id(cluster))

    def examine(self, title: str, sink: KafkaSink) -> Iterator[Check]:
        topic = KafkaCluster(sink.kafka).require(sink.kafka.topic)
        yield good(title, f'topic "{sink.kafka.topic}", {len(topic.partitions)} partitions')

    def prepare(self, insert: "InsertSink", sink: KafkaSink) -> None:
        from joins.sinks.kafka import RecordEncoding

        KafkaCluster(sink.kafka).require(sink.kafka.topic)
        RecordEncoding.of(sink, insert.kernel.output)

    def writer(
        self, parts: SinkParts, sink: KafkaSink
    ) -> tuple["BatchWriter", tuple[DeltaLog, ...]]:
        from joins.sinks.kafka import kafka_writer

        insert, job = parts.insert, parts.insert.job
        writer = kafka_writer(
            sink,
            insert.noted,
            f"{job.meta.incarnation}-{insert.number}",
            job.meta.epoch,
            parts.failpoints,
            has_event_batches=job.plan.needs_event_batches,
        )
        return writer, ()

    def letter_writer(self, parts: SinkParts, sink: KafkaSink) -> "LetterWriter":
        from joins.sinks.kafka import KafkaLetterWriter

        return KafkaLetterWriter(sink, parts.insert.kernel.output, parts.insert.noted)


@dataclass(frozen=True, slots=True)
class Printed:
    """Where rows are printed, with what before each; they are only counted if that is None."""

    stream: "Lines"
    prefix: str | None = None
    row_limit: int | None = None


class Console(SinkConnector[S]):
    """Rows as text, or counted: nothing is durable."""

    # reads better deep: what prints has one writer.

    def check_allowed(self, table: str, sink: S, settings: Settings) -> None:
        """It reaches nothing."""

    def printed(self, parts: SinkParts, sink: S) -> Printed:
        return Printed(parts.log)

    def writer(self, parts: SinkParts, sink: S) -> tuple["BatchWriter", tuple[DeltaLog, ...]]:
        from joins.sinks.console import ConsoleSinkWriter

        to = self.printed(parts, sink)
        return ConsoleSinkWriter(to.stream, to.prefix, to.row_limit), ()

    def letter_writer(self, parts: SinkParts, sink: S) -> "LetterWriter":
        from joins.sinks.console import ConsoleLetterWriter

        to = self.printed(parts, sink)
        return ConsoleLetterWriter(to.stream, to.prefix, parts.insert.kernel.output)


class PrintSinks(Console[PrintSink]):
    """`print`, and previews."""

    def printed(self, parts: SinkParts, sink: PrintSink) -> Printed:
        if sink.row_limit is not None:
            parts.log.keep_all()  # the client reads the preview as a whole
        return Printed(parts.log, sink.print_identifier, sink.row_limit)


class BlackholeSinks(Console[BlackholeSink]):
    """`blackhole`."""


# Delta tables
# --------------------------------------------------------------------------------------------------


def is_table(path: TablePath) -> bool:
    return LogEntries(path).oldest() is not None


def check_delta(table: str, path: TablePath) -> None:
    if isinstance(path, StorePath):
        check_surroundings_in_store(path, str(path))
        prove_conditional_puts(path)
        return
    assert isinstance(path, Path), "what is in no store is in a directory"
    try:
        exists = is_table(path)
        place = path / "_delta_log" if exists else nearest_existing(path)
        usable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
        usable = usable and os.access(place.parent if exists else place, os.W_OK | os.X_OK)
    except OSError as exc:
        raise _unwritable(table, path, exc.strerror or str(exc)) from exc
    if not usable:
        what = "cannot be written by this user" if place.is_dir() else "is not a directory"
        raise _unwritable(table, path, f'"{place}" {what}')


def output_writer(plan: JoinPlan, settings: Settings) -> WriterChoice | None:
    """The writer for a Delta output; None for other sinks. Raises SinkError if none can append."""
    if not isinstance(plan.sink, DeltaSink):
        return None
    path, sink = output_path(plan.sink, settings), plan.sink
    appends = Appends.into(sink, kernel_spec(plan).output_schema)
    if is_table(path):
        return DeltaLog(path, "preflight").choose_writer(appends)
    return appends.choose_new(path)


def output_advice(plan: JoinPlan, settings: Settings) -> tuple[str, ...]:
    if isinstance(plan.sink, DeltaSink) and store_address(plan.sink, settings) is not None:
        return ()  # a store has no other writer; its credentials are not resolved here
    choice = output_writer(plan, settings)
    if choice is None or not choice.is_spark:
        return ()
    advice = f"table {plan.sink_table}: Spark's own Delta writer is used ({choice.reason}), "
    advice += "which is slower than the columnar one."
    if not choice.rules:
        return (advice,)
    rules = ", ".join(choice.rules)
    return (advice, f"table {plan.sink_table}: a row that violates {rules} stalls the job.")


def _unwritable(table: str, path: Path, reason: str) -> SinkError:
    return SinkError(
        f'delta table "{table}" cannot be written at "{path}": {reason}',
        hint="Give the table a path that this user can write, or correct SLUICE_WAREHOUSE_DIR.",
    )
