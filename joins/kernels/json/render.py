"""Rows as text, as Flink's print connector shows them: `+I[1, 2, F]`."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import signs
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.time_casts import shown_time
from joins.plan.types import SqlType, TypeName

_BREAKS = {"\n": r"\n", "\r": r"\r"}


def with_text_times(rows: pa.RecordBatch, kinds: Sequence[SqlType]) -> pa.RecordBatch:
    """`rows` with TIME columns, which Arrow carries as microseconds, as `HH:MM:SS[.f]` text."""
    columns = list(rows.columns)
    for place, kind in enumerate(kinds):
        if kind.name is TypeName.TIME:
            columns[place] = shown_time(columns[place], kind.precision)
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        return _nested_text(column)
    if pa.types.is_binary(column.type):
        shown = [None if v is None else f"x'{v.hex()}'" for v in column.to_pylist()]
        return pa.array(shown, pa.string())
    return column.cast(pa.string())


def _nested_text(column: pa.Array) -> pa.Array:
    """A ROW as `+I[…]`, an ARRAY as `[…]`, a MAP as `{key=value, …}`."""
    parts = parts_of(column)
    texts = [pc.fill_null(_text(child), "null") for child in parts.children]
    if parts.lengths is None:
        opening, inner, closing = "+I[", pc.binary_join_element_wise(*texts, ", "), "]"
    else:
        is_map = pa.types.is_map(column.type)
        members = pc.binary_join_element_wise(*texts, "=") if is_map else texts[0]
        ends = pa.array([0, *np.cumsum(parts.lengths)], pa.int32())
        inner = pc.binary_join(pa.ListArray.from_arrays(ends, members), ", ")
        opening, closing = ("{", "}") if is_map else ("[", "]")
    whole = pc.binary_join_element_wise(opening, inner, closing, "")
    return pc.if_else(column.is_valid(), whole, pa.scalar(None, pa.string()))


def render_objects(rows: pa.RecordBatch, kinds: pa.Array | None = None) -> pa.Array:
    """One line a row: its kind and a JSON object, such as `+I{"id": "1", "name": null}`.

    Values are the texts of `render_rows`, which cannot be told apart there. `kinds` as there.
    """
    names = rows.schema.names
    texts = [_text(column).to_pylist() for column in rows.columns]
    signed = ["+I"] * rows.num_rows if kinds is None else signs(kinds).to_pylist()
    objects = (
        json.dumps({name: column[row] for name, column in zip(names, texts, strict=True)})
        for row in range(rows.num_rows)
    )
    lines = [f"{sign}{shown}" for sign, shown in zip(signed, objects, strict=True)]
    return pa.array(lines, pa.string())


def render_rows(rows: pa.RecordBatch, identifier: str, kinds: pa.Array | None = None) -> pa.Array:
    r"""One line a row: `+I[…]`, with `identifier> ` before it if given; NULL is `null`.

    A line break in a value is `\n` or `\r`, or what follows it would pass for a row or a log entry.
    `kinds` are the kinds of the rows; without them all are `+I`.
    """
    if rows.num_rows == 0:
        return pa.array([], pa.string())
    columns = [pc.fill_null(_text(column), "null") for column in rows.columns]
    inner = (
        pc.binary_join_element_wise(*columns, ", ") if columns else pa.array([""] * rows.num_rows)
    )
    prefix = f"{identifier}> " if identifier else ""
    sign = "+I" if kinds is None else signs(kinds)
    lines = pc.binary_join_element_wise(prefix, sign, "[", inner, "]", "")
    for character, shown in _BREAKS.items():
        lines = pc.replace_substring(lines, character, shown)
    return lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
