"""Arrow rows as JSON objects: one text array a column, joined element by element."""

import base64
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NULL = "null"
_TO_ESCAPE = r'["\\\x00-\x1f]'
_CONTROL = r"[\x00-\x1f]"
_CONTROL_ESCAPES = {chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)}


def encode_objects(batch: pa.RecordBatch) -> pa.StringArray:
    """One JSON object a row, without blanks, members in column order; NULL is the member `null`.

    Integers, floats (shortest text that reads back as the same binary value) and decimals (plain,
    with all digits of the scale) are numbers; NaN and infinities are `null`; binary is base64.
    Dates and timestamps are SQL text, `2026-11-21` and `2026-11-21 06:07:08.000009`; instants end
    in `Z`.
    """
    if batch.num_columns == 0:
        return pa.array(["{}"] * batch.num_rows, pa.string())
    pieces: list[pa.Array | pa.Scalar] = []
    for position, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        opening = "{" if position == 0 else ","
        pieces.append(pa.scalar(f"{opening}{json.dumps(name, ensure_ascii=False)}:"))
        pieces.append(encode_values(column))
    pieces.append(pa.scalar("}"))
    return join_text(pieces)


def join_text(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.StringArray:
    """The texts of each row in one; scalars stand in every row, NULL makes the row NULL."""
    return pc.binary_join_element_wise(*pieces, pa.scalar(""))


def encode_values(column: pa.Array) -> pa.StringArray:
    """The JSON text of each value of a scalar column."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = _quoted(_escaped(column.cast(pa.string())))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        text = _quoted(_base64(column))
    elif pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        text = finite.cast(pa.string())
    elif pa.types.is_decimal(kind):
        text = decimal_text(column)
    elif pa.types.is_temporal(kind):
        text = _quoted(column.cast(pa.string()))
    else:
        text = column.cast(pa.string())
    return text if text.null_count == 0 else pc.fill_null(text, _NULL)


def _quoted(text: pa.StringArray) -> pa.StringArray:
    return join_text([pa.scalar('"'), text, pa.scalar('"')])


def _escaped(text: pa.StringArray) -> pa.StringArray:
    """`text` with JSON's escapes; only the values that need one are rewritten."""
    needs = pc.fill_null(pc.match_substring_regex(text, _TO_ESCAPE), False)
    if not pc.any(needs, min_count=0).as_py():
        return text
    rewritten = text.filter(needs)
    rewritten = pc.replace_substring(rewritten, "\\", "\\\\")
    rewritten = pc.replace_substring(rewritten, '"', '\\"')
    for character in _present_controls(rewritten):
        rewritten = pc.replace_substring(rewritten, character, _CONTROL_ESCAPES[character])
    return pc.replace_with_mask(text, needs, rewritten)


def _present_controls(text: pa.StringArray) -> list[str]:
    having = text.filter(pc.match_substring_regex(text, _CONTROL))
    if len(having) == 0:
        return []
    compact = pa.concat_arrays([having])
    seen = np.unique(np.frombuffer(compact.buffers()[2], dtype=np.uint8))
    return [character for character in _CONTROL_ESCAPES if ord(character) in seen]


def _base64(column: pa.Array) -> pa.StringArray:
    encoded = [
        None if v is None else base64.b64encode(v).decode("ascii") for v in column.to_pylist()
    ]
    return pa.array(encoded, pa.string())


def decimal_text(column: pa.Array) -> pa.StringArray:
    """Decimals without an exponent, which Arrow's cast uses for small values."""
    text = column.cast(pa.string())
    scientific = pc.fill_null(pc.match_substring(text, "E"), False)
    if not pc.any(scientific, min_count=0).as_py():
        return text
    plain = pa.array([format(v, "f") for v in column.filter(scientific).to_pylist()], pa.string())
    return pc.replace_with_mask(text, scientific, plain)
