"""Where the rows of an INSERT go, those of its batches and those of replayed dead letters."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.merge import MergedOutput
from joins.adapters.delta.output import OutputLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.durable.checkpoint import output_app_id, replay_app_id
from joins.durable.failpoints import Failpoints
from joins.lookback.history import sent_note
from joins.lookback.letter_rows import LetterWriter
from joins.plan.plan import BlackholeSink, DeltaSink, KafkaSink, PrintSink
from joins.sinks.console import ConsoleLetterWriter, ConsoleSinkWriter
from joins.sinks.delta import DeltaOutputLetterWriter, DeltaOutputWriter, MergeSinkWriter
from joins.sinks.kafka import (
    KafkaLetterWriter,
    KafkaSinkWriter,
    RecordEncoding,
    TransactionalSinkWriter,
)
from joins.sinks.port import BatchWriter
from joins.worker.row_files import RowFiles
from service.jobs.submit.places import check_new_table
from service.jobs.supervise.runner_log import RunnerLog
from service.security.resolution import output_path
from service.wiring.context import JobContext


@dataclass(frozen=True, slots=True)
class InsertSink:
    """The sink of INSERT `number`, from 0."""

    job: JobContext
    number: int

    @property
    def _sink(self) -> DeltaSink | KafkaSink | PrintSink | BlackholeSink:
        return self.job.plan.inserts[self.number].sink

    def _appends(self, sink: DeltaSink) -> Appends:
        return Appends.into(sink, self.job.kernel(self.number).output_schema)

    def prepare(self) -> None:
        """What can go wrong with the output goes wrong before a JVM is started.

        Raises:
            SluiceError: it cannot be used or made.
        """
        sink = self._sink
        if isinstance(sink, DeltaSink):
            path, appends = output_path(sink, self.job.settings), self._appends(sink)
            check_new_table(sink, self.job.settings)
            create_table(
                path, appends.rows, creator=self.job.app_id, partition_by=appends.partition_by
            )
            DeltaLog(path, self.job.app_id).choose_writer(appends)
        if isinstance(sink, KafkaSink):
            KafkaCluster(sink.kafka).require(sink.kafka.topic)
            RecordEncoding.of(sink, self.job.kernel(self.number).output)

    def writer(
        self, spark: SparkSession, log: RunnerLog, failpoints: Failpoints
    ) -> tuple[BatchWriter, tuple[DeltaLog, ...]]:
        """What commits the rows of batches, and the Delta output if it is one."""
        sink, staged = self._sink, self.job.staged_rows(self.number)
        if isinstance(sink, DeltaSink):
            path, appends = output_path(sink, self.job.settings), self._appends(sink)
            app_id = output_app_id(self.job.app_id, self.number)
            if sink.merge_key:
                merged = MergedOutput(path, app_id, appends, spark)
                return MergeSinkWriter(merged, staged), (merged.log,)
            output = OutputLog(path, app_id, appends, spark)
            return DeltaOutputWriter(output), (output,)
        if isinstance(sink, KafkaSink):
            return self._kafka_writer(sink, staged, failpoints), ()
        return _console_writer(sink, log), ()

    def _kafka_writer(
        self, sink: KafkaSink, staged: RowFiles, failpoints: Failpoints
    ) -> KafkaSinkWriter:
        noted = self.job.checkpoint.directory / sent_note(self.number)
        if sink.transactional_id_prefix is None:
            return KafkaSinkWriter(sink, noted, staged)
        own = f"{sink.transactional_id_prefix}-{self.job.meta.incarnation}-{self.number}"
        return TransactionalSinkWriter(sink, noted, staged, own, failpoints)

    def letter_writer(self, spark: SparkSession, log: RunnerLog) -> LetterWriter:
        """What writes the rows of dead letters that are joined again."""
        sink, kernel = self._sink, self.job.kernel(self.number)
        if isinstance(sink, DeltaSink):
            path = output_path(sink, self.job.settings)
            app_id = replay_app_id(output_app_id(self.job.app_id, self.number))
            output = OutputLog(path, app_id, self._appends(sink), spark)
            output.commit_epoch(self.job.meta.epoch)
            return DeltaOutputLetterWriter(output, spark)
        if isinstance(sink, KafkaSink):
            return KafkaLetterWriter(sink, kernel.output)
        identifier = sink.print_identifier if isinstance(sink, PrintSink) else None
        return ConsoleLetterWriter(log, identifier, kernel.output)


def _console_writer(sink: PrintSink | BlackholeSink, log: RunnerLog) -> ConsoleSinkWriter:
    if isinstance(sink, PrintSink):
        if sink.row_limit is not None:
            log.keep_all()  # whoever asked for the preview reads it as a whole
        return ConsoleSinkWriter(log, sink.print_identifier, sink.row_limit)
    return ConsoleSinkWriter(log, None)
