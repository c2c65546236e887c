"""The CDC process: sends the binlog of one table to its changelog topic.

docs/reference/contracts.md ("The CDC process") describes the protocol. Records keep the order of
the binlog. A transaction boundary is stored once Kafka has acknowledged everything before it; the
binlog is reopened there, and what follows is sent again with the same positions and rows.
"""
# reads better long: one session, from its connection to its last boundary.

import queue
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from joins.adapters.mysql.clock import PositionClock
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.events.shadows import Shadow, Shadows
from joins.adapters.mysql.events.transactions import (
    Appeared,
    Begin,
    Boundary,
    Event,
    FileOpened,
    RowImages,
    ShadowRows,
)
from joins.adapters.mysql.failover import applied_at
from joins.adapters.mysql.gtids import Gtid, followed_by
from joins.adapters.mysql.repair import Repair, RowsAt, read_rows_at
from joins.adapters.mysql.replication import check_logged
from joins.adapters.mysql.sender import (
    AcknowledgedBoundary,
    CdcConfig,
    ChangelogSender,
)
from joins.adapters.mysql.source import check_source, is_readable_table
from joins.adapters.mysql.statements import effect_of
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.adapters.mysql.table import CapturedTable, fits, reads_alike
from joins.adapters.mysql.tokens import Effect, Matching, Statement, Target, folded
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import as_json, from_json
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.errors import (
    RepairError,
    ServerChangedError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import Field
from watermark.errors import SluiceError

_QUEUED_EVENTS = 200
_IDLE_WAIT_S = 0.05
_LOOK_S = 0.5
_PERSIST_S = 1.0
_PROVED_S = 0.05


Command = TypeVar("Command")


@dataclass(frozen=True, slots=True)
class _High:
    position: BinlogPosition
    generation: int


class BinlogProtocol(SourceProtocol):
    """The commands of a CDC process: take a HIGH, send rows again, go on with another table."""

    def __init__(self) -> None:
        super().__init__()
        self.highs: queue.SimpleQueue[_High] = queue.SimpleQueue()
        self.repairs: queue.SimpleQueue[Repair] = queue.SimpleQueue()
        self.comparisons: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.is_marked = False
        """True once the watermark is written: only then a position proves the table."""

    def on_command(self, command: Mapping[str, Any]) -> None:
        if "high" in command:
            position = BinlogPosition(**command["high"])
            self.highs.put(_High(position, command["generation"]))
        if "repair" in command:
            self.repairs.put(from_json(Repair, command["repair"]))
        if "same_rows" in command:
            self.comparisons.put(command["same_rows"])


def _next(commands: "queue.SimpleQueue[Command]") -> Command | None:
    return None if commands.empty() else commands.get_nowait()  # this thread alone takes them


class _Pump:
    """Reads the stream on a thread, so that batches are sent while it blocks."""

    def __init__(self, stream: BinlogStream) -> None:
        self._stream = stream
        self._events: queue.Queue[Event | SluiceError] = queue.Queue(_QUEUED_EVENTS)
        self._closed = False
        threading.Thread(target=self._run, name="binlog", daemon=True).start()

    def _run(self) -> None:
        try:
            for event in self._stream.events():
                self._put(event)
                if self._closed:
                    return
        except SluiceError as error:
            self._put(error)
        except Exception as exc:  # any error of this thread must end the session
            self._put(
                SnapshotNeededError(
                    f"the binlog cannot be decoded: {exc!r}",
                    hint="Report it with the table's definition; the table is copied again.",
                )
            )

    def _put(self, item: Event | SluiceError) -> None:
        while not self._closed:
            try:
                return self._events.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue

    def next(self, timeout_s: float) -> Event | None:
        """The next event, None after the timeout; raises the stream's error."""
        try:
            event = self._events.get(timeout=timeout_s) if timeout_s else self._events.get_nowait()
        except queue.Empty:
            return None
        if isinstance(event, SluiceError):
            raise event
        return event

    def close(self) -> None:
        self._closed = True
        self._stream.close()


class BinlogSession:
    """One connection to the database and one to Kafka, from the stored boundary on."""

    def __init__(self, config: CdcConfig, protocol: BinlogProtocol) -> None:
        self._config = config
        self._protocol = protocol
        self._epoch = config.low.position.epoch
        kept = _kept(config)
        start = kept.position if kept else config.low.position
        self._boundary = self._acknowledged = (start.file, start.pos)
        applied = applied_at(config, kept)
        self._new = applied.new
        self._gtids = self._acknowledged_gtids = applied.gtids
        self._sent_before = applied.sent
        self._shadows = Shadows(config.table, None if kept is None else kept.shadows)
        self._begun: Gtid | None = None
        self._is_sending = False
        self._kept = kept
        self._is_verified = False
        self._created = {start.file: kept.file_created_at_s} if kept else {}
        self._kept_at_s = self._proved_at_s = 0.0
        self._high: _High | None = None
        self._repair: tuple[str, RowsAt] | None = None
        self._stream_start = StreamStart(
            config.server_id,
            f"{config.low.prefix}.{start.file:0{config.low.digits}d}",
            start.pos,
            applied.gtids,
            applied.new,
        )

    def run(self, high: _High | None) -> None:
        """Stream until the protocol stops; an earlier session has not marked `high` yet.

        SourceUnavailableError: a new session may succeed. SnapshotNeededError: the changes cannot
        be followed. SourceError: the stream cannot continue.
        """
        self._high = high
        sender = ChangelogSender(self._config)
        try:
            stream = BinlogStream(
                self._config.connection,
                self._config.table,
                self._stream_start,
                self._shadows.names,
            )
            pump = _Pump(stream)
            clock = PositionClock(self._config.connection, self._config.freshness_s)
            try:
                while not self._protocol.stopped.is_set():
                    self._step(pump, sender)
                    self._prove(clock, sender)
            finally:
                clock.close()
                pump.close()
                self._settle(sender)
        finally:
            sender.close()

    @property
    def owed(self) -> _High | None:
        return self._high

    def _step(self, pump: _Pump, sender: ChangelogSender) -> None:
        event = pump.next(sender.due_in_s() or 0.0)
        if event is None:
            self._flush(sender)
            event = pump.next(_IDLE_WAIT_S)
        if event is not None:
            self._take(event, sender)
        if sender.due_in_s() == 0.0:
            self._flush(sender)
        self._high = _next(self._protocol.highs) or self._high
        if self._high is not None and self._is_verified and self._is_reached(self._high.position):
            self._write_watermark(sender, self._high)
        if self._repair is None and self._protocol.is_marked:
            self._repair = self._read_again(_next(self._protocol.repairs))
        self._send_again(sender, self._boundary)
        self._report(sender)

    def _take(self, event: Event, sender: ChangelogSender) -> None:
        if isinstance(event, RowImages):
            self._is_sending = True
            sender.add(event)
        elif isinstance(event, Begin):
            self._send_again(sender, (event.file, event.pos))
            self._begun, self._is_sending = event.gtid, False
            sender.begin(event.file, event.pos)
            self._shadows.begin(event.file, event.pos)
        elif isinstance(event, ShadowRows):
            self._shadows.add(event)
        elif isinstance(event, Boundary):
            self._boundary = max(self._boundary, (event.file, event.pos))
            self._gtids, self._is_sending = event.gtids, False
            self._shadows.end(event.file, event.pos)
        elif isinstance(event, FileOpened):
            check_logged(self._config.connection)  # each connection and each restart opens a file
            self._require_same_file(event)
        elif isinstance(event, Appeared):
            connection = self._config.connection.at(event.database, event.table)
            if is_readable_table(connection):  # else it was dropped, and its rows with it
                name = f'"{event.database}.{event.table}" has rows'
                raise _appeared(self._config.table, name)
        else:
            self._take_statement(event, sender)

    def _take_statement(self, statement: Statement, sender: ChangelogSender) -> None:
        shadow = self._shadows.put_in_place(statement)
        has_copy = shadow is not None and self._has_copy_of(shadow, sender)
        if self._protocol.stopped.is_set():
            return  # before its boundary, so it is read again
        if not (has_copy and _still_fits(self._config.connection, self._config.table)):
            require_followed(statement, self._config.connection, self._config.table)
        self._shadows.note(statement)

    def _has_copy_of(self, shadow: Shadow, sender: ChangelogSender) -> bool:
        """Ask the runner whether the copy has the rows of the table that takes its table's place.

        Kafka has everything before; nothing behind is sent before the answer.
        """
        self._flush(sender)
        place = self._as_json(sender.transaction)
        self._protocol.tell("replaced", {"shadow": as_json(shadow), "position": place})
        while not self._protocol.stopped.wait(_IDLE_WAIT_S):
            has_copy = _next(self._protocol.comparisons)
            if has_copy is not None:
                return has_copy
            self._report(sender)
        return False

    def _flush(self, sender: ChangelogSender) -> None:
        sender.flush()
        if self._new is None or not self._new.checked:
            self._acknowledged, self._acknowledged_gtids = self._boundary, self._gtids
        if time.monotonic() - self._kept_at_s > _PERSIST_S:
            self._persist()

    def _settle(self, sender: ChangelogSender) -> None:
        """Note what was sent, as another server may answer next; without Kafka it is not known."""
        if not self._is_verified or sender.has_lost:
            return
        try:
            self._flush(sender)
        except SluiceError:
            return
        self._persist(self._sent())

    def _sent(self) -> str | None:
        """What this session and those before it have sent; None if it is not known."""
        gtids = followed_by(self._gtids, self._begun) if self._is_sending else self._gtids
        before = self._sent_before
        if gtids is None or before is None:
            return None
        if not gtids.lacks(before):
            return str(gtids)
        return None if before.lacks(gtids) else str(before)

    def _require_sent_again(self) -> None:
        """All that the server has is read: what was sent before must have been in it."""
        before, self._sent_before = self._sent_before, self._gtids
        lacking = before and self._gtids and self._gtids.lacks(before)
        if lacking:
            raise SnapshotNeededError(
                f"the binlog no longer has transaction {lacking}, of which changes were sent",
                hint="The server lost it, as in a crash without sync_binlog=1; the table is copied "
                "again by itself.",
            )

    def _persist(self, sent: str | None = None) -> None:
        if not self._is_verified:
            return
        position = BinlogPosition(self._epoch, *self._acknowledged)
        created_at_s = self._created.get(position.file, 0)
        gtids = None if self._acknowledged_gtids is None else str(self._acknowledged_gtids)
        boundary = AcknowledgedBoundary(
            position, created_at_s, self._config.generation, gtids, sent, self._shadows.kept()
        )
        if boundary != self._kept:
            write_document(self._config.offset_file, boundary, lazily=True)
            self._kept, self._kept_at_s = boundary, time.monotonic()

    def _is_reached(self, high: BinlogPosition) -> bool:
        return BinlogPosition(self._epoch, *self._boundary) >= high

    def _write_watermark(self, sender: ChangelogSender, high: _High) -> None:
        self._require_caught_up()
        self._flush(sender)
        written = sender.watermark(high.position, high.generation)
        self._high = None
        self._protocol.is_marked = True
        self._protocol.tell_watermark(high.generation, written)

    def _require_caught_up(self) -> None:
        """Everything that the server had when it was taken over must have been read from it."""
        new = self._new
        if new is None or not new.checked:
            return
        lacking = "all" if self._gtids is None else self._gtids.lacks(new.executed)
        if lacking:
            raise SnapshotNeededError(
                f"the binlog of the server that answers now has not transaction {lacking}, which "
                "it has executed",
                hint="No action is needed: the table is copied again by itself.",
            )
        new.checked = False

    def _read_again(self, repair: Repair | None) -> tuple[str, RowsAt] | None:
        """Rows of the source at a position that the stream, which waits for this, is not behind."""
        if repair is None:
            return None
        config = self._config
        try:
            at = read_rows_at(config.connection, config.table, self._epoch, repair)
            if at.position == config.low.position:
                raise RepairError(
                    "nothing was written to the binlog since the table was copied, so no record "
                    "can be newer than the copy's",
                    hint="Write any row of any table of the server, then repair again.",
                )
        except SluiceError as exc:
            error = {"type": exc.fault, "message": exc.message, "hint": exc.hint}
            self._protocol.tell("repaired", {"id": repair.id, "error": error})
            return None
        return repair.id, at

    def _send_again(self, sender: ChangelogSender, place: tuple[int, int]) -> None:
        """Send the rows of a repair once everything before their position is sent."""
        if self._repair is None:
            return
        repair_id, at = self._repair
        if BinlogPosition(self._epoch, *place) < at.position:
            return
        sender.resend(at)
        self._repair = None
        sent = {"written": sum(rows.num_rows for rows in at.rows), "deleted": at.deleted.num_rows}
        position = self._as_json((at.position.file, at.position.pos))
        self._protocol.tell("repaired", {"id": repair_id, **sent, "position": position})

    def _prove(self, clock: PositionClock, sender: ChangelogSender) -> None:
        """Tell the newest answer of the server up to which Kafka has acknowledged everything."""
        if not (clock.has_news and self._protocol.is_marked):
            return
        now_s = time.monotonic()
        if now_s - self._proved_at_s < _PROVED_S:
            return
        self._proved_at_s = now_s
        proof = clock.reached(*self._boundary)
        if proof is not None:
            self._require_sent_again()
            self._flush(sender)
            self._protocol.tell_proof(proof)

    def _report(self, sender: ChangelogSender) -> None:
        if not (self._is_verified and self._protocol.is_due(paced=True)):
            return
        self._protocol.tell(
            "progress",
            {
                "position": self._as_json(self._boundary),
                "acknowledged": self._as_json(self._acknowledged),
                "records": sender.records,
                "source_ts_ms": sender.source_ts_ms,
            },
        )

    def _as_json(self, place: tuple[int, int]) -> dict[str, int]:
        return {"epoch": self._epoch, "file": place[0], "pos": place[1]}

    def _require_same_file(self, opened: FileOpened) -> None:
        before = self._created.get(opened.file) or opened.created_at_s
        if before != opened.created_at_s:
            raise SnapshotNeededError(
                f"binlog file number {opened.file} was created at {opened.created_at_s} s, "
                f"the one that we read at {before} s",
                hint="The binlog was reset or the server restored; the table is copied again.",
            )
        self._created[opened.file] = opened.created_at_s
        if not self._is_verified:
            self._is_verified = True
            self._persist()  # before anything is sent: what is sent is not known from now on
            self._protocol.tell("streaming", {"position": self._as_json(self._boundary)})


def require_followed(
    statement: Statement, connection: MysqlConnectionConfig, table: CapturedTable
) -> None:
    """Raise SnapshotNeededError if a statement has, or may have, changed rows of the table.

    SourceUnavailableError if the server does not answer questions about the table.
    """
    if table.pattern is None:
        return _require_one_followed(statement, connection, table)
    if not _concerns(statement, Matching(table.database, table.table, ())):
        return
    for part in table.parts:
        _require_one_followed(statement, connection.at(part.database, part.table), part)
    known = frozenset((folded(part.database), folded(part.table)) for part in table.parts)
    if _concerns(statement, Matching(table.database, table.table, (), known=known)):
        raise _appeared(table, f'it is named by "{statement.text[:120]}"')


def _appeared(table: CapturedTable, what: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f'another table matches "{table.database}.{table.table}": {what}',
        hint="No action is needed: all tables that match are copied again by themselves.",
    )


def _concerns(statement: Statement, target: Target) -> bool:
    effect = effect_of(statement.schema, statement.text, target, statement.modes)
    return effect is not Effect.NONE


def _require_one_followed(
    statement: Statement, connection: MysqlConnectionConfig, table: CapturedTable
) -> None:
    theirs = [column.server for column in table.columns if not column.metadata]
    columns = tuple(column.name for column in theirs)
    sources = tuple(one for column in theirs for one in column.computed_from)
    target = Target(table.database, table.table, columns, sources)
    effect = effect_of(statement.schema, statement.text, target, statement.modes)
    if effect is Effect.NONE:
        return
    if effect is Effect.ALTERED and _still_fits(connection, table):
        return
    raise SnapshotNeededError(
        f'table "{table.database}.{table.table}" cannot be followed: {effect.value} '
        f'by "{statement.text[:120]}"',
        hint=_HINTS[effect],
    )


def _still_fits(connection: MysqlConnectionConfig, table: CapturedTable) -> bool:
    fields = tuple(Field(c.name, c.sql_type) for c in table.captured)
    try:
        now = check_source(connection, fields, table.primary_key)
    except (SourceUnavailableError, ServerChangedError):
        raise
    except SourceError:
        return False
    return fits(table, now) and reads_alike(table, now)


_UNDO = (
    "Undo the change and the table is copied again by itself, or submit the job again with the "
    "new definition."
)
_HINTS = {
    Effect.ALTERED: _UNDO,
    Effect.CONVERTED: "The table is copied again by itself once its columns fit the declaration: "
    "undo the change if they do not, or submit the job again with the new definition.",
    Effect.REPLACED: "The table is copied again by itself, once it is there. No copy is needed "
    "behind DELETE, unlike TRUNCATE, nor behind ALTER TABLE, gh-ost or pt-online-schema-change "
    "that keep the values of the job's columns.",
    Effect.UNLOGGED: "The table is copied again by itself; let writers use binlog_format=ROW to "
    "avoid it.",
    Effect.UNKNOWN: "The table is copied again by itself, since the statement is not one that is "
    "known to leave it as it is.",
}


def _kept(config: CdcConfig) -> AcknowledgedBoundary | None:
    kept = read_document(config.offset_file, AcknowledgedBoundary)
    if kept is None or kept.generation != config.generation:
        return None
    return kept if kept.position.epoch == config.low.position.epoch else None


def run(config: CdcConfig, protocol: BinlogProtocol) -> int:
    owed = None

    def session() -> None:
        nonlocal owed
        made = BinlogSession(config, protocol)
        try:
            made.run(owed)
        except SourceUnavailableError:
            owed = made.owed
            raise

    return run_sessions(protocol, session, (SourceUnavailableError,))


def main() -> int:
    """Exit code: 0 after `stop` or the end of input, else 1."""
    return run_process(BinlogProtocol(), CdcConfig, run, "pymysqlreplication")


if __name__ == "__main__":
    sys.exit(main())
