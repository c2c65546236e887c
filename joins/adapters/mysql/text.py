"""Values as the server's text protocol gives them, as wire columns."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.mysql.table import MysqlColumn
from joins.kernels.expressions.casts import mask_of, try_each
from joins.kernels.json.wire import WIRE_TYPES, Encoding
from joins.plan.types import quoted

_YEAR_ZERO = r"^0000-"
_TIME = re.compile(
    r"^(?P<sign>-?)(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)\.?(?P<fraction>\d*)$"
)
_SECOND_US = 1_000_000


def select_expression(column: MysqlColumn) -> str:
    """What to SELECT for `column`, so that its text has every digit that the binlog has."""
    name = quoted(column.server.name)
    if column.captured.encoding is Encoding.FLOAT:
        return f"{name} * 1e0"  # a FLOAT's own text has six digits
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
    return _from_text(raw.cast(pa.string()), encoding)


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
    """Dates and times as numbers; what is no day of the calendar is NULL."""
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
