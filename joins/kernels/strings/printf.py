"""PRINTF: `String.format` of Java for the values of a row.

As in Flink a pattern that its values do not fit gives NULL. A time appears in Flink's internal
form: a DATE as days since 1970, a TIME as milliseconds.
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa

from joins.kernels.calendar.java_patterns import moment_of
from joins.kernels.calendar.ticks import argument_ticks
from joins.kernels.expressions.casts import cast
from joins.kernels.expressions.conversion import ALL_DIGITS, convert
from joins.kernels.expressions.operation import Operation, Sizes, bounded, bytes_of_all
from joins.plan.types import SqlType, TypeName

_PIECE = re.compile(
    r"%(?P<index>\d+\$)?(?P<flags>[-#+ 0,(]*)(?P<width>\d{1,6})?(?:\.(?P<digits>\d{1,4}))?"
    r"(?P<kind>[a-zA-Z%])",
    re.ASCII,
)
_STRING = SqlType(TypeName.STRING)
_WHOLE = frozenset((TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT))
_BITS = {TypeName.TINYINT: 8, TypeName.SMALLINT: 16, TypeName.INT: 32, TypeName.BIGINT: 64}
_NUMBERS = frozenset((TypeName.FLOAT, TypeName.DOUBLE, TypeName.DECIMAL))
_MOST_WIDTH = 65_536
_MOST_DIGITS = 400


class FormatError(Exception):
    """A pattern is invalid, or its values do not fit it."""


def _printf_bytes(op: Operation) -> Sizes:
    """Each piece has a width or a value, and no number has more than 400 digits."""
    values = bytes_of_all(op) + _MOST_DIGITS
    pieces = [_room(text) if text else (0, 0) for text in op.array(0).to_pylist()]
    counts, widths = (np.array([piece[at] for piece in pieces], dtype=np.int64) for at in (0, 1))
    return np.asarray(values * (counts + 1) + widths)


@lru_cache(maxsize=256)
def _room(pattern: str) -> tuple[int, int]:
    matches = list(_PIECE.finditer(pattern))
    sizes = (int(match[part] or 0) for match in matches for part in ("width", "digits"))
    return len(matches), sum(sizes)


def _printf(op: Operation) -> pa.Array:
    patterns = op.array(0).to_pylist()
    columns = [_column(op, at) for at in range(1, len(op.arguments))]
    results: list[str | None] = []
    for row, pattern in enumerate(patterns):
        text = None
        if pattern is not None:
            try:
                text = _formatted(pattern, [column[row] for column in columns])
            except FormatError:
                text = None
        results.append(text)
    return pa.array(results, pa.string())


Value = tuple[object, SqlType, str | None]


def _column(op: Operation, at: int) -> Sequence[Value]:
    kind, column = op.types[at], op.array(at)
    numbers: Sequence[object] = column.to_pylist() if not _is_time(kind) else [None] * len(column)
    if kind.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        ticks = argument_ticks(op, at)
        texts = [
            _iso(int(m), int(n)) if there else None
            for m, n, there in zip(ticks.micros, ticks.nanos, ticks.valid, strict=True)
        ]
    elif kind.name in (TypeName.DATE, TypeName.TIME):
        whole = cast(column, pa.int32() if kind.name is TypeName.DATE else pa.int64()).to_pylist()
        step = 1 if kind.name is TypeName.DATE else 1_000
        numbers = [None if each is None else each // step for each in whole]
        texts = [None if each is None else str(each) for each in numbers]
    elif kind.name is TypeName.BOOLEAN:
        texts = [None if each is None else str(each).lower() for each in numbers]
    else:
        texts = convert(column, kind, _STRING).values.to_pylist()
    return [(number, kind, text) for number, text in zip(numbers, texts, strict=True)]


def _is_time(kind: SqlType) -> bool:
    return kind.name in (
        TypeName.DATE, TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ,
    )  # fmt: skip


def _iso(micros: int, nanos: int) -> str:
    time = moment_of(micros)
    fraction = f"{time.microsecond:06}{nanos:03}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    text = f"{time:%Y-%m-%dT%H:%M}"
    if time.second or fraction:
        text += f":{time.second:02}"
    return text + (f".{fraction}" if fraction else "")


def _formatted(pattern: str, values: Sequence[Value]) -> str:
    pieces: list[str] = []
    at, ordinary = 0, 0
    for match in _PIECE.finditer(pattern):
        if "%" in pattern[at : match.start()]:
            raise FormatError(pattern)
        pieces.append(pattern[at : match.start()])
        at = match.end()
        if match["kind"] in "n%":
            pieces.append(_aligned("\n" if match["kind"] == "n" else "%", match))
            continue
        place = int(match["index"][:-1]) if match["index"] else (ordinary := ordinary + 1)
        if not 1 <= place <= len(values):
            raise FormatError(pattern)
        pieces.append(_piece(match, values[place - 1]))
    if "%" in pattern[at:]:
        raise FormatError(pattern)
    return "".join([*pieces, pattern[at:]])


def _piece(match: re.Match[str], value: Value) -> str:
    kind, (number, sql_type, text) = match["kind"], value
    of = _KINDS.get(kind.lower())
    if of is None or (kind.isupper() and kind.lower() not in "bhsxec"):
        raise FormatError(match[0])
    if kind.lower() == "b":
        shown = "false" if text is None else text if sql_type.name is TypeName.BOOLEAN else "true"
    elif text is None:
        shown = "null"
    else:
        shown = of(match, number, sql_type, text)
    if match["digits"] and kind.lower() in "bs":
        shown = shown[: int(match["digits"])]
    return _aligned(shown.upper() if kind.isupper() else shown, match)


def _aligned(text: str, match: re.Match[str]) -> str:
    width = int(match["width"] or 0)
    if width > _MOST_WIDTH:
        raise FormatError(match[0])
    return text.ljust(width) if "-" in match["flags"] else text.rjust(width)


def _whole(match: re.Match[str], number: object, kind: SqlType, _: str) -> str:
    if kind.name not in _WHOLE or match["digits"]:
        raise FormatError(match[0])
    assert isinstance(number, int), "it is an integer"
    return _signed(match, str(abs(number)), negative=number < 0)


def _radix(letter: str) -> Callable[[re.Match[str], object, SqlType, str], str]:
    def shown(match: re.Match[str], number: object, kind: SqlType, _: str) -> str:
        if kind.name not in _WHOLE:
            raise FormatError(match[0])
        assert isinstance(number, int), "it is an integer"
        digits = format(number % 2 ** _BITS[kind.name], letter)
        return digits.rjust(int(match["width"] or 0), "0") if "0" in match["flags"] else digits

    return shown


def _fixed(match: re.Match[str], number: object, kind: SqlType, _: str) -> str:
    exact = _decimal(match, number, kind)
    digits = int(match["digits"] or 6)
    unit = Decimal(1).scaleb(-digits)
    rounded = exact.copy_abs().quantize(unit, ROUND_HALF_UP, ALL_DIGITS)
    return _signed(match, format(rounded, "f"), negative=exact.is_signed())


def _scientific(match: re.Match[str], number: object, kind: SqlType, _: str) -> str:
    exact = _decimal(match, number, kind)
    digits = int(match["digits"] or 6)
    rounded = Context(prec=digits + 1, rounding=ROUND_HALF_UP).plus(exact.copy_abs())
    mantissa, power = format(rounded, f".{digits}e").split("e")
    shown = f"{mantissa}e{int(power) if exact else 0:+03}"
    return _signed(match, shown, negative=exact.is_signed())


def _decimal(match: re.Match[str], number: object, kind: SqlType) -> Decimal:
    if kind.name not in _NUMBERS:
        raise FormatError(match[0])
    exact = number if isinstance(number, Decimal) else Decimal(repr(number))
    if not exact.is_finite():
        raise FormatError(match[0])
    return exact


def _signed(match: re.Match[str], digits: str, *, negative: bool) -> str:
    flags = match["flags"]
    if "," in flags:
        whole, point, rest = digits.partition(".")
        digits = f"{int(whole):,}{point}{rest}"
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    if "0" in flags:
        digits = digits.rjust(int(match["width"] or 0) - len(sign), "0")
    return f"({digits})" if negative and "(" in flags else sign + digits


def _character(match: re.Match[str], number: object, kind: SqlType, _: str) -> str:
    if kind.name not in _WHOLE or not isinstance(number, int) or not 0 <= number <= 0x10FFFF:
        raise FormatError(match[0])
    return chr(number)


_KINDS: dict[str, Callable[[re.Match[str], object, SqlType, str], str]] = {
    "s": lambda _match, _number, _kind, text: text,
    "b": lambda _match, _number, _kind, text: text,
    "d": _whole,
    "x": _radix("x"),
    "o": _radix("o"),
    "f": _fixed,
    "e": _scientific,
    "c": _character,
}
printf = bounded(_printf, _printf_bytes)
