"""Values as JSON that loses nothing, and the same texts as values again.

| SQL type | JSON |
|---|---|
| BOOLEAN, TINYINT … BIGINT | `true`, number with all its digits |
| FLOAT, DOUBLE | shortest number that reads back the same; `"NaN"`, `"Infinity"`, `"-Infinity"` |
| DECIMAL | string, plain, with all digits of the scale |
| STRING | string |
| BYTES | base64 string |
| DATE | `"2026-11-21"` |
| TIME | `"06:07:08.000009"`; outside of a day with its sign and hours, `"-838:59:59.000000"` |
| TIMESTAMP | `"2026-11-21T06:07:08.000009"`: it has no zone |
| TIMESTAMP_LTZ | `"2026-11-21T06:07:08.000009Z"`: it is an instant |
| ROW, MAP; ARRAY | object; array |
"""

import base64
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, from_text
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.nested import parts_of
from joins.kernels.json.encode import decimal_text
from joins.plan.types import SqlType, TypeName, arrow_type

_TIME = re.compile(r"(-?)(\d{2,3}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_MICROS = 1_000_000


def json_values(column: pa.Array, kind: SqlType | None = None) -> list[object]:
    """The values of `column`; `kind` tells TIME from BIGINT, both are int64."""
    if kind is not None and kind.name is TypeName.TIME:
        return [None if micros is None else _time_text(micros) for micros in column.to_pylist()]
    arrow = column.type
    if pa.types.is_nested(arrow):
        return _nested(column)
    if pa.types.is_floating(arrow):
        texts = column.cast(pa.string()).to_pylist()  # of a FLOAT they are shorter than its double
        return [None if text is None else _float(text) for text in texts]
    if pa.types.is_decimal(arrow):
        return list(decimal_text(column).to_pylist())
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow):
        values = column.to_pylist()
        return [None if value is None else base64.b64encode(value).decode() for value in values]
    if pa.types.is_timestamp(arrow):
        text = column.cast(pa.timestamp("us", arrow.tz)).cast(pa.string())
        return list(pc.replace_substring(text, " ", "T", max_replacements=1).to_pylist())
    if pa.types.is_temporal(arrow):
        return list(column.cast(pa.string()).to_pylist())
    return list(column.to_pylist())


def _nested(column: pa.Array) -> list[object]:
    parts = parts_of(column)
    children = [json_values(child) for child in parts.children]
    members: list[object] = []
    valid = column.is_valid().to_pylist()
    if parts.lengths is None:
        names = [item.name for item in column.type]
        for is_there, *values in zip(valid, *children, strict=True):
            members.append(dict(zip(names, values, strict=True)) if is_there else None)
        return members
    is_map = pa.types.is_map(column.type)
    for is_there, start, length in zip(valid, parts.starts, parts.lengths, strict=True):
        cut = [child[start : start + length] for child in children]
        made = dict(zip(*cut, strict=True)) if is_map else cut[0]
        members.append(made if is_there else None)
    return members


def typed_values(texts: Sequence[str | None], kind: SqlType) -> Checked:
    """The values that `json_values` shows as `texts`; what cannot be one is marked."""
    column = pa.array(texts, pa.string())
    if kind.name is TypeName.TIME:
        return rowwise(lambda text: _micros(str(text)), [column], arrow_type(kind))
    return from_text(column, arrow_type(kind))


def _float(text: str) -> object:
    named = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text.lower())
    return float(text) if named is None else named


def _time_text(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), _MICROS)
    minutes, second = divmod(seconds, 60)
    sign = "-" if micros < 0 else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction:06}"


def _micros(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4] or 0) > 59:
        raise ValueError(text)
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    micros = seconds * _MICROS + int((match[5] or "").ljust(6, "0"))
    return -micros if match[1] else micros
