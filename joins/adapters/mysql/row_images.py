"""Row images of the binlog as wire values, decoded by the types in the event's table map.

The declaration of today may be another one. Values are those of Debezium's MySQL connector: a
TIMESTAMP is ISO text, a DATETIME microseconds; a date that Python cannot hold is NULL.
"""
# reads better long: one table of types, each beside the reader of its bytes.

import datetime as dt
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pymysqlreplication.constants import FIELD_TYPE

from joins.adapters.mysql.charsets import Charsets
from joins.adapters.mysql.events.row_events import (
    BLOB_COMPRESSED,
    TYPED_ARRAY,
    VARCHAR_COMPRESSED,
    VECTOR,
    BinlogColumn,
    RowsEvent,
    TableMap,
    partial_columns,
)
from joins.adapters.mysql.image_json import (
    changed_json_text,
    decimal_bytes,
    decimal_converter,
    json_text,
)
from joins.adapters.mysql.table import CapturedTable, MysqlColumn, in_zone
from joins.kernels.calendar.zones import UTC
from joins.kernels.json.wire import WIRE_TYPES, Encoding
from joins.plan.errors import SnapshotNeededError, SourceError

Value = int | float | bool | str | bytes | None
Reader = Callable[[bytes, int], tuple[Value, int]]
Row = list[Value]
Plan = list[tuple[int, Reader]]
"""Of each column its place in a row, -1 if it is not captured, and its reader."""
Change = tuple[Row | None, Row | None]
"""A row before and after; None where there is none."""

_EPOCH_ORDINAL = 719_163
_DAY_US = 86_400_000_000
_FRACTION_UNIT_US = {0: 0, 1: 10_000, 2: 100, 3: 1}  # bytes of the fraction → its unit
_SHORT_LENGTH = 255
_FIRST_YEAR = 1900
_BINARY = "binary"
_ARRAY_PREFIX = 4


class RowDecoder:
    """Decodes the row images of one table map to the captured columns, in their order.

    The constructor raises SnapshotNeededError if a captured column is missing or its values have
    another encoding, or if the images do not say where values end; SourceError for an unknown
    character set; ValueError if the members of an ENUM or SET are not there.
    """

    def __init__(
        self, table_map: TableMap, table: CapturedTable, charsets: Charsets, *, is_mariadb: bool
    ) -> None:
        by_name = {column.name: column for column in table_map.columns}
        self._where = f'table "{table.database}.{table.table}"'
        _require_readable(self._where, table_map, is_mariadb)
        slots: dict[str, int] = {}
        self._table = table
        for slot, captured in enumerate(table.columns):
            if captured.metadata:
                continue
            now = by_name.get(captured.server.name)
            _require_same(self._where, captured, now, charsets)
            slots[captured.server.name] = slot
        self._columns = table_map.columns
        self._plan: Plan = []
        for column in table_map.columns:
            slot = slots.get(column.name, -1)
            self._plan.append((slot, _skipper(column) if slot < 0 else _reader(column, charsets)))
        self._captured = [column.captured.name for column in table.columns]
        self._key = [self._captured.index(name) for name in table.primary_key]
        self._by_place = [slot for slot, _ in self._plan]
        self._json = [
            at for at, column in enumerate(self._columns) if column.kind == FIELD_TYPE.JSON
        ]

    def changes(self, event: RowsEvent, at_s: int = 0) -> Iterator[Change]:
        """The rows before and after each change, which was made at `at_s`.

        Columns missing after an update are unchanged.

        SnapshotNeededError if the images lack a captured column; ValueError, LookupError or
        struct.error for invalid images.
        """
        if event.columns != len(self._plan):
            raise ValueError(f"images have {event.columns} columns, the table {len(self._plan)}")
        self._require_present(event.present)
        images, at = event.images, 0
        nothing: Row = [*self._table.constants(at_s)]
        while at < len(images):
            start, plan = at, self._plan
            row, at = self._row(images, at, event.present, nothing, plan)
            self._require_key(row)
            if event.op == "u":
                if event.is_partial:
                    plan, at = self._plan_of_parts(event, start, at)
                after, at = self._row(images, at, event.present_after, row, plan)
                self._require_key(after)
                yield row, after
            else:
                yield (row, None) if event.op == "d" else (None, row)

    def _plan_of_parts(self, event: RowsEvent, before: int, at: int) -> tuple[Plan, int]:
        """How to read the image after an update, and where it begins, of what is at `at`.

        `before` is where the image begins whose documents its parts change.
        """
        places, at = partial_columns(event.images, at, self._json)
        parts = [place for place in places if self._by_place[place] >= 0]
        if not parts:
            return self._plan, at
        plan, whole = list(self._plan), list(self._plan)
        for place in parts:
            whole[place] = self._by_place[place], _converted(self._columns[place], bytes)
        nothing: Row = [None] * len(self._captured)
        documents, _ = self._row(event.images, before, event.present, nothing, whole)
        for place in parts:
            slot = self._by_place[place]
            change = partial(_changed, documents[slot])
            plan[place] = slot, _converted(self._columns[place], change)
        return plan, at

    def _row(
        self, images: bytes, start: int, present: int, defaults: Row, plan: Plan
    ) -> tuple[Row, int]:
        """The image from `start`, and its end; a column that is not `present` has its default."""
        values = list(defaults)
        at = start + (present.bit_count() + 7) // 8
        nulls = int.from_bytes(images[start:at], "little")
        for slot, reader in plan:
            if present & 1:
                value: Value = None
                if not nulls & 1:
                    value, at = reader(images, at)
                if slot >= 0:
                    values[slot] = value
                nulls >>= 1
            present >>= 1
        if at > len(images):
            raise ValueError(f"an image ends {at - len(images)} bytes behind its event")
        return values, at

    def _require_present(self, present: int) -> None:
        missing = [
            self._captured[slot]
            for place, slot in enumerate(self._by_place)
            if slot >= 0 and not present >> place & 1
        ]
        if missing:
            raise SnapshotNeededError(
                f'{self._where} has row events without column "{missing[0]}": a session wrote with '
                'setting "binlog_row_image" other than FULL',
                hint="Set binlog_row_image=FULL for all sessions; the table is copied again by "
                "itself.",
            )

    def _require_key(self, row: Row) -> None:
        for slot in self._key:
            if row[slot] is None:
                raise ValueError(f'column "{self._captured[slot]}" of the primary key is NULL')


def _require_readable(where: str, table_map: TableMap, is_mariadb: bool) -> None:
    """Refuse columns without names, and columns whose values have no length."""
    for column in table_map.columns:
        if not column.name:
            raise SnapshotNeededError(
                f"{where} has row events without column names: a session wrote with "
                'setting "binlog_row_metadata" other than FULL',
                hint="Set binlog_row_metadata=FULL for all sessions; the table is copied again by "
                "itself.",
            )
        if is_mariadb and column.kind in _OLD_TIMES:
            raise SnapshotNeededError(
                f'{where} has column "{column.name}" in the format of MariaDB 5.3, whose length '
                "the binlog does not tell",
                hint="Run SET GLOBAL mysql56_temporal_format=ON and ALTER TABLE … FORCE; the table "
                "is then copied again by itself.",
            )


def _require_same(
    where: str, captured: MysqlColumn, now: BinlogColumn | None, charsets: Charsets
) -> None:
    name = captured.server.name
    if now is None:
        raise _redefined(where, f'column "{name}" is gone')
    if now.collation is not None and now.collation not in charsets.collations:
        raise SourceError(
            f'{where} has column "{name}" with collation number {now.collation}, which the server '
            "does not list",
            hint="Convert the column to utf8mb4, and submit the job again.",
        )
    if captured.captured.encoding not in _encodings(now, _charset(now, charsets)):
        raise _redefined(where, f'column "{name}" is no longer {captured.server.column_type}')


def _charset(column: BinlogColumn, charsets: Charsets) -> str:
    return _BINARY if column.collation is None else charsets.collations[column.collation]


def _redefined(where: str, what: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f"{where} was changed while we read it: {what}",
        hint="Undo the change and the table is copied again by itself, or submit the job again "
        "with the new definition.",
    )


_INTEGERS = {
    FIELD_TYPE.TINY: ("<B", "<b"),
    FIELD_TYPE.SHORT: ("<H", "<h"),
    FIELD_TYPE.LONG: ("<I", "<i"),
    FIELD_TYPE.LONGLONG: ("<Q", "<q"),
}
_OLD_TIMES = frozenset({FIELD_TYPE.TIMESTAMP, FIELD_TYPE.DATETIME, FIELD_TYPE.TIME})
_TEXTS = frozenset({FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING})
_BLOBS = frozenset(
    {FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.BLOB}
)
_PREFIXED = _BLOBS | {FIELD_TYPE.GEOMETRY, FIELD_TYPE.JSON, BLOB_COMPRESSED, VECTOR}
_FIXED_SIZES = {
    FIELD_TYPE.TINY: 1,
    FIELD_TYPE.SHORT: 2,
    FIELD_TYPE.INT24: 3,
    FIELD_TYPE.LONG: 4,
    FIELD_TYPE.LONGLONG: 8,
    FIELD_TYPE.FLOAT: 4,
    FIELD_TYPE.DOUBLE: 8,
    FIELD_TYPE.YEAR: 1,
    FIELD_TYPE.DATE: 3,
    FIELD_TYPE.NEWDATE: 3,
    FIELD_TYPE.TIME: 3,
    FIELD_TYPE.DATETIME: 8,
    FIELD_TYPE.TIMESTAMP: 4,
}
_FRACTIONAL_SIZES = {FIELD_TYPE.TIME2: 3, FIELD_TYPE.DATETIME2: 5, FIELD_TYPE.TIMESTAMP2: 4}
_KIND_ENCODINGS = {
    FIELD_TYPE.FLOAT: {Encoding.FLOAT},
    FIELD_TYPE.DOUBLE: {Encoding.DOUBLE},
    FIELD_TYPE.YEAR: {Encoding.INTEGER},
    FIELD_TYPE.NEWDECIMAL: {Encoding.DECIMAL},
    FIELD_TYPE.DATE: {Encoding.DATE},
    FIELD_TYPE.NEWDATE: {Encoding.DATE},
    FIELD_TYPE.TIME: {Encoding.TIME},
    FIELD_TYPE.DATETIME: {Encoding.DATETIME},
    FIELD_TYPE.TIME2: {Encoding.TIME},
    FIELD_TYPE.DATETIME2: {Encoding.DATETIME},
    FIELD_TYPE.TIMESTAMP2: {Encoding.TIMESTAMP},
    FIELD_TYPE.TIMESTAMP: {Encoding.TIMESTAMP},
    FIELD_TYPE.ENUM: {Encoding.STRING},
    FIELD_TYPE.SET: {Encoding.STRING},
    FIELD_TYPE.JSON: {Encoding.STRING},
}


def _encodings(column: BinlogColumn, charset: str) -> set[Encoding]:
    kind = column.kind
    if kind == FIELD_TYPE.LONGLONG and column.unsigned:
        return {Encoding.UNSIGNED}
    if kind in _INTEGERS or kind == FIELD_TYPE.INT24:
        return {Encoding.INTEGER}
    if kind == FIELD_TYPE.BIT:
        return {Encoding.BOOLEAN if _bit_count(column) == 1 else Encoding.BYTES}
    if kind in _TEXTS or kind in _BLOBS:
        return {Encoding.BYTES if charset == _BINARY else Encoding.STRING}
    return _KIND_ENCODINGS.get(kind, set())


def _bit_count(column: BinlogColumn) -> int:
    bits, whole_bytes = column.meta
    return whole_bytes * 8 + bits


def _most_bytes(column: BinlogColumn) -> int:
    """The maximum length of a CHAR, VARCHAR, BINARY or VARBINARY in bytes."""
    first, second = column.meta
    if column.kind in (FIELD_TYPE.VARCHAR, VARCHAR_COMPRESSED):
        return first | second << 8
    return ((first & 0x30) ^ 0x30) << 4 | second  # STRING has bits 8 and 9 inverted beside its type


def _size_reader(column: BinlogColumn) -> Callable[[bytes, int], tuple[int, int]]:
    kind = column.kind
    if kind in _TEXTS or kind == VARCHAR_COMPRESSED:
        prefix = 2 if _most_bytes(column) > _SHORT_LENGTH else 1
    elif kind in _PREFIXED:
        prefix = column.meta[0]
    elif kind == TYPED_ARRAY:
        prefix = _ARRAY_PREFIX
    else:
        size = _fixed_size(column)
        return lambda image, at: (at, at + size)

    def prefixed(image: bytes, at: int) -> tuple[int, int]:
        start = at + prefix
        return start, start + int.from_bytes(image[at:start], "little")

    return prefixed


def _fixed_size(column: BinlogColumn) -> int:
    kind, meta = column.kind, column.meta
    if kind in _FIXED_SIZES:
        return _FIXED_SIZES[kind]
    if kind in _FRACTIONAL_SIZES:
        return _FRACTIONAL_SIZES[kind] + (meta[0] + 1) // 2
    if kind in (FIELD_TYPE.ENUM, FIELD_TYPE.SET):
        return meta[1]
    if kind == FIELD_TYPE.BIT:
        return (_bit_count(column) + 7) // 8
    assert kind == FIELD_TYPE.NEWDECIMAL, kind  # the table map has known types only
    return decimal_bytes(*meta)


def _skipper(column: BinlogColumn) -> Reader:
    bounds = _size_reader(column)
    return lambda image, at: (None, bounds(image, at)[1])


def _reader(column: BinlogColumn, charsets: Charsets) -> Reader:
    if column.kind in _INTEGERS:
        unpack = struct.Struct(_INTEGERS[column.kind][0 if column.unsigned else 1])
        return lambda image, at: (unpack.unpack_from(image, at)[0], at + unpack.size)
    return _converted(column, _converter(column, charsets))


def _converted(column: BinlogColumn, convert: Callable[[bytes], Value]) -> Reader:
    bounds = _size_reader(column)

    def read(image: bytes, at: int) -> tuple[Value, int]:
        start, end = bounds(image, at)
        if end > len(image):
            raise ValueError(f'a value of column "{column.name}" ends behind its event')
        return convert(image[start:end]), end

    return read


def _converter(column: BinlogColumn, charsets: Charsets) -> Callable[[bytes], Value]:
    kind, meta = column.kind, column.meta
    if kind in _TEXTS or kind in _BLOBS:
        return _text_converter(column, charsets)
    makers: dict[int, Callable[[], Callable[[bytes], Value]]] = {
        FIELD_TYPE.INT24: lambda: (
            lambda raw: int.from_bytes(raw, "little", signed=not column.unsigned)
        ),
        FIELD_TYPE.FLOAT: lambda: lambda raw: float(struct.unpack("<f", raw)[0]),
        FIELD_TYPE.DOUBLE: lambda: lambda raw: float(struct.unpack("<d", raw)[0]),
        FIELD_TYPE.YEAR: lambda: lambda raw: raw[0] and raw[0] + _FIRST_YEAR,
        FIELD_TYPE.NEWDECIMAL: lambda: decimal_converter(*meta),
        FIELD_TYPE.DATE: lambda: _date,
        FIELD_TYPE.NEWDATE: lambda: _date,
        FIELD_TYPE.TIME2: lambda: _time_us,
        FIELD_TYPE.DATETIME2: lambda: _datetime_us,
        FIELD_TYPE.TIMESTAMP2: lambda: _instant_converter(meta[0]),
        FIELD_TYPE.TIMESTAMP: lambda: _old_instant,
        FIELD_TYPE.DATETIME: lambda: _old_datetime_us,
        FIELD_TYPE.TIME: lambda: _old_time_us,
        FIELD_TYPE.ENUM: lambda: _enum_converter(_members(column, charsets)),
        FIELD_TYPE.SET: lambda: _set_converter(_members(column, charsets)),
        FIELD_TYPE.BIT: lambda: _bits if _bit_count(column) > 1 else (lambda raw: raw != b"\0"),
        FIELD_TYPE.JSON: lambda: json_text,
    }
    return makers[kind]()


def _changed(document: Value, parts: bytes) -> str:
    if not isinstance(document, bytes):
        raise ValueError("parts of a JSON document changed where there was none")
    return changed_json_text(document, parts)


def _text_converter(column: BinlogColumn, charsets: Charsets) -> Callable[[bytes], Value]:
    """As a SELECT: BINARY gets back the zeros at its end, CHAR loses the spaces there."""
    charset = _charset(column, charsets)
    is_fixed = column.kind == FIELD_TYPE.STRING
    if charset == _BINARY:
        length = _most_bytes(column) if is_fixed else 0
        return lambda raw: raw.ljust(length, b"\0")
    decode = charsets.decoder(charset)
    return (lambda raw: decode(raw).rstrip(" ")) if is_fixed else decode


def _members(column: BinlogColumn, charsets: Charsets) -> list[str]:
    if not column.members:
        raise ValueError(f'the members of column "{column.name}" are not in the binlog')
    charset = _charset(column, charsets)
    if charset == _BINARY:
        return [member.decode("utf-8") for member in column.members]
    return list(map(charsets.decoder(charset), column.members))


def _enum_converter(members: Sequence[str]) -> Callable[[bytes], Value]:
    values = ("", *members)
    return lambda raw: values[int.from_bytes(raw, "little")]


def _set_converter(members: Sequence[str]) -> Callable[[bytes], Value]:
    def convert(raw: bytes) -> str:
        mask = int.from_bytes(raw, "little")
        if mask >> len(members):
            raise ValueError("a SET has more members than its type")
        return ",".join(member for bit, member in enumerate(members) if mask >> bit & 1)

    return convert


def _bits(raw: bytes) -> bytes:
    return raw[::-1]


def _days(year: int, month: int, day: int) -> int | None:
    try:
        return dt.date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def _date(raw: bytes) -> int | None:
    packed = int.from_bytes(raw, "little")
    return _days(packed >> 9, packed >> 5 & 15, packed & 31)


def _time_us(raw: bytes) -> int:
    extra = 8 * (len(raw) - 3)
    number = int.from_bytes(raw, "big") - (1 << (23 + extra))
    size = abs(number)
    clock, fraction = size >> extra, size & ((1 << extra) - 1)
    micros = _clock_us(clock) + fraction * _FRACTION_UNIT_US[extra // 8]
    return -micros if number < 0 else micros


def _clock_us(packed: int) -> int:
    hours, minutes, seconds = packed >> 12, packed >> 6 & 63, packed & 63
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000


def _datetime_us(raw: bytes) -> int | None:
    packed = int.from_bytes(raw[:5], "big") - (1 << 39)
    year, month = divmod(packed >> 22, 13)
    days = _days(year, month, packed >> 17 & 31)
    if days is None:
        return None
    fraction = int.from_bytes(raw[5:], "big") * _FRACTION_UNIT_US[len(raw) - 5]
    return days * _DAY_US + _clock_us(packed & 0x1FFFF) + fraction


def _old_datetime_us(raw: bytes) -> int | None:
    day, clock = divmod(int.from_bytes(raw, "little"), 1_000_000)
    days = _days(day // 10_000, day // 100 % 100, day % 100)
    return None if days is None else days * _DAY_US + _digits_us(clock)


def _old_time_us(raw: bytes) -> int:
    number = int.from_bytes(raw, "little", signed=True)
    micros = _digits_us(abs(number))
    return -micros if number < 0 else micros


def _digits_us(clock: int) -> int:
    hours, minutes, seconds = clock // 10_000, clock // 100 % 100, clock % 100
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000


def _instant_converter(digits: int) -> Callable[[bytes], Value]:
    def convert(raw: bytes) -> str | None:
        if not any(raw):
            return None  # 0000-00-00 00:00:00
        seconds = int.from_bytes(raw[:4], "big")
        fraction = int.from_bytes(raw[4:], "big") * _FRACTION_UNIT_US[len(raw) - 4]
        return _instant(seconds, f".{fraction:06d}"[: digits + 1] if digits else "")

    return convert


def _old_instant(raw: bytes) -> str | None:
    return _instant(int.from_bytes(raw, "little"), "") if any(raw) else None


def _instant(seconds: int, fraction: str) -> str:
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def wire_rows(decoded: Sequence[Row | None], table: CapturedTable) -> pa.RecordBatch:
    """Decoded rows as wire columns (BYTES as binary); None becomes a row of NULLs."""
    width = len(table.columns)
    nothing: Row = [None] * width
    full = [nothing if row is None else row for row in decoded]
    columns = list(zip(*full, strict=True)) if full else [()] * width
    arrays = [
        pa.array(values, pa.binary() if kind is Encoding.BYTES else WIRE_TYPES[kind])
        for values, kind in zip(columns, (c.encoding for c in table.captured), strict=True)
    ]
    for at, column in enumerate(table.columns):
        if column.zone != UTC:
            arrays[at] = in_zone(arrays[at], column.zone)
    return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in table.captured])
