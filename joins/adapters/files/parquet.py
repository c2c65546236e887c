"""Parquet files as wire columns: declared columns found by name, no value changed on the way.

What a column may be declared as follows from the rules for Delta tables, whose files are these.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.adapters.delta.types import (
    Item,
    complaints,
    declarable,
    in_declared_shape,
    matching,
    place_of,
)
from joins.adapters.files.faults import bad_value, readable
from joins.kernels.expressions.casts import mask_of, try_each
from joins.kernels.json.wire import to_wire
from joins.plan.errors import DefinitionError, of_columns
from joins.plan.plan import Field
from joins.plan.types import arrow_type

_BATCH_ROWS = 20_000
_SHOWN = 300
_NAMES: tuple[tuple[pa.DataType, str], ...] = (
    (pa.int8(), "byte"),
    (pa.int16(), "short"),
    (pa.int32(), "integer"),
    (pa.int64(), "long"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.bool_(), "boolean"),
    (pa.string(), "string"),
    (pa.binary(), "binary"),
    (pa.date32(), "date"),
    (pa.time64("us"), "time"),
)


def check_parquet(file: Path, fields: Sequence[Field]) -> int:
    """See that the columns of a file may be declared as `fields`; how many rows it has.

    Raises:
        SourceError: it is no file of Parquet.
        DefinitionError: it has other columns than are declared.
    """
    with readable(file, "Parquet"), pq.ParquetFile(file) as opened:
        _matched(file, opened.schema_arrow, fields)
        return int(opened.metadata.num_rows)


def parquet_rows(file: Path, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of a file as wire columns, in their order.

    Raises:
        SourceUnavailableError: the file is gone.
        SourceError: it is no file of Parquet.
        DefinitionError: it has other columns than are declared, or NULL where none may be.
    """
    with (
        readable(file, "Parquet"),
        pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened,
    ):
        items = _matched(file, opened.schema_arrow, fields)
        names = [item["name"] for item in items.values()]
        first = 0
        for batch in opened.iter_batches(_BATCH_ROWS, columns=names):
            columns = []
            for field in fields:
                values, item = batch.column(items[field.name]["name"]), items[field.name]
                columns.append(_column(file, field, item, (first, values)))
            yield pa.RecordBatch.from_arrays(columns, names=[f.name for f in fields])
            first += batch.num_rows


def _column(file: Path, field: Field, item: Item, rows: tuple[int, pa.Array]) -> pa.Array:
    """The column's values from row `first` on as its wire column."""
    first, values = rows
    if pa.types.is_null(values.type):
        values = values.cast(arrow_type(field.type))
    plain = values.cast(_plain(values.type))
    shape = in_declared_shape(plain, field.type, place_of(item, field.type, "none").parts)
    wire = to_wire(shape.slice(0, 0), field.type)
    made = try_each(shape, lambda part: to_wire(part, field.type), wire.type)
    bad = made.failed if field.nullable else made.failed | mask_of(made.values.is_null())
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        value = values[row].as_py()
        what = "it is NULL" if value is None else f"{str(value)[:60]} does not fit {field.type}"
        raise bad_value(file, f"row {first + row + 1}", f'column "{field.name}": {what}')
    return made.values


def _matched(file: Path, schema: pa.Schema, fields: Sequence[Field]) -> dict[str, Item]:
    """Each declared column with the file's, by case if need be."""
    items = {item.name: _item(item) for item in schema}
    matches = {field.name: matching(field.name, items) for field in fields}
    missing = [name for name, item in matches.items() if item is None]
    if missing:
        raise DefinitionError(
            f'file "{file}" has no column "{missing[0]}"', hint=of_columns(missing[0], items)
        )
    there = {name: item for name, item in matches.items() if item is not None}
    for field in fields:
        item = there[field.name]
        if item["type"] == "null":
            continue
        why = "; ".join(complaints(item["name"], item["type"], field.type))[:_SHOWN]
        if why:
            text = declarable(item["type"])
            raise DefinitionError(
                f'file "{file}" does not fit its declaration: {why}',
                hint=f"Declare {field.name} {text}."[:_SHOWN]
                if text is not None
                else "Leave the column out of the declaration.",
            )
    return there


def _item(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _kind(_plain(field.type)), "metadata": {}}


def _kind(plain: pa.DataType) -> str | Mapping[str, Any]:
    """A type as a Delta table's schema names it."""
    if pa.types.is_struct(plain):
        return {"type": "struct", "fields": [_item(part) for part in plain]}
    if pa.types.is_list(plain):
        return {"type": "array", "elementType": _kind(plain.value_type)}
    if pa.types.is_map(plain):
        key, value = _kind(plain.key_type), _kind(plain.item_type)
        return {"type": "map", "keyType": key, "valueType": value}
    if pa.types.is_timestamp(plain):
        return "timestamp_ntz" if plain.tz is None else "timestamp"
    if pa.types.is_decimal(plain):
        return f"decimal({plain.precision},{plain.scale})"
    return str(dict(_NAMES).get(plain, plain))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that has the same values, of those that files have several of."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([part.with_type(_plain(part.type)) for part in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return _plain_scalar(kind)


def _plain_scalar(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_unsigned_integer(kind):
        signed = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        return signed.get(kind.bit_width, pa.decimal128(20, 0))
    if types.is_time(kind):
        return pa.time64("us")
    return pa.float32() if types.is_float16(kind) else kind
