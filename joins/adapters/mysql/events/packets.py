"""Event types of the binlog, and python-mysql-replication's reader over packets of them."""

from collections.abc import Iterator
from types import FunctionType
from typing import Any, ClassVar

from pymysql.protocol import MysqlPacket
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication import event as binlog_event
from pymysqlreplication.packet import BinLogPacketWrapper

from joins.adapters.mysql.events.compressed import HEADER_BYTES, PAYLOAD, QUERY
from joins.adapters.mysql.events.row_events import (
    COMPRESSED_ROWS,
    FRAGMENT,
    ROW_OPS,
    TABLE_MAP,
)
from joins.adapters.mysql.tokens import QueryEvent
from joins.plan.errors import SnapshotNeededError

_Foreign = Any  # objects of python-mysql-replication and PyMySQL's internals, which have no types

_COPIED_AGAIN = "; the table is copied again by itself."
_CRC32 = 1  # the checksum of each event of a file; 0 and 255 are none
# They begin a transaction; their other content, such as a tag, is ignored.
GTIDS = frozenset({33, 34, 42, 162})
# The stream understands them.
_UNDERSTOOD = GTIDS | {2, 4, 15, 16, 18, 27, 38, TABLE_MAP, FRAGMENT}
_UNDERSTOOD |= {PAYLOAD, QUERY, *ROW_OPS, *COMPRESSED_ROWS}
# They are in no compressed transaction.
OUTSIDE = GTIDS | {4, 15, PAYLOAD}
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
    26: ("an incident: changes were lost", f"No action is needed{_COPIED_AGAIN}"),
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


class BodyEvent(binlog_event.BinLogEvent):  # type: ignore[misc] # has no types
    """An event that Sluice decodes: table maps, row events, their fragments, compressed events."""

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
    """Packets whose table maps, row events and compressed events keep their bytes."""

    _BinLogPacketWrapper__event_map: ClassVar[dict[int, type]] = {
        **BinLogPacketWrapper._BinLogPacketWrapper__event_map,
        **dict.fromkeys((TABLE_MAP, FRAGMENT, *ROW_OPS), BodyEvent),
        **dict.fromkeys((PAYLOAD, QUERY, *COMPRESSED_ROWS), BodyEvent),
    }

    def __init__(self, packet: _Foreign, *context: _Foreign) -> None:
        self._context = context
        super().__init__(packet, *context)

    @property
    def header(self) -> bytes:
        return bytes(self.packet.get_all_data()[1 : 1 + HEADER_BYTES])

    def inside(self, event: bytes) -> "Packets":
        """An event, with its header and without checksum, that this compressed one stands for.

        Its transaction ends where this one ends.
        """
        table_map, control, version, _, *rest = self._context
        packet = MysqlPacket(b"\0" + event, "latin1")
        inner = Packets(packet, table_map, control, version, False, *rest)
        inner.log_pos = self.log_pos
        return inner


class Reader(BinLogStreamReader):  # type: ignore[misc] # has no types
    """The library's reader over such packets; its method hard-codes the packet class.

    Whether events end with a checksum is a property of a file, which its first event has: the
    server's setting, which the library goes by, may have been another one when it was written.
    """

    _BinLogStreamReader__use_checksum: bool

    fetchone = FunctionType(
        BinLogStreamReader.fetchone.__code__,
        {**BinLogStreamReader.fetchone.__globals__, "BinLogPacketWrapper": Packets},
    )

    def __iter__(self) -> Iterator[_Foreign]:
        for event in super().__iter__():
            if isinstance(event, binlog_event.FormatDescriptionEvent):
                self._BinLogStreamReader__use_checksum = event.checksum_algorithm == _CRC32
            yield event


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
]
