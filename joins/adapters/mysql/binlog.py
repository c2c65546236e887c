"""The CDC process: sends the binlog of one table to its changelog topic.

docs/reference/contracts.md ("The CDC process") describes the protocol. Records keep the order of
the binlog. A boundary is stored once Kafka has acknowledged everything before it; the next session
begins there and sends what follows again, with the same positions and rows.

A session passes these stages in order:
- opened: until the stream enters its first file; nothing is sent.
- verified: it is the file that was read before; rows are sent, boundaries and progress reported.
- caught up, at once unless a failover came before: all that the server had executed then is read;
  only now `acknowledged` advances.
- marked: the watermark of HIGH is written; proofs and repairs are sent. It lasts for the process.
"""

import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from joins.adapters.mysql.clock import PositionClock
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
    stored_boundary,
)
from joins.adapters.mysql.source import appeared, is_readable_table, require_followed, still_fits
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.adapters.mysql.tokens import Statement
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.durable.checkpoint import write_document
from joins.durable.codec import as_json, from_json
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.errors import RepairError, SnapshotNeededError, SourceUnavailableError
from watermark.errors import SluiceError

_QUEUED_EVENTS = 200
_IDLE_WAIT_S = 0.05
_LOOK_S = 0.5
_STORE_S = 1.0
_PROVED_S = 0.05


Command = TypeVar("Command")


@dataclass(frozen=True, slots=True)
class _High:
    position: BinlogPosition
    generation: int


class BinlogProtocol(SourceProtocol):
    """The runner's commands: write the watermark of HIGH, send rows again, follow another table."""

    def __init__(self) -> None:
        super().__init__()
        self.high: _High | None = None
        self.marked: _High | None = None  # the HIGH whose watermark is written in this process
        self.repairs: queue.SimpleQueue[Repair] = queue.SimpleQueue()
        self.comparisons: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def on_command(self, command: Mapping[str, Any]) -> None:
        if "high" in command:
            self.high = _High(BinlogPosition(**command["high"]), command["generation"])
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


class _Progress:
    """What one session has read, what Kafka has of it, and what is stored.

    `acknowledged` is stored; it follows `read`, but not while the session catches up with another
    server. GTIDs are None if unknown. Nothing is stored before `is_verified`.
    """

    def __init__(self, config: CdcConfig) -> None:
        self._config, low = config, config.low.position
        stored = stored_boundary(config.offset_file, low.epoch, config.generation)
        self._stored, self._stored_at_s = stored, 0.0
        start = low if stored is None else stored.position
        applied = applied_at(config, stored)
        self.read = self.acknowledged = Boundary(start.file, start.pos, applied.gtids)
        self._new = applied.new
        self._sent_before = applied.sent  # GTIDs of which earlier sessions may have sent changes
        self._gtid: Gtid | None = None  # of the newest transaction
        self.is_sending = False  # rows of that transaction
        self._created_at_s = {start.file: stored.file_created_at_s} if stored else {}
        self.is_verified = False  # the first file is the one that was read before
        self.shadows = Shadows(config.table, stored.shadows if stored else None)
        self.stream_start = StreamStart(
            config.server_id,
            replace(config.low, position=start).file_name,
            start.pos,
            applied.gtids,
            applied.new,
        )

    def position(self, at: Boundary | Begin) -> BinlogPosition:
        return BinlogPosition(self._config.low.position.epoch, at.file, at.pos)

    def open_file(self, opened: FileOpened) -> bool:
        """True for the first file of the session."""
        before = self._created_at_s.get(opened.file) or opened.created_at_s
        if before != opened.created_at_s:
            raise SnapshotNeededError(
                f"binlog file number {opened.file} was created at {opened.created_at_s} s, "
                f"the one that we read at {before} s",
                hint="The binlog was reset or the server restored; the table is copied again.",
            )
        self._created_at_s[opened.file] = opened.created_at_s
        if self.is_verified:
            return False
        self.is_verified = True
        self._store()  # before anything is sent: what is sent is not known from now on
        return True

    def begin(self, begin: Begin) -> None:
        self._gtid, self.is_sending = begin.gtid, False
        self.shadows.begin(begin.file, begin.pos)

    def end(self, boundary: Boundary) -> None:
        place = max((self.read.file, self.read.pos), (boundary.file, boundary.pos))
        self.read, self.is_sending = Boundary(*place, boundary.gtids), False
        self.shadows.end(boundary.file, boundary.pos)

    def acknowledge(self) -> None:
        """Kafka has all rows before `read`."""
        if self._new is None or not self._new.is_catching_up:
            self.acknowledged = self.read
        if time.monotonic() - self._stored_at_s > _STORE_S:
            self._store()

    def require_caught_up(self) -> None:
        """Everything that the server had executed when it was taken over must have been read."""
        new = self._new
        if new is None or not new.is_catching_up:
            return
        lacking = "all" if self.read.gtids is None else self.read.gtids.lacks(new.executed)
        if lacking:
            raise SnapshotNeededError(
                f"the binlog of the server that answers now has not transaction {lacking}, which "
                "it has executed",
                hint="No action is needed: the table is copied again by itself.",
            )
        new.is_catching_up = False

    def require_sent_again(self) -> None:
        """Everything that the server has is read: it must include what was sent before."""
        before, self._sent_before = self._sent_before, self.read.gtids
        lacking = before and self.read.gtids and self.read.gtids.lacks(before)
        if lacking:
            raise SnapshotNeededError(
                f"the binlog no longer has transaction {lacking}, of which changes were sent",
                hint="The server lost it, as in a crash without sync_binlog=1; the table is copied "
                "again by itself.",
            )

    def finish(self) -> None:
        """Store also what was sent: another server may answer the next session."""
        self.acknowledge()
        self._store(self._sent())

    def _sent(self) -> str | None:
        """GTIDs of which this session or an earlier one may have sent changes."""
        before, gtids = self._sent_before, self.read.gtids
        if self.is_sending:
            gtids = followed_by(gtids, self._gtid)
        if gtids is None or before is None:
            return None
        if not gtids.lacks(before):
            return str(gtids)
        return None if before.lacks(gtids) else str(before)

    def _store(self, sent: str | None = None) -> None:
        if not self.is_verified:
            return
        at, config = self.acknowledged, self._config
        created_at_s = self._created_at_s.get(at.file, 0)
        gtids, shadows = None if at.gtids is None else str(at.gtids), self.shadows.kept()
        boundary = AcknowledgedBoundary(
            self.position(at), created_at_s, config.generation, gtids, sent, shadows
        )
        if boundary != self._stored:
            write_document(config.offset_file, boundary, lazily=True)
            self._stored, self._stored_at_s = boundary, time.monotonic()


class BinlogSession:
    """One connection to the database and one to Kafka, from the stored boundary on."""

    def __init__(
        self, config: CdcConfig, protocol: BinlogProtocol, sender: ChangelogSender
    ) -> None:
        self._config = config
        self._protocol = protocol
        self._sender = sender
        self._progress = _Progress(config)
        self._proved_at_s = 0.0
        self._repair: tuple[str, RowsAt] | None = None  # read, and not sent yet

    def run(self) -> None:
        """Stream until the protocol stops.

        SourceUnavailableError: a new session may succeed. SnapshotNeededError: the changes cannot
        be followed. SourceError: the stream cannot continue.
        """
        config, progress = self._config, self._progress
        stream = BinlogStream(
            config.connection, config.table, progress.stream_start, progress.shadows.names
        )
        pump = _Pump(stream)
        clock = PositionClock(config.connection, config.freshness_s)
        try:
            while not self._protocol.stopped.is_set():
                self._step(pump)
                self._prove(clock)
        finally:
            clock.close()
            pump.close()
            self._settle()

    def _step(self, pump: _Pump) -> None:
        event = pump.next(self._sender.due_in_s() or 0.0)
        if event is None:
            self._flush()
            event = pump.next(_IDLE_WAIT_S)
        if event is not None:
            self._take(event)
        if self._sender.due_in_s() == 0.0:
            self._flush()
        self._write_watermark()
        if self._repair is None and self._protocol.marked:
            self._repair = self._read_again(_next(self._protocol.repairs))
        self._send_again(self._progress.read)
        self._report()

    def _flush(self) -> None:
        self._sender.flush()
        self._progress.acknowledge()

    def _settle(self) -> None:
        if not self._sender.has_lost:
            with suppress(SluiceError):
                self._sender.flush()
        if not self._sender.has_lost:  # else what Kafka has is not known
            self._progress.finish()

    def _take(self, event: Event) -> None:
        progress, sender = self._progress, self._sender
        if isinstance(event, RowImages):
            progress.is_sending = True
            sender.add(event)
        elif isinstance(event, Begin):
            self._send_again(event)
            progress.begin(event)
            sender.begin(event.file, event.pos)
        elif isinstance(event, ShadowRows):
            progress.shadows.add(event)
        elif isinstance(event, Boundary):
            progress.end(event)
        elif isinstance(event, FileOpened):
            check_logged(self._config.connection)  # each connection and each restart opens a file
            if progress.open_file(event):
                self._protocol.tell("streaming", {"position": self._as_json(progress.read)})
        elif isinstance(event, Appeared):
            connection = self._config.connection.at(event.database, event.table)
            if is_readable_table(connection):  # else it was dropped, and its rows with it
                name = f'"{event.database}.{event.table}" has rows'
                raise appeared(self._config.table, name)
        else:
            self._take_statement(event)

    def _as_json(self, at: Boundary) -> dict[str, Any]:
        return as_json(self._progress.position(at))

    def _take_statement(self, statement: Statement) -> None:
        shadows = self._progress.shadows
        shadow = shadows.put_in_place(statement)
        has_copy = shadow is not None and self._has_copy_of(shadow)
        if self._protocol.stopped.is_set():
            return  # before its boundary, so it is read again
        if not (has_copy and still_fits(self._config.connection, self._config.table)):
            require_followed(statement, self._config.connection, self._config.table)
        shadows.note(statement)

    def _has_copy_of(self, shadow: Shadow) -> bool:
        """Ask the runner whether the copy has the rows of the table that replaces the captured one.

        Kafka has everything before; nothing behind is sent before the answer.
        """
        self._flush()
        place = BinlogPosition(self._config.low.position.epoch, *self._sender.transaction)
        self._protocol.tell("replaced", {"shadow": as_json(shadow), "position": as_json(place)})
        while not self._protocol.stopped.wait(_IDLE_WAIT_S):
            has_copy = _next(self._protocol.comparisons)
            if has_copy is not None:
                return has_copy
            self._report()
        return False

    def _write_watermark(self) -> None:
        """Once, when everything before HIGH is read."""
        high, progress = self._protocol.high, self._progress
        if high is None or high is self._protocol.marked or not progress.is_verified:
            return
        if progress.position(progress.read) < high.position:
            return
        progress.require_caught_up()
        self._flush()
        written = self._sender.watermark(high.position, high.generation)
        self._protocol.marked = high
        self._protocol.tell_watermark(high.generation, written)

    def _prove(self, clock: PositionClock) -> None:
        """Report the server's newest answer up to whose position Kafka has everything."""
        if not (clock.has_news and self._protocol.marked):
            return
        now_s = time.monotonic()
        if now_s - self._proved_at_s < _PROVED_S:
            return
        self._proved_at_s = now_s
        read = self._progress.read
        proof = clock.reached(read.file, read.pos)
        if proof is not None:
            self._progress.require_sent_again()
            self._flush()
            self._protocol.tell_proof(proof)

    def _report(self) -> None:
        progress, sender = self._progress, self._sender
        if not (progress.is_verified and self._protocol.is_due(paced=True)):
            return
        self._protocol.tell(
            "progress",
            {
                "position": self._as_json(progress.read),
                "acknowledged": self._as_json(progress.acknowledged),
                "records": sender.records,
                "source_ts_ms": sender.source_ts_ms,
            },
        )

    def _read_again(self, repair: Repair | None) -> tuple[str, RowsAt] | None:
        """Rows of the source, at a position that the stream, which waits, has not passed."""
        if repair is None:
            return None
        config = self._config
        try:
            at = read_rows_at(config.connection, config.table, config.low.position.epoch, repair)
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

    def _send_again(self, reached: Boundary | Begin) -> None:
        """Send the rows of a repair once everything before their position is sent."""
        if self._repair is None:
            return
        repair_id, at = self._repair
        if self._progress.position(reached) < at.position:
            return
        self._sender.resend(at)
        self._repair = None
        sent = {"written": sum(rows.num_rows for rows in at.rows), "deleted": at.deleted.num_rows}
        position = as_json(at.position)
        self._protocol.tell("repaired", {"id": repair_id, **sent, "position": position})


def run(config: CdcConfig, protocol: BinlogProtocol) -> int:
    def session() -> None:
        with closing(ChangelogSender(config)) as sender:
            BinlogSession(config, protocol, sender).run()

    return run_sessions(protocol, session, (SourceUnavailableError,))


def main() -> int:
    """Exit code: 0 after `stop` or the end of input, else 1."""
    return run_process(BinlogProtocol(), CdcConfig, run, "pymysqlreplication")


if __name__ == "__main__":
    sys.exit(main())
