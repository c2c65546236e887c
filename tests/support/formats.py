"""Rows of every SQL type for the formats of topics, and what writes and reads them."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from joins.kernels.formats.decoders import decoder_of
from joins.kernels.formats.encoders import encoder_of
from joins.kernels.formats.parsed import ParsedRows
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName, arrow_type

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.text(
    "\",;\\|#\n\r\t 'a0", max_size=6
)
_MICROS = st.integers(-2_208_988_800_000_000, 7_258_118_399_999_999)  # from 1900 to 2199

ALL_TYPES = tuple(
    Field(f"c{at}", kind)
    for at, kind in enumerate(
        (
            *(SqlType(name) for name in TypeName if name.value in ("BOOLEAN", "TINYINT", "INT")),
            *(SqlType(name) for name in (TypeName.SMALLINT, TypeName.BIGINT, TypeName.FLOAT)),
            *(SqlType(name) for name in (TypeName.DOUBLE, TypeName.STRING, TypeName.BYTES)),
            SqlType(TypeName.DECIMAL, 38, 10),
            SqlType(TypeName.DATE),
            SqlType(TypeName.TIME, 3),
            SqlType(TypeName.TIMESTAMP, 6),
            SqlType(TypeName.TIMESTAMP_LTZ, 3),
        )
    )
)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def values(kind: SqlType, text: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Any]:
    """Values of a scalar type that Arrow takes, without NULL."""
    digits = kind.precision
    floats = st.floats(allow_nan=False, allow_infinity=False)
    of_type: dict[TypeName, st.SearchStrategy[Any]] = {
        TypeName.BOOLEAN: st.booleans(),
        TypeName.TINYINT: integers(8),
        TypeName.SMALLINT: integers(16),
        TypeName.INT: integers(32),
        TypeName.BIGINT: integers(64),
        TypeName.FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
        TypeName.DOUBLE: floats,
        TypeName.STRING: text,
        TypeName.BYTES: st.binary(max_size=5),
        TypeName.DATE: st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1)),
        TypeName.TIME: st.integers(0, 86_399 * 10**digits).map(
            lambda count: count * 10 ** (6 - digits)
        ),
    }
    if kind.name is TypeName.DECIMAL:
        top = 10**kind.precision - 1
        return st.integers(-top, top).map(lambda number: Decimal(f"{number}E-{kind.scale}"))
    if kind.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        unit = 10 ** (6 - digits)
        return _MICROS.map(lambda at: at // unit * unit)
    return of_type[kind.name]


def batches(
    fields: tuple[Field, ...], text: st.SearchStrategy[str] = TEXTS
) -> st.SearchStrategy[pa.RecordBatch]:
    rows = st.lists(
        st.tuples(
            *(
                values(item.type, text) | st.none() if item.nullable else values(item.type, text)
                for item in fields
            )
        ),
        max_size=5,
    )
    return rows.map(lambda made: batch_of(fields, made))


def batch_of(fields: tuple[Field, ...], rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [
        pa.array(column, arrow_type(item.type))
        for column, item in zip(columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[item.name for item in fields])


def form(name: KafkaFormat, **options: str) -> RecordFormat:
    given = ((key.replace("__", ".").replace("_", "-"), text) for key, text in options.items())
    return RecordFormat(name, tuple(given))


def written(how: RecordFormat, fields: tuple[Field, ...], rows: pa.RecordBatch) -> pa.Array:
    return encoder_of(how, fields).encode(rows, None).cast(pa.binary())


def read(
    how: RecordFormat, fields: tuple[Field, ...], texts: pa.Array | list[bytes | None], *names: str
) -> ParsedRows:
    chosen = names or tuple(item.name for item in fields)
    return decoder_of(how, fields, chosen).parse(pa.array(texts, pa.binary()))


def bad(parsed: ParsedRows) -> list[tuple[int, str]]:
    return [(each.row, each.reason) for each in parsed.bad]
