"""Rows as CSV, one text each, without a line break behind it; `joins.kernels.csv.rows` reads them.

A cell is in quotes where it needs them. Two texts stand for two values each, as in Flink: that of
`null-literal`, and the empty one where there is no such literal; they are read as the first of
NULL and a text, and as the second.
"""

import re
from collections.abc import Sequence
from decimal import MAX_EMAX, Context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.csv.dialect import CsvDialect
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.time_casts import shown_time
from joins.kernels.json.encode import base64_text, decimal_text, join_text
from joins.plan.types import SqlType, TypeName

_OF_NUMBERS = frozenset("+-.:/= ")
"""What cells of other types than STRING have beside letters and digits."""
_DIGITS = Context(prec=76, Emax=MAX_EMAX)


def encode_rows(
    rows: pa.RecordBatch, kinds: Sequence[SqlType], dialect: CsvDialect
) -> pa.StringArray:
    is_alone = rows.num_columns == 1
    cells = [
        _cells(column, kind, dialect, is_alone=is_alone)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pc.binary_join_element_wise(*cells, dialect.delimiter)


def _cells(column: pa.Array, kind: SqlType, dialect: CsvDialect, *, is_alone: bool) -> pa.Array:
    text = _texts(column, kind, dialect)
    marks = {dialect.delimiter, dialect.quote, dialect.escape}
    if kind.is_nested or kind.name is TypeName.STRING or marks & _OF_NUMBERS:
        text = _protected(text, dialect, is_alone=is_alone)
    return pc.fill_null(text, dialect.null or "")


def _texts(column: pa.Array, kind: SqlType, dialect: CsvDialect) -> pa.StringArray:
    """What is in the cells; NULL of a NULL."""
    if kind.is_nested:
        return _nested(column, kind, dialect)
    if kind.name is TypeName.TIME:
        return shown_time(column, kind.precision)
    if kind.name is TypeName.BYTES:
        return base64_text(column)
    if kind.name is TypeName.DECIMAL:
        return _scientific(column) if dialect.is_scientific else decimal_text(column)
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        text = pc.replace_substring_regex(text, r"^(-?)inf$", r"\1Infinity")
        text = pc.replace_substring_regex(text, r"^-?nan$", "NaN")
    return text


def _scientific(column: pa.Array) -> pa.StringArray:
    texts = [None if v is None else str(v.normalize(_DIGITS)) for v in column.to_pylist()]
    return pa.array(texts, pa.string())


def _nested(column: pa.Array, kind: SqlType, dialect: CsvDialect) -> pa.StringArray:
    """The elements of an ARRAY, the fields of a ROW, one behind the other."""
    parts = parts_of(column)
    nothing = dialect.null or ""
    texts = [
        pc.fill_null(_texts(child, member.type, dialect), nothing)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    if parts.lengths is None:
        joined = pc.binary_join_element_wise(*texts, dialect.elements)
    else:
        ends = pa.array([0, *np.cumsum(parts.lengths)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(ends, texts[0]), dialect.elements)
    return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))


def _protected(text: pa.StringArray, dialect: CsvDialect, *, is_alone: bool) -> pa.StringArray:
    """The cells with quotes or escapes, where they need some."""
    marks = (dialect.delimiter, dialect.quote, dialect.escape)
    special = re.escape("".join(mark for mark in marks if mark is not None))
    needs = mask_of(pc.match_substring_regex(text, rf"^#|[{special}\n\r]"))
    if is_alone:
        needs |= mask_of(pc.equal(text, ""))
    if not needs.any():
        return text
    chosen = pa.array(needs)
    cells = text.filter(chosen)
    changed = _escaped(cells, dialect) if dialect.quote is None else _quoted(cells, dialect)
    return pc.replace_with_mask(text, chosen, changed)


def _quoted(cells: pa.StringArray, dialect: CsvDialect) -> pa.StringArray:
    quote = dialect.quote
    assert quote is not None, "cells are quoted"
    if dialect.escape is not None:
        cells = pc.replace_substring(cells, dialect.escape, dialect.escape * 2)
    cells = pc.replace_substring(cells, quote, (dialect.escape or quote) + quote)
    return join_text([pa.scalar(quote), cells, pa.scalar(quote)])


def _escaped(cells: pa.StringArray, dialect: CsvDialect) -> pa.StringArray:
    """Without quotes; the statement is refused where a text could need an escape and has none."""
    escape = dialect.escape
    if escape is None:
        return cells
    for mark, meant in ((escape, escape), (dialect.delimiter,) * 2, ("\n", "n"), ("\r", "r")):
        cells = pc.replace_substring(cells, mark, escape + meant)
    first = escape.replace("\\", "\\\\")
    return pc.replace_substring_regex(cells, "^#", f"{first}#")
