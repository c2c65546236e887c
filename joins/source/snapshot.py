"""Coordinates one `mysql-cdc` source: LOW, chunk jobs, HIGH and the CDC process, all resumable.

The binlog is streamed from LOW while the chunks are read. HIGH is taken after the last chunk's
records are acknowledged; the CDC process then writes the watermark into every partition, again
after each restart. Where the binlog from LOW is no longer there, the server's history is another
one, or something happened that cannot be followed, a new generation starts over, as soon as the
table fits its declaration.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joins.adapters.kafka.batch_producer import BatchProducer
from joins.adapters.mysql.cdc_config import CdcConfig, read_boundary
from joins.adapters.mysql.chunks import Chunk, SnapshotTask, chunk_bounds, snapshot_chunk_records
from joins.adapters.mysql.connection import MysqlConnectionConfig, ServerIdentity
from joins.adapters.mysql.position import (
    BinlogMark,
    binlog_still_has,
    same_history,
    server_identity,
    take_high,
    take_low,
)
from joins.adapters.mysql.source import check_source, choose_server_id, estimate_rows
from joins.adapters.mysql.table import CapturedTable, definitions_that_differ, fits
from joins.adapters.process.process import SourceProcess
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.stalls import Stalls
from joins.kernels.probe.files import ParquetStage
from joins.kernels.records.encode import BODIES, encode_bodies
from joins.plan.errors import (
    DefinitionError,
    SinkError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import Dimension, KafkaOptions, MysqlCdcSource
from joins.source.coordinator import SourceCoordinator, SourceView, last_line
from joins.source.state import SourceState
from joins.worker.row_files import ROWS, RowFiles
from joins.worker.staging import TaskReport, current_origin
from joins.worker.work import Work
from watermark.errors import SluiceError

_POLL_S = 0.2
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where a source's records and files go.

    Attributes:
        chunks_per_job: chunks that one Spark job reads; the unit of resuming.
    """

    connection: MysqlConnectionConfig
    kafka: KafkaOptions
    topic: str
    partitions: int
    state_file: Path
    offset_file: Path
    chunks_per_job: int = 8


@dataclass(frozen=True, slots=True)
class ChunkStage:
    """On a worker: chunks become the bodies of record batches, in a file; picklable.

    Attributes:
        task: how chunks are read.
        chunks: those of the job.
        body_bytes: of one body at the most.
        directory: of the files.
    """

    task: SnapshotTask
    chunks: tuple[Chunk, ...]
    body_bytes: int
    directory: Path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the chunks whose numbers come in; emits one report."""
        origin = current_origin(self.task.generation, 0)
        with ParquetStage(self.directory, BODIES, origin, kept=False) as stage:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for records in snapshot_chunk_records(self.task, self.chunks[number]):
                        stage.write(self._bodies(records))
            file = stage.finish()
        yield TaskReport(files={} if file is None else {ROWS: file}).to_batch()

    def _bodies(self, records: pa.RecordBatch) -> pa.RecordBatch:
        keys, values, partitions = records.columns
        return encode_bodies(keys, values, {}, partitions.to_numpy(), self.body_bytes)


class SnapshotCoordinator(SourceCoordinator):
    """Runs one source on its own thread until stopped; faults stall it, and it tries again."""

    def __init__(
        self,
        spark: SparkSession,
        dimension: Dimension,
        table: CapturedTable,
        settings: SourceSettings,
        stalls: Stalls,
    ) -> None:
        super().__init__(dimension.name, stalls)
        assert isinstance(dimension.source, MysqlCdcSource)
        self._spark = spark
        self._dimension = dimension
        self._source = dimension.source
        self._table = table
        self._settings = settings
        self._staged = RowFiles(settings.state_file.with_suffix(".staged"))
        self._producer = BatchProducer(replace(settings.kafka, topic=settings.topic))
        self._keeping = threading.Lock()
        self.state: SourceState | None = None

    def view(self) -> SourceView | None:
        """What `state` says, for the status."""
        state = self.state
        if state is None:
            return None
        chunks = -(-state.rows_estimate // self._source.chunk_rows)
        return SourceView(
            generation=state.generation,
            rows_total=state.rows_estimate,
            chunks_done=state.chunks_done,
            chunks_total=(
                state.chunks_done if state.chunks_complete else max(chunks, state.chunks_done)
            ),
            is_copied=state.chunks_complete,
            low=_place(state.low),
            high=None if state.high is None else _place(state.high),
        )

    def _note(self, error: SluiceError) -> None:
        if isinstance(error, SnapshotNeededError) and self.state is not None:
            self._keep(replace(self.state, needed=error.message))
        super()._note(error)

    def _run_once(self) -> None:
        state = self._load_state()
        self._start_process(state)
        if not state.chunks_complete:
            self._read_snapshot(state)
        if self._stopping.is_set():
            return
        if self._require_state().high is None:
            self._take_high()
        self._follow(self._require_state())

    def _load_state(self) -> SourceState:
        value = read_json(self._settings.state_file)
        kept = None if value is None else SourceState.from_json(value)
        self.state = kept
        self._checked_table(kept)
        if kept is None:
            return self._new_state(0, 1)
        if kept.needed is None and self._is_continuous(kept):
            return kept
        return self._new_state(kept.epoch + 1, kept.generation + 1)

    def _checked_table(
        self, kept: SourceState | None = None, server: ServerIdentity | None = None
    ) -> CapturedTable:
        """The table as it is now, if records of it can follow those that we have written.

        Raises:
            SourceUnavailableError: the server cannot be reached.
            SourceError: it does not fit; `kept` tells what happened to it.
        """
        dimension = self._dimension
        connection = replace(self._settings.connection, identity=server)
        try:
            now = check_source(connection, dimension.fields, dimension.primary_key)
            if not fits(self._table, now):
                was, is_now = definitions_that_differ(self._table, now)
                raise SourceError(
                    f'table "{now.database}.{now.table}" has {is_now}, and had {was} when the job '
                    "was submitted",
                    hint=f"Make it {was} again.",
                )
        except SourceUnavailableError:
            raise
        except SourceError as exc:
            if kept is None or kept.needed is None:
                raise
            again = f"{exc.hint} The table is then copied again by itself."
            raise SourceError(
                f"{kept.needed}; now {exc.message}",
                hint=exc.OF_A_JOB if isinstance(exc, DefinitionError) else again,
            ) from exc
        return now

    def _is_continuous(self, state: SourceState) -> bool:
        """Whether the binlog from where we stopped is there, on the same server's same history.

        If not, a new generation starts, and in a new epoch: none of its positions may compare as
        older than one that was met before.
        """
        connection = self._settings.connection
        if not server_identity(connection).same_server(state.server):
            return False
        connection = connection.of_server(state.server)
        low_is_there = binlog_still_has(connection, state.low)
        if low_is_there and not same_history(connection, state.low):
            return False
        return binlog_still_has(connection, self._reopened_at(state))

    def _reopened_at(self, state: SourceState) -> BinlogMark:
        """Where the CDC process will reopen the binlog."""
        kept = read_boundary(self._settings.offset_file)
        if kept is None or (kept.position.epoch, kept.generation) != (
            state.epoch,
            state.generation,
        ):
            return state.low
        return replace(state.low, position=kept.position, gtid=None)

    def _new_state(self, epoch: int, generation: int) -> SourceState:
        """LOW; what changed the table or the server around it is found here or in the binlog."""
        server = server_identity(self._settings.connection)
        connection = self._settings.connection.of_server(server)
        low = take_low(connection, epoch)
        table = self._checked_table(self.state, server)
        state = SourceState(
            epoch=epoch,
            generation=generation,
            low=low,
            server=server,
            table=table,
            rows_estimate=estimate_rows(connection),
        )
        self._keep(state)
        _log.info("snapshot starts", part=self._part, generation=generation, low=low.as_json())
        return state

    def _take_high(self) -> None:
        """HIGH says nothing unless it is of the server and the history that LOW is of."""
        state = self._require_state()
        high = take_high(self._connection_of(state), state.epoch)
        if high.position < state.low.position or not self._is_continuous(state):
            raise SnapshotNeededError(
                f'database server "{self._settings.connection.server}" was replaced, restored or '
                "reset while the table was copied",
                hint="Nothing is to be done: the table is copied again by itself.",
            )
        self._keep(replace(self._require_state(), high=high))

    def _connection_of(self, state: SourceState) -> MysqlConnectionConfig:
        """To the server that LOW is of: each connection compares, for none is like the one before.

        Behind an address may be a balancer.
        """
        return self._settings.connection.of_server(state.server)

    def _require_state(self) -> SourceState:
        assert self.state is not None
        return self.state

    def _keep(self, state: SourceState) -> None:
        """Make `state` durable; that a copy is needed is not forgotten before there is a new one.

        The CDC process says so on another thread.
        """
        with self._keeping:
            known = self.state
            if known is not None and known.generation == state.generation:
                state = replace(state, needed=state.needed or known.needed)
            write_json_atomically(self._settings.state_file, state.as_json())
            self.state = state

    def _start_process(self, state: SourceState) -> None:
        settings, connection = self._settings, self._connection_of(state)
        server_id = self._source.server_id or choose_server_id(connection)
        config = CdcConfig(
            connection=connection,
            table=state.table,
            server_id=server_id,
            low=state.low,
            generation=state.generation,
            kafka=replace(settings.kafka, topic=settings.topic),
            partitions=settings.partitions,
            offset_file=settings.offset_file,
        )
        self._process = SourceProcess(
            "joins.adapters.mysql.binlog", config, partial(self._on_event, state.generation)
        )

    def _on_event(self, generation: int, event: dict[str, Any]) -> None:
        if generation != self._require_state().generation:
            return  # the last words of the process before
        self._take_event(event)

    def _read_snapshot(self, state: SourceState) -> None:
        try:
            self._read_chunks(state)
        finally:
            self._producer.close()

    def _read_chunks(self, state: SourceState) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "snapshot")
        bounds = chunk_bounds(
            self._connection_of(state),
            state.table,
            rows_each=self._source.chunk_rows,
            after=state.after,
        )
        while not self._stopping.is_set():
            chunks = tuple(islice(bounds, self._settings.chunks_per_job))
            if not chunks:
                self._keep(replace(state, chunks_complete=True))
                return
            self._living_process()
            self._read_group(state, chunks)
            done = state.chunks_done + len(chunks)
            if chunks[-1].through is None:
                self._keep(replace(state, chunks_done=done, chunks_complete=True))
                return
            state = replace(state, after=chunks[-1].through, chunks_done=done)
            self._keep(state)

    def _read_group(self, state: SourceState, chunks: tuple[Chunk, ...]) -> None:
        settings = self._settings
        task = SnapshotTask(
            self._connection_of(state),
            state.table,
            state.low.position,
            state.generation,
            settings.partitions,
        )
        numbers = self._spark.range(0, len(chunks), 1, len(chunks))
        try:
            stage = ChunkStage(task, chunks, self._producer.body_bytes(), self._staged.directory)
            report = self._staged.collect(Work(numbers), stage, state.generation)
            self._producer.send_files(self._staged.paths(report))
        except (PySparkException, Py4JError, SinkError) as exc:
            self._checked_table()
            raise SourceError(
                f'snapshot of "{self._dimension.name}" failed: {last_line(exc)}',
                hint="The chunk is read again; if this stays, see the runner's log.",
            ) from exc
        self._staged.clear(state.generation)

    def _follow(self, state: SourceState) -> None:
        assert state.high is not None
        self._living_process().send({"high": _place(state.high), "generation": state.generation})
        while not self._stopping.wait(_POLL_S):
            self._living_process()


def _place(mark: BinlogMark) -> dict[str, int]:
    place = mark.position
    return {"epoch": place.epoch, "file": place.file, "pos": place.pos}
