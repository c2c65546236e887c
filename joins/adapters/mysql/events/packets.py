"""Types of binlog events, and python-mysql-replication's reader over packets of them.

An event type has one of three roles. `Transactions` reads those that are understood. HARMLESS ones
change no table: of those that the library hands on, only the position is used. Any other type ends
the stream with SnapshotNeededError. `BodyEvent` keeps the bytes of types that Sluice decodes
itself; the library decodes the others of `EVENTS`.
"""

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

_CRC32 = 1  # the checksum of each event of a file; 0 and 255 are none
_INCIDENT_EVENT = 26
GTIDS = frozenset({33, 34, 42, 162})  # GTID, anonymous, tagged; MariaDB's
_BODIES = frozenset({TABLE_MAP, FRAGMENT, PAYLOAD, QUERY, *ROW_OPS, *COMPRESSED_ROWS})
_PARSED = {
    2: "QUERY_EVENT",
    4: "ROTATE_EVENT",
    15: "FORMAT_DESCRIPTION_EVENT",
    16: "XID_EVENT",
    18: "EXECUTE_LOAD_QUERY_EVENT",
    27: "HEARTBEAT_LOG_EVENT",
    38: "XA_PREPARE_LOG_EVENT",
}
_UNDERSTOOD = GTIDS | _BODIES | _PARSED.keys()
OUTSIDE = GTIDS | {4, 15, PAYLOAD}  # never in a compressed transaction
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


def require_known(event_type: int) -> None:
    """SnapshotNeededError for a type that is neither understood nor HARMLESS."""
    if event_type == _INCIDENT_EVENT:
        raise SnapshotNeededError(
            f"the binlog has an incident: changes were lost (event type {event_type})",
            hint="No action is needed; the table is copied again by itself.",
        )
    if event_type not in _UNDERSTOOD and event_type not in HARMLESS:
        raise SnapshotNeededError(
            f"the binlog has an event of type {event_type}, which is not known",
            hint="Report it with the server's version, and turn off there what writes it; the "
            "table is copied again by itself.",
        )


class BodyEvent(binlog_event.BinLogEvent):  # type: ignore[misc] # has no types
    """An event that Sluice decodes: a table map, row event, fragment or compressed event."""

    table_id = 0  # the library reads it from table maps

    def __init__(self, packet: _Foreign, size: int, *rest: _Foreign, **named: _Foreign) -> None:
        super().__init__(packet, size, *rest, **named)
        self.body: bytes = packet.read(size)

    def get_table(self) -> None:
        """The library stores nothing of a table map."""

    def header_bytes(self, event_type: int, default: int) -> int:
        """Size of the fixed part of an event of a type, which the file declares."""
        declared = self._post_header_lengths
        return int(declared[event_type - 1]) if declared else default


class Packets(BinLogPacketWrapper):  # type: ignore[misc] # has no types
    """Packets of which some are read as a `BodyEvent`."""

    _BinLogPacketWrapper__event_map: ClassVar[dict[int, type]] = {
        **BinLogPacketWrapper._BinLogPacketWrapper__event_map,
        **dict.fromkeys(_BODIES, BodyEvent),
    }

    def __init__(self, packet: _Foreign, *context: _Foreign) -> None:
        self._context = context
        super().__init__(packet, *context)

    @property
    def header(self) -> bytes:
        return bytes(self.packet.get_all_data()[1 : 1 + HEADER_BYTES])

    def inside(self, event: bytes) -> "Packets":
        """An event in this compressed one, with its header and without checksum.

        Its position is that of this one: the next event begins there.
        """
        table_map, control, version, _, *rest = self._context
        packet = MysqlPacket(b"\0" + event, "latin1")
        inner = Packets(packet, table_map, control, version, False, *rest)
        inner.log_pos = self.log_pos
        return inner


class Reader(BinLogStreamReader):  # type: ignore[misc] # has no types
    """The library's reader with `Packets`; its `fetchone` names another class of packets.

    The first event of a file says whether its events have a checksum. The library reads the
    server's setting instead, which may have changed since the file was written.
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
    *(QueryEvent, BodyEvent, binlog_event.RotateEvent, binlog_event.FormatDescriptionEvent),
    *(binlog_event.GtidEvent, binlog_event.MariadbGtidEvent, binlog_event.NotImplementedEvent),
    *(binlog_event.XidEvent, binlog_event.XAPrepareEvent, binlog_event.ExecuteLoadQueryEvent),
    # only the position of these is used
    *(binlog_event.HeartbeatLogEvent, binlog_event.StopEvent),
    *(binlog_event.MariadbGtidListEvent, binlog_event.MariadbBinLogCheckPointEvent),
]
"""What the library hands on; types that it does not know come as `NotImplementedEvent`."""
