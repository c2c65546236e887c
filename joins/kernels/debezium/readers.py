"""Readers of raw values: each takes values of one kind of JSON, and gives a declared type.

NULL stays NULL; a value that does not fit is marked, and NULL, too.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from typing import cast as as_type

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium import tokens
from joins.kernels.debezium.options import FLOAT_BITS
from joins.kernels.debezium.raw import RawValues, members_of
from joins.kernels.expressions.casts import Checked, cast, from_text, mask_of, sound
from joins.kernels.texts import text_array, validity
from joins.plan.types import SqlType, TypeName, arrow_type

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Reader = Callable[[RawValues], Checked]
Readers = Mapping[int, Reader]
"""By what a value is (`tokens.STRING` and the others) who reads it; what is not here fails."""

_EXACT_DIGITS = 15  # that a double always keeps
_NAMED_FLOATS = {b'"NaN"': np.nan, b'"Infinity"': np.inf, b'"-Infinity"': -np.inf}
_HEX = re.compile("(?:[0-9a-f]{2})*")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?")
_INT64_DIGITS = 18  # so many always fit
_WHOLE = SqlType(TypeName.DECIMAL, 38)


def read_by_kind(values: RawValues, readers: Readers, to: pa.DataType) -> Checked:
    kinds = values.kinds()
    counts = np.bincount(kinds, minlength=tokens.ARRAY + 1)
    present = [kind for kind in range(1, len(counts)) if counts[kind]]
    if not present:
        return sound(pa.nulls(len(values), to))
    if len(present) == 1:
        return readers.get(present[0], _none_of(to))(values)
    order, parts = [], []
    for kind in np.flatnonzero(counts).tolist():
        rows = np.flatnonzero(kinds == kind)
        order.append(rows)
        parts.append(readers.get(kind, _none_of(to))(values.take(rows)))
    back = np.argsort(np.concatenate(order))
    columns = pa.concat_arrays([part.values for part in parts]).take(pa.array(back))
    return Checked(columns, np.concatenate([part.failed for part in parts])[back])


def _none_of(to: pa.DataType) -> Reader:
    return lambda values: Checked(pa.nulls(len(values), to), values.lasts >= 0)


def column_of(numbers: npt.NDArray[np.generic], good: Mask, to: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(to, len(good), [validity(good), pa.py_buffer(numbers)])


def int64s(values: RawValues) -> tuple[Rows, Mask]:
    numbers, fits = np.empty(len(values), np.int64), np.empty(len(values), np.bool_)
    tokens.integers_of(values.firsts, values.lasts, numbers, fits)
    return numbers, fits


def integers(to: pa.DataType, least: int | None = None) -> Reader:
    def read(values: RawValues) -> Checked:
        numbers, fits = int64s(values)
        if least is not None:
            fits &= numbers >= least
        return ranged(numbers, fits, values.lasts >= 0, to)

    return read


def whole_numbers(to: pa.DataType) -> Reader:
    """Integers that are written with a point or an exponent: `1.0`, `1e3`."""

    def read(values: RawValues) -> Checked:
        whole = [None if text is None else _whole(text) for text in values.copied().to_pylist()]
        numbers = np.array([number or 0 for number in whole], np.int64)
        fits = np.array([number is not None for number in whole], np.bool_)
        return ranged(numbers, fits, values.lasts >= 0, to)

    return read


def _whole(text: bytes) -> int | None:
    if not _NUMBER.fullmatch(text):  # a key may be anything
        return None
    number = Decimal(text.decode())
    if not number:
        return 0
    if not 0 <= number.adjusted() < _INT64_DIGITS + 1:
        return None
    is_whole = number == number.to_integral_value()
    return int(number) if is_whole and -(1 << 63) <= number < 1 << 63 else None


def ranged(numbers: Rows, fits: Mask, valid: Mask, to: pa.DataType) -> Checked:
    dtype = np.dtype(as_type(type[np.signedinteger[Any]], to.to_pandas_dtype()))
    limits = np.iinfo(dtype)
    good = fits & (numbers >= limits.min) & (numbers <= limits.max)
    return Checked(column_of(numbers.astype(dtype), good, to), valid & ~good)


def booleans_as_integers(to: pa.DataType) -> Reader:
    """1 for `true`, 0 for `false`: connectors write a TINYINT(1) as either."""

    def read(values: RawValues) -> Checked:
        numbers, valid = np.empty(len(values), np.int64), values.lasts >= 0
        tokens.booleans_of(values.firsts, values.lasts, numbers)
        return ranged(numbers, valid, valid, to)

    return read


def booleans(values: RawValues) -> Checked:
    numbers = np.empty(len(values), np.int64)
    tokens.booleans_of(values.firsts, values.lasts, numbers)
    return _bits(numbers, values.lasts >= 0, values.lasts >= 0)


def integers_as_booleans(values: RawValues) -> Checked:
    numbers, fits = int64s(values)
    return _bits(numbers, fits & ((numbers == 0) | (numbers == 1)), values.lasts >= 0)


def _bits(numbers: Rows, good: Mask, valid: Mask) -> Checked:
    bits = pa.py_buffer(np.packbits(numbers == 1, bitorder="little"))
    column = pa.Array.from_buffers(pa.bool_(), len(good), [validity(good), bits])
    return Checked(column, valid & ~good)


def texts(values: RawValues) -> Checked:
    return sound(values.texts())


def doubles(values: RawValues) -> Checked:
    """Numbers as DOUBLE; integers of many digits only if all of them survive."""
    numbers = values.numbers()
    read = from_text(numbers, pa.float64())
    failed = read.failed | ~mask_of(pc.fill_null(pc.is_finite(read.values), True))
    long = (values.lasts - values.firsts > _EXACT_DIGITS) & (values.kinds() == tokens.INTEGER)
    for row in np.flatnonzero(long & ~failed):
        failed[row] = int(numbers[row].as_py()) != int(read.values[row].as_py())
    return _without(read.values, failed)


def floats(values: RawValues) -> Checked:
    wide = doubles(values)
    exact = wide.values.to_numpy(zero_copy_only=False)
    return _narrowed(exact, (values.lasts >= 0) & ~wide.failed, values.lasts >= 0)


def _narrowed(exact: npt.NDArray[np.float64], good: Mask, valid: Mask) -> Checked:
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = exact.astype(np.float32)
        good = good & ~(np.isinf(narrow) & np.isfinite(exact))
        doubtful = np.flatnonzero((narrow.astype(np.float64) != exact) & ~np.isnan(exact) & good)
    if len(doubtful):
        shortest = cast(pa.array(narrow[doubtful]).cast(pa.string()), pa.float64())
        good[doubtful] = shortest.to_numpy(zero_copy_only=False) == exact[doubtful]
    return Checked(column_of(narrow, good, pa.float32()), valid & ~good)


def floats_of_bits(kind: SqlType, connect: str) -> Reader:
    """FLOAT or DOUBLE from the bits of either, as `connect` says."""

    def read(values: RawValues) -> Checked:
        numbers, fits = int64s(values)
        valid = values.lasts >= 0
        if connect == FLOAT_BITS:
            narrow = numbers.astype(np.uint32).view(np.float32)
            if kind.name is TypeName.FLOAT:
                return Checked(column_of(narrow, fits, pa.float32()), valid & ~fits)
            return Checked(column_of(narrow.astype(np.float64), fits, pa.float64()), valid & ~fits)
        exact = numbers.view(np.float64)
        if kind.name is TypeName.FLOAT:
            return _narrowed(exact, fits, valid)
        return Checked(column_of(exact, fits, pa.float64()), valid & ~fits)

    return read


def decimals_of_bits(kind: SqlType, connect: str) -> Reader:
    own = SqlType(TypeName.FLOAT if connect == FLOAT_BITS else TypeName.DOUBLE)
    number = floats_of_bits(own, connect)
    return lambda values: _trusted(decimals_of(number(values).values.cast(pa.string()), kind), kind)


def named_floats(to: pa.DataType) -> Reader:
    """NaN and the infinities, which are strings in JSON."""

    def read(values: RawValues) -> Checked:
        numbers, good = np.zeros(len(values)), np.zeros(len(values), np.bool_)
        for text, number in _NAMED_FLOATS.items():
            equal = values.are(text)
            numbers[equal] = number
            good |= equal
        return Checked(
            column_of(numbers.astype(to.to_pandas_dtype()), good, to), (values.lasts >= 0) & ~good
        )

    return read


def decimals_as_text(kind: SqlType) -> Reader:
    return lambda values: decimals_of(values.texts(), kind)


def decimals_as_numbers(kind: SqlType) -> Reader:
    return lambda values: decimals_of(values.numbers(), kind)


def rounded_decimals(kind: SqlType) -> Reader:
    number = decimals_as_numbers(kind)
    return lambda values: _trusted(number(values), kind)


def _trusted(read: Checked, kind: SqlType) -> Checked:
    """Marks decimals from doubles that have more digits than a double keeps."""
    if kind.precision <= _EXACT_DIGITS:
        return read
    limit = Decimal(10) ** (_EXACT_DIGITS - kind.scale)
    extremes = pc.min_max(read.values).as_py().values()
    if all(each is None or abs(each) < limit for each in extremes):
        return read
    large = [each is not None and abs(each) >= limit for each in read.values.to_pylist()]
    return _without(read.values, read.failed | np.array(large, np.bool_))


def not_negative(reader: Reader) -> Reader:
    def read(values: RawValues) -> Checked:
        read = reader(values)
        return _without(read.values, read.failed | mask_of(pc.less(read.values, Decimal(0))))

    return read


def decimals_of(numbers: pa.StringArray, kind: SqlType) -> Checked:
    return from_text(numbers, arrow_type(kind))


def unsigned_longs(values: RawValues) -> Checked:
    """BIGINT UNSIGNED as DECIMAL(20, 0): a number beyond 63 bits is written as a negative one."""
    numbers, fits = int64s(values)
    words = np.stack([numbers, np.zeros_like(numbers)], axis=1)
    valid = values.lasts >= 0
    return Checked(column_of(words, fits, pa.decimal128(20, 0)), valid & ~fits)


def unscaled_decimals(kind: SqlType, scale: int) -> Reader:
    """Base64 of the unscaled value with `scale` digits after the point."""

    def read(values: RawValues) -> Checked:
        count, valid = len(values), values.lasts >= 0
        numbers, outcome = np.empty(count, np.int64), np.empty(count, np.uint8)
        tokens.unscaled_of(values.firsts, values.lasts, numbers, outcome)
        if scale != kind.scale or kind.precision - scale < 0 or (outcome == tokens.TOO_LONG).any():
            return _unscaled_each(values, kind, scale)
        good = outcome == tokens.FITS
        if kind.precision <= _INT64_DIGITS:
            limit = 10**kind.precision
            good &= (numbers > -limit) & (numbers < limit)
        words = np.stack([numbers, numbers >> 63], axis=1)
        return Checked(column_of(words, good, arrow_type(kind)), valid & ~good)

    return read


def _unscaled_each(values: RawValues, kind: SqlType, scale: int) -> Checked:
    unscaled = binaries(is_url=False)(values)
    written: list[str | None] = []
    for each in unscaled.values.to_pylist():
        written.append(None if each is None else _scaled(each, scale))
    read = decimals_of(pa.array(written, pa.string()), kind)
    empty = np.array([each == b"" for each in unscaled.values.to_pylist()], np.bool_)
    return _without(read.values, read.failed | unscaled.failed | empty)


def _scaled(unscaled: bytes, scale: int) -> str:
    return f"{int.from_bytes(unscaled, 'big', signed=True)}E{-scale}"


def variable_decimals(kind: SqlType) -> Reader:
    def read(values: RawValues) -> Checked:
        members = members_of(values, ("scale", "value"))
        scales, fits = int64s(members["scale"])
        unscaled = binaries(is_url=False)(members["value"])
        valid = values.lasts >= 0
        good = valid & fits & ~unscaled.failed & mask_of(unscaled.values.is_valid())
        written = [
            _scaled(each, scale) if is_good and each else None
            for each, scale, is_good in zip(
                unscaled.values.to_pylist(), scales.tolist(), good.tolist(), strict=True
            )
        ]
        texts = pa.array(written, pa.string())
        read = decimals_of(texts, kind)
        return _without(read.values, read.failed | (valid & ~mask_of(texts.is_valid())))

    return read


def decimals_as_integers(reader: Callable[[SqlType], Reader], kind: SqlType) -> Reader:
    to = arrow_type(kind)
    limits = np.iinfo(as_type(type, to.to_pandas_dtype()))

    def read(values: RawValues) -> Checked:
        wide = reader(_WHOLE)(values).values.to_pylist()
        fits = (None if n is None or not limits.min <= n <= limits.max else int(n) for n in wide)
        column = pa.array(list(fits), to)
        return Checked(column, (values.lasts >= 0) & mask_of(column.is_null()))

    return read


def binaries(*, is_url: bool) -> Reader:
    def read(values: RawValues) -> Checked:
        sizes = np.empty(len(values), np.int64)
        tokens.sizes_of(values.firsts, values.lasts, sizes, is_url)
        good = sizes >= 0
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.where(good, sizes, 0), out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        tokens.bytes_into(values.firsts, offsets, out, is_url)
        return Checked(text_array(out, offsets, good, pa.binary()), (values.lasts >= 0) & ~good)

    return read


def hexadecimals(values: RawValues) -> Checked:
    """Bytes of two lower-case digits each."""
    texts = values.texts().to_pylist()
    made = [
        bytes.fromhex(each) if each is not None and _HEX.fullmatch(each) else None for each in texts
    ]
    column = pa.array(made, pa.binary())
    return Checked(column, (values.lasts >= 0) & mask_of(column.is_null()))


def _without(column: pa.Array, failed: Mask) -> Checked:
    if not failed.any():
        return Checked(column, failed)
    return Checked(pc.if_else(pa.array(failed), pa.scalar(None, column.type), column), failed)
