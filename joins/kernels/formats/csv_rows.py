"""CSV as columns: records of a topic, one row each, and the rows of a file, as Flink reads them.

A cell that does not fit its type makes its row bad, never NULL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

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
    sound,
    time_from_text,
    try_each,
)
from joins.kernels.expressions.nested import Parts, assembled
from joins.kernels.formats.csv_scan import (
    BEHIND_QUOTE,
    OPEN_ESCAPE,
    OPEN_QUOTE,
    PLAIN,
    Bytes,
    Cells,
    CsvMarks,
    Rows,
    read_rows,
    split_rows,
    unescape,
)
from joins.kernels.formats.parsed import BadRow, CsvDialect, ParsedRows, batch_of
from joins.kernels.json.each import decimal_of
from joins.kernels.texts import bytes_of, text_array, texts_at
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName, arrow_type

_NOT_FINITE: Mapping[str, float] = {
    "NaN": np.nan,
    "Infinity": np.inf,
    "+Infinity": np.inf,
    "-Infinity": -np.inf,
}
_MARK = b"\xef\xbb\xbf"
_UNTRIMMED = (TypeName.STRING, TypeName.BYTES)
_SHOWN_CHARACTERS = 60
_WRONG = {
    OPEN_QUOTE: "a quoted cell does not end",
    BEHIND_QUOTE: "there is something between a quoted cell and the next one",
    OPEN_ESCAPE: "it ends with an escape character",
}


def typed(text: pa.StringArray, kind: SqlType, elements: str, null: str | None) -> Checked:
    """Cells as values of `kind`; cells for NULL are NULL already.

    `elements` separates the parts of an ARRAY or a ROW; `null` is the text of a NULL part.
    """
    if kind.name is TypeName.ARRAY:
        return _array(text, kind, elements, null)
    if kind.name is TypeName.ROW:
        return _row(text, kind, elements, null)
    return _scalar(text if kind.name in _UNTRIMMED else pc.ascii_trim_whitespace(text), kind)


def _scalar(text: pa.StringArray, kind: SqlType) -> Checked:
    to = arrow_type(kind)
    if kind.name is TypeName.STRING:
        return sound(text)
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
    """A finite number beyond the type's range fails."""
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
    failed = read.failed | fitting.failed
    if not failed.any():
        return fitting
    values, rounded = fitting.values.to_pylist(), decimal_of(to)
    for row in np.flatnonzero(failed).tolist():
        values[row] = rounded(text[row].as_py())
        failed[row] = values[row] is None
    return Checked(pa.array(values, to), failed)


def _split(text: pa.StringArray, elements: str) -> tuple[pa.StringArray, np.ndarray]:
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


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Reads rows of CSV; `columns` are declared in the order of the cells.

    With `ignores_errors` (Flink's `csv.ignore-parse-errors`) bad or missing cells are NULL, and
    values that are no row are skipped.
    """

    columns: tuple[Field, ...]
    read: tuple[str, ...]
    dialect: CsvDialect = field(default_factory=CsvDialect)
    ignores_errors: bool = False

    def parse(self, values: pa.Array) -> ParsedRows:
        """The rows of `values` (binary, large binary or string, nullable), one each."""
        if pa.types.is_string(values.type):
            values = values.cast(pa.binary())
        data, bounds = bytes_of(pc.fill_null(values, b"") if values.null_count else values)
        rows = _RowsOfTexts.of(self, data, bounds)
        for row in np.flatnonzero(mask_of(values.is_null())).tolist():
            rows.reasons[row] = "the value is null"
        rows.look_at_whole()
        return rows.parsed()

    def field_of(self, name: str) -> Field:
        return next(item for item in self.columns if item.name == name)


@dataclass(slots=True)
class _RowsOfTexts:
    """Texts being read; rows in `passed_over` are neither good nor bad."""

    reader: CsvRows
    data: Bytes
    bounds: Rows
    cells: Cells
    reasons: dict[int, str]
    passed_over: Mask

    @classmethod
    def of(cls, reader: CsvRows, data: Bytes, bounds: Rows) -> Self:
        shape = (len(reader.read), len(bounds) - 1)
        cells = Cells.of(*shape)
        slots = np.full(len(reader.columns), -1, np.int64)
        for at, item in enumerate(reader.columns):
            if item.name in reader.read:
                slots[at] = reader.read.index(item.name)
        each = (bounds[:-1].copy(), bounds[1:].copy())
        _skip_marks(data, *each)
        read_rows(data, each, marks_of(reader.dialect), slots, cells)
        return cls(reader, data, bounds, cells, {}, np.zeros(shape[1], np.bool_))

    def look_at_whole(self) -> None:
        counts, declared, ends = self.cells.counts, len(self.reader.columns), self.bounds[1:]
        if self.reader.dialect.has_comments:
            self.passed_over = (counts == 0) & (self.bounds[:-1] < ends)
        is_short = (counts > 0) & (counts < declared) & (not self.reader.ignores_errors)
        for row in np.flatnonzero(is_short | (counts > declared)).tolist():
            said = "1 cell" if counts[row] == 1 else f"{counts[row]} cells"
            self.reasons.setdefault(row, f"it has {said}, expected {declared}")
        for row in np.flatnonzero((counts <= 0) & ~self.passed_over).tolist():
            self.reasons.setdefault(row, _WRONG.get(int(counts[row]), "the value is empty"))
        for row in np.flatnonzero(self.cells.stops < ends).tolist():
            self.reasons.setdefault(row, "it has more than one row")

    def parsed(self) -> ParsedRows:
        reader = self.reader
        is_bad = self.passed_over.copy()
        is_bad[list(self.reasons)] = True
        arrays = [self._column(slot, is_bad) for slot in range(len(reader.read))]
        schema = pa.schema([(n, arrow_type(reader.field_of(n).type)) for n in reader.read])
        keep = ~self.passed_over
        keep[list(self.reasons)] = False
        batch = batch_of(arrays, schema, len(keep))
        batch = batch if keep.all() else batch.filter(pa.array(keep))
        reasons = {} if reader.ignores_errors else self.reasons
        bad = tuple(BadRow(row, reasons[row]) for row in sorted(reasons))
        return ParsedRows(batch, pa.array(np.flatnonzero(keep)), bad)

    def _column(self, slot: int, is_bad: Mask) -> pa.Array:
        reader, dialect = self.reader, self.reader.dialect
        item = reader.field_of(reader.read[slot])
        texts = null_where(self._texts(slot), is_bad)
        decoded = try_each(texts, lambda part: part.cast(pa.string()), pa.string())
        text = decoded.values
        if dialect.null is not None:
            text = null_where(text, mask_of(pc.equal(text, dialect.null)))
        checked = typed(text, item.type, dialect.elements, dialect.null)
        if reader.ignores_errors:
            return checked.values
        for row in np.flatnonzero(decoded.failed).tolist():
            self.reasons.setdefault(row, f'field "{item.name}" is not UTF-8')
        for row in np.flatnonzero(checked.failed).tolist():
            shown = text[row].as_py()[:_SHOWN_CHARACTERS]
            reason = f'field "{item.name}": "{shown}" is not {_named(item.type)}'
            self.reasons.setdefault(row, reason)
        return checked.values

    def _texts(self, slot: int) -> pa.Array:
        firsts, lasts, kinds = (each[slot] for each in self.cells[:3])
        there = firsts >= 0
        if (kinds[there] == PLAIN).all():
            return texts_at(self.data, firsts, lasts)
        out = np.empty(int((lasts - firsts)[there].sum()), np.uint8)
        offsets = np.zeros(len(firsts) + 1, np.int64)
        unescape(self.data, (firsts, lasts, kinds), marks_of(self.reader.dialect), out, offsets)
        return text_array(out[: int(offsets[-1])], offsets, there, pa.binary())


def _skip_marks(data: Bytes, firsts: Rows, lasts: Rows) -> None:
    """Begin texts behind their byte order mark, as Flink's parser does."""
    rows = np.flatnonzero(lasts - firsts >= len(_MARK))
    for place, byte in enumerate(_MARK):
        rows = rows[data[firsts[rows] + place] == byte]
    firsts[rows] += len(_MARK)


class CsvFormatError(ValueError):
    """A file that is invalid from some row on, which the message numbers from 1."""


def rows_of_file(data: bytes | pa.Buffer, dialect: CsvDialect) -> pa.LargeBinaryArray:
    """Rows for `CsvRows.parse`, without comments and empty lines; raises CsvFormatError."""
    content = np.frombuffer(data, np.uint8)
    bounds = np.zeros(len(content) + 2, np.int64)
    count = split_rows(content, marks_of(dialect), bounds)
    if count < 0:
        raise CsvFormatError(f"row {-count} has a quoted cell that does not end, or text behind it")
    # comments and empty lines between two rows belong to the first one
    buffers = [None, pa.py_buffer(bounds[: count + 1]), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)


def marks_of(dialect: CsvDialect) -> CsvMarks:
    return CsvMarks(
        ord(dialect.delimiter),
        -1 if dialect.quote is None else ord(dialect.quote),
        -1 if dialect.escape is None else ord(dialect.escape),
        dialect.has_comments,
    )


def _named(kind: SqlType) -> str:
    name = str(kind)
    if kind.name is TypeName.BYTES:
        return "base64"
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
