"""Row images of the binlog, decoded straight to wire values.

python-mysql-replication gives the events, the table map and its metadata; its own row decoding is
not used: it shows negative fractional TIMEs wrongly, drops the zeros at the end of BINARY, knows
only some collations, and decodes the columns that nobody asked for.
"""
# reads better long: one table of types, each beside the reader of its bytes.

import datetime as dt
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pymysqlreplication.constants import FIELD_TYPE

from joins.adapters.mysql.json import json_text
from joins.adapters.mysql.table import CODECS, CapturedTable, MysqlColumn, ServerColumn
from joins.kernels.json.wire import WIRE_TYPES, Encoding
from joins.plan.errors import SnapshotNeededError, SourceError

Value = int | float | bool | str | bytes | None
Reader = Callable[[bytes, int], tuple[Value, int]]
Row = list[Value]

_EPOCH_ORDINAL = 719_163
_DAY_US = 86_400_000_000
_FRACTION_UNIT_US = {0: 0, 1: 10_000, 2: 100, 3: 1}
_DECIMAL_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DECIMAL_GROUP = 9
_SHORT_LENGTH = 255
_FIRST_YEAR = 1900


@dataclass(frozen=True, slots=True)
class BinlogColumn:
    """A column as the table map of a row event describes it.

    Attributes:
        kind: the field type's number.
        meta: what its type says more: lengths, digits, members.
        charset: of texts, None if the server did not name its collation.
    """

    name: str
    kind: int
    unsigned: bool
    meta: Mapping[str, Any]
    charset: str | None


class RowDecoder:
    """Decodes the row images of one table map to the captured columns, in their order.

    Raises:
        SnapshotNeededError: at construction, if a captured column is gone or another type now.
    """

    def __init__(self, columns: Sequence[BinlogColumn], table: CapturedTable) -> None:
        by_name = {column.name: column for column in columns}
        where = f'table "{table.database}.{table.table}"'
        slots: dict[str, tuple[int, MysqlColumn]] = {}
        for slot, captured in enumerate(table.columns):
            _require_same(where, captured, by_name.get(captured.server.name))
            slots[captured.server.name] = (slot, captured)
        self._plan: list[tuple[int, Reader]] = []
        for column in columns:
            slot, captured_column = slots.get(column.name, (-1, None))
            reader = (
                _skipper(column) if captured_column is None else _reader(column, captured_column)
            )
            self._plan.append((slot, reader))
        self._width = len(table.columns)

    @property
    def column_count(self) -> int:
        """Columns of the table, captured or not."""
        return len(self._plan)

    def row(self, image: bytes, start: int) -> tuple[Row, int]:
        """The row image at `start`, every column present, and where it ends."""
        values: Row = [None] * self._width
        nulls = int.from_bytes(image[start : start + (len(self._plan) + 7) // 8], "little")
        at = start + (len(self._plan) + 7) // 8
        for slot, reader in self._plan:
            if not nulls & 1:
                value, at = reader(image, at)
                if slot >= 0:
                    values[slot] = value
            nulls >>= 1
        return values, at


def _require_same(where: str, captured: MysqlColumn, now: BinlogColumn | None) -> None:
    name = captured.server.name
    if now is None:
        raise _redefined(where, f'column "{name}" is gone')
    if captured.captured.encoding not in _encodings(now):
        raise _redefined(where, f'column "{name}" is no longer {captured.server.column_type}')


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
_TEXTS = frozenset({FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING})
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
    FIELD_TYPE.TIME2: {Encoding.TIME},
    FIELD_TYPE.DATETIME2: {Encoding.DATETIME},
    FIELD_TYPE.TIMESTAMP2: {Encoding.TIMESTAMP},
    FIELD_TYPE.TIMESTAMP: {Encoding.TIMESTAMP},
    FIELD_TYPE.ENUM: {Encoding.STRING},
    FIELD_TYPE.SET: {Encoding.STRING},
    FIELD_TYPE.JSON: {Encoding.STRING},
}


def _encodings(column: BinlogColumn) -> set[Encoding]:
    """How a column of that type may be written."""
    kind = column.kind
    if kind == FIELD_TYPE.LONGLONG and column.unsigned:
        return {Encoding.UNSIGNED}
    if kind in _INTEGERS or kind == FIELD_TYPE.INT24:
        return {Encoding.INTEGER}
    if kind == FIELD_TYPE.BIT:
        return {Encoding.BOOLEAN if column.meta["bits"] == 1 else Encoding.BYTES}
    if kind in _TEXTS or kind == FIELD_TYPE.BLOB:
        if column.charset is None:
            return {Encoding.STRING, Encoding.BYTES}
        return {Encoding.BYTES if column.charset == "binary" else Encoding.STRING}
    return _KIND_ENCODINGS.get(kind, set())


def _size_reader(column: BinlogColumn) -> Callable[[bytes, int], tuple[int, int]]:
    """Where the content of a value begins and ends."""
    kind, meta = column.kind, column.meta
    if kind in _TEXTS:
        prefix = 2 if meta["max_length"] > _SHORT_LENGTH else 1
    elif kind in (FIELD_TYPE.BLOB, FIELD_TYPE.GEOMETRY, FIELD_TYPE.JSON):
        prefix = meta["length_size"]
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
        return _FRACTIONAL_SIZES[kind] + (int(meta["fsp"]) + 1) // 2
    if kind in (FIELD_TYPE.ENUM, FIELD_TYPE.SET):
        return int(meta["size"])
    if kind == FIELD_TYPE.BIT:
        return int(meta["bytes"])
    if kind == FIELD_TYPE.NEWDECIMAL:
        integral, scale = meta["precision"] - meta["decimals"], meta["decimals"]
        return sum(
            digits // _DECIMAL_GROUP * 4 + _DECIMAL_BYTES[digits % _DECIMAL_GROUP]
            for digits in (integral, scale)
        )
    raise SourceError(
        f'column "{column.name}" has field type {kind} in the binlog, which cannot be read',
        hint="Remove that column from the table, or store it in another type.",
    )


def _skipper(column: BinlogColumn) -> Reader:
    bounds = _size_reader(column)
    return lambda image, at: (None, bounds(image, at)[1])


def _reader(column: BinlogColumn, captured: MysqlColumn) -> Reader:
    if column.kind in _INTEGERS:
        unpack = struct.Struct(_INTEGERS[column.kind][0 if column.unsigned else 1])
        return lambda image, at: (unpack.unpack_from(image, at)[0], at + unpack.size)
    bounds = _size_reader(column)
    convert = _converter(column, captured)

    def read(image: bytes, at: int) -> tuple[Value, int]:
        start, end = bounds(image, at)
        return convert(image[start:end]), end

    return read


def _converter(column: BinlogColumn, captured: MysqlColumn) -> Callable[[bytes], Value]:
    kind, meta, server = column.kind, column.meta, captured.server
    if kind in _TEXTS or kind == FIELD_TYPE.BLOB:
        return _text_converter(column, server)
    makers: dict[int, Callable[[], Callable[[bytes], Value]]] = {
        FIELD_TYPE.INT24: lambda: (
            lambda raw: int.from_bytes(raw, "little", signed=not column.unsigned)
        ),
        FIELD_TYPE.FLOAT: lambda: lambda raw: float(struct.unpack("<f", raw)[0]),
        FIELD_TYPE.DOUBLE: lambda: lambda raw: float(struct.unpack("<d", raw)[0]),
        FIELD_TYPE.YEAR: lambda: lambda raw: raw[0] and raw[0] + _FIRST_YEAR,
        FIELD_TYPE.NEWDECIMAL: lambda: _decimal_converter(meta["precision"], meta["decimals"]),
        FIELD_TYPE.DATE: lambda: _date,
        FIELD_TYPE.TIME2: lambda: _time_us,
        FIELD_TYPE.DATETIME2: lambda: _datetime_us,
        FIELD_TYPE.TIMESTAMP2: lambda: _instant_converter(meta["fsp"]),
        FIELD_TYPE.TIMESTAMP: lambda: lambda raw: _instant(int.from_bytes(raw, "little"), ""),
        FIELD_TYPE.ENUM: lambda: _enum_converter(_members(meta["enum_values"][1:], server)),
        FIELD_TYPE.SET: lambda: _set_converter(_members(meta["set_values"], server)),
        FIELD_TYPE.BIT: lambda: _bits if meta["bits"] > 1 else (lambda raw: raw != b"\0"),
        FIELD_TYPE.JSON: lambda: json_text,
    }
    return makers[kind]()


def _text_converter(column: BinlogColumn, server: ServerColumn) -> Callable[[bytes], Value]:
    if column.charset == "binary" or server.charset is None:
        if server.data_type == "binary":
            length = int(column.meta["max_length"])
            return lambda raw: raw.ljust(length, b"\0")
        return lambda raw: raw
    decode = text_decoder(column.charset or server.charset)
    if server.data_type == "char":
        return lambda raw: decode(raw).rstrip(" ")
    return decode


def text_decoder(charset: str) -> Callable[[bytes], str]:
    """Text of a character set as the server itself would convert it.

    Raises:
        SourceError: we do not know that character set.
    """
    if charset == "latin1":
        table = "".join(_windows_1252(code) for code in range(256))
        return lambda raw: _by_table(raw, table)
    if charset not in CODECS:
        raise SourceError(
            f'a column has character set "{charset}", which we cannot read',
            hint=f"Convert the column to one of {', '.join(CODECS)}.",
        )
    codec = CODECS[charset]
    return lambda raw: raw.decode(codec)


def _by_table(raw: bytes, table: str) -> str:
    return raw.decode("ascii") if raw.isascii() else "".join([table[code] for code in raw])


def _windows_1252(code: int) -> str:
    """The server's latin1 is Windows-1252, with its five gaps as control characters."""
    try:
        return bytes([code]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(code)


def _members(binlog: Sequence[str], server: ServerColumn) -> Sequence[str]:
    """ENUM and SET members: as declared, unless the type has been given others since."""
    return server.members if len(server.members) == len(binlog) else binlog


def _enum_converter(members: Sequence[str]) -> Callable[[bytes], Value]:
    values = ("", *members)
    return lambda raw: values[int.from_bytes(raw, "little")]


def _set_converter(members: Sequence[str]) -> Callable[[bytes], Value]:
    def convert(raw: bytes) -> str:
        mask = int.from_bytes(raw, "little")
        return ",".join(member for bit, member in enumerate(members) if mask >> bit & 1)

    return convert


def _bits(raw: bytes) -> bytes:
    return raw[::-1]


def _decimal_converter(precision: int, scale: int) -> Callable[[bytes], Value]:
    integral = _decimal_groups(precision - scale, partial_first=True)
    fraction = _decimal_groups(scale, partial_first=False)

    def convert(raw: bytes) -> str:
        negative = not raw[0] & 0x80
        content = bytes([raw[0] ^ 0x80]) + raw[1:]
        if negative:
            content = bytes(byte ^ 0xFF for byte in content)
        at, texts = 0, []
        for size, digits in (*integral, *fraction):
            texts.append(f"{int.from_bytes(content[at : at + size], 'big'):0{digits}d}")
            at += size
        whole = "".join(texts[: len(integral)]).lstrip("0") or "0"
        rest = "".join(texts[len(integral) :])
        return ("-" if negative else "") + whole + (f".{rest}" if rest else "")

    return convert


def _decimal_groups(digits: int, *, partial_first: bool) -> list[tuple[int, int]]:
    """(bytes, digits) of each group."""
    whole = [(4, _DECIMAL_GROUP)] * (digits // _DECIMAL_GROUP)
    partial = digits % _DECIMAL_GROUP
    rest = [(_DECIMAL_BYTES[partial], partial)] if partial else []
    return rest + whole if partial_first else whole + rest


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


def _instant_converter(digits: int) -> Callable[[bytes], Value]:
    def convert(raw: bytes) -> str | None:
        seconds = int.from_bytes(raw[:4], "big")
        fraction = int.from_bytes(raw[4:], "big") * _FRACTION_UNIT_US[len(raw) - 4]
        return _instant(seconds, f".{fraction:06d}"[: digits + 1] if digits else "")

    return convert


def _instant(seconds: int, fraction: str) -> str | None:
    if seconds == 0:
        return None  # 0000-00-00 00:00:00; the type begins one second later
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def wire_rows(decoded: Sequence[Row | None], table: CapturedTable) -> pa.RecordBatch:
    """Decoded rows as wire columns (BYTES as binary); None gives a row of NULLs."""
    width = len(table.columns)
    nothing: Row = [None] * width
    full = [nothing if row is None else row for row in decoded]
    columns = list(zip(*full, strict=True)) if full else [()] * width
    arrays = [
        pa.array(values, pa.binary() if kind is Encoding.BYTES else WIRE_TYPES[kind])
        for values, kind in zip(columns, (c.encoding for c in table.captured), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in table.captured])
