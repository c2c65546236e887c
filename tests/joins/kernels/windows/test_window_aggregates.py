"""Aggregates of windows: Flink's types and NULL rules, whatever the cut into parts."""

import math
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.row_kinds import SIGNS
from joins.kernels.windows.firing import project
from joins.kernels.windows.spec import WindowKey
from joins.plan.plan import WINDOW, AggregateKind, OutputColumn, WindowKind
from joins.plan.types import Call, Cast, Column, Constant, SqlType, TypeName
from tests.support.laws import examples
from tests.support.windows import (
    BIGINT,
    COUNTED,
    ENDLESS,
    STRING,
    KernelWindows,
    aggregate,
    window_spec,
)

F = AggregateKind
TINYINT, INT = SqlType(TypeName.TINYINT), SqlType(TypeName.INT)
FLOAT, DOUBLE = SqlType(TypeName.FLOAT), SqlType(TypeName.DOUBLE)
BOOLEAN, DATE = SqlType(TypeName.BOOLEAN), SqlType(TypeName.DATE)
MONEY, WIDE = SqlType(TypeName.DECIMAL, 10, 2), SqlType(TypeName.DECIMAL, 38, 2)
FINE = SqlType(TypeName.DECIMAL, 38, 6)
WHOLE = SqlType(TypeName.DECIMAL, 38, 0)


def dec(*texts):
    return [None if text is None else Decimal(text) for text in texts]


MINUS_TWO = Decimal("-2.00")
AGGREGATES = {
    "count_counts_values": (F.COUNT, STRING, BIGINT, ["a", None, "a"], 2),
    "count_of_nulls_is_zero": (F.COUNT, INT, BIGINT, [None, None], 0),
    "sum_of_int_is_an_int": (F.SUM, INT, INT, [1, None, 2], 3),
    "sum_of_int_wraps_as_in_java": (F.SUM, INT, INT, [2**31 - 1, 1], -(2**31)),
    "sum_of_tinyint_wraps": (F.SUM, TINYINT, TINYINT, [100, 100], -56),
    "sum_of_bigint_wraps": (F.SUM, BIGINT, BIGINT, [2**63 - 1, 1], -(2**63)),
    "sum_of_nulls_is_null": (F.SUM, INT, INT, [None, None], None),
    "sum_of_decimals_is_exact": (F.SUM, MONEY, WIDE, dec("0.10", "0.20", None), Decimal("0.30")),
    "sum_of_decimals_that_does_not_fit_is_null": (F.SUM, WHOLE, WHOLE, dec("9e37", "9e37"), None),
    "a_sum_that_was_too_large_on_the_way_is_exact": (
        F.SUM, WHOLE, WHOLE, dec("9e37", "9e37", "-9e37", "-9e37", "1"), Decimal(1),
    ),
    "sum_of_doubles": (F.SUM, DOUBLE, DOUBLE, [0.5, None, 0.25], 0.75),
    "sum_of_floats": (F.SUM, FLOAT, FLOAT, [0.5, 0.25], 0.75),
    "average_of_integers_truncates": (F.AVG, INT, INT, [1, 2, 2], 1),
    "average_truncates_towards_zero": (F.AVG, INT, INT, [-1, -2, -2], -1),
    "average_of_int_does_not_wrap": (F.AVG, INT, INT, [2**31 - 1, 2**31 - 1], 2**31 - 1),
    "average_leaves_nulls_out": (F.AVG, INT, INT, [4, None, 2], 3),
    "average_of_nulls_is_null": (F.AVG, INT, INT, [None], None),
    "average_of_doubles": (F.AVG, DOUBLE, DOUBLE, [1.0, 2.0], 1.5),
    "average_of_decimals_rounds_half_up": (
        F.AVG, MONEY, FINE, dec("0.01", "0.01", "0.00"), Decimal("0.006667"),
    ),
    "minimum": (F.MIN, INT, INT, [3, None, 2], 2),
    "maximum": (F.MAX, INT, INT, [3, None, 2], 3),
    "minimum_of_nulls_is_null": (F.MIN, INT, INT, [None, None], None),
    "minimum_of_texts_is_by_code_point": (F.MIN, STRING, STRING, ["b", "Z", "é"], "Z"),
    "maximum_of_dates": (
        F.MAX, DATE, DATE, [date(2024, 2, 29), date(2023, 1, 1)], date(2024, 2, 29),
    ),
    "maximum_of_decimals": (F.MAX, MONEY, MONEY, dec("1.10", None, "-2.00"), Decimal("1.10")),
    "maximum_of_booleans": (F.MAX, BOOLEAN, BOOLEAN, [False, True], True),
    "first_value": (F.FIRST_VALUE, INT, INT, [None, 3, 1, None, 2], 3),
    "last_value": (F.LAST_VALUE, INT, INT, [None, 3, 1, 2, None], 2),
    "first_value_of_nulls_is_null": (F.FIRST_VALUE, STRING, STRING, [None, None], None),
    "last_value_of_decimals": (F.LAST_VALUE, MONEY, MONEY, dec("1.10", None, "-2.00"), MINUS_TWO),
    "last_value_of_booleans": (F.LAST_VALUE, BOOLEAN, BOOLEAN, [False, True, None], True),
    "listagg_is_in_order_of_arrival": (F.LISTAGG, STRING, STRING, ["b", None, "a", ""], "b,a,"),
    "listagg_of_nulls_is_null": (F.LISTAGG, STRING, STRING, [None], None),
}  # fmt: skip
DISTINCT = {
    "count": (F.COUNT, STRING, BIGINT, ["a", None, "b", "a"], 2),
    "count_of_nulls": (F.COUNT, STRING, BIGINT, [None], 0),
    "sum": (F.SUM, INT, INT, [2, 2, 3, None], 5),
    "average": (F.AVG, INT, INT, [2, 2, 4], 3),
    "sum_of_decimals": (F.SUM, MONEY, WIDE, dec("0.10", "0.10", "1.00"), Decimal("1.10")),
    "maximum": (F.MAX, INT, INT, [2, 2, 4], 4),
    "last_value_is_the_last_that_was_new": (F.LAST_VALUE, INT, INT, [1, 2, 1], 2),
    "listagg_keeps_the_first_of_each": (F.LISTAGG, STRING, STRING, ["b", "a", "b"], "b,a"),
}


def fired(items, rows, *, cut=None, late_from=None):
    """The one row of `items` over `rows`, cut into two batches, or with late rows at the end."""
    spec = window_spec(
        WindowKind.TUMBLE, 1_000, lateness_ms=1_000, aggregates=items, retracts=False
    )
    windows = KernelWindows(spec)
    for number, arguments in enumerate(rows):
        if number == cut:
            windows.end_batch()
        if number == late_from:
            windows.watermark(999)
        windows.row(("k",), arguments, 500)
    windows.watermark(ENDLESS)
    windows.end_batch()
    _, row, _ = windows.fired[-1]
    return [row[item.name] for item in items], len(windows.fired)


@pytest.mark.parametrize(
    ("function", "kind", "result", "values", "expected"), AGGREGATES.values(), ids=AGGREGATES
)
def test_aggregates_are_those_of_flink(function, kind, result, values, expected):
    items = (aggregate(0, function, kind, result),)
    rows = [(value,) for value in values]
    for cut in (None, 1):
        assert fired(items, rows, cut=cut) == ([expected], 1)
    # Each row behind the first is late, and fires with all before it.
    assert fired(items, rows, late_from=1) == ([expected], len(rows))


@pytest.mark.parametrize(
    ("function", "kind", "result", "values", "expected"), DISTINCT.values(), ids=DISTINCT
)
def test_equal_arguments_count_once_with_distinct(function, kind, result, values, expected):
    items = (aggregate(0, function, kind, result, distinct=True),)
    rows = [(value,) for value in values]
    for cut in (None, 1, 2):
        assert fired(items, rows, cut=cut) == ([expected], 1)


def test_rows_that_a_filter_leaves_out_do_not_count():
    items = (
        aggregate(0, F.COUNT_ALL, where=True),
        aggregate(1, F.SUM, INT, INT, where=True),
        aggregate(2, F.COUNT, INT, where=True),
    )
    rows = [(True, 1, True, 1, False), (None, 2, False, 2, True), (False, 4, None, 4, None)]
    assert fired(items, rows) == ([1, 1, 1], 1)
    nothing = [(False, 1, False, 1, False)]
    assert fired(items, nothing) == ([0, None, 0], 1)


@settings(max_examples=examples(30))
@given(
    values=st.lists(
        st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), min_size=1, max_size=20
    ),
    cut=st.integers(0, 20),
    late_from=st.integers(0, 20),
)
def test_parts_add_up_to_the_whole(values, cut, late_from):
    items = (
        aggregate(0, F.COUNT_ALL),
        aggregate(1, F.SUM, INT, BIGINT),
        aggregate(2, F.MIN, INT, INT),
        aggregate(3, F.COUNT, INT, distinct=True),
        aggregate(4, F.AVG, INT, INT),
        aggregate(5, F.FIRST_VALUE, INT, INT),
        aggregate(6, F.LAST_VALUE, INT, INT),
    )
    found, _ = fired(items, [(v,) * 6 for v in values], cut=cut, late_from=late_from)
    known = [value for value in values if value is not None]
    mean = math.trunc(Decimal(sum(known)) / len(known)) if known else None
    total = sum(known) if known else None
    ends = (known[0], known[-1]) if known else (None, None)
    assert found == [len(values), total, min(known, default=None), len(set(known)), mean, *ends]


KEYS = {
    "null_is_a_key": ([STRING], [(None,), ("a",), (None,)], [2, 1]),
    "texts_and_numbers": ([STRING, INT], [("a", 1), ("a", 2), ("a", 1)], [2, 1]),
    "zero_has_no_sign": ([DOUBLE], [(0.0,), (-0.0,)], [2]),
    "nan_equals_nan": ([DOUBLE], [(math.nan,), (-math.nan,)], [2]),
    "decimals": ([MONEY], [(Decimal("1.00"),), (Decimal("2.00"),), (Decimal("1.00"),)], [2, 1]),
    "far_numbers": ([BIGINT], [(-(2**63),), (2**63 - 1,), (0,), (0,)], [2, 1, 1]),
    "no_key": ([], [(), ()], [2]),
}


@pytest.mark.parametrize(("types", "keys", "counts"), KEYS.values(), ids=KEYS)
def test_equal_keys_are_one_key(types, keys, counts):
    spec = window_spec(
        WindowKind.TUMBLE,
        1_000,
        keys=tuple(WindowKey(f"k{at}", kind) for at, kind in enumerate(types)),
        aggregates=(aggregate(0, F.COUNT_ALL),),
        buckets=3,
    )
    windows = KernelWindows(spec)
    for number, key in enumerate(keys):
        windows.row(key, (), number)
        windows.end_batch()
    windows.watermark(ENDLESS)
    windows.end_batch()
    assert sorted((row["a0"] for _, row, _ in windows.fired), reverse=True) == counts


# Output
# --------------------------------------------------------------------------------------------------

COUNT = Column(WINDOW, "a0", BIGINT)
OUTPUT = (
    OutputColumn("word", Column(WINDOW, "k", STRING), nullable=False),
    OutputColumn("n", Call("*", (COUNT, Constant("10", BIGINT)), BIGINT)),
)


def projected(spec, counts):
    """One key whose first row is on time; each further one is late and fires again."""
    windows = KernelWindows(spec)
    for number in range(counts):
        windows.row(("a",), (1, "x"), 500)
        windows.watermark(999)
        if number == 0:
            windows.end_batch()
    seen = []
    windows.on_fired = lambda each: seen.append(project(spec, each, 0))
    windows.end_batch()
    (only,) = seen
    signs = [SIGNS[kind] for kind in only.kinds.to_pylist()]
    return list(zip(signs, only.rows.column("n").to_pylist(), strict=True)), only.dead.to_pylist()


def at_most(limit):
    return Call("<=", (COUNT, Constant(str(limit), BIGINT)), BOOLEAN)


HAVING = {
    "all_pass": (None, True, [("-U", 10), ("+U", 20), ("-U", 20), ("+U", 30)]),
    "old_rows_are_not_asked_for": (None, False, [("+U", 20), ("+U", 30)]),
    "a_row_that_no_longer_passes_is_deleted": (at_most(1), False, [("-D", 10)]),
    "what_never_passed_is_not_deleted": (at_most(0), True, []),
    "a_row_that_passes_only_now_is_new": (
        Call("NOT", (at_most(2),), BOOLEAN), True, [("+I", 30)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("having", "retracts", "expected"), HAVING.values(), ids=HAVING)
def test_having_decides_for_each_firing(having, retracts, expected):
    spec = window_spec(
        WindowKind.TUMBLE, 1_000, lateness_ms=1_000, output=OUTPUT, having=having,
        retracts=retracts,
    )  # fmt: skip
    assert projected(spec, 3) == (expected, [])


@pytest.mark.parametrize("retracts", [True, False])
def test_a_window_that_cannot_be_computed_is_a_dead_letter_and_what_it_was_goes(retracts):
    by = Call("-", (COUNT, Constant("2", BIGINT)), BIGINT)
    output = (OutputColumn("n", Call("/", (Constant("10", BIGINT), by), BIGINT)),)
    spec = window_spec(
        WindowKind.TUMBLE, 1_000, lateness_ms=1_000, output=output, retracts=retracts
    )
    rows, dead = projected(spec, 3)
    assert rows == [("-D", -10), ("+I", 10)]
    (letter,) = dead
    assert letter["reason"].startswith('"/": division by zero')
    assert b'"a0":2' in letter["value"]


def test_a_sum_that_a_late_row_makes_too_large_for_a_not_null_column_is_taken_back():
    most = Decimal(10**38 - 1)
    total = aggregate(0, F.SUM, SqlType(TypeName.DECIMAL, 38, 0), SqlType(TypeName.DECIMAL, 38, 0))
    output = (OutputColumn("n", Column(WINDOW, "a0", total.type), nullable=False),)
    spec = window_spec(
        WindowKind.TUMBLE, 1_000, lateness_ms=1_000, aggregates=(total,), output=output,
        retracts=False,
    )  # fmt: skip
    windows = KernelWindows(spec)
    seen = []
    windows.on_fired = lambda each: seen.append(project(spec, each, 0))
    for number in (most, Decimal(1)):
        windows.row(("a",), (number,), 500)
        windows.watermark(999)
        windows.end_batch()
    rows = [
        (SIGNS[k], n)
        for each in seen
        for k, n in zip(each.kinds.to_pylist(), each.rows.column("n").to_pylist(), strict=True)
    ]
    assert rows == [("+I", most), ("-D", most)]
    assert [len(each.dead) for each in seen] == [0, 1]


def test_a_null_that_the_sink_does_not_take_is_a_dead_letter():
    value = Cast(Column(WINDOW, "k", STRING), BIGINT, safe=True)
    output = (OutputColumn("n", value, nullable=False),)
    spec = window_spec(WindowKind.TUMBLE, 1_000, lateness_ms=1_000, output=output, retracts=False)
    rows, dead = projected(replace(spec, aggregates=COUNTED), 2)
    assert rows == []
    assert [each["reason"] for each in dead] == [
        'column "n" of the sink is NOT NULL and would be NULL'
    ]
