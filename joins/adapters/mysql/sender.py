"""Collects, encodes and sends changed rows to the changelog topic."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from joins.adapters.kafka.changelog_producer import MOST_MESSAGE_BYTES, ChangelogProducer
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.events.shadows import ShadowsAt
from joins.adapters.mysql.events.transactions import RowImages
from joins.adapters.mysql.gtids import Takeover
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.repair import RowsAt
from joins.adapters.mysql.row_images import Row, wire_rows
from joins.adapters.mysql.table import CapturedTable
from joins.durable.checkpoint import read_document
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.kernels.changelog.envelope import (
    SOURCE_SCHEMA,
    BinlogPosition,
    Envelopes,
    now_ms,
)
from joins.plan.plan import KafkaOptions


@dataclass(frozen=True, slots=True)
class CdcConfig:
    """Configuration of a CDC process."""

    connection: MysqlConnectionConfig  # to the server that LOW was taken from, and to no other
    table: CapturedTable
    server_id: int  # of the binlog client, unique among replicas
    # the start, unless `offset_file` has a boundary of the same epoch and generation
    low: BinlogMark
    generation: int  # of the snapshot that the records belong to
    kafka: KafkaOptions
    partitions: int
    offset_file: Path
    most_bytes: int = MOST_MESSAGE_BYTES  # of a message of the topic
    freshness_s: float = 1.0  # pause between two questions about the server's time and position
    copied_dead_rows: Path | None = None  # file of the rows that the copy has left out
    takeover: Takeover | None = None  # how changes of another server are gone on with on this one

    @property
    def dead_rows_file(self) -> Path:
        return self.offset_file.with_suffix(SUFFIX)


@dataclass(frozen=True, slots=True)
class AcknowledgedBoundary:
    """Boundary of what Kafka has acknowledged; `file_created_at_s` is 0 if not seen.

    `gtids` are those of what was applied there. `sent` are those of which changes may be in the
    topic, None while a session sends, so also behind one that was killed.
    """

    position: BinlogPosition
    file_created_at_s: int
    generation: int
    gtids: str | None = None
    sent: str | None = None
    # tables that may take the captured one's place; None if there is none
    shadows: ShadowsAt | None = None


def stored_boundary(file: Path, epoch: int, generation: int) -> AcknowledgedBoundary | None:
    """None if the file has no boundary of that epoch and generation."""
    boundary = read_document(file, AcknowledgedBoundary)
    if boundary is None or boundary.generation != generation:
        return None
    return boundary if boundary.position.epoch == epoch else None


MAX_BATCH_ROWS = 5_000
MAX_BATCH_BYTES = 8 << 20
_COMPANY_S = 0.05  # a batch costs milliseconds of a core, however few rows it has


_FIRST_RESENT = -(1 << 62)
Place = tuple[int, int, int, int]
"""File, position of the transaction, ordinal of the row in it, milliseconds."""


@dataclass(slots=True)
class _Pending:
    """Rows to be encoded; all lists have one length."""

    ops: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    before: list[Row | None] = field(default_factory=list)
    after: list[Row | None] = field(default_factory=list)
    bytes: int = 0
    since_s: float = 0.0


class ChangelogSender:
    """Encodes and sends changes for one producer's life; counts acknowledged `records`."""

    def __init__(self, config: CdcConfig) -> None:
        self._config = config
        self._key = tuple(
            [column.name for column in config.table.captured].index(name)
            for name in config.table.primary_key
        )
        self._pending = _Pending()
        self.transaction = (0, 0)
        """File and position of the transaction whose rows are collected."""
        self._ordinal = 0
        self.records = 0
        self.source_ts_ms = 0
        self.has_lost = False
        """True if a batch was not acknowledged: nothing behind it may count as sent."""
        self._dead = DeadRows(
            config.dead_rows_file, config.generation, config.most_bytes, config.copied_dead_rows
        )
        table = f"{config.table.database}.{config.table.table}"
        self._producer = ChangelogProducer(config.kafka, config.partitions, table)
        self._producer.message_bytes()  # connects: without Kafka the binlog is not read

    def close(self) -> None:
        self._producer.close()

    def begin(self, file: int, pos: int) -> None:
        self.transaction, self._ordinal = (file, pos), 0

    def due_in_s(self) -> float | None:
        if not self._pending.ops:
            return None
        return max(0.0, self._pending.since_s + _COMPANY_S - time.monotonic())

    def add(self, images: RowImages) -> None:
        """Collect the rows of one event; full batches are sent at once."""
        at_ms = images.at_s * 1000
        for before, after in images.changes():
            self._append_change(images.op, at_ms, before, after)
            if len(self._pending.ops) >= MAX_BATCH_ROWS:
                self.flush()
        if self._pending.ops:
            self._pending.bytes += images.size
            if self._pending.bytes >= MAX_BATCH_BYTES:
                self.flush()

    def _append_change(self, op: str, at_ms: int, before: Row | None, after: Row | None) -> None:
        """A changed key is a delete and an insert."""
        is_moved = (
            before is not None
            and after is not None
            and any(before[slot] != after[slot] for slot in self._key)
        )
        if is_moved:
            self._append("d", at_ms, before, None)
            self._append("c", at_ms, None, after)
        else:
            self._append(op, at_ms, before, after)

    def _append(self, op: str, at_ms: int, before: Row | None, after: Row | None) -> None:
        pending = self._pending
        if not pending.ops:
            pending.since_s = time.monotonic()
        pending.ops.append(op)
        pending.places.append((*self.transaction, self._ordinal, at_ms))
        pending.before.append(before)
        pending.after.append(after)
        self._ordinal += 1

    def flush(self) -> None:
        pending = self._pending
        if not pending.ops:
            return
        self._pending, self.has_lost = _Pending(), True
        self._send(self._changes(pending))
        self.source_ts_ms = pending.places[-1][3]

    def resend(self, at: RowsAt) -> None:
        """Rows as of a boundary: newer than what is before it, older than what begins there.

        Their ordinals are negative, and grow with the clock: the next repair is newer.
        """
        self.flush()
        ordinal = _FIRST_RESENT + time.time_ns() // 1_000
        for op, rows in (*(("c", rows) for rows in at.rows), ("d", at.deleted)):
            if rows.num_rows:
                ordinals = range(ordinal, ordinal + rows.num_rows)
                places = [(at.position.file, at.position.pos, row) for row in ordinals]
                source = self._source([(*place, now_ms()) for place in places])
                before, after = (rows, None) if op == "d" else (None, rows)
                ops = pa.array([op] * rows.num_rows, pa.string())
                self._send(Envelopes(ops=ops, source=source, before=before, after=after))
                ordinal = ordinals.stop

    def _send(self, changes: Envelopes) -> None:
        self.has_lost = True
        config = self._config
        for records in self._dead.changed(changes, config.table.primary_key, config.partitions):
            self._producer.send(records)
        self.has_lost = False
        self.records += len(changes.ops)

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        return self._producer.watermark(high, generation)

    def _source(self, places: Sequence[Place]) -> pa.RecordBatch:
        count = len(places)
        files, positions, rows, times = zip(*places, strict=True)
        constants = (self._config.low.position.epoch, self._config.generation)
        epoch, generation = (pa.repeat(pa.scalar(v, pa.int32()), count) for v in constants)
        numbers = [pa.array(v, pa.int64()) for v in (files, positions, rows)]
        source = [epoch, *numbers, generation, pa.array(times, pa.int64())]
        return pa.RecordBatch.from_arrays(source, schema=SOURCE_SCHEMA)

    def _changes(self, pending: _Pending) -> Envelopes:
        table = self._config.table
        return Envelopes(
            ops=pa.array(pending.ops, pa.string()),
            source=self._source(pending.places),
            before=wire_rows(pending.before, table) if any(pending.before) else None,
            after=wire_rows(pending.after, table) if any(pending.after) else None,
        )
