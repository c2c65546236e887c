"""The binlog as transactions of one table: boundaries, row images and statements, each in order.

It connects once: python-mysql-replication's own reconnect would go on at a place of which we know
nothing, so a lost connection ends the stream with a typed error. Row events' own header positions
are never used.
"""

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader, row_event
from pymysqlreplication import event as binlog_event
from pymysqlreplication.exceptions import MalformedBinLogEvent, StatusVariableMismatch

from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    connected,
    is_mariadb,
    open_connection,
    rows,
)
from joins.adapters.mysql.events import GTIDS, require_known
from joins.adapters.mysql.query import QueryEvent, Statement, load_statement, query_statement
from joins.adapters.mysql.replication import lost, stream_error
from joins.adapters.mysql.rows import BinlogColumn, RowDecoder
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.mysql.tokens import UNDECODED
from joins.plan.errors import SnapshotNeededError

_Foreign = Any  # objects of python-mysql-replication and PyMySQL's insides, which have no types

HEARTBEAT_S = 0.5
_READ_TIMEOUT_S = 30
_STANDALONE = 1
_PREPARED_XA = 64
_COPIED_AGAIN = "; the table is copied again by itself"
_OPS = {
    row_event.WriteRowsEvent: "c",
    row_event.UpdateRowsEvent: "u",
    row_event.DeleteRowsEvent: "d",
}
EVENTS = [
    QueryEvent,
    binlog_event.RotateEvent,
    binlog_event.FormatDescriptionEvent,
    binlog_event.XidEvent,
    binlog_event.GtidEvent,
    binlog_event.HeartbeatLogEvent,
    binlog_event.StopEvent,
    binlog_event.XAPrepareEvent,
    binlog_event.MariadbGtidEvent,
    binlog_event.MariadbGtidListEvent,
    binlog_event.MariadbBinLogCheckPointEvent,
    binlog_event.ExecuteLoadQueryEvent,
    binlog_event.NotImplementedEvent,
    row_event.TableMapEvent,
    row_event.PartialUpdateRowsEvent,
    *_OPS,
]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Between two transactions: everything before (file, pos) has been delivered."""

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class FileOpened:
    """A binlog file begins, or is entered; `created_at_s` tells files of one name apart."""

    file: int
    created_at_s: int


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins at (file, pos), the place of its GTID event."""

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class RowImages:
    """Changed rows of our table, `op` `c`, `u` (an image before and one after) or `d`."""

    op: str
    decoder: RowDecoder
    images: bytes
    at_s: int

    def decoded(self) -> Iterator[list[Any]]:
        """Each image as wire values.

        Raises:
            SnapshotNeededError: an image cannot be read.
        """
        at = 0
        while at < len(self.images):
            try:
                row, at = self.decoder.row(self.images, at)
            except (ValueError, LookupError, struct.error) as exc:
                raise SnapshotNeededError(
                    f"a row in the binlog cannot be decoded: {exc}",
                    hint=f"Correct the value in the table{_COPIED_AGAIN}.",
                ) from exc
            yield row


Event = Boundary | FileOpened | Begin | RowImages | Statement


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream begins: a transaction boundary in the binlog file `<prefix>.<digits>`."""

    server_id: int
    file_name: str
    pos: int


class BinlogStream:
    """One connection's worth of binlog; iterate `events` once, from one thread."""

    def __init__(
        self, config: MysqlConnectionConfig, table: CapturedTable, start: StreamStart
    ) -> None:
        self._config = config
        self._table = table
        self._file = _number(start.file_name)
        self._charsets = collation_charsets(config)
        self._decoders: dict[int, RowDecoder] = {}
        self._in_transaction = False
        self._standalone = False
        self._is_ours = self._xa = self._xa_is_ours = False
        self._prepared: dict[str, bool] = {}
        self._connections: list[_Foreign] = []
        self._reader = BinLogStreamReader(
            connection_settings={"read_timeout": _READ_TIMEOUT_S},
            server_id=start.server_id,
            blocking=True,
            resume_stream=True,
            log_file=start.file_name,
            log_pos=start.pos,
            only_events=EVENTS,
            filter_non_implemented_events=False,
            only_tables=[table.table],
            only_schemas=[table.database],
            slave_heartbeat=HEARTBEAT_S,
            report_slave=("sluice", "", "", 0),
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )

    def events(self) -> Iterator[Event]:
        """Events until the stream ends with an error; it never ends otherwise.

        Raises:
            SourceUnavailableError: the connection was lost.
            SnapshotNeededError: the binlog is gone, or has what cannot be followed row by row.
            SourceError: it is refused.
        """
        try:
            for event in self._reader:
                yield from self._events_of(event)
        except pymysql.err.MySQLError as exc:
            raise stream_error(self._config, exc) from exc
        except OSError as exc:
            raise lost(self._config, str(exc)) from exc
        except (StatusVariableMismatch, MalformedBinLogEvent) as exc:
            raise SnapshotNeededError(
                f"the binlog has an event that cannot be read: {exc!r}",
                hint="Report it with the server's version; the table is copied again.",
            ) from exc
        raise lost(self._config, "the server ended the stream")

    def close(self) -> None:
        """Close the connection; another thread may call this to end a blocked `events`."""
        for connection in self._connections:
            with contextlib.suppress(pymysql.err.MySQLError, OSError, AttributeError):
                connection.cut()
                connection._force_close()

    def _connect(self, **settings: object) -> _Foreign:
        if len(self._connections) == 2:  # the stream and the library's control connection
            raise lost(self._config, "the stream was cut")
        settings.pop("charset", None)
        settings.pop("db", None)
        connection = open_connection(self._config, **settings)
        self._connections.append(connection)
        return connection

    def _events_of(self, event: _Foreign) -> Iterator[Event]:
        packet = event.packet
        require_known(packet.event_type)
        if isinstance(event, binlog_event.RotateEvent):
            yield self._rotated(event.next_binlog, event.position)
        elif isinstance(event, binlog_event.FormatDescriptionEvent):
            self._decoders.clear()
            yield FileOpened(self._file, event.timestamp)
        elif isinstance(event, row_event.TableMapEvent):
            self._table_mapped(event)
        elif type(event) in _OPS:
            yield from self._rows(event)
        else:
            yield from self._control(event, packet)

    def _rotated(self, file_name: str | bytes, position: int) -> Boundary:
        name = file_name.decode() if isinstance(file_name, bytes) else file_name
        self._file = _number(name)
        self._in_transaction = False
        return Boundary(self._file, position)

    def _control(self, event: _Foreign, packet: _Foreign) -> Iterator[Event]:
        if packet.event_type in GTIDS:
            flags = event.flags if isinstance(event, binlog_event.MariadbGtidEvent) else 0
            self._in_transaction, self._xa = True, bool(flags & _PREPARED_XA)
            self._is_ours = self._xa_is_ours = False
            self._standalone = bool(flags & _STANDALONE) or not self._mariadb(event)
            yield Begin(self._file, packet.log_pos - packet.event_size)
        elif isinstance(event, QueryEvent):
            yield from self._query(event, packet)
        elif isinstance(event, binlog_event.ExecuteLoadQueryEvent):
            yield load_statement(event)
        elif isinstance(event, binlog_event.XidEvent | binlog_event.XAPrepareEvent):
            if getattr(event, "one_phase", False) and self._xa_is_ours:
                raise self._changed_by_xa("one phase")
            yield from self._ended(packet)
        elif not self._in_transaction and packet.log_pos:
            yield Boundary(self._file, packet.log_pos)

    @staticmethod
    def _mariadb(event: _Foreign) -> bool:
        return isinstance(event, binlog_event.MariadbGtidEvent)

    def _query(self, event: _Foreign, packet: _Foreign) -> Iterator[Event]:
        statement = query_statement(event, self._charsets)
        text = statement.text.removeprefix(UNDECODED).lstrip()
        word = text[:16].upper()
        if word == "BEGIN":
            self._standalone = False
        elif word.startswith("XA "):
            yield from self._distributed(text, packet)
        elif word.startswith("ROLLBACK"):
            self._require_none_undone(text)
            if not word.startswith("ROLLBACK TO"):
                yield from self._ended(packet)
        elif word == "COMMIT":
            yield from self._ended(packet)
        elif not word.startswith("SAVEPOINT"):
            yield statement
            if self._standalone:
                yield from self._ended(packet)

    def _require_none_undone(self, text: str) -> None:
        """A transaction that also wrote to tables without them is logged before it is undone."""
        if self._is_ours:
            raise SnapshotNeededError(
                f'rows of table "{self._table.database}.{self._table.table}" were undone by '
                f'"{text[:120]}" when they were in the binlog already',
                hint="The table is copied again by itself; change no tables without transactions, "
                "such as those of MyISAM, in one transaction with it to avoid it.",
            )

    def _distributed(self, text: str, packet: _Foreign) -> Iterator[Event]:
        """XA: rows are in the binlog when they are prepared, and count when they are committed."""
        _, verb, xid = text.split(None, 2)
        verb = verb.upper()
        if verb == "START":
            self._standalone, self._xa = False, True
        elif verb == "END":
            self._prepared[xid] = self._xa_is_ours
        else:
            is_ours = self._prepared.pop(xid, True)
            if verb == "COMMIT" and is_ours:
                raise self._changed_by_xa(xid)
            yield from self._ended(packet)

    def _changed_by_xa(self, xid: str) -> SnapshotNeededError:
        return SnapshotNeededError(
            f'table "{self._table.database}.{self._table.table}" was, or may have been, changed '
            f"by distributed (XA) transaction {xid}, whose rows came before it was decided",
            hint="The table is copied again by itself; change it by ordinary transactions to avoid "
            "it.",
        )

    def _ended(self, packet: _Foreign) -> Iterator[Event]:
        self._in_transaction = self._standalone = self._xa = False
        if packet.log_pos:
            yield Boundary(self._file, packet.log_pos)

    def _table_mapped(self, event: _Foreign) -> None:
        if event.table_id not in self._decoders:
            columns = binlog_columns(event, self._charsets)
            self._decoders[event.table_id] = RowDecoder(columns, self._table)

    def _rows(self, event: _Foreign) -> Iterator[RowImages]:
        if self._xa:
            self._xa_is_ours = True
            return
        self._is_ours = True
        packet = event.packet
        images = packet.read(event.event_size - packet.read_bytes)
        decoder = self._decoders[event.table_id]
        present = int.from_bytes(event.columns_present_bitmap, "little")
        if present.bit_count() < decoder.column_count:
            raise SnapshotNeededError(
                "the binlog has row events without all columns: a session wrote with "
                'setting "binlog_row_image" other than FULL',
                hint=f"Set binlog_row_image=FULL for all sessions{_COPIED_AGAIN}.",
            )
        yield RowImages(_OPS[type(event)], decoder, images, event.timestamp)


def binlog_columns(table_map: _Foreign, charsets: dict[int, str]) -> list[BinlogColumn]:
    """The columns of a table map event with their metadata and character sets."""
    collations = iter(table_map.optional_metadata.charset_collation_list or ())
    columns = []
    for column in table_map.columns:
        has_text = table_map._is_character_column(column.type, dbms=table_map.dbms)
        collation = next(collations, None) if has_text else None
        if column.name is None:
            raise SnapshotNeededError(
                "the binlog has row events without column names: a session wrote with "
                'setting "binlog_row_metadata" other than FULL',
                hint=f"Set binlog_row_metadata=FULL for all sessions{_COPIED_AGAIN}.",
            )
        charset = None if collation is None else charsets.get(int(collation))
        meta = column.__dict__
        columns.append(BinlogColumn(column.name, column.type, bool(column.unsigned), meta, charset))
    return columns


def collation_charsets(config: MysqlConnectionConfig) -> dict[int, str]:
    """Character set by collation number, as this server has them.

    Raises:
        SourceError: the server cannot be reached or refuses us.
    """
    with connected(config) as connection:
        id_charsets = rows(
            connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
        )
        if is_mariadb(connection):
            with contextlib.suppress(pymysql.err.MySQLError):  # before 10.10 it has no ID here
                id_charsets += rows(
                    connection,
                    "SELECT ID, CHARACTER_SET_NAME"
                    " FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY",
                )
    return {int(number): str(name) for number, name in id_charsets if number is not None and name}


def _number(file_name: str) -> int:
    return int(file_name.rpartition(".")[2])
