"""The binlog as transactions of one table: boundaries, row images and statements in order.

It connects once: after python-mysql-replication's reconnect the position would be unknown, so a
lost connection ends the stream with an error. Header positions of row events are not used.
"""

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar

import pymysql
from pymysqlreplication import BinLogStreamReader, row_event
from pymysqlreplication import event as binlog_event
from pymysqlreplication.exceptions import MalformedBinLogEvent, StatusVariableMismatch
from pymysqlreplication.packet import BinLogPacketWrapper

from joins.adapters.mysql.charsets import server_charsets
from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    open_connection,
)
from joins.adapters.mysql.replication import lost, stream_error
from joins.adapters.mysql.row_events import (
    FRAGMENT,
    NO_TABLE,
    ROW_OPS,
    TABLE_MAP,
    WITH_EXTRA,
    Fragments,
    RowsEvent,
    rows_event,
    table_id_of,
    table_map,
    table_of,
)
from joins.adapters.mysql.row_images import Change, RowDecoder
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.mysql.tokens import (
    UNDECODED,
    QueryEvent,
    Statement,
    load_statement,
    query_statement,
)
from joins.plan.errors import SnapshotNeededError

_COPIED_AGAIN = "; the table is copied again by itself."
# They begin a transaction; their other content, such as a tag, is ignored.
GTIDS = frozenset({33, 34, 42, 162})
# The stream understands them.
_UNDERSTOOD = GTIDS | {2, 4, 15, 16, 18, 19, 23, 24, 25, 27, 30, 31, 32, 38, 172}
# They change no table by themselves.
HARMLESS = {
    3: "STOP_EVENT",
    5: "INTVAR_EVENT",  # of the next statement, which is judged; 13 and 14, too
    9: "APPEND_BLOCK_EVENT",  # of a LOAD DATA, which is judged when it is carried out; 11, 17, too
    11: "DELETE_FILE_EVENT",
    13: "RAND_EVENT",
    14: "USER_VAR_EVENT",
    17: "BEGIN_LOAD_QUERY_EVENT",
    28: "IGNORABLE_LOG_EVENT",
    29: "ROWS_QUERY_LOG_EVENT",
    35: "PREVIOUS_GTIDS_LOG_EVENT",
    36: "TRANSACTION_CONTEXT_EVENT",
    37: "VIEW_CHANGE_EVENT",
    41: "HEARTBEAT_LOG_EVENT_V2",
    160: "ANNOTATE_ROWS_EVENT",
    161: "BINLOG_CHECKPOINT_EVENT",
    163: "GTID_LIST_EVENT",
    164: "START_ENCRYPTION_EVENT",
}
_UNREADABLE = {
    26: ("an incident: changes were lost", f"Nothing is to be done{_COPIED_AGAIN}"),
    39: ("partial JSON updates", f"Set binlog_row_value_options to nothing{_COPIED_AGAIN}"),
    40: ("compressed transactions", f"Set binlog_transaction_compression=OFF{_COPIED_AGAIN}"),
    **dict.fromkeys(
        range(165, 172), ("compressed events", f"Set log_bin_compress=OFF{_COPIED_AGAIN}")
    ),
}


def require_known(event_type: int) -> None:
    """Raise SnapshotNeededError if events of this type cannot be read or are unknown."""
    if event_type in _UNDERSTOOD or event_type in HARMLESS:
        return
    if event_type in _UNREADABLE:
        what, hint = _UNREADABLE[event_type]
        raise SnapshotNeededError(
            f"the binlog has {what} (event type {event_type}), which cannot be read", hint=hint
        )
    raise SnapshotNeededError(
        f"the binlog has an event of type {event_type}, which is not known",
        hint=f"Report it with the server's version, and turn off there what writes it"
        f"{_COPIED_AGAIN}",
    )


_Foreign = Any  # objects of python-mysql-replication and PyMySQL's internals, which have no types

HEARTBEAT_S = 0.5
_READ_TIMEOUT_S = 30
_STANDALONE = 1
_PREPARED_XA = 64
_FIXED_BYTES = 8  # before table maps and row events; newer row events have two more


class BodyEvent(binlog_event.BinLogEvent):  # type: ignore[misc] # has no types
    """An event that Sluice decodes: table maps, row events, their fragments."""

    table_id = 0

    def __init__(self, packet: _Foreign, size: int, *rest: _Foreign, **named: _Foreign) -> None:
        super().__init__(packet, size, *rest, **named)
        self.body: bytes = packet.read(size)

    def get_table(self) -> None:
        """The library stores nothing of a table map."""

    def header_bytes(self, event_type: int, default: int) -> int:
        declared = self._post_header_lengths
        return int(declared[event_type - 1]) if declared else default


class Packets(BinLogPacketWrapper):  # type: ignore[misc] # has no types
    """Packets whose table maps and row events keep their bytes."""

    _BinLogPacketWrapper__event_map: ClassVar[dict[int, type]] = {
        **BinLogPacketWrapper._BinLogPacketWrapper__event_map,
        **dict.fromkeys((TABLE_MAP, FRAGMENT, *ROW_OPS), BodyEvent),
    }


class _Reader(BinLogStreamReader):  # type: ignore[misc] # has no types
    """The library's reader over such packets; its method hard-codes the packet class."""

    fetchone = FunctionType(
        BinLogStreamReader.fetchone.__code__,
        {**BinLogStreamReader.fetchone.__globals__, "BinLogPacketWrapper": Packets},
    )


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
    BodyEvent,
    row_event.PartialUpdateRowsEvent,
]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Between two transactions: everything before (file, pos) has been delivered."""

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class FileOpened:
    """A binlog file begins or is entered; `created_at_s` distinguishes files of one name."""

    file: int
    created_at_s: int


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins at (file, pos), the position of its GTID event."""

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class RowImages:
    """Changed rows of the captured table."""

    decoder: RowDecoder
    event: RowsEvent
    at_s: int

    @property
    def op(self) -> str:
        return self.event.op

    @property
    def size(self) -> int:
        """Bytes of the images."""
        return len(self.event.images)

    def changes(self) -> list[Change]:
        """Rows before and after as wire values, all or none; SnapshotNeededError if unreadable."""
        with _understood("a row in the binlog"):
            return list(self.decoder.changes(self.event))


@contextlib.contextmanager
def _understood(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, struct.error) as exc:
        raise SnapshotNeededError(
            f"{what} cannot be decoded: {exc}",
            hint="The table is copied again by itself; report it with the server's version and the "
            "table's definition.",
        ) from exc


Event = Boundary | FileOpened | Begin | RowImages | Statement


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Start of a stream: a transaction boundary in the binlog file `<prefix>.<digits>`."""

    server_id: int
    file_name: str
    pos: int


class BinlogStream:
    """One connection to the binlog; iterate `events` once, from one thread."""

    def __init__(
        self, config: MysqlConnectionConfig, table: CapturedTable, start: StreamStart
    ) -> None:
        self._config = config
        self._table = table
        self._file = _number(start.file_name)
        self._charsets = server_charsets(config)
        self._maps: dict[int, bytes] = {}
        self._decoders: dict[int, RowDecoder | None] = {}
        self._fragments = Fragments()
        self._in_transaction = False
        self._standalone = False
        self._is_ours = self._xa = self._xa_is_ours = False
        self._prepared: dict[str, bool] = {}
        self._connections: list[_Foreign] = []
        self._reader = _Reader(
            connection_settings={"read_timeout": _READ_TIMEOUT_S},
            server_id=start.server_id,
            blocking=True,
            resume_stream=True,
            log_file=start.file_name,
            log_pos=start.pos,
            only_events=EVENTS,
            filter_non_implemented_events=False,
            slave_heartbeat=HEARTBEAT_S,
            report_slave=("sluice", "", "", 0),
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )

    def events(self) -> Iterator[Event]:
        """Events until an error ends the stream.

        SourceUnavailableError if the connection was lost, SnapshotNeededError if the binlog is gone
        or its changes cannot be followed row by row, SourceError if access is refused.
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
            self._maps.clear()
            self._decoders.clear()
            yield FileOpened(self._file, event.timestamp)
        elif isinstance(event, BodyEvent):
            yield from self._body(event)
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
        statement = query_statement(event, self._charsets.collations)
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
        if self._is_ours:
            raise SnapshotNeededError(
                f'rows of table "{self._table.database}.{self._table.table}" were undone by '
                f'"{text[:120]}" when they were in the binlog already',
                hint="The table is copied again by itself; change no tables without transactions, "
                "such as those of MyISAM, in one transaction with it to avoid it.",
            )

    def _distributed(self, text: str, packet: _Foreign) -> Iterator[Event]:
        """XA: rows are in the binlog when prepared, and count when committed."""
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

    def _body(self, event: BodyEvent) -> Iterator[RowImages]:
        number, body = event.packet.event_type, event.body
        if number == TABLE_MAP:
            with _understood("a table in the binlog"):
                self._table_mapped(event)
            return
        if number == FRAGMENT:
            with _understood("a row event in parts"):
                whole = self._fragments.add(body)
            if whole is None:
                return
            number, body = whole
        default = _FIXED_BYTES + (2 if number in WITH_EXTRA else 0)
        fixed = event.header_bytes(number, default)
        with _understood("a row event in the binlog"):
            decoder = self._decoder_of(table_id_of(body, fixed))
            if decoder is not None:
                yield from self._rows(decoder, rows_event(number, body, fixed), event.timestamp)

    def _decoder_of(self, table_id: int) -> RowDecoder | None:
        if table_id in NO_TABLE:
            return None
        if table_id not in self._decoders:
            raise ValueError(f"table number {table_id} was not described before")
        return self._decoders[table_id]

    def _table_mapped(self, event: BodyEvent) -> None:
        fixed = event.header_bytes(TABLE_MAP, _FIXED_BYTES)
        table_id, database, table = table_of(event.body, fixed)
        if self._maps.get(table_id) == event.body:
            return
        decoder = None
        if (database, table) == (self._table.database, self._table.table):
            is_mariadb = event.dbms == "mariadb"
            columns = table_map(event.body, fixed, is_mariadb=is_mariadb)
            decoder = RowDecoder(columns, self._table, self._charsets, is_mariadb=is_mariadb)
        self._maps[table_id], self._decoders[table_id] = event.body, decoder

    def _rows(self, decoder: RowDecoder, rows: RowsEvent, at_s: int) -> Iterator[RowImages]:
        if self._xa:
            self._xa_is_ours = True
            return
        self._is_ours = True
        yield RowImages(decoder, rows, at_s)


def _number(file_name: str) -> int:
    return int(file_name.rpartition(".")[2])
