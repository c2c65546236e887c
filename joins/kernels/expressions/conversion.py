"""CAST: values of one SQL type as another, a column at a time.

As in Flink: blanks around text are trimmed, DECIMAL rounds half up, finer fractions are cut. Where
a number does not fit, an explicit CAST wraps, limits or returns NULL as in Flink; in an implicit
one the row fails, for it would match the wrong dimension row.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.zones import UTC, local_times
from joins.kernels.expressions.casts import (
    NUMBER_PATTERN,
    STRICT,
    CastRules,
    Checked,
    cast,
    from_text,
    mask_of,
    null_where,
    sound,
    try_each,
)
from joins.kernels.expressions.nested import mapped, parts_of
from joins.kernels.expressions.time_casts import (
    date_from_string,
    instant_from_string,
    month_text,
    second_text,
    time_from_string,
    time_text,
    timestamp_from_string,
    to_time_type,
    trimmed_fraction,
)
from joins.plan.types import SqlType, TypeName, arrow_type

Convert = Callable[[pa.Array, SqlType], Checked]


def nested_text(column: pa.Array, kind: SqlType, convert: Convert) -> Checked:
    parts = parts_of(column, entries=kind.name is TypeName.MAP)
    made = [
        convert(child, member.type)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    failed = np.zeros(len(column), dtype=np.bool_)
    for each in made:
        failed |= parts.of_rows(each.failed, len(column))
    texts = [each.values.fill_null("NULL").to_pylist() for each in made]
    missing = mask_of(column.is_null()) | failed
    if parts.lengths is None:
        rows: Sequence[str] = [f"({', '.join(row)})" for row in zip(*texts, strict=True)]
    else:
        rows = _of_spans(parts.starts.tolist(), parts.lengths.tolist(), texts, kind)
    return Checked(pa.array(rows, pa.string(), mask=missing), failed)


def _of_spans(
    starts: list[int], lengths: list[int], texts: list[list[str]], kind: SqlType
) -> list[str]:
    spans = [slice(first, first + count) for first, count in zip(starts, lengths, strict=True)]
    if kind.name is TypeName.ARRAY:
        return [f"[{', '.join(texts[0][span])}]" for span in spans]
    keys, values = texts
    return [
        "{" + ", ".join(f"{k}={v}" for k, v in zip(keys[s], values[s], strict=True)) + "}"
        for s in spans
    ]


INTEGERS = frozenset({TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT})
FLOATS = frozenset({TypeName.FLOAT, TypeName.DOUBLE})
NUMBERS = INTEGERS | FLOATS | {TypeName.DECIMAL}
_INTERVALS = {TypeName.INTERVAL_MONTH: month_text, TypeName.INTERVAL_SECOND: second_text}
_INSTANTS = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ})
_FLOAT_PATTERN = r"^[+-]?(NaN|Infinity|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[fFdD]?)$"
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
# More digits than any number may have or show; Python's own context has 28.
ALL_DIGITS = Context(prec=12_000, rounding=ROUND_HALF_UP, Emin=-99_999, Emax=99_999)


def convert(
    values: pa.Array, source: SqlType, target: SqlType, rules: CastRules = STRICT
) -> Checked:
    """`values` of type `source` as `target`; values that do not fit are marked and NULL."""
    if source == target:
        return sound(values)
    if source.is_nested:
        if target.name is TypeName.STRING:
            return nested_text(values, source, lambda v, kind: convert(v, kind, target, rules))
        return _by_parts(values, source, target, rules)
    return _scalar(values, source, target, rules)


def _by_parts(values: pa.Array, source: SqlType, target: SqlType, rules: CastRules) -> Checked:
    pairs = list(zip(source.members, target.members, strict=True))
    is_map = source.name is TypeName.MAP

    def part(at: int, child: pa.Array) -> Checked:
        one, other = pairs[at]
        made = convert(child, one.type, other.type, rules)
        if is_map and at == 0 and one.nullable and not other.nullable:
            return _present(made, other.type)
        return made

    return mapped(values, arrow_type(target), part, entries=is_map)


def _present(keys: Checked, kind: SqlType) -> Checked:
    nulls = mask_of(keys.values.is_null())
    if not nulls.any():
        return keys
    filler = next((each for each in keys.values if each.is_valid), None)
    filled = keys.values if filler is None else pc.if_else(pa.array(nulls), filler, keys.values)
    if filler is None:
        filled = cast(pa.array(np.zeros(len(nulls), dtype=np.int8)), arrow_type(kind))
    return Checked(filled, keys.failed | nulls)


def _scalar(values: pa.Array, source: SqlType, target: SqlType, rules: CastRules) -> Checked:
    if source.name is TypeName.STRING:
        return _from_string(pc.utf8_trim_whitespace(values), values, target, rules)
    if target.name is TypeName.STRING:
        return _to_string(values, source, rules)
    if target.name in {TypeName.DATE, TypeName.TIME, *_INSTANTS}:
        return to_time_type(values, source, target, rules.zone)
    if source.name is target.name and source.name in _INTERVALS:
        return sound(values)
    return _number(values, source, target, rules)


def _number(values: pa.Array, source: SqlType, target: SqlType, rules: CastRules) -> Checked:
    to = arrow_type(target)
    if target.name in FLOATS and source.name in INTEGERS:
        return sound(cast(values, to, safe=False))
    if rules.wraps and source.name in NUMBERS and target.name in NUMBERS:
        return wrapped(values, source, target)
    if target.name is TypeName.DECIMAL:
        return to_decimal(values, target)
    if target.name in INTEGERS and source.name in {TypeName.DECIMAL, *FLOATS}:
        if source.name is TypeName.DECIMAL:
            values = cast(values, pa.decimal256(76, values.type.scale))
        values = pc.trunc(values)
    return try_each(values, lambda part: cast(part, to), to)


def wrapped(values: pa.Array, source: SqlType, target: SqlType) -> Checked:
    """A number as in Flink's CAST: integers wrap, fractions are cut and limited."""
    if target.name is TypeName.DECIMAL:
        made = to_decimal(values, target).values
    elif target.name not in INTEGERS:
        made = cast(values, arrow_type(target), safe=False)
    elif source.name is TypeName.DECIMAL:
        whole = rowwise(lambda number: _in_bits(int(number), 64), [values], pa.int64()).values
        made = cast(whole, arrow_type(target), safe=False)
    elif source.name in FLOATS:
        bits = 64 if target.name is TypeName.BIGINT else 32
        whole = rowwise(lambda number: _limited(number, bits), [values], pa.int64()).values
        made = cast(whole, arrow_type(target), safe=False)
    else:
        made = cast(values, arrow_type(target), safe=False)
    return sound(made)


def _in_bits(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _limited(number: float, bits: int) -> int:
    most = 1 << (bits - 1)
    whole = 0 if number != number else int(max(-1e30, min(1e30, number)))
    return max(-most, min(most - 1, whole))


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
    if text is None:
        return sound(pa.nulls(1, arrow_type(target)))
    if target.name is TypeName.STRING:
        return sound(pa.array([text], pa.string()))
    if target.name is TypeName.BYTES:
        return rowwise(bytes.fromhex, [pa.array([text])], pa.binary())
    return _from_string(pa.array([text.strip()]), pa.array([text]), target)


def _from_string(
    text: pa.Array, raw: pa.Array, target: SqlType, rules: CastRules = STRICT
) -> Checked:
    if target.name is TypeName.STRING:
        return sound(raw)
    if target.name is TypeName.BYTES:
        return sound(raw.cast(pa.binary()))
    if target.name is TypeName.TIMESTAMP_LTZ:
        return instant_from_string(text, target, rules.zone)
    if target.name is TypeName.TIMESTAMP:
        return timestamp_from_string(raw, target)  # not trimmed, as in Flink
    if target.name is TypeName.DATE:
        # Flink cuts what is behind a blank, but not if the text begins with one.
        failed = mask_of(pc.match_substring_regex(raw, r"^\s+\S+\s+\S"))
        read = date_from_string(null_where(text, failed), target)
        return Checked(read.values, read.failed | failed)
    return _READERS.get(target.name, _as_it_is)(text, target)


def _as_it_is(text: pa.Array, target: SqlType) -> Checked:
    return from_text(text, arrow_type(target))


def _integer_from_string(text: pa.Array, target: SqlType) -> Checked:
    whole = pc.replace_substring_regex(text, r"^([+-]?)(\d*)\.\d*$", r"\10\2")
    return from_text(whole, arrow_type(target))


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


_READERS: Mapping[TypeName, Callable[[pa.Array, SqlType], Checked]] = {
    **dict.fromkeys(INTEGERS, _integer_from_string),
    **dict.fromkeys(FLOATS, _float_from_string),
    TypeName.DECIMAL: _decimal_from_string,
    TypeName.TIME: time_from_string,
}


def _to_string(values: pa.Array, source: SqlType, rules: CastRules) -> Checked:
    if source.name is TypeName.BOOLEAN:
        return sound(pc.if_else(values, "TRUE", "FALSE"))
    if source.name in FLOATS:
        shortest = java_float if source.name is TypeName.FLOAT else java_double
        return rowwise(shortest, [values], pa.string())
    if source.name is TypeName.DECIMAL:
        return rowwise(lambda number: format(number, "f"), [values], pa.string())
    if source.name in _INSTANTS:
        local = local_times(values, rules.zone if source.name is TypeName.TIMESTAMP_LTZ else UTC)
        return sound(trimmed_fraction(local.cast(pa.string()), source.precision))
    if source.name in _INTERVALS:
        return rowwise(_INTERVALS[source.name], [values], pa.string())
    if source.name is TypeName.TIME:
        return sound(time_text(values, source.precision))
    return try_each(values, lambda part: part.cast(pa.string()), pa.string())


def checked_decimal(number: Decimal, target: SqlType) -> Decimal:
    """`number` rounded half up to the scale of `target`; raises ArithmeticError."""
    rounded = number.quantize(Decimal(1).scaleb(-target.scale), context=_WIDE)
    if not rounded.is_finite() or rounded.adjusted() >= target.precision - target.scale:
        if rounded.is_zero():
            return rounded
        raise InvalidOperation
    return rounded


def java_double(number: float) -> str:
    return _java_text(repr(number), number)


def java_float(number: float) -> str:
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
