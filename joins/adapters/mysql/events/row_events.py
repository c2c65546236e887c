"""Table maps and row events of the binlog, decoded from their bytes.

python-mysql-replication's decoder ignores the length of column metadata, does not know newer types,
and reads members of ENUM as UTF-8. Sources: MySQL's documentation of `Table_map_event` and
`Rows_event`; MariaDB's of `TABLE_MAP_EVENT`, `ROWS_EVENT` and `PARTIAL_ROW_DATA_EVENT`.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pymysqlreplication.constants import FIELD_TYPE

TABLE_MAP = 19
PARTIAL_JSON = 39
"""An update of MySQL in which a JSON column may have only the parts that changed."""
FRAGMENT = 172
ROW_OPS = {23: "c", 24: "u", 25: "d", 30: "c", 31: "u", 32: "d", PARTIAL_JSON: "u"}
"""Event type → `c`, `u` or `d`."""
COMPRESSED_ROWS = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""MariaDB's compressed row event → the type of the same event without compression."""

NO_TABLE = (0xFFFFFF, 0xFFFFFFFFFFFF)
"""Numbers of a table in row events that only end a statement."""

TYPED_ARRAY, BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR = 20, 140, 141, 242
WITH_EXTRA = frozenset({30, 31, 32, PARTIAL_JSON})
_HEADER_BYTES = 19
_CHECKSUM_BYTES = 4
_FRAGMENT_HAS_SIZE = 1
_SMALL_ID_HEADER = 6
_PARTIAL_VALUES = 1

_BLOBS = (
    *(FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.BLOB),
    *(FIELD_TYPE.GEOMETRY, FIELD_TYPE.JSON, BLOB_COMPRESSED, VECTOR),
)
_STRINGS = (FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.ENUM, FIELD_TYPE.SET)
_META_BYTES = {
    **dict.fromkeys(_BLOBS, 1),
    **dict.fromkeys((FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE), 1),
    **dict.fromkeys((FIELD_TYPE.TIMESTAMP2, FIELD_TYPE.DATETIME2, FIELD_TYPE.TIME2), 1),
    **dict.fromkeys((*_STRINGS, FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.BIT), 2),
    **dict.fromkeys((FIELD_TYPE.VARCHAR, VARCHAR_COMPRESSED), 2),
}
_ARRAY_OF_TEXT_META = 4  # the type, and a length of three bytes
_NUMERIC = frozenset(
    [
        *(FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG),
        *(FIELD_TYPE.LONGLONG, FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE),
        FIELD_TYPE.YEAR,
    ]
)
_CHARACTER = frozenset(
    [
        *(FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, VARCHAR_COMPRESSED),
        *(FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.BLOB),
        *(BLOB_COMPRESSED, VECTOR),
    ]
)
_LISTED = frozenset({FIELD_TYPE.ENUM, FIELD_TYPE.SET})

# Kinds of optional metadata
_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_MEMBERS, _ENUM_MEMBERS, _LISTED_DEFAULT_CHARSET, _LISTED_CHARSET = 5, 6, 10, 11


@dataclass(frozen=True, slots=True)
class BinlogColumn:
    """A column in a table map."""

    name: str  # empty if the server does not write names
    kind: int  # the field type's number
    meta: bytes = b""  # the type's metadata as written: lengths, digits
    unsigned: bool = False
    # number, for texts, ENUM and SET; None if the server does not write it
    collation: int | None = None
    members: tuple[bytes, ...] = ()  # of ENUM and SET, in the column's character set


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table, as defined for the following row events, which refer to its `table_id`."""

    table_id: int
    database: str
    table: str
    columns: tuple[BinlogColumn, ...]


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """Row images of one table; `op` is `c`, `u` (images before and after) or `d`.

    `present` and `present_after` are bit masks of the columns in the images, lowest bit first; the
    second is for images after an update. If it `is_partial`, each of these follows what
    `partial_columns` reads.
    """

    op: str
    table_id: int
    columns: int
    present: int
    present_after: int
    images: bytes
    is_partial: bool = False


class Bytes:
    """A cursor over bytes; a read beyond the end is a ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, count: int) -> bytes:
        if count < 0 or count > self.left:
            raise ValueError(f"{count} bytes are expected where {self.left} are left")
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        first = self.number(1)
        sizes = {0xFC: 2, 0xFD: 3, 0xFE: 8}
        if first in (0xFB, 0xFF):
            raise ValueError(f"a length begins with 0x{first:02X}")
        return self.number(sizes[first]) if first in sizes else first

    def text(self) -> bytes:
        return self.take(self.packed())

    def rest(self) -> bytes:
        return self.take(self.left)


def table_of(body: bytes, header_bytes: int) -> tuple[int, str, str]:
    """Id, database and table of a table map; ValueError for invalid bytes."""
    table_id, database, table, _ = _table_head(body, header_bytes)
    return table_id, database, table


def table_id_of(body: bytes, header_bytes: int) -> int:
    return int.from_bytes(body[: 4 if header_bytes == _SMALL_ID_HEADER else 6], "little")


def _table_head(body: bytes, header_bytes: int) -> tuple[int, str, str, Bytes]:
    data = Bytes(body)
    table_id = table_id_of(data.take(4 if header_bytes == _SMALL_ID_HEADER else 6), header_bytes)
    data.take(header_bytes - data.at)
    database = data.take(data.number(1)).decode("utf-8")
    data.take(1)
    table = data.take(data.number(1)).decode("utf-8")
    data.take(1)
    return table_id, database, table, data


def table_map(body: bytes, header_bytes: int, *, is_mariadb: bool) -> TableMap:
    """A table map event; ValueError for invalid bytes or unknown types.

    `body` follows the event's common header, without checksum; `header_bytes` is the size of the
    event's fixed part.
    """
    table_id, database, table, data = _table_head(body, header_bytes)
    count = data.packed()
    kinds = data.take(count)
    kind_metas = list(_kind_metas(kinds, data.text()))
    data.take((count + 7) // 8)  # which columns may be NULL
    extra = {}
    while data.left:
        what = data.number(1)
        extra[what] = data.text()
    optional = _OptionalMetadata([kind for kind, _ in kind_metas], extra, is_mariadb)
    columns = tuple(
        BinlogColumn(
            name=optional.names[at],
            kind=kind,
            meta=meta,
            unsigned=optional.unsigned.get(at, False),
            collation=optional.collations.get(at),
            members=optional.members.get(at, ()),
        )
        for at, (kind, meta) in enumerate(kind_metas)
    )
    return TableMap(table_id, database, table, columns)


def _kind_metas(kinds: bytes, metas: bytes) -> Iterator[tuple[int, bytes]]:
    """Each column's type, that of ENUM and SET itself, with its metadata."""
    data = Bytes(metas)
    for kind in kinds:
        if kind == TYPED_ARRAY:
            element = data.number(1)
            is_text = element in (FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING)
            size = _ARRAY_OF_TEXT_META - 1 if is_text else _META_BYTES.get(element, 0)
            yield kind, data.take(size)
            continue
        if kind not in _KNOWN:
            raise ValueError(f"a column has field type {kind}, which is not known")
        meta = data.take(_META_BYTES.get(kind, 0))
        if kind == FIELD_TYPE.STRING and meta[0] in _LISTED:
            kind = meta[0]
        yield kind, meta
    if data.left:
        raise ValueError(f"{data.left} bytes of the columns' metadata belong to no column")


_KNOWN = frozenset(
    [
        *_META_BYTES,
        *_NUMERIC,
        *(FIELD_TYPE.TIMESTAMP, FIELD_TYPE.DATE, FIELD_TYPE.TIME, FIELD_TYPE.DATETIME),
        FIELD_TYPE.NEWDATE,
    ]
)


@dataclass(slots=True)
class _OptionalMetadata:
    """The optional metadata by column index."""

    kinds: list[int]
    extra: Mapping[int, bytes]
    is_mariadb: bool
    names: list[str] = field(default_factory=list)
    unsigned: dict[int, bool] = field(default_factory=dict)
    collations: dict[int, int] = field(default_factory=dict)
    members: dict[int, tuple[bytes, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        characters = _CHARACTER | ({FIELD_TYPE.GEOMETRY} if self.is_mariadb else set())
        signs = self.extra.get(_SIGNEDNESS, b"")
        bits = (byte >> 7 - bit & 1 for byte in signs for bit in range(8))
        self.unsigned = {at: bool(b) for at, b in zip(self._places(_NUMERIC), bits, strict=False)}
        self._read_collations(characters, _DEFAULT_CHARSET, _COLUMN_CHARSET)
        self._read_collations(_LISTED, _LISTED_DEFAULT_CHARSET, _LISTED_CHARSET)
        self._read_members(FIELD_TYPE.SET, _SET_MEMBERS)
        self._read_members(FIELD_TYPE.ENUM, _ENUM_MEMBERS)
        names = Bytes(self.extra.get(_COLUMN_NAME, b""))
        while names.left:
            self.names.append(names.text().decode("utf-8"))
        if self.names and len(self.names) != len(self.kinds):
            raise ValueError(f"{len(self.kinds)} columns have {len(self.names)} names")
        self.names = self.names or [""] * len(self.kinds)

    def _places(self, kinds: frozenset[int] | set[int]) -> list[int]:
        return [at for at, kind in enumerate(self.kinds) if kind in kinds]

    def _read_collations(
        self, kinds: frozenset[int] | set[int], default_code: int, each_code: int
    ) -> None:
        places = self._places(kinds)
        if default_code in self.extra:
            data = Bytes(self.extra[default_code])
            self.collations.update(dict.fromkeys(places, data.packed()))
            while data.left:
                place = places[data.packed()]
                self.collations[place] = data.packed()
        elif each_code in self.extra:
            data = Bytes(self.extra[each_code])
            self.collations.update({at: data.packed() for at in places})
            if data.left:
                raise ValueError("more columns have a collation than have text")

    def _read_members(self, kind: int, code: int) -> None:
        data = Bytes(self.extra.get(code, b""))
        for at in self._places({kind}):
            if data.left:
                self.members[at] = tuple(data.text() for _ in range(data.packed()))


def rows_event(event_type: int, body: bytes, header_bytes: int) -> RowsEvent:
    """A row event of one of `ROW_OPS` with undecoded images; arguments as `table_map`."""
    data = Bytes(body)
    table_id, columns, present, after = _rows_head(event_type, data, header_bytes)
    used = (1 << columns) - 1
    masks, is_partial = (present & used, after & used), event_type == PARTIAL_JSON
    return RowsEvent(ROW_OPS[event_type], table_id, columns, *masks, data.rest(), is_partial)


def partial_columns(images: bytes, at: int, documents: Sequence[int]) -> tuple[list[int], int]:
    """The places of columns of which the image after an update has parts, and where it begins.

    `documents` are the places of all JSON columns, present or not. ValueError for invalid bytes.
    """
    data = Bytes(images)
    data.at = at
    options = data.packed()
    if options & ~_PARTIAL_VALUES:
        raise ValueError(f"a row has value options {options}, which are not known")
    if not options:
        return [], data.at
    bits = data.number((len(documents) + 7) // 8)
    return [place for bit, place in enumerate(documents) if bits >> bit & 1], data.at


def images_at(event_type: int, body: bytes, header_bytes: int) -> int:
    """Where the images begin in `body`; arguments as `rows_event`."""
    data = Bytes(body)
    _rows_head(event_type, data, header_bytes)
    return data.at


def _rows_head(event_type: int, data: Bytes, header_bytes: int) -> tuple[int, int, int, int]:
    """Number of the table, columns, and both masks."""
    table_id = table_id_of(data.take(4 if header_bytes == _SMALL_ID_HEADER else 6), header_bytes)
    data.take(2)
    if event_type in WITH_EXTRA:
        extra = data.number(2)
        data.take(header_bytes - data.at)
        data.take(extra - 2)
    else:
        data.take(header_bytes - data.at)
    columns = data.packed()
    present = after = data.number((columns + 7) // 8)
    if ROW_OPS[event_type] == "u":
        after = data.number((columns + 7) // 8)
    return table_id, columns, present, after


@dataclass(slots=True)
class Fragments:
    """Reassembles a row event that the server has split; `total` is 0 before the first part."""

    total: int = 0
    _size: int = 0
    _parts: list[bytes] = field(default_factory=list)

    def add(self, body: bytes) -> tuple[int, bytes] | None:
        """Add the next part; the event's type and body after the last.

        ValueError if out of order.
        """
        data = Bytes(body)
        total, number, flags = data.number(4), data.number(4), data.number(1)
        if number == 1:
            self.total, self._size, self._parts = total, 0, []
        if flags & _FRAGMENT_HAS_SIZE:
            self._size = data.number(8)
        self._parts.append(data.rest())
        if (total, number) != (self.total, len(self._parts)):
            raise ValueError(
                f"part {number} of {total} of a row event follows {len(self._parts) - 1} parts "
                f"of {self.total}"
            )
        if number < total:
            return None
        whole = b"".join(self._parts)
        self.total, self._parts = 0, []
        return self._event(whole)

    def _event(self, whole: bytes) -> tuple[int, bytes]:
        if len(whole) < _HEADER_BYTES:
            raise ValueError(f"a row event in parts has {len(whole)} bytes")
        _, event_type, _, size, _, _ = struct.unpack_from("<IBIIIH", whole)
        if event_type not in ROW_OPS | COMPRESSED_ROWS or len(whole) != (self._size or size):
            raise ValueError("a row event in parts does not begin with its header")
        end = len(whole) - _CHECKSUM_BYTES
        if zlib.crc32(whole[:end]) == int.from_bytes(whole[end:], "little"):
            whole = whole[:end]
        return event_type, whole[_HEADER_BYTES:]
