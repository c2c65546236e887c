"""Texts of cells as values of SQL types, as Flink's CSV reads them.

A text that does not fit its type is marked and never NULL: BOOLEAN is `true` or `false`, a number
has no more digits behind its point than its DECIMAL.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import (
    Checked,
    Mask,
    from_base64,
    from_text,
    mask_of,
    null_where,
    time_from_text,
    try_each,
)
from joins.kernels.expressions.nested import Parts, assembled
from joins.plan.types import SqlType, TypeName, arrow_type

_NOT_FINITE: Mapping[str, float] = {
    "NaN": np.nan,
    "Infinity": np.inf,
    "+Infinity": np.inf,
    "-Infinity": -np.inf,
}
_UNTRIMMED = (TypeName.STRING, TypeName.BYTES)


def typed(text: pa.StringArray, kind: SqlType, elements: str, null: str | None) -> Checked:
    """The values of cells, of which those that are NULL are so already.

    Args:
        text: the cells.
        kind: their type.
        elements: what stands between the parts of an ARRAY or a ROW.
        null: the text of a part that is NULL, None for no text.
    """
    if kind.name is TypeName.ARRAY:
        return _array(text, kind, elements, null)
    if kind.name is TypeName.ROW:
        return _row(text, kind, elements, null)
    return _scalar(text if kind.name in _UNTRIMMED else pc.ascii_trim_whitespace(text), kind)


def _scalar(text: pa.StringArray, kind: SqlType) -> Checked:
    to = arrow_type(kind)
    if kind.name is TypeName.STRING:
        return Checked(text, np.zeros(len(text), np.bool_))
    if kind.name is TypeName.BYTES:
        return from_base64(text)
    if kind.name is TypeName.BOOLEAN:
        return _boolean(text)
    if kind.name is TypeName.TIME:
        return time_from_text(text)
    if pa.types.is_floating(to):
        return _floating(text, to)
    if pa.types.is_decimal(to):
        return _decimal(text, to)
    return from_text(text, to)


def _boolean(text: pa.StringArray) -> Checked:
    lower = pc.utf8_lower(text)
    is_true = pc.equal(lower, "true")
    known = pc.or_(is_true, pc.equal(lower, "false"))
    failed = ~mask_of(known) & mask_of(text.is_valid())
    return Checked(null_where(is_true, failed), failed)


def _floating(text: pa.StringArray, to: pa.DataType) -> Checked:
    """A finite number that no such type holds does not fit."""
    names = pa.array(list(_NOT_FINITE), pa.string())
    named = mask_of(pc.is_in(text, names)) if len(text) else np.zeros(0, np.bool_)
    read = from_text(null_where(text, named), to)
    beyond = read.failed | mask_of(pc.is_inf(read.values))
    values = null_where(read.values, beyond)
    if named.any():
        of_name = pc.index_in(text, names)
        values = pc.coalesce(values, pa.array(list(_NOT_FINITE.values()), to).take(of_name))
    return Checked(values, beyond)


def _decimal(text: pa.StringArray, to: pa.DataType) -> Checked:
    read = from_text(text, pa.decimal256(76, 38))
    fitting = try_each(read.values, lambda part: part.cast(to), to)
    return Checked(fitting.values, read.failed | fitting.failed)


def _split(text: pa.StringArray, elements: str) -> tuple[pa.StringArray, np.ndarray]:
    """The parts of all cells, and how many each has; an empty cell has none."""
    is_empty = mask_of(pc.equal(text, "")) | mask_of(text.is_null())
    lists = pc.split_pattern(null_where(text, is_empty), elements)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return lists.flatten(), lengths.astype(np.int64)


def _parts(text: pa.StringArray, kind: SqlType, null: str | None) -> Checked:
    named = text if null is None else null_where(text, mask_of(pc.equal(text, null)))
    return typed(named, kind, "", None)


def _array(text: pa.StringArray, kind: SqlType, elements: str, null: str | None) -> Checked:
    texts, lengths = _split(text, elements)
    read = _parts(texts, kind.members[0].type, null)
    parts = Parts([read.values], lengths)
    failed = parts.of_rows(read.failed, len(text))
    missing = mask_of(text.is_null()) | failed
    return Checked(assembled(parts, arrow_type(kind), missing), failed)


def _row(text: pa.StringArray, kind: SqlType, elements: str, null: str | None) -> Checked:
    texts, lengths = _split(text, elements)
    count = len(kind.members)
    whole = lengths == count
    failed: Mask = ~whole & mask_of(text.is_valid())
    firsts = (np.cumsum(lengths) - lengths)[whole]
    places = np.full(len(text), -1, np.int64)
    children = []
    for at, member in enumerate(kind.members):
        places[whole] = firsts + at
        own = texts.take(pa.array(places, mask=~whole))
        read = _parts(own, member.type, null)
        failed |= read.failed
        children.append(read.values)
    missing = mask_of(text.is_null()) | failed
    return Checked(assembled(Parts(children, None), arrow_type(kind), missing), failed)
