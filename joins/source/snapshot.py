"""Coordinates one `mysql-cdc` source: LOW, chunk jobs, HIGH and the CDC process, all resumable.

The binlog is streamed from LOW while the chunks are read. HIGH is taken after the last chunk's
records are acknowledged; the CDC process then writes the watermark into every partition, again
after each restart. A new generation starts over if the binlog from LOW is gone, the server's
history differs, or an event cannot be followed, as soon as the table fits its declaration.
"""

# reads better long: one copy of a table, from its first chunk to the log behind it.

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
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
from joins.adapters.mysql.sender import AcknowledgedBoundary, CdcConfig
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

    With `sum_at` a table that takes the captured one's place is followed without a copy if its rows
    are those of the copy.
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
        self._sum_at = sum_at
        self._compared: tuple[BinlogPosition, bool] | None = None
        assert isinstance(dimension.source, MysqlCdcSource)
        self._spark = spark
        self._dimension = dimension
        self._source = dimension.source
        self._table = table
        self._settings = settings
        self._staged = settings.staged
        kafka = replace(settings.kafka, topic=settings.topic).compressing(COMPRESSION)
        self._producer = BatchProducer(kafka, MOST_BODY_BYTES)
        self._keeping = threading.Lock()
        self._most_bytes: int | None = None
        self._deaths = Deaths()
        self._repaired: Mapping[str, Any] | None = None
        self._repairs: dict[str, queue.SimpleQueue[dict[str, Any]]] = {}
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
            low=_place(state.low),
            high=None if state.high is None else _place(state.high),
            repaired=self._repaired,
        )

    def _abandon(self, reason: str) -> None:
        kept = read_document(self._settings.state_file, SourceState)
        if kept is not None:
            self.state = kept
            self._keep(SourceStep.ABANDON, needed=reason)

    def _note(self, error: SluiceError) -> None:
        if isinstance(error, SnapshotNeededError) and self.state is not None:
            self._keep(SourceStep.ABANDON, needed=error.message)
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
        self.state = kept = read_document(self._settings.state_file, SourceState)
        now = self._checked_table(kept)
        if kept is None:
            return self._new_state(0, 1)
        if kept.phase is SourcePhase.COPYING and (others := parts_that_differ(kept.table, now)):
            self.copied_because = (
                f'other tables match "{now.database}.{now.table}" than when the copy began: '
                f"{', '.join(others)}"
            )
        elif kept.needed is None:
            server = server_identity(self._settings.connection)
            if server.same_server(kept.server):
                if self._is_continuous(kept):
                    return kept
                self.copied_because = (
                    "the log of the server no longer has the changes since the last position"
                )
            elif self._take_over(kept, server):
                return self._require_state()
        else:
            self.copied_because = kept.needed
        return self._new_state(kept.epoch + 1, kept.generation + 1)

    def _take_over(self, kept: SourceState, server: ServerIdentity) -> bool:
        """True if the table is followed on another server, in a new epoch, without a copy."""
        boundary = read_document(self._settings.offset_file, AcknowledgedBoundary)
        if not kept.is_complete_at(boundary) or server.is_mariadb != kept.server.is_mariadb:
            self.copied_because = "the server was replaced before the copy was complete"
            return False
        try:
            first = take_over(self._settings.connection.of_server(server), boundary, kept.epoch + 1)
        except SnapshotNeededError as exc:
            self.copied_because = exc.message
            return False
        self._keep(
            SourceStep.TAKE_OVER,
            epoch=kept.epoch + 1,
            low=first.low,
            high=first.high,
            server=server,
            table=self._checked_table(kept, server),
            takeover=first.takeover,
        )
        _log.info("source goes on at another server", part=self.part, server=as_json(server))
        return True

    def _checked_table(
        self, kept: SourceState | None = None, server: ServerIdentity | None = None
    ) -> CapturedTable:
        """The table's current definition; SourceError if records of it cannot follow earlier ones.

        From `kept` the error says what happened to the table. SourceUnavailableError if
        unreachable.
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
            is_same = exc.message in kept.needed
            raise SourceError(
                kept.needed if is_same else f"{kept.needed}; now {exc.message}",
                hint=exc.OF_A_JOB if isinstance(exc, DefinitionError) else again,
            ) from exc
        return now

    def _is_continuous(self, state: SourceState) -> bool:
        """True if the same server has the same history and the binlog from the last position.

        If not, a new generation starts in a new epoch: none of its positions may compare as older.
        """
        connection = self._connection_of(state)
        low_is_there = binlog_still_has(connection, state.low)
        if low_is_there and not same_history(connection, state.low):
            return False
        return binlog_still_has(connection, self._reopened_at(state))

    def _reopened_at(self, state: SourceState) -> BinlogMark:
        kept = read_document(self._settings.offset_file, AcknowledgedBoundary)
        if kept is None or (kept.position.epoch, kept.generation) != (
            state.epoch,
            state.generation,
        ):
            return state.low
        return replace(state.low, position=kept.position, gtid=None)

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
        with self._keeping:
            self._write(state)
        _log.info("snapshot starts", part=self.part, generation=generation, low=as_json(low))
        return state

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
        self._keep(SourceStep.HIGH, high=high)

    def _connection_of(self, state: SourceState) -> MysqlConnectionConfig:
        """Each connection checks the server: the address may be a load balancer's."""
        return self._settings.connection.of_server(state.server)

    def _require_state(self) -> SourceState:
        assert self.state is not None
        return self.state

    def _keep(self, step: SourceStep, **changes: Any) -> None:  # noqa: ANN401
        """Make one step durable; the CDC process may abandon the copy on another thread."""
        with self._keeping:
            self._write(self._require_state().advanced(step, **changes))

    def _write(self, state: SourceState) -> None:
        write_document(self._settings.state_file, state)
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
            most_bytes=self._message_bytes(),
            freshness_s=settings.freshness_s,
            copied_dead_rows=self._dead_rows_file,
            takeover=state.takeover,
        )
        self._process = SourceProcess(
            "joins.adapters.mysql.binlog", config, partial(self._on_event, state.generation)
        )

    def _on_event(self, generation: int, event: dict[str, Any]) -> None:
        if generation != self._require_state().generation:
            return  # the last events of the previous process
        if event["event"] == "repaired":
            if event["id"] in self._repairs:
                self._repairs[event["id"]].put(event)
            return
        if event["event"] == "replaced":
            in_background(partial(self._compare, self._process, event), "comparison")
            return
        if self._deaths.is_stall_after(event, time.monotonic()):
            self._is_following |= event["event"] == "watermark"
            self.progress = {**self.progress, **event}
        else:
            self._take_event(event)

    def _compare(self, process: SourceProcess | None, event: Mapping[str, Any]) -> None:
        """Tell the process whether the copy has the rows of the table that takes its table's place.

        The process waits; it may ask again at the same place, after it was started again.
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

    def _read_snapshot(self, state: SourceState) -> None:
        self._staged.clear(state.generation)
        try:
            with self._copy_faults():
                self._read_chunks(state)
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

    @property
    def _dead_rows_file(self) -> Path:
        return self._settings.state_file.with_suffix(SUFFIX)

    def _message_bytes(self) -> int:
        if self._most_bytes is None:
            self._most_bytes = self._producer.message_bytes() or MOST_MESSAGE_BYTES
        return self._most_bytes

    def warnings(self) -> list[Mapping[str, Any]]:
        state = self.state
        if state is None:
            return []
        files = (self._dead_rows_file, self._settings.offset_file.with_suffix(SUFFIX))
        warning = warning_of(f"{state.table.database}.{state.table.table}", files, state.generation)
        return [] if warning is None else [warning]

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
        state, through = self._require_state(), chunks[-1].through
        done = state.chunks_done + len(chunks)
        if through is None:
            self._keep(SourceStep.LAST_CHUNK, chunks_done=done, chunks_complete=True)
        else:
            self._keep(SourceStep.CHUNKS, after=through, chunks_done=done)

    @contextmanager
    def _copy_faults(self) -> Iterator[None]:
        """Raise a group's fault as a SluiceError, if the table still is what it was."""
        try:
            yield
        except (PySparkException, Py4JError, SinkError) as exc:
            self._checked_table()
            raise cause_of(exc, f'snapshot of "{self._dimension.name}" failed') from exc

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

    def _follow(self, state: SourceState) -> None:
        assert state.high is not None
        self._living_process().send({"high": _place(state.high), "generation": state.generation})
        while not self._stopping.wait(_POLL_S):
            self._living_process()


def _place(mark: BinlogMark) -> dict[str, int]:
    place = mark.position
    return {"epoch": place.epoch, "file": place.file, "pos": place.pos}
