"""Bad objects read once more as Flink's `json.ignore-parse-errors` has it.

A member that does not fit its column is NULL, at any depth; a text that is no object gives no row.
What fits is for the reader of `joins.kernels.json.rows` to say, here too.
"""

import json
from collections.abc import Sequence

import numpy as np
import orjson
import pyarrow as pa

from joins.kernels.formats.parsed import ParsedRows
from joins.kernels.json.rows import parse

_MEMBER = "v"


def without_errors(values: pa.Array, parsed: ParsedRows) -> ParsedRows:
    """`parsed`, which came of `values`, with rows in place of bad ones where that can be."""
    if not parsed.bad:
        return parsed
    schema = parsed.batch.schema
    rows = np.array([each.row for each in parsed.bad], np.int64)
    texts = [_mended(value, schema) for value in values.take(pa.array(rows)).to_pylist()]
    again = parse(pa.array(texts, pa.binary()), schema)
    index = np.concatenate([parsed.row_index.to_numpy(), rows[again.row_index.to_numpy()]])
    order = pa.array(np.argsort(index))
    whole = pa.Table.from_batches([parsed.batch, again.batch]).combine_chunks()
    batch = pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in whole.columns], schema=schema
    )
    return ParsedRows(batch.take(order), pa.array(index).take(order), ())


def _mended(value: bytes | None, schema: pa.Schema) -> bytes | None:
    """The object without what does not fit; None if it is none."""
    if value is None:
        return None
    try:
        members = _DECODER.decode(value.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    known = [item for item in schema if item.name in members]
    return orjson.dumps({item.name: _fitting([members[item.name]], item)[0] for item in known})


def _refused(constant: str) -> object:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(
    parse_int=orjson.Fragment, parse_float=orjson.Fragment, parse_constant=_refused
)


def _fitting(values: Sequence[object], item: pa.Field) -> list[object]:
    """The values, NULL in place of what does not fit the column `item`."""
    texts = pa.array([_alone(value) for value in values], pa.binary())
    parsed = parse(texts, pa.schema([item.with_name(_MEMBER)]))
    fitting = list(values)
    for each in parsed.bad:
        fitting[each.row] = _parts_fitting(values[each.row], item.type)
    return fitting


def _alone(value: object) -> bytes:
    try:
        return orjson.dumps({_MEMBER: value})
    except TypeError:  # half a character, or nested too deeply
        return b""


def _parts_fitting(value: object, kind: pa.DataType) -> object:
    """A nested value without the parts that do not fit; None if it is not of this kind itself."""
    if pa.types.is_struct(kind) and isinstance(value, dict):
        known = [item for item in kind if item.name in value]
        return {item.name: _fitting([value[item.name]], item)[0] for item in known}
    if pa.types.is_map(kind) and isinstance(value, dict):
        names = [name for name in value if _alone(name)]
        values = _fitting([value[name] for name in names], kind.item_field)
        return dict(zip(names, values, strict=True))
    if pa.types.is_list(kind) and isinstance(value, list):
        return _fitting(value, kind.value_field)
    return None
