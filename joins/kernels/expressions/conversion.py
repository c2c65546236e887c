"""CAST: values of one SQL type as another, a column at a time.

As in Flink: blanks around text are trimmed, DECIMAL rounds half up, fractions of a second beyond
the target's precision are cut, floating point and text lose their fraction on the way to an
integer, an integer becomes the nearest floating point number, the session's time zone is UTC. Where
Flink wraps, saturates or returns NULL because the value does not fit the target, the row fails
here, for it would match the wrong dimension row.
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import (
    NUMBER_PATTERN,
    Checked,
    from_text,
    mask_of,
    null_where,
    time_from_text,
    try_each,
)
from joins.kernels.expressions.nested import mapped
from joins.kernels.expressions.text_times import (
    time_text,
    trimmed_fraction,
    usual_dates,
    usual_times,
    usual_timestamps,
)
from joins.plan.types import SqlType, TypeName, arrow_type

INTEGERS = frozenset({TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT})
FLOATS = frozenset({TypeName.FLOAT, TypeName.DOUBLE})
MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
_INSTANTS = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ})
_FLOAT_PATTERN = r"^[+-]?(NaN|Infinity|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[fFdD]?)$"
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)


def convert(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    """`values` of type `source` as `target`; what does not fit is marked and NULL."""
    if source == target:
        return sound(values)
    if source.is_nested:
        return _by_parts(values, source, target)
    return _scalar(values, source, target)


def _by_parts(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    """A nested column: each part as that in the same place of `target`."""
    pairs = list(zip(source.members, target.members, strict=True))
    return mapped(
        values,
        arrow_type(target),
        lambda at, child: convert(child, pairs[at][0].type, pairs[at][1].type),
    )


def _scalar(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    if source.name is TypeName.STRING:
        return _from_string(pc.utf8_trim_whitespace(values), values, target)
    if target.name is TypeName.STRING:
        return _to_string(values, source)
    if target.name is TypeName.DECIMAL:
        return to_decimal(values, target)
    if target.name in {TypeName.DATE, TypeName.TIME, *_INSTANTS}:
        return _to_time_type(values, source, target)
    if target.name in INTEGERS and source.name in {TypeName.DECIMAL, *FLOATS}:
        values = pc.trunc(_wide(values) if source.name is TypeName.DECIMAL else values)
    to = arrow_type(target)
    if target.name in FLOATS and source.name in INTEGERS:
        return sound(cast(values, to, safe=False))
    return try_each(values, lambda part: cast(part, to), to)


def _to_time_type(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    if target.name is TypeName.TIME:
        return _to_time(values, source, target)
    micros = values.cast(pa.timestamp("us"))
    if target.name is TypeName.DATE:
        return sound(_days(micros))
    return sound(cast(cut_fraction(micros, target), arrow_type(target)))


def _wide(decimals: pa.Array) -> pa.Array:
    """With room for a digit that rounding adds."""
    return cast(decimals, pa.decimal256(76, decimals.type.scale))


def sound(values: pa.Array) -> Checked:
    """All of `values` could be converted."""
    return Checked(values, np.zeros(len(values), dtype=np.bool_))


def cut_fraction(values: pa.Array, target: SqlType) -> pa.Array:
    """Microseconds cut to the fractional digits of `target`, towards the past."""
    if target.precision >= 6:
        return values
    unit = 10 ** (6 - target.precision)
    micros = values.cast(pa.int64())
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    cut = pa.array(numbers - numbers % unit)
    kept = pc.if_else(pc.is_valid(values), cut, pa.scalar(None, pa.int64()))
    return cast(kept, values.type)


def to_decimal(values: pa.Array, target: SqlType) -> Checked:
    """Numbers rounded half up to the scale of `target`; more digits than its precision fail."""
    to = arrow_type(target)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int32())
    if pa.types.is_floating(values.type):
        return rowwise(lambda number: checked_decimal(Decimal(repr(number)), target), [values], to)
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(19, 0))
    wide = pa.decimal256(76, max(values.type.scale, target.scale))

    def rescale(part: pa.Array) -> pa.Array:
        exact = cast(part, wide)
        return cast(pc.round(exact, target.scale, "half_towards_infinity"), to)

    return try_each(values, rescale, to)


def rowwise(function: Callable[..., object], arguments: list[pa.Array], to: pa.DataType) -> Checked:
    """`function` of each row's Python values, NULL where one is NULL, failed where it raises."""
    count = len(arguments[0])
    results: list[object] = [None] * count
    failed = np.zeros(count, dtype=np.bool_)
    for row, values in enumerate(zip(*(item.to_pylist() for item in arguments), strict=True)):
        if any(value is None for value in values):
            continue
        try:
            results[row] = function(*values)
        except (ArithmeticError, ValueError):
            failed[row] = True
    return Checked(pa.array(results, to), failed)


def constant(text: str | None, target: SqlType) -> Checked:
    """A literal's text as an array of one."""
    if text is None:
        return sound(pa.nulls(1, arrow_type(target)))
    if target.name is TypeName.STRING:
        return sound(pa.array([text], pa.string()))
    if target.name is TypeName.BYTES:
        return rowwise(bytes.fromhex, [pa.array([text])], pa.binary())
    return _from_string(pa.array([text.strip()]), pa.array([text]), target)


def _from_string(text: pa.Array, raw: pa.Array, target: SqlType) -> Checked:
    if target.name is TypeName.STRING:
        return sound(raw)
    if target.name is TypeName.BYTES:
        return sound(raw.cast(pa.binary()))
    return _READERS.get(target.name, _as_it_is)(text, target)


def _as_it_is(text: pa.Array, target: SqlType) -> Checked:
    return from_text(text, arrow_type(target))


def _integer_from_string(text: pa.Array, target: SqlType) -> Checked:
    whole = pc.replace_substring_regex(text, r"^([+-]?)(\d*)\.\d*$", r"\10\2")
    return from_text(whole, arrow_type(target))


def _date_from_string(text: pa.Array, target: SqlType) -> Checked:
    return from_text(usual_dates(text), arrow_type(target))


def _time_from_string(text: pa.Array, target: SqlType) -> Checked:
    read = time_from_text(usual_times(text))
    return Checked(cut_fraction(read.values, target), read.failed)


def _float_from_string(text: pa.Array, target: SqlType) -> Checked:
    """As `Double.parseDouble`, without hexadecimal digits."""
    to = arrow_type(target)
    read = from_text(text, to)
    other = read.failed & mask_of(pc.match_substring_regex(text, _FLOAT_PATTERN))
    if not other.any():
        return read
    plain = pc.replace_substring_regex(null_where(text, ~other), r"^\+?(.*?)[fFdD]?$", r"\1")
    return Checked(pc.coalesce(read.values, cast(plain, to)), read.failed & ~other)


def _decimal_from_string(text: pa.Array, target: SqlType) -> Checked:
    """Rounded half up; texts with more digits than Arrow takes are read one by one."""
    wide = from_text(text, pa.decimal256(76, 38))
    fitting = to_decimal(wide.values, target)
    long = wide.failed & mask_of(pc.match_substring_regex(text, NUMBER_PATTERN))
    if not long.any():
        return Checked(fitting.values, fitting.failed | wide.failed)
    read = rowwise(
        lambda digits: checked_decimal(Decimal(digits), target),
        [null_where(text, ~long)],
        arrow_type(target),
    )
    failed = (fitting.failed | wide.failed) & ~long | read.failed
    return Checked(pc.coalesce(fitting.values, read.values), failed)


def _days(values: pa.Array) -> pa.Array:
    return pc.floor_temporal(values, unit="day").cast(pa.date32())


def _instant_from_string(text: pa.Array, target: SqlType) -> Checked:
    if target.name is TypeName.TIMESTAMP:
        read = from_text(usual_timestamps(text), pa.timestamp("us"))
        return Checked(cut_fraction(read.values, target), read.failed)
    to = arrow_type(target)
    offset = mask_of(pc.match_substring_regex(text, r":\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$"))
    instant = from_text(null_where(text, ~offset), to)
    local = from_text(usual_timestamps(null_where(text, offset)), pa.timestamp("us"))
    values = pc.coalesce(instant.values, cast(local.values, to))
    return Checked(cut_fraction(values, target), instant.failed | local.failed)


_READERS: Mapping[TypeName, Callable[[pa.Array, SqlType], Checked]] = {
    **dict.fromkeys(INTEGERS, _integer_from_string),
    **dict.fromkeys(FLOATS, _float_from_string),
    **dict.fromkeys(_INSTANTS, _instant_from_string),
    TypeName.DECIMAL: _decimal_from_string,
    TypeName.DATE: _date_from_string,
    TypeName.TIME: _time_from_string,
}


def _to_time(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    if source.name is TypeName.TIME:
        return sound(cut_fraction(values, target))
    micros = values.cast(pa.timestamp("us")).cast(pa.int64())
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False) % MICROS_PER_DAY
    valid = pa.array(mask_of(pc.is_valid(values)))
    return sound(
        cut_fraction(pc.if_else(valid, pa.array(numbers), pa.scalar(None, pa.int64())), target)
    )


def _to_string(values: pa.Array, source: SqlType) -> Checked:
    if source.name is TypeName.BOOLEAN:
        return sound(pc.if_else(values, "TRUE", "FALSE"))
    if source.name in FLOATS:
        shortest = _java_float if source.name is TypeName.FLOAT else _java_double
        return rowwise(shortest, [values], pa.string())
    if source.name is TypeName.DECIMAL:
        return rowwise(lambda number: format(number, "f"), [values], pa.string())
    if source.name in _INSTANTS:
        text = values.cast(pa.timestamp("us")).cast(pa.string())
        return sound(trimmed_fraction(text, source.precision))
    if source.name is TypeName.TIME:
        return sound(time_text(values, source.precision))
    return try_each(values, lambda part: part.cast(pa.string()), pa.string())


def checked_decimal(number: Decimal, target: SqlType) -> Decimal:
    """`number` rounded half up to the scale of `target`.

    Raises:
        ArithmeticError: it has more digits than `target`, or is not finite.
    """
    rounded = number.quantize(Decimal(1).scaleb(-target.scale), context=_WIDE)
    if not rounded.is_finite() or rounded.adjusted() >= target.precision - target.scale:
        if rounded.is_zero():
            return rounded
        raise InvalidOperation
    return rounded


def _java_double(number: float) -> str:
    """As `Double.toString`: decimal from 1E-3 up to 1E7, else with an exponent."""
    return _java_text(repr(number), number)


def _java_float(number: float) -> str:
    return _java_text(str(np.float32(number)), number)


def _java_text(shortest: str, number: float) -> str:
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        plain = format(Decimal(shortest), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
