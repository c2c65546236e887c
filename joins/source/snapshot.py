"""Coordinates one `mysql-cdc` source: LOW, the chunks, HIGH and the CDC process, all resumable.

The CDC process streams the binlog from LOW while the chunks are read. HIGH is taken after Kafka has
acknowledged the last chunk; the process then writes the watermark into every partition, again after
each restart. Each durable step is one write of a `SourceState`; its phases are `SourcePhase`.

`_load_state` resumes the stored state if its server answers and has the binlog from the stored
boundary; it goes on at another server that has everything; else it begins a new copy, in the next
epoch and generation. The coordinator's thread runs `_run_once`. Events of the process, a group that
is sent and a comparison have their own threads; `_writing` serializes writes of the state.
"""
# reads better long: one copy of a table, from its first chunk to the log behind it.

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joins.adapters.kafka.batch_producer import BatchProducer, send_files
from joins.adapters.kafka.changelog_producer import MOST_MESSAGE_BYTES
from joins.adapters.mysql.chunks import Chunk, SnapshotTask, chunk_bounds
from joins.adapters.mysql.connection import MysqlConnectionConfig, ServerIdentity
from joins.adapters.mysql.events.shadows import Shadow
from joins.adapters.mysql.failover import take_over
from joins.adapters.mysql.position import (
    BinlogMark,
    binlog_still_has,
    same_history,
    server_identity,
    statement_after,
    take_high,
    take_low,
)
from joins.adapters.mysql.repair import WRITE_AGAIN, Repair, require_repairable
from joins.adapters.mysql.sender import AcknowledgedBoundary, CdcConfig, stored_boundary
from joins.adapters.mysql.source import check_source, choose_server_id, estimate_rows
from joins.adapters.mysql.table import (
    CapturedTable,
    definitions_that_differ,
    fits,
    parts_that_differ,
)
from joins.adapters.process.process import SourceProcess
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import as_json, from_json
from joins.durable.dead_rows import RESERVED_BYTES, SUFFIX, DeadRows, warning_of
from joins.durable.requests import Request, Stalls
from joins.kernels.changelog.comparison import Place, RowsSum
from joins.kernels.changelog.envelope import BinlogPosition, now_ms
from joins.plan.causes import cause_of
from joins.plan.errors import (
    DefinitionError,
    RepairError,
    SinkError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import Dimension, KafkaOptions, MysqlCdcSource
from joins.source.chunk_reader import (
    COMPRESSION,
    DEAD_ROWS,
    MOST_BODY_BYTES,
    SOURCE_STEPS,
    ChunkReader,
    ChunkStage,
    GroupSize,
    SourcePhase,
    SourceState,
    SourceStep,
    in_background,
)
from joins.source.coordinator import SourceCoordinator, SourceView
from joins.source.deaths import Deaths
from joins.worker.row_files import RowFiles
from joins.worker.staging import BatchReport
from joins.worker.work import enter_pool
from watermark.errors import SluiceError
from watermark.transitions import next_state

_SENDER = "snapshot sender"
_POLL_S, _REPAIR_S = 0.2, 60.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where a source's records and files go; `rows_per_job` is the unit of resuming."""

    connection: MysqlConnectionConfig
    kafka: KafkaOptions
    topic: str
    partitions: int
    state_file: Path
    offset_file: Path
    staged: RowFiles
    tasks: int = 2
    rows_per_job: int = 200_000
    freshness_s: float = 1.0


SumAt = Callable[[Place, int], RowsSum]
"""The rows of the copy of a generation before a place of the log; VerificationError if unknown."""


class SnapshotCoordinator(SourceCoordinator):
    """Runs one source on a thread until stopped; a fault stalls the source, which then retries.

    With `sum_at`, a table that replaces the captured one is followed without a copy if it has the
    rows of the copy.
    """

    def __init__(
        self,
        spark: SparkSession,
        dimension: Dimension,
        table: CapturedTable,
        settings: SourceSettings,
        stalls: Stalls,
        topic: ChangelogTopic | None = None,
        sum_at: SumAt | None = None,
    ) -> None:
        super().__init__(dimension.name, stalls, topic)
        assert isinstance(dimension.source, MysqlCdcSource)
        self._spark = spark
        self._dimension = dimension
        self._source = dimension.source
        self._table = table
        self._settings = settings
        self._staged = settings.staged
        kafka = replace(settings.kafka, topic=settings.topic).compressing(COMPRESSION)
        self._producer = BatchProducer(kafka, MOST_BODY_BYTES)
        self._writing = threading.Lock()
        self._most_bytes: int | None = None  # of a message of the topic
        self._deaths = Deaths()
        self._sum_at = sum_at
        self._compared: tuple[BinlogPosition, bool] | None = None  # the newest comparison
        self._repairs: dict[str, queue.SimpleQueue[dict[str, Any]]] = {}  # id → its answer
        self._repaired: Mapping[str, Any] | None = None  # the newest answer
        self.state: SourceState | None = None

    def view(self) -> SourceView | None:
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
            low=as_json(state.low.position),
            high=None if state.high is None else as_json(state.high.position),
            repaired=self._repaired,
        )

    def warnings(self) -> list[Mapping[str, Any]]:
        state = self.state
        if state is None:
            return []
        files = (self._dead_rows_file, self._settings.offset_file.with_suffix(SUFFIX))
        warning = warning_of(f"{state.table.database}.{state.table.table}", files, state.generation)
        return [] if warning is None else [warning]

    def _abandon(self, reason: str) -> None:
        stored = read_document(self._settings.state_file, SourceState)
        if stored is not None:
            self.state = stored
            self._advance(SourceStep.ABANDON, needed=reason)

    def _note(self, error: SluiceError) -> None:
        if isinstance(error, SnapshotNeededError) and self.state is not None:
            self._advance(SourceStep.ABANDON, needed=error.message)
        super()._note(error)

    def _run_once(self) -> None:
        state = self._load_state()
        self._start_process(state)
        if self._has_copied(state):
            self._follow(self._require_state())

    def _has_copied(self, state: SourceState) -> bool:
        """Read what is left of the copy; False if it was stopped before."""
        if state.chunks_complete:
            self._producer.close()
        else:
            self._read_snapshot(state)
        if self._stopping.is_set():
            return False
        if self._require_state().high is None:
            self._take_high()
        return True

    def _load_state(self) -> SourceState:
        self.state = stored = read_document(self._settings.state_file, SourceState)
        table = self._checked_table(stored)
        if stored is None:
            return self._new_state(0, 1)
        reason = self._reason_to_copy(stored, table)
        if reason is None:
            return self._require_state()
        self.copied_because = reason
        return self._new_state(stored.epoch + 1, stored.generation + 1)

    def _reason_to_copy(self, stored: SourceState, table: CapturedTable) -> str | None:
        """None if the table is followed on from the stored boundary, or now on another server."""
        others = parts_that_differ(stored.table, table)
        if stored.phase is SourcePhase.COPYING and others:
            return (
                f'other tables match "{table.database}.{table.table}" than when the copy began: '
                f"{', '.join(others)}"
            )
        if stored.needed is not None:
            return stored.needed
        server = server_identity(self._settings.connection)
        if not server.same_server(stored.server):
            return self._take_over(stored, server)
        if self._is_continuous(stored):
            return None
        return "the log of the server no longer has the changes since the last position"

    def _take_over(self, stored: SourceState, server: ServerIdentity) -> str | None:
        """Go on at another server, in a new epoch; or the reason why the table is copied again."""
        boundary = self._boundary(stored)
        if not stored.is_complete_at(boundary) or server.is_mariadb != stored.server.is_mariadb:
            return "the server was replaced before the copy was complete"
        epoch, connection = stored.epoch + 1, self._settings.connection.of_server(server)
        try:
            first = take_over(connection, boundary, epoch)
        except SnapshotNeededError as exc:
            return exc.message
        self._advance(
            SourceStep.TAKE_OVER,
            epoch=epoch,
            low=first.low,
            high=first.high,
            server=server,
            table=self._checked_table(stored, server),
            takeover=first.takeover,
        )
        _log.info("source goes on at another server", part=self.part, server=as_json(server))
        return None

    def _is_continuous(self, state: SourceState) -> bool:
        """True if the server has the history of LOW and the binlog from the stored boundary."""
        connection = self._connection_of(state)
        low_is_there = binlog_still_has(connection, state.low)
        if low_is_there and not same_history(connection, state.low):
            return False
        return binlog_still_has(connection, self._reopened_at(state))

    def _reopened_at(self, state: SourceState) -> BinlogMark:
        """The position from which the CDC process streams the binlog."""
        boundary = self._boundary(state)
        if boundary is None:
            return state.low
        return replace(state.low, position=boundary.position, gtid=None)

    def _boundary(self, state: SourceState) -> AcknowledgedBoundary | None:
        return stored_boundary(self._settings.offset_file, state.epoch, state.generation)

    def _new_state(self, epoch: int, generation: int) -> SourceState:
        """Take LOW; changes of the table or the server around it show up here or in the binlog."""
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
        phase = SourcePhase.NEW if self.state is None else self.state.phase
        next_state("copy of a table", SOURCE_STEPS, phase, SourceStep.BEGIN)
        with self._writing:
            self._write(state)
        _log.info("snapshot starts", part=self.part, generation=generation, low=as_json(low))
        return state

    def _checked_table(
        self, stored: SourceState | None = None, server: ServerIdentity | None = None
    ) -> CapturedTable:
        """The current definition; SourceError if its records cannot follow the earlier ones.

        With `stored` the error also says why the table must be copied again.
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
            if stored is None or stored.needed is None:
                raise
            again = f"{exc.hint} The table is then copied again by itself."
            is_same = exc.message in stored.needed
            raise SourceError(
                stored.needed if is_same else f"{stored.needed}; now {exc.message}",
                hint=exc.OF_A_JOB if isinstance(exc, DefinitionError) else again,
            ) from exc
        return now

    def _advance(self, step: SourceStep, **changes: Any) -> None:  # noqa: ANN401
        """Make one step durable; the CDC process may abandon the copy on another thread."""
        with self._writing:
            self._write(self._require_state().advanced(step, **changes))

    def _write(self, state: SourceState) -> None:
        write_document(self._settings.state_file, state)
        self.state = state

    def _require_state(self) -> SourceState:
        assert self.state is not None
        return self.state

    def _connection_of(self, state: SourceState) -> MysqlConnectionConfig:
        """Each connection checks the server: the address may be a load balancer's."""
        return self._settings.connection.of_server(state.server)

    def _read_snapshot(self, state: SourceState) -> None:
        self._staged.clear(state.generation)
        try:
            self._read_chunks(state)
        except (PySparkException, Py4JError, SinkError) as exc:
            self._checked_table()  # a table that has changed explains the error
            raise cause_of(exc, f'snapshot of "{self._dimension.name}" failed') from exc
        finally:
            self._producer.close()
            self._staged.clear(state.generation)

    def _read_chunks(self, state: SourceState) -> None:
        """Read one group while the previous one is sent; only acknowledged groups are durable."""
        enter_pool(self._spark, "snapshot")
        bounds = chunk_bounds(
            self._connection_of(state),
            state.table,
            rows_each=self._source.chunk_rows,
            after=state.after,
        )
        sending: Future[Any] = in_background(self._check_reading, _SENDER)
        try:
            for chunks, report in self._reader(state).groups(bounds):
                sending.result()
                sending = in_background(partial(self._send_group, chunks, report), _SENDER)
                if self._stopping.is_set():
                    break
                self._check_reading()
            sending.result()
        finally:
            wait([sending])

    def _check_reading(self) -> None:
        self._living_process()  # it reads the binlog beside the copy

    def _reader(self, state: SourceState) -> ChunkReader:
        settings = self._settings
        task = SnapshotTask(
            self._connection_of(state),
            state.table,
            state.low.position,
            state.generation,
            settings.partitions,
        )
        value_bytes = self._message_bytes() - RESERVED_BYTES
        stage = ChunkStage(task, self._producer.body_bytes(), self._staged.place, value_bytes)
        size = GroupSize(settings.tasks, self._source.chunk_rows, settings.rows_per_job)
        return ChunkReader(self._spark, stage, size)

    def _send_group(self, chunks: Sequence[Chunk], report: BatchReport) -> None:
        state = self._require_state()
        dead = DeadRows(self._dead_rows_file, state.generation, self._message_bytes())
        dead.update((key, size) for detail in report.details for key, size in detail[DEAD_ROWS])
        send_files(self._producer, self._staged.paths(report))
        self._staged.remove(report)
        through, done = chunks[-1].through, state.chunks_done + len(chunks)
        if through is None:
            self._advance(SourceStep.LAST_CHUNK, chunks_done=done, chunks_complete=True)
        else:
            self._advance(SourceStep.CHUNKS, after=through, chunks_done=done)

    def _message_bytes(self) -> int:
        if self._most_bytes is None:
            self._most_bytes = self._producer.message_bytes() or MOST_MESSAGE_BYTES
        return self._most_bytes

    @property
    def _dead_rows_file(self) -> Path:
        return self._settings.state_file.with_suffix(SUFFIX)

    def _take_high(self) -> None:
        """HIGH must come from the server and the history of LOW."""
        state = self._require_state()
        high = take_high(self._connection_of(state), state.epoch)
        if high.position < state.low.position or not self._is_continuous(state):
            raise SnapshotNeededError(
                f'database server "{self._settings.connection.server}" was replaced, restored or '
                "reset while the table was copied",
                hint="No action is needed: the table is copied again by itself.",
            )
        self._advance(SourceStep.HIGH, high=high)

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
            most_bytes=self._message_bytes(),
            freshness_s=settings.freshness_s,
            copied_dead_rows=self._dead_rows_file,
            takeover=state.takeover,
        )
        self._process = SourceProcess(
            "joins.adapters.mysql.binlog", config, partial(self._on_event, state.generation)
        )

    def _follow(self, state: SourceState) -> None:
        assert state.high is not None
        self._living_process().send(
            {"high": as_json(state.high.position), "generation": state.generation}
        )
        while not self._stopping.wait(_POLL_S):
            self._living_process()

    def _living_process(self) -> SourceProcess:
        """The process; a second silent death at the same position is a stall."""
        process = self._process
        if process is not None and process.ended_silently:
            state = self._require_state()
            place = self._reopened_at(state)
            if self._deaths.add(place.position):
                statement = statement_after(self._connection_of(state), place)
                behind = f', before "{statement}" was done' if statement else ""
                raise SourceError(
                    f'the process that reads table "{state.table.database}.{state.table.table}" '
                    f"died {self._deaths.count} times behind {place.file_name}:"
                    f"{place.position.pos}{behind}",
                    hint="Read its last lines in the runner's log and remove the cause, such as "
                    "too little memory; it is started again by itself. To pass that change, submit "
                    "the job again.",
                )
        return super()._living_process()

    def _on_event(self, generation: int, event: dict[str, Any]) -> None:
        if generation != self._require_state().generation:
            return  # the last events of the previous process
        if event["event"] == "repaired":
            if event["id"] in self._repairs:
                self._repairs[event["id"]].put(event)
        elif event["event"] == "replaced":
            in_background(partial(self._compare, self._process, event), "comparison")
        elif self._deaths.is_stall_after(event, time.monotonic()):
            self._is_following |= event["event"] == "watermark"
            self.progress = {**self.progress, **event}
        else:
            self._take_event(event)

    def _compare(self, process: SourceProcess | None, event: Mapping[str, Any]) -> None:
        """Answer whether the copy has the rows of the table that replaces the captured one.

        The process waits; after a restart it asks again at the same position.
        """
        shadow = from_json(Shadow, event["shadow"])
        position = BinlogPosition(**event["position"])
        if self._compared is None or self._compared[0] != position:
            self._compared = position, self._has_copy_of(shadow, position)
        if process is not None:
            process.send({"same_rows": self._compared[1]})

    def _has_copy_of(self, shadow: Shadow, position: BinlogPosition) -> bool:
        name, state = f"{shadow.database}.{shadow.table}", self._require_state()
        if self._sum_at is None or state.phase is not SourcePhase.FOLLOWING:
            return False
        try:
            ours = self._sum_at((position.epoch, position.file, position.pos), state.generation)
        except Exception as exc:  # without an answer the process would wait for ever
            reason = cause_of(exc, "the copy's rows cannot be added up").message
            _log.warning("table is replaced, and copied again", part=self.part, by=name, why=reason)
            return False
        is_same = ours == shadow.sum
        what = "and followed without a copy" if is_same else "and copied again: its rows differ"
        _log.info(f"table is replaced, {what}", part=self.part, by=name, rows=shadow.sum.rows)
        return is_same

    def repair(self, request: Request) -> Mapping[str, Any]:
        state, process = self.state, self._process
        if state is None or process is None or not self._is_following:
            raise RepairError(
                f'table "{self.name}" is not followed now, so no row of it can be sent again',
                hint="Repair it when the copy is complete and its source answers.",
            )
        if self._dimension.watermark is not None:
            raise RepairError(
                f'table "{self.name}" has a watermark: what its rows were at earlier times is not '
                "at the source any more",
                hint=WRITE_AGAIN,
            )
        require_repairable(state.table)
        repair = from_json(Repair, {"id": request.id, **request.body})
        answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._repairs[repair.id] = answers
        try:
            process.send({"repair": as_json(repair)})
            answer = answers.get(timeout=_REPAIR_S)
        except queue.Empty:
            raise RepairError(
                f'rows of table "{self.name}" were not sent again within {_REPAIR_S:g} s',
                hint="See with sluice jobs get whether its source is followed; then repair again.",
            ) from None
        finally:
            del self._repairs[repair.id]
        if "error" in answer:
            error = answer["error"]
            raise RepairError(error["message"], hint=error["hint"])
        done = {name: answer[name] for name in ("written", "deleted", "position")}
        self._repaired = {**done, "at_ms": now_ms()}
        return self._repaired
