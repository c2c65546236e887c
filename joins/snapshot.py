"""Coordinates one `mysql-cdc` source: LOW, chunk jobs, HIGH and the CDC process, all resumable.

The binlog is streamed from LOW while the chunks are read. HIGH is taken after the last chunk's
records are acknowledged; the CDC process then writes the watermark into every partition, again
after each restart. Where the binlog from LOW is no longer there, or the server's history is another
one, a new generation starts over.
"""

import json
import threading
import time
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

from joins.adapters.kafka_cluster import spark_options
from joins.adapters.mysql_cdc_config import CdcConfig, read_boundary
from joins.adapters.mysql_cdc_process import CdcProcess
from joins.adapters.mysql_chunks import Chunk, SnapshotTask, chunk_bounds, snapshot_chunk_records
from joins.adapters.mysql_connection import MysqlConnectionConfig
from joins.adapters.mysql_position import (
    BinlogMark,
    binlog_still_has,
    same_history,
    server_identity,
    take_high,
    take_low,
)
from joins.adapters.mysql_source import check_source, choose_server_id, estimate_rows
from joins.adapters.mysql_table import CapturedTable
from joins.checkpoint import read_json, write_json_atomically
from joins.errors import SnapshotNeededError, SourceError
from joins.plan import Dimension, KafkaOptions
from joins.stalls import Stalls
from watermark.errors import SluiceError

_RETRY_MIN_S, _RETRY_MAX_S = 1.0, 15.0
_POLL_S = 0.2
_RECORDS_DDL = "key binary, value binary, partition int"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is durable of a source; see ARCHITECTURE.md.

    Attributes:
        server_uid: of the server that LOW was taken from.
        after: upper bound of the last chunk whose records are acknowledged, None before the first.
        high: None until every chunk is read.
    """

    epoch: int
    generation: int
    low: BinlogMark
    server_uid: str
    rows_estimate: int
    after: tuple[str, ...] | None = None
    chunks_done: int = 0
    chunks_complete: bool = False
    high: BinlogMark | None = None

    def as_json(self) -> dict[str, Any]:
        """For the state file."""
        return {
            "epoch": self.epoch,
            "generation": self.generation,
            "low": self.low.as_json(),
            "server_uid": self.server_uid,
            "rows_estimate": self.rows_estimate,
            "after": list(self.after) if self.after is not None else None,
            "chunks_done": self.chunks_done,
            "chunks_complete": self.chunks_complete,
            "high": self.high.as_json() if self.high is not None else None,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> "SourceState":
        """From the state file."""
        return SourceState(
            epoch=value["epoch"],
            generation=value["generation"],
            low=BinlogMark.from_json(value["low"]),
            server_uid=value["server_uid"],
            rows_estimate=value["rows_estimate"],
            after=tuple(value["after"]) if value["after"] is not None else None,
            chunks_done=value["chunks_done"],
            chunks_complete=value["chunks_complete"],
            high=BinlogMark.from_json(value["high"]) if value["high"] is not None else None,
        )


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


def read_chunks(
    batches: Iterator[pa.RecordBatch], *, task: SnapshotTask, chunks: tuple[Chunk, ...]
) -> Iterator[pa.RecordBatch]:
    """On a worker: the records of the chunks whose numbers come in."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from snapshot_chunk_records(task, chunks[number])


class SnapshotCoordinator:
    """Runs one source on its own thread until stopped; faults stall it, and it tries again."""

    def __init__(
        self,
        spark: SparkSession,
        dimension: Dimension,
        table: CapturedTable,
        settings: SourceSettings,
        stalls: Stalls,
    ) -> None:
        self._spark = spark
        self._dimension = dimension
        self._table = table
        self._settings = settings
        self._stalls = stalls
        self._part = f"source {dimension.name}"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._part, daemon=True)
        self._process: CdcProcess | None = None
        self._snapshot_needed = False
        self.state: SourceState | None = None
        self.progress: dict[str, Any] = {}

    def start(self) -> None:
        """Start the thread; it forks the CDC process, which dies with it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the CDC process and the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=20)

    def _run(self) -> None:
        delay = _RETRY_MIN_S
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._run_once()
            except SluiceError as exc:
                self._note(exc)
            except (OSError, PySparkException, Py4JError) as exc:
                self._note(
                    SourceError(
                        f'source "{self._dimension.name}" failed: {_last_line(exc)}',
                        hint="It is tried again by itself; check space and the runner's log.",
                    )
                )
            finally:
                self._end_process()
            delay = (
                _RETRY_MIN_S if time.monotonic() - started > 60 else min(delay * 2, _RETRY_MAX_S)
            )
            self._stopping.wait(delay)

    def _note(self, error: SluiceError) -> None:
        if not self._stopping.is_set():
            self._stalls.note(self._part, error)
            _log.warning("source stalled", part=self._part, error=error.message, hint=error.hint)

    def _run_once(self) -> None:
        connection = self._settings.connection
        check_source(connection, self._dimension.fields, self._dimension.primary_key)
        self.state = self._load_state()
        self._start_process(self.state)
        if not self.state.chunks_complete:
            self._read_snapshot(self.state)
        if self._stopping.is_set():
            return
        if self.state.high is None:
            self._keep(replace(self.state, high=take_high(connection, self.state.epoch)))
        self._follow(self.state)

    def _load_state(self) -> SourceState:
        value = read_json(self._settings.state_file)
        if value is None:
            return self._new_state(0, 1)
        state = SourceState.from_json(value)
        if not self._snapshot_needed and self._is_continuous(state):
            return state
        self._snapshot_needed = False
        return self._new_state(state.epoch + 1, state.generation + 1)

    def _is_continuous(self, state: SourceState) -> bool:
        """Whether the binlog from where we stopped is there, on the same server's same history.

        If not, a new generation starts, and in a new epoch: none of its positions may compare as
        older than one that was met before.
        """
        connection = self._settings.connection
        if server_identity(connection).server_uid != state.server_uid:
            return False
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
        connection = self._settings.connection
        low = take_low(connection, epoch)
        state = SourceState(
            epoch=epoch,
            generation=generation,
            low=low,
            server_uid=server_identity(connection).server_uid,
            rows_estimate=estimate_rows(connection),
        )
        self._keep(state)
        _log.info("snapshot starts", part=self._part, generation=generation, low=low.as_json())
        return state

    def _keep(self, state: SourceState) -> None:
        write_json_atomically(self._settings.state_file, state.as_json())
        self.state = state

    def _start_process(self, state: SourceState) -> None:
        settings = self._settings
        server_id = self._dimension.source.server_id or choose_server_id(settings.connection)
        config = CdcConfig(
            connection=settings.connection,
            table=self._table,
            server_id=server_id,
            low=state.low,
            generation=state.generation,
            kafka=replace(settings.kafka, topic=settings.topic),
            partitions=settings.partitions,
            offset_file=settings.offset_file,
        )
        self._process = CdcProcess(config, self._on_event)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _on_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "error":
            self._snapshot_needed |= event["type"] == SnapshotNeededError.__name__
            error = SourceError(event["message"], hint=event["hint"])
            self._stalls.note(self._part, error)
            _log.warning("source stalled", part=self._part, error=error.message, hint=error.hint)
            return
        self._stalls.clear(self._part)
        self.progress = {**self.progress, **event}

    def _living_process(self) -> CdcProcess:
        process = self._process
        if process is None or not process.running:
            raise (
                process.failure()
                if process is not None
                else SourceError(
                    f'cdc process of "{self._dimension.name}" is not there',
                    hint="It is started again.",
                )
            )
        return process

    def _read_snapshot(self, state: SourceState) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "snapshot")
        source = self._dimension.source
        bounds = chunk_bounds(
            self._settings.connection, self._table, rows_each=source.chunk_rows, after=state.after
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
            settings.connection,
            self._table,
            state.low.position,
            state.generation,
            settings.partitions,
        )
        numbers = self._spark.range(0, len(chunks), 1, len(chunks))
        records = numbers.mapInArrow(partial(read_chunks, task=task, chunks=chunks), _RECORDS_DDL)
        try:
            records.write.format("kafka").options(**spark_options(settings.kafka)).option(
                "topic", settings.topic
            ).save()
        except (PySparkException, Py4JError) as exc:
            check_source(settings.connection, self._dimension.fields, self._dimension.primary_key)
            raise SourceError(
                f'snapshot of "{self._dimension.name}" failed: {_last_line(exc)}',
                hint="The chunk is read again; if this stays, see the runner's log.",
            ) from exc

    def _follow(self, state: SourceState) -> None:
        assert state.high is not None
        position = state.high.position
        self._living_process().send(
            {
                "high": {"epoch": position.epoch, "file": position.file, "pos": position.pos},
                "generation": state.generation,
            }
        )
        while not self._stopping.wait(_POLL_S):
            self._living_process()


def _last_line(exc: Exception) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line]
    return json.dumps((told or lines or ["unknown"])[-1][:500])
