"""Values as JSON that loses nothing, the same texts as values again, and rows to compare.

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

Rows are compared by one text a row, sorted by the record that it comes from: equal values of equal
types have equal texts and different ones have different texts, so that two sets of rows are the
same when their digests are.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, from_text
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.nested import parts_of
from joins.kernels.json.encode import JsonStyle, decimal_text, encode_values, join_text
from joins.plan.types import SqlType, TypeName, arrow_type

_PLACE = ("partition", "offset")
_SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("row", pa.string())])
Place = tuple[int | None, int | None]
_TIME = re.compile(r"(-?)(\d{2,3}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two sets of rows in one record.

    `kind` is `missing` (`actual` is None), `extra` (`expected` is None) or `changed`. `partition`
    is None if the rows have none.
    """

    kind: str
    partition: int | None
    offset: int | None
    expected: str | None
    actual: str | None


@dataclass(frozen=True, slots=True)
class CanonicalRows:
    """A multiset of rows: `[partition: int32, offset: int64, row: string]`, sorted."""

    table: pa.Table

    @classmethod
    def of(cls, parts: Iterable[tuple[pa.RecordBatch, pa.RecordBatch | None]]) -> Self:
        tables = []
        for rows, coordinates in parts:
            if coordinates is None:
                count = rows.num_rows
                places = [pa.nulls(count, pa.int32()), pa.nulls(count, pa.int64())]
            else:
                places = [
                    coordinates.column(name).cast(_SCHEMA.field(name).type) for name in _PLACE
                ]
            tables.append(pa.table([*places, row_texts(rows)], schema=_SCHEMA))
        whole = pa.concat_tables([_SCHEMA.empty_table(), *tables])
        return cls(whole.sort_by([(name, "ascending") for name in _SCHEMA.names]))

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        whole = pa.concat_tables([_SCHEMA.empty_table(), *(part.table for part in parts)])
        return cls(whole.sort_by([(name, "ascending") for name in _SCHEMA.names]))

    @classmethod
    def of_texts(cls, rows: Iterable[tuple[int | None, int | None, str]]) -> Self:
        columns = dict(zip(_SCHEMA.names, zip(*rows, strict=True), strict=False))
        table = pa.table(columns, schema=_SCHEMA) if columns else _SCHEMA.empty_table()
        return cls(table.sort_by([(name, "ascending") for name in _SCHEMA.names]))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def without_places(self) -> Self:
        count = len(self)
        columns = [pa.nulls(count, pa.int32()), pa.nulls(count, pa.int64())]
        table = pa.table([*columns, self.table.column("row")], schema=_SCHEMA)
        return type(self)(table.sort_by("row"))

    def outside(self, places: set[tuple[int, int]]) -> Self:
        if not places:
            return self
        keep = [place not in places for place in self.places()]
        return type(self)(self.table.filter(pa.array(keep, pa.bool_())))

    def places(self) -> list[Place]:
        columns = (self.table.column(name).to_pylist() for name in ("partition", "offset"))
        return list(zip(*columns, strict=True))

    def digest(self) -> str:
        lines = pc.binary_join_element_wise(
            *(
                pc.fill_null(self.table.column(name).cast(pa.string()), "")
                for name in _SCHEMA.names
            ),
            "\t",
        )
        summed = hashlib.sha256()
        for chunk in lines.chunks:
            for line in chunk.to_pylist():
                summed.update(line.encode())
                summed.update(b"\n")
        return summed.hexdigest()

    def counted(self) -> Counter[tuple[int | None, int | None, str]]:
        columns = (self.table.column(name).to_pylist() for name in _SCHEMA.names)
        return Counter(zip(*columns, strict=True))


def differences(expected: CanonicalRows, actual: CanonicalRows) -> list[Difference]:
    if expected.table.equals(actual.table):
        return []
    missing = _by_place(expected.counted() - actual.counted())
    extra = _by_place(actual.counted() - expected.counted())
    unlike: list[Difference] = []
    for place in sorted({*missing, *extra}, key=lambda p: (p[0] is None, p[0] or 0, p[1] or 0)):
        unlike += _paired(place, missing.get(place, []), extra.get(place, []))
    return unlike


def row_texts(rows: pa.RecordBatch) -> pa.Array:
    """A lossless JSON object a row, members in column order; NaN and infinities are strings."""
    if rows.num_columns == 0:
        return pa.array(["{}"] * rows.num_rows, pa.string())
    names = encode_values(pa.array(rows.schema.names, pa.string())).to_pylist()
    pieces: list[pa.Array | pa.Scalar] = []
    for at, (name, column) in enumerate(zip(names, rows.columns, strict=True)):
        pieces.append(pa.scalar(f"{'{' if at == 0 else ','}{name}:"))
        pieces.append(encode_values(column, JsonStyle(floats=_exact)))
    return join_text([*pieces, pa.scalar("}")])


def _exact(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    quoted = join_text([pa.scalar('"'), text, pa.scalar('"')])
    return pc.fill_null(pc.if_else(pc.is_finite(column), text, quoted), "null")


def _by_place(rows: Counter[tuple[int | None, int | None, str]]) -> dict[Place, list[str]]:
    rows_of: dict[Place, list[str]] = {}
    for (partition, offset, row), count in rows.items():
        rows_of.setdefault((partition, offset), []).extend([row] * count)
    return rows_of


def _paired(place: Place, missing: list[str], extra: list[str]) -> list[Difference]:
    pairs = min(len(missing), len(extra)) if place[1] is not None else 0
    changed = zip(missing[:pairs], extra[:pairs], strict=True)
    return [
        *(Difference("changed", *place, expected, actual) for expected, actual in changed),
        *(Difference("missing", *place, row, None) for row in missing[pairs:]),
        *(Difference("extra", *place, None, row) for row in extra[pairs:]),
    ]


def json_values(column: pa.Array, kind: SqlType | None = None) -> list[object]:
    """The values of `column`; a TIME needs `kind`, as it is int64 like BIGINT."""
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
    """Reads texts of `json_values`; marks texts that do not fit."""
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
