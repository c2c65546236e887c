"""The server's text protocol: the rows of a result as wire columns.

PyMySQL creates an object per packet, row and value, most of a snapshot's cost. It only logs in,
sends the statement and reads the columns; this module reads the packets that follow. Source:
MySQL's documentation, "Text Resultset" and "MySQL Packets".
"""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pymysql
from numpy.typing import NDArray
from pymysql.constants import CR

from joins.adapters.mysql.charsets import utf8_text
from joins.adapters.mysql.connection import SafeConnection
from joins.adapters.mysql.table import MysqlColumn, in_zone
from joins.kernels.compiled import compiled, one_at_a_time
from joins.kernels.expressions.casts import mask_of, try_each
from joins.kernels.json.wire import WIRE_TYPES, Encoding
from joins.kernels.texts import texts_at
from joins.plan.types import quoted

_PIECE_ROWS = 10_000
_PIECE_BYTES = 4 << 20
_LARGEST = 0xFFFFFF  # a packet of this size continues in the next one
_HEADER = 4
_SEQUENCE = 3  # its offset in the header
_ERROR, _NULL, _EOF = 0xFF, 0xFB, 0xFE
_EOF_BYTES = 9  # a value that begins as an EOF is in a longer packet
_MORE, _FULL, _LAST, _ASTRAY, _DAMAGED = range(5)
_AT, _ROW, _NEXT = range(3)
_YEAR_ZERO = r"^0000-"
_TIME = re.compile(
    r"^(?P<sign>-?)(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)\.?(?P<fraction>\d*)$"
)
_SECOND_US = 1_000_000


Read = Callable[[memoryview], int]
"""Puts available bytes into the view; returns their number, at least 1."""


def result_columns(
    connection: SafeConnection, statement: str, columns: int
) -> Iterator[list[pa.BinaryArray]]:
    """The rows of `statement`, with `columns` columns, in pieces.

    A result that is not read to its end ends the connection. PyMySQL's errors may come after some
    rows.
    """
    sequence = connection.begin_rows(statement)
    is_whole = False
    try:
        yield from row_pieces(connection.read_some, sequence, columns)
        is_whole = True
    finally:
        if not is_whole:
            connection.cut()


def row_pieces(read: Read, sequence: int, columns: int) -> Iterator[list[pa.BinaryArray]]:
    """The rows after the column descriptions, a few MiB at a time, from packet `sequence` on."""
    data = np.empty(_PIECE_BYTES, np.uint8)
    starts, ends = np.empty((2, columns, _PIECE_ROWS), np.int64)
    cursor = np.array([0, 0, sequence], np.int64)
    filled, came = 0, _MORE
    while came in (_MORE, _FULL):
        came = _find(data[:filled], cursor, starts, ends)
        if came == _MORE and filled < len(data):
            filled += read(data.data[filled:])
            continue
        at, rows = int(cursor[_AT]), int(cursor[_ROW])
        if rows:
            yield [texts_at(data, starts[c, :rows], ends[c, :rows]) for c in range(columns)]
        elif came == _MORE:  # not even one row has room
            data = np.concatenate((data, np.empty_like(data)))
        data[: filled - at] = data[at:filled]
        filled -= at
        cursor[[_AT, _ROW]] = 0
    _require_end(came, bytes(data[:filled]))


def _require_end(came: int, packet: bytes) -> None:
    if came == _ASTRAY and packet[_SEQUENCE] == 0:  # a server sends this when it shuts down
        lost = "Lost connection to MySQL server during query"
        raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, lost)
    if came != _LAST:
        raise pymysql.err.InternalError("packets of a result are damaged")
    if packet[_HEADER] == _ERROR:
        pymysql.err.raise_mysql_exception(packet[_HEADER:])


@compiled
def _packet(data: NDArray[np.uint8], at: int, sequence: int) -> tuple[int, int, int]:
    """Join the parts of a packet once all have arrived.

    Returns the end of its payload, the position behind it, and the next sequence number; instead of
    the first `-_MORE` or `-_ASTRAY`.
    """
    behind, length, following = at, _LARGEST, sequence
    while length == _LARGEST:
        if behind + _HEADER > len(data):
            return -_MORE, at, sequence
        length = data[behind] | data[behind + 1] << 8 | data[behind + 2] << 16
        if data[behind + _SEQUENCE] != following:
            return -_ASTRAY, at, sequence
        following = (following + 1) % 256
        behind += _HEADER + length
    if behind > len(data):
        return -_MORE, at, sequence
    end = at + _HEADER + _LARGEST
    if end >= behind:
        return behind, behind, following
    source = end + _HEADER
    while source < behind:
        for i in range(source, min(source + _LARGEST, behind)):
            data[end] = data[i]
            end += 1
        source += _LARGEST + _HEADER
    return end, behind, following


@compiled
def _length(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Length of the value at a position, -1 for NULL, and where its bytes begin; -1 if invalid."""
    if at >= end:
        return 0, -1
    first = int(data[at])
    if first < _NULL:
        return first, at + 1
    if first == _NULL:
        return -1, at + 1
    size = 2 if first == 0xFC else 3 if first == 0xFD else 8
    if first == _ERROR or at + size >= end:
        return 0, -1
    length = 0
    for i in range(size):
        length |= int(data[at + 1 + i]) << 8 * i
    return length, at + 1 + size if length >= 0 else -1


@compiled
def _find(
    data: NDArray[np.uint8],
    cursor: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Locate the values of complete rows in `data`; returns what follows them.

    `cursor`, which is updated, has the next packet's position, the next row and the next sequence
    number. `starts` and `ends` get positions by column and row, negative for NULL.
    """
    at, row, sequence = cursor
    columns, rows = starts.shape
    came = _FULL
    while row < rows:
        end, behind, following = _packet(data, at, sequence)
        place = at + _HEADER
        if end <= 0:
            came = -end
            break
        is_short = end - place < _EOF_BYTES
        if end > place and (data[place] == _ERROR or (data[place] == _EOF and is_short)):
            came = _LAST
            break
        for column in range(columns):
            length, place = _length(data, place, end)
            if place < 0 or length > end - place:
                return _DAMAGED
            starts[column, row] = place if length >= 0 else -1
            place += max(length, 0)
            ends[column, row] = place
        if place != end:
            return _DAMAGED
        at, row, sequence = behind, row + 1, following
    cursor[_AT], cursor[_ROW], cursor[_NEXT] = at, row, sequence
    return came


def warm_up() -> None:
    """Compile, or load the node's compiled code."""
    packets = b"\x02\0\0\0\x01a\x01\0\0\x01\xfe"

    def read(view: memoryview) -> int:
        view[: len(packets)] = packets
        return len(packets)

    with one_at_a_time():
        list(row_pieces(read, 0, 1))


# Values
# --------------------------------------------------------------------------------------------------


def select_expression(column: MysqlColumn) -> str:
    """The SELECT expression of `column` whose text has every digit that the binlog has."""
    name = quoted(column.server.name)
    if column.captured.encoding in (Encoding.FLOAT, Encoding.DOUBLE):
        return f"{name} * 1e0"  # a FLOAT's text has six digits, that of DOUBLE(9,4) four
    if column.captured.encoding is Encoding.DECIMAL and column.server.zerofill:
        return f"CAST({name} AS DECIMAL({column.server.precision}, {column.server.scale}))"
    return name


def wire_column(raw: pa.BinaryArray, column: MysqlColumn) -> pa.Array:
    """The text values of one column as its wire column (BYTES as binary)."""
    encoding = column.captured.encoding
    if encoding is Encoding.BYTES:
        return pc.binary_reverse(raw) if column.server.data_type == "bit" else raw
    if encoding is Encoding.BOOLEAN:
        return pc.not_equal(raw, pa.scalar(b"\0"))
    values = _from_text(_texts(raw), encoding)
    return in_zone(values, column.zone) if encoding is Encoding.TIMESTAMP else values


def _texts(raw: pa.BinaryArray) -> pa.StringArray:
    """As from the binlog, a surrogate becomes U+FFFD."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else utf8_text(value) for value in raw.to_pylist()]
        return pa.array(texts, pa.string())


def _from_text(text: pa.StringArray, encoding: Encoding) -> pa.Array:
    if encoding in (Encoding.INTEGER, Encoding.UNSIGNED, Encoding.FLOAT, Encoding.DOUBLE):
        return text.cast(WIRE_TYPES[encoding])
    if encoding is Encoding.TIME:
        return _time_us(text)
    if encoding is Encoding.DATE:
        return _dated(text, pa.date32(), pa.int32()).cast(pa.int64())
    if encoding is Encoding.DATETIME:
        return _dated(text, pa.timestamp("us"), pa.int64())
    if encoding is Encoding.TIMESTAMP:
        return _instant(text)
    return text


def _dated(text: pa.StringArray, kind: pa.DataType, number: pa.DataType) -> pa.Array:
    checked = try_each(_without_year_zero(text), lambda part: part.cast(kind), kind)
    return checked.values.cast(number)


def _without_year_zero(text: pa.StringArray) -> pa.StringArray:
    zero = pc.fill_null(pc.match_substring_regex(text, _YEAR_ZERO), False)
    if not pc.any(zero, min_count=0).as_py():
        return text
    return pc.if_else(zero, pa.scalar(None, pa.string()), text)


def _instant(text: pa.StringArray) -> pa.StringArray:
    """`2026-11-21 06:07:08.9` as `2026-11-21T06:07:08.9Z`."""
    days = pc.utf8_slice_codeunits(text, 0, 10)
    rest = pc.utf8_slice_codeunits(text, 11)
    iso = pc.binary_join_element_wise(days, pa.scalar("T"), rest, pa.scalar("Z"), pa.scalar(""))
    return _without_year_zero(iso)


def _time_us(text: pa.StringArray) -> pa.Int64Array:
    parts = pc.extract_regex(text, _TIME.pattern)
    hours, minutes, seconds = (
        pc.fill_null(pc.struct_field(parts, name), "0").cast(pa.int64()).to_numpy()
        for name in ("hours", "minutes", "seconds")
    )
    digits = pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, "fraction"), ""), 6, "0")
    micros = ((hours * 60 + minutes) * 60 + seconds) * _SECOND_US
    micros = micros + digits.cast(pa.int64()).to_numpy()
    negative = mask_of(pc.equal(pc.struct_field(parts, "sign"), "-"))
    return pa.array(np.where(negative, -micros, micros), pa.int64(), mask=mask_of(text.is_null()))
