"""The format `raw`: a key or a value is the value of one column, as bytes; NULL is a NULL.

A number has the bytes of its type in the order of `raw.endianness`, a BOOLEAN is a byte 0 or 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, mask_of, null_where, sound, try_each
from joins.kernels.formats.parsed import BadRow, ParsedRows, batch_of
from joins.kernels.texts import bytes_of, text_array
from joins.plan.formats import CHARSETS, RecordFormat
from joins.plan.plan import Field
from joins.plan.types import TypeName, arrow_type

_NUMBERS = {
    TypeName.BOOLEAN: "u1",
    TypeName.TINYINT: "i1",
    TypeName.SMALLINT: "i2",
    TypeName.INT: "i4",
    TypeName.BIGINT: "i8",
    TypeName.FLOAT: "f4",
    TypeName.DOUBLE: "f8",
}


@dataclass(frozen=True, slots=True)
class RawForm:
    """The column and the encoding of its values; if `read` is false only the rows are read."""

    column: Field
    charset: str = "utf-8"
    is_little: bool = False
    read: bool = True

    @classmethod
    def of(cls, form: RecordFormat, column: Field, *, read: bool = True) -> "RawForm":
        charset = CHARSETS[form.text("charset", "UTF-8")]
        return cls(column, charset, form.text("endianness") == "little-endian", read)

    def parse(self, values: pa.Array) -> ParsedRows:
        kind = self.column.type.name
        checked = self._texts(values) if kind in (TypeName.STRING, TypeName.BYTES) else None
        checked = checked or self._numbers(values)
        rows = np.flatnonzero(checked.failed)
        bad = tuple(BadRow(int(row), self._reason(values[int(row)].as_py())) for row in rows)
        good = np.flatnonzero(~checked.failed)
        columns = [checked.values.take(pa.array(good))] if self.read else []
        schema = pa.schema([(self.column.name, column.type) for column in columns])
        batch = batch_of(columns, schema, len(good))
        return ParsedRows(batch, pa.array(good), bad)

    def encode(self, rows: pa.RecordBatch, _: pa.Array | None) -> pa.BinaryArray:
        column, kind = rows.column(0), self.column.type.name
        if kind is TypeName.BYTES:
            return column
        if kind is TypeName.STRING:
            if self.charset == "utf-8":
                return column.cast(pa.binary())
            texts = [None if v is None else v.encode(self.charset) for v in column.to_pylist()]
            return pa.array(texts, pa.binary())
        filled = pc.fill_null(column, pa.scalar(0).cast(column.type))
        numbers = np.asarray(filled.to_numpy(zero_copy_only=False)).astype(self._numpy)
        offsets = np.arange(len(column) + 1, dtype=np.int64) * self._numpy.itemsize
        data = np.frombuffer(numbers.tobytes(), np.uint8)
        return text_array(data, offsets, mask_of(column.is_valid()), pa.binary())

    @property
    def _numpy(self) -> np.dtype[Any]:
        order = "<" if self.is_little else ">"
        return np.dtype(order + _NUMBERS[self.column.type.name])

    def _texts(self, values: pa.Array) -> Checked:
        whole = values.cast(pa.binary())
        if self.column.type.name is TypeName.BYTES:
            return sound(whole)
        if self.charset == "utf-8":
            return try_each(whole, lambda part: part.cast(pa.string()), pa.string())
        failed = np.zeros(len(whole), np.bool_)
        texts: list[str | None] = []
        for row, value in enumerate(whole.to_pylist()):
            try:
                texts.append(None if value is None else value.decode(self.charset))
            except UnicodeDecodeError:
                texts.append(None)
                failed[row] = True
        return Checked(pa.array(texts, pa.string()), failed)

    def _numbers(self, values: pa.Array) -> Checked:
        whole, size = values.cast(pa.binary()), self._numpy.itemsize
        failed = mask_of(pc.not_equal(pc.binary_length(whole), size))
        fitting = pc.fill_null(null_where(whole, failed), bytes(size))
        data, bounds = bytes_of(fitting)
        numbers = data[bounds[0] : bounds[-1]].view(self._numpy)
        if self.column.type.name is TypeName.BOOLEAN:
            failed = failed | (numbers > 1)
            array = pa.array(numbers == 1)
        else:
            array = pa.array(numbers.astype(self._numpy.newbyteorder("=")))
        missing = failed | mask_of(whole.is_null())
        return Checked(null_where(array.cast(arrow_type(self.column.type)), missing), failed)

    def _reason(self, value: bytes) -> str:
        kind = self.column.type
        if kind.name is TypeName.STRING:
            return f'field "{self.column.name}" is not {self.charset.upper()}'
        size = self._numpy.itemsize
        if len(value) == size:
            return f'field "{self.column.name}": a BOOLEAN is a byte 0 or 1, not {value[0]}'
        return f'field "{self.column.name}": it has {len(value)} bytes, expected {size} of {kind}'
