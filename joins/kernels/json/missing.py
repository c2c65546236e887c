"""Members that an object does not have, as Flink's `json.fail-on-missing-field` looks for them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.expressions.nested import parts_of
from joins.kernels.formats.parsed import BadRow, ParsedRows
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName


def without_missing(values: pa.Array, parsed: ParsedRows, fields: Sequence[Field]) -> ParsedRows:
    """`parsed`, which came of `values`, where an object without one of `fields` is bad.

    Only objects with a NULL are looked at: the others have all.
    """
    suspects = np.zeros(parsed.batch.num_rows, np.bool_)
    for column in parsed.batch.columns:
        suspects |= _with_null(column)
    rows = np.flatnonzero(suspects)
    index = parsed.row_index.to_numpy()
    bad = list(parsed.bad)
    keep = np.ones(len(index), np.bool_)
    members = [Member(item.name, item.type) for item in fields]
    texts = values.take(pa.array(index[rows])).to_pylist()
    for row, text in zip(rows.tolist(), texts, strict=True):
        name = _missing_of_row(_object(text), members, "")
        if name is not None:
            keep[row] = False
            bad.append(BadRow(int(index[row]), f'field "{name}" is missing'))
    if keep.all():
        return parsed
    chosen = pa.array(keep)
    bad.sort(key=lambda each: each.row)
    return ParsedRows(parsed.batch.filter(chosen), parsed.row_index.filter(chosen), tuple(bad))


def _with_null(column: pa.Array) -> Mask:
    """The rows with a NULL at any depth."""
    rows = mask_of(column.is_null())
    if pa.types.is_nested(column.type):
        parts = parts_of(column)
        for child in parts.children:
            rows |= parts.of_rows(_with_null(child), len(column))
    return rows


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:  # of a number that only our reader holds
        value = json.loads(text)
    assert isinstance(value, dict), "it has given a row"
    return value


def _missing_of_row(value: Mapping[str, Any], members: Sequence[Member], before: str) -> str | None:
    """The first of `members` that an object does not have, in it or in its parts."""
    for member in members:
        name = before + member.name
        if member.name not in value:
            return name
        inner = _missing(value[member.name], member.type, name)
        if inner is not None:
            return inner
    return None


def _missing(value: Any, kind: SqlType, name: str) -> str | None:  # noqa: ANN401
    if value is None or not kind.is_nested:
        return None
    if kind.name is TypeName.ROW:
        return _missing_of_row(value, kind.members, f"{name}.")
    is_map = kind.name is TypeName.MAP
    place = f"{name}[].value" if is_map else f"{name}[]"
    elements = value.values() if is_map else value
    missing = (_missing(element, kind.members[-1].type, place) for element in elements)
    return next((each for each in missing if each is not None), None)
