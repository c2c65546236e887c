"""Arrow rows as text: JSON objects, and lines as Flink's print connector shows them."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import signs
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.time_casts import shown_time
from joins.plan.types import SqlType, TypeName

_BREAKS = {"\n": r"\n", "\r": r"\r"}
_NULL = "null"
_TO_ESCAPE = r'["\\\x00-\x1f]'
_CONTROL = r"[\x00-\x1f]"
_CONTROL_ESCAPES = {chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)}


def with_text_times(rows: pa.RecordBatch, kinds: Sequence[SqlType]) -> pa.RecordBatch:
    """TIME columns (microseconds in Arrow) as `HH:MM:SS[.f]` text."""
    columns = list(rows.columns)
    for place, kind in enumerate(kinds):
        if kind.name is TypeName.TIME:
            columns[place] = shown_time(columns[place], kind.precision)
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _shown(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        return _nested_shown(column)
    if pa.types.is_binary(column.type):
        shown = [None if v is None else f"x'{v.hex()}'" for v in column.to_pylist()]
        return pa.array(shown, pa.string())
    return column.cast(pa.string())


def _nested_shown(column: pa.Array) -> pa.Array:
    parts = parts_of(column)
    texts = [pc.fill_null(_shown(child), "null") for child in parts.children]
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
    """A line a row: its kind and a JSON object of texts, such as `+I{"id": "1", "name": null}`."""
    names = rows.schema.names
    texts = [_shown(column).to_pylist() for column in rows.columns]
    signed = ["+I"] * rows.num_rows if kinds is None else signs(kinds).to_pylist()
    objects = (
        json.dumps({name: column[row] for name, column in zip(names, texts, strict=True)})
        for row in range(rows.num_rows)
    )
    lines = [f"{sign}{shown}" for sign, shown in zip(signed, objects, strict=True)]
    return pa.array(lines, pa.string())


def render_rows(rows: pa.RecordBatch, identifier: str, kinds: pa.Array | None = None) -> pa.Array:
    r"""A line a row: `+I[…]`, behind `identifier> ` if given; NULL is `null`.

    Line breaks in values are written as `\n` and `\r`: what follows one would look like another row
    or log entry. Without `kinds` all rows are `+I`.
    """
    if rows.num_rows == 0:
        return pa.array([], pa.string())
    columns = [pc.fill_null(_shown(column), "null") for column in rows.columns]
    inner = (
        pc.binary_join_element_wise(*columns, ", ") if columns else pa.array([""] * rows.num_rows)
    )
    prefix = f"{identifier}> " if identifier else ""
    sign = "+I" if kinds is None else signs(kinds)
    lines = pc.binary_join_element_wise(prefix, sign, "[", inner, "]", "")
    for character, shown in _BREAKS.items():
        lines = pc.replace_substring(lines, character, shown)
    return lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """Style of values: writer of floats, `T` in timestamps, and members that are NULL."""

    floats: Callable[[pa.Array], pa.StringArray] | None = None
    is_iso: bool = False
    omits_nulls: bool = False


_USUAL = JsonStyle()


def encode_objects(
    batch: pa.RecordBatch, before: str = "", behind: str = "", style: JsonStyle = _USUAL
) -> pa.StringArray:
    """A JSON object a row between `before` and `behind`, without blanks, in column order.

    Integers, floats (shortest text that reads back as the same binary value) and decimals (plain,
    with all digits of the scale) are numbers; NaN and infinities are `null`; binary is base64.
    Dates and timestamps are SQL text, `2026-11-21` and `2026-11-21 06:07:08.000009`; instants end
    in `Z`. Structs and maps are objects, lists arrays.
    """
    if batch.num_columns == 0:
        return pa.array([f"{before}{{}}{behind}"] * batch.num_rows, pa.string())
    members = _members(batch.schema.names, batch.columns, style)
    return join_text(_merged([before, *members, behind]))


def _members(
    names: Sequence[str], columns: Sequence[pa.Array], style: JsonStyle
) -> list[str | pa.Array]:
    quoted = [f"{json.dumps(name, ensure_ascii=False)}:" for name in names]
    if style.omits_nulls:
        return ["{", _present_members(quoted, columns, style), "}"]
    pieces: list[str | pa.Array] = []
    for position, (name, column) in enumerate(zip(quoted, columns, strict=True)):
        pieces += [f"{',' if position else '{'}{name}", *_pieces(column, style)]
    return [*pieces, "}"]


def _present_members(
    quoted: Sequence[str], columns: Sequence[pa.Array], style: JsonStyle
) -> pa.StringArray:
    texts: list[pa.Array] = []
    for name, column in zip(quoted, columns, strict=True):
        text = join_text(_merged([f",{name}", *_pieces(column, style)]))
        texts.append(pc.if_else(column.is_valid(), text, ""))
    return pc.utf8_slice_codeunits(join_text(texts), 1)


def join_text(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.StringArray:
    return pc.binary_join_element_wise(*pieces, pa.scalar(""))


def encode_values(column: pa.Array, style: JsonStyle = _USUAL) -> pa.StringArray:
    pieces = _pieces(column, style)
    return pieces[0] if len(pieces) == 1 else join_text(_merged(pieces))


def _merged(pieces: Sequence[str | pa.Array]) -> list[pa.Array | pa.Scalar]:
    merged: list[pa.Array | pa.Scalar] = []
    literal = ""
    for piece in pieces:
        if isinstance(piece, str):
            literal += piece
            continue
        merged += [pa.scalar(literal), piece] if literal else [piece]
        literal = ""
    return [*merged, pa.scalar(literal)] if literal else merged


def _pieces(column: pa.Array, style: JsonStyle) -> list[str | pa.Array]:
    if pa.types.is_nested(column.type):
        return _nested(column, style)
    if style.floats is not None and pa.types.is_floating(column.type):
        return [style.floats(column)]
    text, is_quoted = _text(column)
    if style.is_iso and pa.types.is_timestamp(column.type):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
    if not is_quoted:
        return [text if text.null_count == 0 else pc.fill_null(text, _NULL)]
    if text.null_count == 0:
        return ['"', text, '"']
    quoted = join_text([pa.scalar('"'), text, pa.scalar('"')])
    return [pc.fill_null(quoted, _NULL)]


def _nested(column: pa.Array, style: JsonStyle) -> list[str | pa.Array]:
    parts = parts_of(column)
    if parts.lengths is None:
        pieces = _members([item.name for item in column.type], parts.children, style)
    else:
        texts = [encode_values(child, style) for child in parts.children]
        is_map = pa.types.is_map(column.type)
        members = join_text(_merged([texts[0], ":", texts[1]])) if is_map else texts[0]
        ends = pa.array([0, *np.cumsum(parts.lengths)], pa.int32())
        inner = pc.binary_join(pa.ListArray.from_arrays(ends, members), ",")
        pieces = ["{", inner, "}"] if is_map else ["[", inner, "]"]
    if column.null_count == 0:
        return pieces
    return [pc.if_else(column.is_valid(), join_text(_merged(pieces)), _NULL)]


def _text(column: pa.Array) -> tuple[pa.StringArray, bool]:
    """The text of each value, and true if it needs quotes."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _escaped(column.cast(pa.string())), True
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64_text(column), True
    if pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        return finite.cast(pa.string()), False
    if pa.types.is_decimal(kind):
        return decimal_text(column), False
    return column.cast(pa.string()), pa.types.is_temporal(kind)


def _escaped(text: pa.StringArray) -> pa.StringArray:
    if not _has_bytes_to_escape(text):
        return text
    needs = pc.fill_null(pc.match_substring_regex(text, _TO_ESCAPE), False)
    if not pc.any(needs, min_count=0).as_py():
        return text
    rewritten = text.filter(needs)
    rewritten = pc.replace_substring(rewritten, "\\", "\\\\")
    rewritten = pc.replace_substring(rewritten, '"', '\\"')
    for character in _present_controls(rewritten):
        rewritten = pc.replace_substring(rewritten, character, _CONTROL_ESCAPES[character])
    return pc.replace_with_mask(text, needs, rewritten)


def _has_bytes_to_escape(text: pa.StringArray) -> bool:
    """True if any byte may need an escape, including bytes of NULL values."""
    _, offset_buffer, data_buffer = text.buffers()
    if offset_buffer is None or data_buffer is None:
        return False
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)
    first, last = offsets[text.offset], offsets[text.offset + len(text)]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    return len(data) > 0 and bool(
        data.min() < ord(" ") or (data == ord('"')).any() or (data == ord("\\")).any()
    )


def _present_controls(text: pa.StringArray) -> list[str]:
    having = text.filter(pc.match_substring_regex(text, _CONTROL))
    if len(having) == 0:
        return []
    compact = pa.concat_arrays([having])
    seen = np.unique(np.frombuffer(compact.buffers()[2], dtype=np.uint8))
    return [character for character in _CONTROL_ESCAPES if ord(character) in seen]


def base64_text(column: pa.Array) -> pa.StringArray:
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
