"""Expressions on columns: Flink's meaning, NULLs, and the rows that fail."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.calendar.text_times import TEXT_TIMES
from joins.kernels.calendar.times import PARTS
from joins.kernels.expressions.arrays import ARRAYS
from joins.kernels.expressions.evaluate import FUNCTIONS, Scope, evaluate, evaluate_rows
from joins.kernels.expressions.json_functions import QUESTIONS, VALUES
from joins.kernels.expressions.mathematics import MATHEMATICS
from joins.kernels.expressions.nested_access import MAPS
from joins.kernels.strings.encodings import DIGESTS, ENCODINGS
from joins.kernels.strings.regular import REGULAR
from joins.kernels.strings.texts import TEXT_OF_ROWS
from joins.plan.errors import ExpressionError
from joins.plan.types import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Member,
    ProcTime,
    SqlType,
    TypeName,
    arrow_type,
)
from tests.support.laws import examples

TINYINT = SqlType(TypeName.TINYINT)
INT = SqlType(TypeName.INT)
BIGINT = SqlType(TypeName.BIGINT)
FLOAT = SqlType(TypeName.FLOAT)
DOUBLE = SqlType(TypeName.DOUBLE)
STRING = SqlType(TypeName.STRING)
BYTES = SqlType(TypeName.BYTES)
BOOLEAN = SqlType(TypeName.BOOLEAN)
DATE = SqlType(TypeName.DATE)
TIME = SqlType(TypeName.TIME)
TIME_3 = SqlType(TypeName.TIME, 3)
TIME_5 = SqlType(TypeName.TIME, 5)
TIMESTAMP = SqlType(TypeName.TIMESTAMP, 6)
TIMESTAMP_3 = SqlType(TypeName.TIMESTAMP, 3)
SECONDS = SqlType(TypeName.TIMESTAMP, 0)
EXACT = Context(prec=100)
INSTANT = SqlType(TypeName.TIMESTAMP_LTZ, 3)


def decimal(precision, scale):
    return SqlType(TypeName.DECIMAL, precision, scale)


def run(expression, rows=1, **columns):
    arrays = {name: pa.array(values, arrow_type(kind)) for name, (kind, values) in columns.items()}
    rows = max([rows, *map(len, arrays.values())])
    return evaluate_rows(expression, Scope(lambda column: arrays[column.name], rows, 86_400_123))


def call(name, result, *arguments):
    nodes = tuple(Column("t", f"a{at}", kind) for at, (kind, _) in enumerate(arguments))
    return Call(name, nodes, result), {
        f"a{at}": (kind, [value, value]) for at, (kind, value) in enumerate(arguments)
    }


def text(value):
    return STRING, value


def big(value):
    return BIGINT, value


T, F, N = (BOOLEAN, True), (BOOLEAN, False), (BOOLEAN, None)
LEAP = (TIMESTAMP, datetime(2024, 2, 29, 13, 45, 59, 999999))

CALLS = {
    "integers_add": ("+", BIGINT, [big(2), big(3)], 5),
    "integers_wrap_as_in_java": ("+", BIGINT, [big(2**63 - 1), big(1)], -(2**63)),
    "small_integers_wrap_too": ("*", TINYINT, [(TINYINT, 100), (TINYINT, 2)], -56),
    "minimum_has_no_positive": ("NEG", BIGINT, [big(-(2**63))], -(2**63)),
    "division_truncates_towards_zero": ("/", BIGINT, [big(-7), big(2)], -3),
    "division_of_the_minimum_wraps": ("/", BIGINT, [big(-(2**63)), big(-1)], -(2**63)),
    "remainder_has_the_sign_of_the_dividend": ("%", BIGINT, [big(-7), big(2)], -1),
    "remainder_of_doubles": ("%", DOUBLE, [(DOUBLE, -7.5), (DOUBLE, 2.0)], -1.5),
    "doubles_divide_by_zero_to_infinity": ("/", DOUBLE, [(DOUBLE, 1.0), (DOUBLE, 0.0)], math.inf),
    "decimals_add_exactly": (
        "+",
        decimal(11, 2),
        [(decimal(10, 2), Decimal("0.10")), (decimal(10, 2), Decimal("0.20"))],
        Decimal("0.30"),
    ),
    "decimal_products_round_half_up": (
        "*",
        decimal(10, 2),
        [(decimal(5, 2), Decimal("0.15")), (decimal(5, 2), Decimal("0.10"))],
        Decimal("0.02"),
    ),
    "decimal_products_of_38_digits": (
        "*",
        decimal(38, 0),
        [(decimal(38, 0), Decimal(10**18)), (decimal(38, 0), Decimal(10**19))],
        Decimal(10**37),
    ),
    "decimals_divide_half_up": (
        "/",
        decimal(10, 2),
        [(decimal(5, 2), Decimal("-2.00")), (decimal(5, 2), Decimal("3.00"))],
        Decimal("-0.67"),
    ),
    "decimal_remainder": (
        "%",
        decimal(5, 2),
        [(decimal(5, 2), Decimal("-7.50")), (decimal(5, 2), Decimal("2.00"))],
        Decimal("-1.50"),
    ),
    "null_plus_one_is_null": ("+", BIGINT, [big(None), big(1)], None),
    "null_divided_by_zero_is_null": ("/", BIGINT, [big(None), big(0)], None),
    "null_equals_nothing": ("=", BOOLEAN, [big(None), big(None)], None),
    "strings_compare_by_code_point": ("<", BOOLEAN, [text("Z"), text("a")], True),
    "booleans_compare": ("<", BOOLEAN, [F, T], True),
    "null_is_not_distinct_from_null": ("IS NOT DISTINCT FROM", BOOLEAN, [N, N], True),
    "null_is_distinct_from_one": ("IS DISTINCT FROM", BOOLEAN, [big(None), big(1)], True),
    "equal_values_are_not_distinct": ("IS DISTINCT FROM", BOOLEAN, [big(1), big(1)], False),
    "unknown_and_false_is_false": ("AND", BOOLEAN, [N, F], False),
    "unknown_and_true_is_unknown": ("AND", BOOLEAN, [N, T], None),
    "unknown_or_true_is_true": ("OR", BOOLEAN, [N, T], True),
    "unknown_or_false_is_unknown": ("OR", BOOLEAN, [F, N], None),
    "not_unknown_is_unknown": ("NOT", BOOLEAN, [N], None),
    "unknown_is_not_true": ("IS NOT TRUE", BOOLEAN, [N], True),
    "false_is_false": ("IS FALSE", BOOLEAN, [F], True),
    "unknown_is_not_false": ("IS FALSE", BOOLEAN, [N], False),
    "in_finds": ("IN", BOOLEAN, [big(2), big(1), big(2)], True),
    "in_with_null_is_unknown": ("IN", BOOLEAN, [big(3), big(1), big(None)], None),
    "in_with_null_still_finds": ("IN", BOOLEAN, [big(1), big(1), big(None)], True),
    "not_in_with_null_is_unknown": ("NOT IN", BOOLEAN, [big(3), big(1), big(None)], None),
    "percent_is_any_text": ("LIKE", BOOLEAN, [text("a\nb.c"), text("a%.c")], True),
    "underscore_is_one_code_point": ("LIKE", BOOLEAN, [text("a😀"), text("a_")], True),
    "like_is_anchored": ("LIKE", BOOLEAN, [text("abc"), text("b")], False),
    "a_point_is_a_point": ("LIKE", BOOLEAN, [text("abc"), text("a.c")], False),
    "not_like": ("NOT LIKE", BOOLEAN, [text("abc"), text("b%")], True),
    "like_escapes": ("LIKE", BOOLEAN, [text("a%"), text("a!%"), text("!")], True),
    "like_escaped_is_literal": ("LIKE", BOOLEAN, [text("ab"), text("a!%"), text("!")], False),
    "backslash_is_no_escape": ("LIKE", BOOLEAN, [text("a\\b"), text("a\\_")], True),
    "coalesce": ("COALESCE", BIGINT, [big(None), big(4), big(5)], 4),
    "nullif_equal": ("NULLIF", BIGINT, [big(4), big(4)], None),
    "nullif_different": ("NULLIF", BIGINT, [big(4), big(None)], 4),
    "greatest": ("GREATEST", STRING, [text("a"), text("b")], "b"),
    "least_with_null": ("LEAST", BIGINT, [big(1), big(None)], None),
    "upper": ("UPPER", STRING, [text("straßa")], "STRASSA"),
    "trim_blanks_only": ("TRIM", STRING, [text("  \ta ")], "\ta"),
    "trim_characters": ("LTRIM", STRING, [text("xyxa"), text("xy")], "a"),
    "char_length_counts_code_points": ("CHAR_LENGTH", INT, [text("añ😀")], 3),
    "substring": ("SUBSTRING", STRING, [text("añ😀d"), (INT, 2), (INT, 2)], "ñ😀"),
    "substring_to_the_end": ("SUBSTRING", STRING, [text("abc"), (INT, 2)], "bc"),
    "substring_from_the_end": ("SUBSTRING", STRING, [text("abc"), (INT, -2), (INT, 1)], "b"),
    "substring_from_zero": ("SUBSTRING", STRING, [text("abc"), (INT, 0), (INT, 2)], "ab"),
    "substring_beyond": ("SUBSTRING", STRING, [text("abc"), (INT, 9)], ""),
    "substring_of_negative_length": ("SUBSTRING", STRING, [text("abc"), (INT, 1), (INT, -1)], None),
    "concat": ("CONCAT", STRING, [text("a"), text("b")], "ab"),
    "concat_with_null": ("CONCAT", STRING, [text("a"), text(None)], None),
    "bars": ("||", STRING, [text("a"), text("b")], "ab"),
    "concat_ws_skips_null": (
        "CONCAT_WS",
        STRING,
        [text("-"), text("a"), text(None), text("b")],
        "a-b",
    ),
    "concat_ws_keeps_empty": ("CONCAT_WS", STRING, [text("-"), text(""), text("b")], "-b"),
    "concat_ws_of_nulls": ("CONCAT_WS", STRING, [text("-"), text(None)], ""),
    "concat_ws_without_separator": ("CONCAT_WS", STRING, [text(None), text("a")], None),
    "replace": ("REPLACE", STRING, [text("aXbX"), text("X"), text("--")], "a--b--"),
    "lpad": ("LPAD", STRING, [text("7"), (INT, 3), text("ab")], "ab7"),
    "lpad_cuts": ("LPAD", STRING, [text("abc"), (INT, 2), text("x")], "ab"),
    "rpad": ("RPAD", STRING, [text("7"), (INT, 4), text("ab")], "7aba"),
    "pad_with_nothing": ("RPAD", STRING, [text("7"), (INT, 4), text("")], None),
    "position": ("POSITION", INT, [text("😀"), text("añ😀")], 3),
    "position_of_nothing_found": ("POSITION", INT, [text("x"), text("a")], 0),
    "reverse": ("REVERSE", STRING, [text("añ😀")], "😀ña"),
    "left": ("LEFT", STRING, [text("abc"), (INT, 2)], "ab"),
    "right": ("RIGHT", STRING, [text("abc"), (INT, 2)], "bc"),
    "right_of_zero": ("RIGHT", STRING, [text("abc"), (INT, 0)], ""),
    "startswith": ("STARTSWITH", BOOLEAN, [text("abc"), text("ab")], True),
    "endswith": ("ENDSWITH", BOOLEAN, [text("abc"), text("ab")], False),
    "abs": ("ABS", BIGINT, [big(-4)], 4),
    "ceil_of_decimals": ("CEIL", decimal(4, 0), [(decimal(5, 2), Decimal("-1.50"))], Decimal(-1)),
    "floor_of_doubles": ("FLOOR", DOUBLE, [(DOUBLE, -1.5)], -2.0),
    "round_reads_the_shortest_text": ("ROUND", DOUBLE, [(DOUBLE, 1.005), (INT, 2)], 1.01),
    "round_half_away_from_zero": ("ROUND", DOUBLE, [(DOUBLE, -2.5)], -3.0),
    "round_before_the_point": ("ROUND", BIGINT, [big(1250), (INT, -2)], 1300),
    "round_decimals": (
        "ROUND",
        decimal(6, 1),
        [(decimal(5, 2), Decimal("1.25")), (INT, 1)],
        Decimal("1.3"),
    ),
    "sign": ("SIGN", BIGINT, [big(-4)], -1),
    "sign_of_decimals": ("SIGN", decimal(10, 2), [(decimal(10, 2), Decimal("-3.14"))], Decimal(-1)),
    "round_wraps_as_in_java": ("ROUND", TINYINT, [(TINYINT, 127), (INT, -1)], -126),
    "round_to_nothing": ("ROUND", BIGINT, [big(2**61), (INT, -50)], 0),
    "round_a_large_number_to_nothing": ("ROUND", BIGINT, [big(2**63 - 1), (INT, -20)], 0),
    "round_to_more_than_64_bits": ("ROUND", BIGINT, [big(2**63 - 1), (INT, -19)], 10**19 - 2**64),
    "greatest_of_conditions": ("GREATEST", BOOLEAN, [T, F], True),
    "least_of_instants": (
        "LEAST",
        INSTANT,
        [(INSTANT, datetime(2024, 1, 1, tzinfo=UTC)), (INSTANT, datetime(2023, 1, 1, tzinfo=UTC))],
        datetime(2023, 1, 1, tzinfo=UTC),
    ),
    "lower_of_a_last_sigma": ("LOWER", STRING, [text("ΑΣ")], "ας"),
    "upper_of_ligatures": ("UPPER", STRING, [text("ﬃ ŉ")], "FFI \u02bcN"),
    "lower_of_a_dotted_i": ("LOWER", STRING, [text("İ")], "i̇"),
    "like_without_escape": ("LIKE", BOOLEAN, [text("a!"), text("a!"), text("")], True),
    "trim_characters_of_both_ends": ("TRIM", STRING, [text("xyaxy"), text("yx")], "a"),
    "sqrt": ("SQRT", DOUBLE, [(DOUBLE, 9.0)], 3.0),
    "power": ("POWER", DOUBLE, [(DOUBLE, 2.0), (DOUBLE, 10.0)], 1024.0),
    "year": ("YEAR", BIGINT, [LEAP], 2024),
    "month_of_a_date": ("MONTH", BIGINT, [(DATE, date(2024, 2, 29))], 2),
    "day": ("DAYOFMONTH", BIGINT, [LEAP], 29),
    "hour": ("HOUR", BIGINT, [LEAP], 13),
    "minute_of_a_time": ("MINUTE", BIGINT, [(TIME, 45 * 60_000_000)], 45),
    "second": ("SECOND", BIGINT, [LEAP], 59),
    "quarter": ("QUARTER", BIGINT, [LEAP], 1),
    "week_of_iso_8601": ("WEEK", BIGINT, [LEAP], 9),
    "a_thursday": ("DAYOFWEEK", BIGINT, [LEAP], 5),
    "day_of_the_year": ("DAYOFYEAR", BIGINT, [LEAP], 60),
    "milliseconds_later": (
        "+",
        TIMESTAMP_3,
        [(TIMESTAMP_3, datetime(2024, 2, 29)), big(1_500)],
        datetime(2024, 2, 29, 0, 0, 1, 500_000),
    ),
    "a_year_later": (
        "ADD_MONTHS",
        TIMESTAMP_3,
        [(TIMESTAMP_3, datetime(2024, 2, 29)), (INT, 12)],
        datetime(2025, 2, 28),
    ),
    "of_milliseconds": (
        "TO_TIMESTAMP_LTZ",
        INSTANT,
        [big(-1)],
        datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
    ),
}


@pytest.mark.parametrize(("name", "result", "arguments", "expected"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("constants", [False, True], ids=["columns", "last_is_constant"])
def test_calls_mean_what_they_mean_in_flink(name, result, arguments, expected, constants):
    expression, columns = call(name, result, *arguments)
    if constants and arguments[-1][0] in {STRING, INT, BIGINT, BOOLEAN}:
        kind, value = arguments[-1]
        literal = None if value is None else str(value).lower() if kind == BOOLEAN else str(value)
        nodes = (*expression.arguments[:-1], Constant(literal, kind))
        expression = Call(name, nodes, result)
    answer = run(expression, **columns)
    assert answer.errors == {}
    assert answer.values.type == arrow_type(result)
    assert answer.values.to_pylist() == [expected, expected]


# Their cases are Flink's own: tests/service/sql/test_flink_cases.py.
OF_FLINK = {
    *MATHEMATICS, *TEXT_OF_ROWS, *ENCODINGS, *DIGESTS, *REGULAR, *ARRAYS, *MAPS, *QUESTIONS,
    *VALUES, *TEXT_TIMES, *PARTS, "CEIL_TO", "FLOOR_TO", "TIMESTAMPDIFF", "SIMILAR", "PRINTF",
}  # fmt: skip


def test_every_listed_function_has_a_case():
    called = {name for name, *_ in CALLS.values()}
    plain = {"-", "<>", "<=", ">", ">=", "IS NULL", "IS NOT NULL", "LOWER", "RTRIM", "IS TRUE"}
    of_literals = {"DATE_FORMAT"}  # its table is that of the SQL functions
    of_literals |= {"WINDOW_START", "WINDOW_PLACES"}  # their own test holds them to the reference
    nested = {".", "[]", "ROW", "ARRAY", "MAP"}  # with the next ones: theirs is in test_nested
    nested |= {"CARDINALITY", "ARRAY_CONTAINS", "ARRAY_JOIN", "MAP_KEYS", "MAP_VALUES"}
    left = FUNCTIONS - called - plain - of_literals - nested - OF_FLINK
    assert left == {"MOD", "IS NOT FALSE"}


FAILING = {
    "escape_at_the_end": call("NOT LIKE", BOOLEAN, text("a"), text("a!"), text("!")),
    "integer_division_by_zero": call("/", BIGINT, big(1), big(0)),
    "integer_remainder_by_zero": call("%", BIGINT, big(1), big(0)),
    "decimal_division_by_zero": call(
        "/", decimal(5, 2), (decimal(5, 2), Decimal(1)), (decimal(5, 2), Decimal(0))
    ),
}


@pytest.mark.parametrize(("expression", "columns"), FAILING.values(), ids=FAILING)
def test_a_row_that_cannot_be_computed_is_reported(expression, columns):
    answer = run(expression, **columns)
    assert list(answer.errors) == [0, 1]
    assert answer.values.to_pylist() == [None, None]


CASTS = {
    "text_is_trimmed": (STRING, " 12 ", INT, 12),
    "text_loses_its_fraction": (STRING, "-1.9", INT, -1),
    "text_with_plus": (STRING, "+5", BIGINT, 5),
    "text_to_double": (STRING, "1e3", DOUBLE, 1000.0),
    "text_to_decimal_rounds_half_up": (STRING, "1.005", decimal(5, 2), Decimal("1.01")),
    "text_to_decimal_with_exponent": (STRING, "12e-1", decimal(5, 2), Decimal("1.20")),
    "tiny_text_to_decimal": (STRING, "4e-5", decimal(5, 4), Decimal("0.0000")),
    "text_to_decimal_that_is_too_small_for_arrow": (STRING, "7e-9999", decimal(5, 2), Decimal(0)),
    "text_to_decimal_that_arrow_takes_for_0": (STRING, "-6e-115", decimal(38, 38), Decimal(0)),
    "text_to_boolean": (STRING, "YES", BOOLEAN, True),
    "text_to_date": (STRING, "2024-02-29", DATE, date(2024, 2, 29)),
    "text_with_time_to_date": (STRING, "2024-02-29 23:00:00", DATE, date(2024, 2, 29)),
    "text_to_timestamp": (
        STRING, "2024-02-29 01:02:03.1239", TIMESTAMP_3, datetime(2024, 2, 29, 1, 2, 3, 123000),
    ),
    "text_to_instant_is_utc": (
        STRING, "2024-02-29 01:02:03", INSTANT, datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
    ),
    "text_with_offset_to_instant": (
        STRING, "2024-02-29T01:02:03+02:00", INSTANT,
        datetime(2024, 2, 28, 23, 2, 3, tzinfo=UTC),
    ),
    "text_to_time": (STRING, "01:00:00", TIME, 3_600_000_000),
    "text_to_bytes": (STRING, "ä", BYTES, b"\xc3\xa4"),
    "bigint_to_double_rounds_as_in_java": (BIGINT, 2**53 + 1, DOUBLE, float(2**53)),
    "int_to_float_rounds_as_in_java": (INT, 2**24 + 1, FLOAT, float(2**24)),
    "double_truncates": (DOUBLE, -1.9, INT, -1),
    "double_to_decimal_reads_the_shortest_text": (DOUBLE, 1.005, decimal(5, 2), Decimal("1.01")),
    "decimal_truncates_to_integer": (decimal(5, 2), Decimal("-1.99"), INT, -1),
    "decimal_rescales_half_up": (decimal(5, 2), Decimal("-1.25"), decimal(4, 1), Decimal("-1.3")),
    "integer_to_decimal": (BIGINT, 5, decimal(5, 2), Decimal("5.00")),
    "integer_to_boolean": (INT, 2, BOOLEAN, True),
    "boolean_to_integer": (BOOLEAN, True, INT, 1),
    "boolean_to_text": (BOOLEAN, False, STRING, "FALSE"),
    "double_to_text_as_in_java": (DOUBLE, 1e10, STRING, "1.0E10"),
    "small_double_to_text": (DOUBLE, 0.00012, STRING, "1.2E-4"),
    "plain_double_to_text": (DOUBLE, 100.0, STRING, "100.0"),
    "float_to_text_is_shortest": (FLOAT, 0.1, STRING, "0.1"),
    "decimal_to_text_keeps_its_scale": (decimal(8, 7), Decimal("0.0000001"), STRING, "0.0000001"),
    "timestamp_to_text_has_its_digits": (
        TIMESTAMP_3, datetime(2024, 2, 29, 1, 2, 3), STRING, "2024-02-29 01:02:03.000",
    ),
    "seconds_to_text": (SECONDS, datetime(2024, 2, 29, 1, 2, 30), STRING, "2024-02-29 01:02:30"),
    "time_to_text": (TIME, 3_600_000_000, STRING, "01:00:00"),
    "date_to_text": (DATE, date(2024, 2, 29), STRING, "2024-02-29"),
    "date_to_timestamp": (DATE, date(2024, 2, 29), TIMESTAMP, datetime(2024, 2, 29)),
    "timestamp_to_date_before_the_epoch": (
        TIMESTAMP, datetime(1969, 12, 31, 23), DATE, date(1969, 12, 31),
    ),
    "timestamp_to_time": (TIMESTAMP, datetime(1969, 12, 31, 1), TIME, 3_600_000_000),
    "digits_are_cut_towards_the_past": (
        TIMESTAMP, datetime(1969, 12, 31, 23, 59, 59, 999999), SECONDS,
        datetime(1969, 12, 31, 23, 59, 59),
    ),
    "date_of_one_digit": (STRING, "1999-9-1", DATE, date(1999, 9, 1)),
    "date_of_a_year": (STRING, "123", DATE, date(123, 1, 1)),
    "date_of_a_month": (STRING, "0002024-2", DATE, date(2024, 2, 1)),
    "date_before_other_text": (STRING, "2024-02-29 at noon", DATE, date(2024, 2, 29)),
    "time_of_one_digit": (STRING, "1:30:00", TIME, 5_400_000_000),
    "time_of_an_hour": (STRING, "23", TIME, 82_800_000_000),
    "time_with_digits": (STRING, "1:2:3.5", TIME_3, 3_723_500_000),
    "timestamp_of_one_digit": (
        STRING, "1999-9-1 1:2:3.5", TIMESTAMP_3, datetime(1999, 9, 1, 1, 2, 3, 500_000),
    ),
    "instant_of_one_digit": (
        STRING, "1999-9-1 1:2:3", INSTANT, datetime(1999, 9, 1, 1, 2, 3, tzinfo=UTC),
    ),
    "time_without_zeros_at_the_end": (TIME_5, 45_296_123_000, STRING, "12:34:56.123"),
    "time_with_one_zero_at_the_end": (TIME_3, 45_296_000_000, STRING, "12:34:56.0"),
    "time_before_midnight": (TIME, -1_000_000, STRING, "23:59:59"),
    "infinite_text": (STRING, "-Infinity", DOUBLE, -math.inf),
    "text_with_the_letter_of_its_type": (STRING, "+1.5f", FLOAT, 1.5),
    "text_with_many_digits_to_decimal": (STRING, f"0.{1:060}", decimal(5, 2), Decimal(0)),
    "text_without_whole_part": (STRING, ".5", INT, 0),
    "decimal_of_38_digits_to_integer": (decimal(38, 38), Decimal("0.9"), INT, 0),
    "bytes_to_text": (BYTES, b"ab", STRING, "ab"),
    "null_stays_null": (STRING, None, INT, None),
}  # fmt: skip


@pytest.mark.parametrize(("source", "value", "target", "expected"), CASTS.values(), ids=CASTS)
@pytest.mark.parametrize("safe", [False, True], ids=["cast", "try_cast"])
def test_casts_convert(source, value, target, expected, safe):
    answer = run(Cast(Column("t", "a", source), target, safe=safe), a=(source, [value]))
    assert answer.errors == {}
    assert answer.values.type == arrow_type(target)
    assert answer.values.to_pylist() == [expected]


UNFIT = {
    "words": (STRING, "twelve", INT),
    "too_large_text": (STRING, "2147483648", INT),
    "empty_text": (STRING, "", BIGINT),
    "month_13": (STRING, "2024-13-01", DATE),
    "no_leap_year": (STRING, "2023-02-29 00:00:00", TIMESTAMP),
    "too_large_integer": (BIGINT, 2**31, INT),
    "too_large_double": (DOUBLE, 1e30, BIGINT),
    "nan": (DOUBLE, math.nan, INT),
    "infinity_to_decimal": (DOUBLE, math.inf, decimal(5, 2)),
    "too_many_digits": (decimal(5, 2), Decimal("999.99"), decimal(3, 1)),
    "maybe": (STRING, "maybe", BOOLEAN),
    "bytes_that_are_no_utf_8": (BYTES, b"\xff", STRING),
    "no_time": (STRING, "123:45", TIME),
    "slashes": (STRING, "2021/09/27", DATE),
    "day_30_of_february": (STRING, "2024-2-30", DATE),
    "nan_in_lower_case": (STRING, "nan", DOUBLE),
    "hour_25": (STRING, "25:00:00", TIME),
}


@pytest.mark.parametrize(("source", "value", "target"), UNFIT.values(), ids=UNFIT)
def test_an_unfit_value_fails_in_cast_and_is_null_in_try_cast(source, value, target):
    column = Column("t", "a", source)
    values = [value, None, value]
    failed = run(Cast(column, target), a=(source, values))
    assert list(failed.errors) == [0, 2]
    assert failed.errors[0].startswith("cannot cast")
    tried = run(Cast(column, target, safe=True), a=(source, values))
    assert tried.errors == {}
    assert tried.values.to_pylist() == [None, None, None]


AFTER_9999 = Call(
    "ADD_MONTHS", (Constant("9999-12-31 00:00:00", TIMESTAMP), Constant("1", INT)), TIMESTAMP
)
PAIR, NUMBERS = (
    SqlType(TypeName.ROW, members=(Member("t", TIMESTAMP), Member("x", kind)))
    for kind in (STRING, INT)
)


def test_constants_after_the_year_9999_are_values_like_others():
    a = Column("t", "a", STRING)
    year = run(Call("YEAR", (AFTER_9999,), BIGINT), a=(STRING, ["x"]))
    assert (year.values.to_pylist(), year.errors) == ([10_000], {})
    shown = run(Cast(AFTER_9999, STRING), a=(STRING, ["x"]))
    assert shown.values.to_pylist() == ["10000-01-31 00:00:00.000000"]
    pair = run(Call("ROW", (AFTER_9999, a), PAIR), a=(STRING, ["x"]))
    assert (pair.values.field(1).to_pylist(), pair.errors) == (["x"], {})


def test_a_long_list_may_have_a_time_after_the_year_9999():
    early = [Constant(f"2024-01-{day:02} 00:00:00", TIMESTAMP) for day in range(1, 10)]
    column = Column("t", "a", TIMESTAMP)
    listed = Call("IN", (column, *early, AFTER_9999), BOOLEAN)
    answer = run(listed, a=(TIMESTAMP, [datetime(2024, 1, 9), datetime(2024, 1, 10), None]))
    assert (answer.values.to_pylist(), answer.errors) == ([True, False, None], {})


def test_a_cast_names_what_python_has_no_value_for_by_its_type():
    pair = Call("ROW", (AFTER_9999, Column("t", "a", STRING)), PAIR)
    answer = run(Cast(pair, NUMBERS), a=(STRING, ["x", "7"]))
    assert list(answer.errors) == [0]
    assert answer.errors[0].startswith('cannot cast "struct<')


NANOS = SqlType(TypeName.TIMESTAMP, 9)


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(-(10**18), 10**18) | st.integers(-2000, 2000), min_size=1, max_size=9),
    st.sampled_from([TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ, TypeName.TIME]),
    st.integers(0, 6),
)
def test_finer_digits_are_cut_towards_the_past(nanos, name, digits):
    target = SqlType(name, digits)
    column = pa.array(nanos, pa.int64()).cast(pa.timestamp("ns"))
    cast_to = Cast(Column("t", "a", NANOS), target)
    answer = evaluate_rows(cast_to, Scope(lambda _: column, len(nanos), 0))
    step = 10 ** (9 - digits)
    expected = [each // step * step // 1_000 for each in nanos]
    if name is TypeName.TIME:
        expected = [each % 86_400_000_000 for each in expected]
    assert answer.values.cast(pa.int64()).to_pylist() == expected


A, B = Column("t", "a", BIGINT), Column("t", "b", BIGINT)
ZERO = Constant("0", BIGINT)
QUOTIENT = Call("/", (A, B), BIGINT)
B_IS_ZERO = Call("=", (B, ZERO), BOOLEAN)
B_IS_NOT_ZERO = Call("<>", (B, ZERO), BOOLEAN)
POSITIVE = Call(">", (QUOTIENT, ZERO), BOOLEAN)
GUARDED = {
    "case": (Case(((B_IS_NOT_ZERO, QUOTIENT),), None, BIGINT), [3, None]),
    "case_else": (Case(((B_IS_ZERO, ZERO),), QUOTIENT, BIGINT), [3, 0]),
    "later_condition": (
        Case(((B_IS_ZERO, ZERO), (POSITIVE, Constant("1", BIGINT))), None, BIGINT), [1, 0],
    ),
    "and": (Call("AND", (B_IS_NOT_ZERO, POSITIVE), BOOLEAN), [True, False]),
    "or": (Call("OR", (B_IS_ZERO, POSITIVE), BOOLEAN), [True, True]),
    "coalesce": (Call("COALESCE", (A, QUOTIENT), BIGINT), [6, 7]),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), GUARDED.values(), ids=GUARDED)
def test_a_guarded_division_by_zero_does_not_fail(expression, expected):
    answer = run(expression, a=(BIGINT, [6, 7]), b=(BIGINT, [2, 0]))
    assert answer.errors == {}
    assert answer.values.to_pylist() == expected


def test_an_unguarded_division_fails_in_its_own_row_only():
    answer = run(QUOTIENT, a=(BIGINT, [6, 7, 8]), b=(BIGINT, [2, 0, 4]))
    assert list(answer.errors) == [1]
    assert answer.values.to_pylist() == [3, None, 2]


def test_constants_and_the_pinned_time_fill_every_row():
    assert run(Constant("x", STRING), rows=3).values.to_pylist() == ["x"] * 3
    assert run(Constant("00ff", BYTES)).values.to_pylist() == [b"\x00\xff"]
    assert run(Constant(" x ", STRING)).values.to_pylist() == [" x "]
    pinned = datetime(1970, 1, 2, 0, 0, 0, 123000, tzinfo=UTC)
    assert run(ProcTime(INSTANT), rows=2).values.to_pylist() == [pinned] * 2
    failed = run(Cast(Constant("x", STRING), INT), rows=2)
    assert list(failed.errors) == [0, 1]


def test_no_rows_give_no_rows():
    for name, result, arguments, _ in CALLS.values():
        expression, columns = call(name, result, *arguments)
        empty = {key: (kind, []) for key, (kind, _) in columns.items()}
        arrays = {key: pa.array([], arrow_type(kind)) for key, (kind, _) in empty.items()}
        answer = evaluate_rows(expression, Scope(lambda c, a=arrays: a[c.name], 0, 0))
        assert (len(answer.values), answer.errors) == (0, {}), name


@pytest.mark.parametrize(
    "expression",
    [Call("EXEC", (), STRING), Constant("x", INT)],
    ids=["unknown_function", "constant_of_another_type"],
)
def test_a_wrong_expression_raises(expression):
    with pytest.raises(ExpressionError):
        run(expression)


def test_callers_without_dead_letters_get_an_error():
    arrays = {"a": pa.array([1]), "b": pa.array([0])}
    with pytest.raises(ExpressionError):
        evaluate(QUOTIENT, lambda column: arrays[column.name], 1, 0)


MAYBE_INT = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))


def java(number):
    return (number + 2**63) % 2**64 - 2**63


def quotient(left, right):
    whole = abs(left) // abs(right)
    return java(whole if (left < 0) == (right < 0) else -whole)


OPERATORS = {
    "+": lambda a, b: java(a + b),
    "-": lambda a, b: java(a - b),
    "*": lambda a, b: java(a * b),
    "/": quotient,
    "%": lambda a, b: java(a - quotient(a, b) * b),
}


@settings(max_examples=examples(200))
@given(
    rows=st.lists(st.tuples(MAYBE_INT, MAYBE_INT), min_size=1, max_size=20),
    name=st.sampled_from(sorted(OPERATORS)),
)
def test_integer_arithmetic_is_javas(rows, name):
    answer = run(
        Call(name, (A, B), BIGINT),
        a=(BIGINT, [row[0] for row in rows]),
        b=(BIGINT, [row[1] for row in rows]),
    )
    for at, (left, right) in enumerate(rows):
        if left is None or right is None:
            assert answer.values[at].as_py() is None
        elif right == 0 and name in "/%":
            assert at in answer.errors
        else:
            assert answer.values[at].as_py() == OPERATORS[name](left, right)


def cut_to(number, step, nearest):
    whole = (abs(number) + (step // 2 if nearest else 0)) // step * step
    return whole if number >= 0 else -whole


@settings(max_examples=examples(200))
@given(
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.sampled_from([0, 2, 10, 37, 38]),
    st.integers(-38, 38),
    st.sampled_from(["TRUNCATE", "ROUND"]),
)
def test_a_decimal_is_cut_and_rounded_with_all_its_digits(digits, scale, places, name):
    kind = decimal(38, scale)
    value = Decimal(digits).scaleb(-scale, EXACT)
    answer = run(
        Call(name, (Column("t", "a", kind), Column("t", "b", INT)), kind),
        a=(kind, [value]),
        b=(INT, [places]),
    )
    expected = cut_to(digits, 10 ** max(0, scale - places), name == "ROUND")
    fits = abs(expected) < 10**38
    assert answer.values.to_pylist() == [Decimal(expected).scaleb(-scale, EXACT) if fits else None]


@settings(max_examples=examples(200))
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.sampled_from([0, 2, 38]), st.integers(0, 40))
def test_printf_shows_all_digits_of_a_decimal(digits, scale, places):
    kind = decimal(38, scale)
    answer = run(
        Call("PRINTF", (Constant(f"%.{places}f", STRING), Column("t", "a", kind)), STRING),
        a=(kind, [Decimal(digits).scaleb(-scale, EXACT)]),
    )
    step = 10 ** max(0, scale - places)
    shown = cut_to(digits, step, nearest=True) // step * 10 ** max(0, places - scale)
    plain = format(Decimal(shown).scaleb(-places, EXACT).copy_abs(), "f")
    assert answer.values.to_pylist() == [f"-{plain}" if digits < 0 else plain]


JAVA_FORMATS = {
    "a power has two digits": ("%e", 1.5, "1.500000e+00"),
    "a power has three digits": ("%.1e", 1.25e-300, "1.3e-300"),
    "the middle is rounded up": ("%.0e", 2.5, "3e+00"),
    "rounding adds a digit": ("%.2E", 9.999, "1.00E+01"),
    "nothing": ("%e", 0.0, "0.000000e+00"),
    "less than nothing": ("%f", -0.0, "-0.000000"),
    "more than 28 digits": ("%.2f", 1e30, f"{10**30}.00"),
    "the largest": ("%,.0f", 1e308, f"{10**308:,}"),
}


@pytest.mark.parametrize(("pattern", "value", "shown"), JAVA_FORMATS.values(), ids=JAVA_FORMATS)
def test_printf_shows_floating_numbers_as_java_does(pattern, value, shown):
    expression = Call("PRINTF", (Constant(pattern, STRING), Column("t", "a", DOUBLE)), STRING)
    assert run(expression, a=(DOUBLE, [value])).values.to_pylist() == [shown]


TRUTH = st.sampled_from([True, False, None])


def kleene(name, left, right):
    if name == "AND":
        return False if False in (left, right) else None if None in (left, right) else True
    return True if True in (left, right) else None if None in (left, right) else False


@given(st.sampled_from(["AND", "OR"]), st.lists(st.tuples(TRUTH, TRUTH), min_size=1, max_size=9))
def test_logic_is_three_valued(name, rows):
    expression = Call(name, (Column("t", "a", BOOLEAN), Column("t", "b", BOOLEAN)), BOOLEAN)
    answer = run(
        expression,
        a=(BOOLEAN, [row[0] for row in rows]),
        b=(BOOLEAN, [row[1] for row in rows]),
    )
    assert answer.values.to_pylist() == [kleene(name, *row) for row in rows]
