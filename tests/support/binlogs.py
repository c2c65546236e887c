"""Writes events of a binlog by the documentation of MySQL and MariaDB: no server is needed."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pymysql.protocol import MysqlPacket

from joins.adapters.mysql.charsets import Charsets
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.events.packets import EVENTS, Packets
from joins.adapters.mysql.events.transactions import Event, Transactions
from joins.adapters.mysql.table import CapturedTable, ServerColumn, capture
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName

CHARSETS = Charsets(
    MysqlConnectionConfig("nowhere", 1, "nobody", "", "d", "t"), {45: "utf8mb4", 63: "binary"}
)
TABLE = CapturedTable(
    "d",
    "t",
    capture(
        "d.t",
        (Field("id", SqlType(TypeName.BIGINT)), Field("v", SqlType(TypeName.STRING))),
        [
            ServerColumn("id", "bigint", "bigint(20)", 19, 0, None),
            ServerColumn("v", "longtext", "longtext", 0, 0, "utf8mb4"),
        ],
    ),
    ("id",),
)
QUERY, XID, TABLE_MAP, GTID, PAYLOAD = 2, 16, 19, 33, 40
WRITE, UPDATE, DELETE = 30, 31, 32
_COMPRESSED = {2: 165, 23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}
ZSTD, NONE = 0, 255
_TABLE_ID = (7).to_bytes(6, "little")
_CRC_BYTES = 4
Row = tuple[int, str]


def event(kind: int, body: bytes, log_pos: int = 0, at_s: int = 1_700_000_000) -> bytes:
    """An event with its common header, and without checksum."""
    return struct.pack("<IBIIIH", at_s, kind, 1, 19 + len(body), log_pos, 0) + body


def packed(number: int) -> bytes:
    if number < 0xFB:
        return bytes([number])
    for mark, size in ((0xFC, 2), (0xFD, 3)):
        if number < 1 << 8 * size:
            return bytes([mark]) + number.to_bytes(size, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def query(sql: str, schema: str = "d") -> bytes:
    head = struct.pack("<IIBHH", 1, 0, len(schema), 0, 0)
    return head + schema.encode() + b"\0" + sql.encode()


def table_map(table: str = "t") -> bytes:
    """Of d.t, or of another table of its shape: `id` BIGINT, `v` LONGTEXT in utf8mb4."""
    names = b"\x02id\x01v"
    optional = b"\x01\x01\x00" + b"\x02\x01\x2d" + b"\x04" + packed(len(names)) + names
    columns = b"\x02" + bytes([8, 252]) + b"\x01\x04" + b"\x02"
    name = bytes([len(table)]) + table.encode() + b"\0"
    return _TABLE_ID + b"\1\0" + b"\x01d\0" + name + columns + optional


def rows(kind: int, images: Sequence[Row]) -> bytes:
    """A row event of the second version, or of the first (23 to 25)."""
    extra = b"\2\0" if kind >= WRITE else b""
    masks = b"\x03\x03" if kind in (24, UPDATE, 39) else b"\x03"
    return _TABLE_ID + b"\1\0" + extra + b"\x02" + masks + b"".join(map(_image, images))


def _image(row: Row) -> bytes:
    text = row[1].encode()
    return b"\0" + struct.pack("<qI", row[0], len(text)) + text


def compressed(kind: int, body: bytes) -> tuple[int, bytes]:
    """Type and body of the compressed event of MariaDB."""
    at = len(body) - len(body.split(b"\0", 4)[-1]) if kind == QUERY else _images_at(kind)
    if kind == QUERY:
        at = 13 + body[8] + 1
    plain = body[at:]
    size = len(plain).to_bytes(max(1, (len(plain).bit_length() + 7) // 8), "big")
    return _COMPRESSED[kind], body[:at] + bytes([0x80 | len(size)]) + size + zlib.compress(plain)


def _images_at(kind: int) -> int:
    return 8 + (2 if kind >= WRITE else 0) + 1 + (2 if kind in (24, UPDATE) else 1)


def payload(
    events: Sequence[bytes], algorithm: int | None = ZSTD, size: int | None = None
) -> bytes:
    """Body of a transaction in one event of MySQL; None leaves the algorithm out."""
    plain = b"".join(events)
    data = pa.compress(plain, "zstd", asbytes=True) if algorithm == ZSTD else plain
    fields = [] if algorithm is None else [(2, algorithm), (3, size or len(plain))]
    return (
        b"".join(
            packed(kind) + packed(len(packed(value))) + packed(value)
            for kind, value in (*fields, (1, len(data)))
        )
        + packed(0)
        + data
    )


def gtid(number: int, source: bytes = bytes(range(16))) -> bytes:
    return b"\1" + source + struct.pack("<QBQQ", number, 2, number - 1, number)


def packet(data: bytes) -> Any:
    """As the library makes it of an event with a checksum."""
    control = SimpleNamespace(charset="utf8mb4", _get_dbms=lambda: "mysql")
    unused = (None,) * 4
    return Packets(
        MysqlPacket(b"\0" + data[:9] + _grown(data) + data[13:] + b"\0" * _CRC_BYTES, "latin1"),
        *({}, control, (8, 4, 0), True, frozenset(EVENTS), *unused),
        *(True, False, False, True, False, False, ()),
    )


def _grown(data: bytes) -> bytes:
    return struct.pack("<I", len(data) + _CRC_BYTES)


def told(events: Sequence[bytes], table: CapturedTable = TABLE) -> Iterator[Event]:
    """What a stream makes of events, from a boundary in file 1 on."""
    transactions = Transactions(table, CHARSETS, 1)
    for data in events:
        made = packet(data).event
        if made is not None:
            yield from transactions.events_of(made)
