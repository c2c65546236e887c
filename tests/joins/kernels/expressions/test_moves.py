"""Times plus milliseconds or months, and times of numbers, as Python's own calendar has them."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import calendar
import datetime as dt

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.expressions.evaluate import Evaluated, Scope, evaluate_rows
from joins.plan.types import Call, Column, Constant, SqlType, TypeName, arrow_type
from tests.support.laws import examples

TIME = SqlType(TypeName.TIMESTAMP, 3)
INSTANT = SqlType(TypeName.TIMESTAMP_LTZ, 3)
BIGINT = SqlType(TypeName.BIGINT)
INT = SqlType(TypeName.INT)
EPOCH = dt.datetime(1970, 1, 1)
TIMES = st.lists(
    st.none() | st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)), max_size=20
)


def called(function: str, values: list[object], of: SqlType, count: Constant) -> Evaluated:
    column = Column("s", "x", of)
    result = BIGINT if function.startswith("TO") else of
    call = Call(function, (column, count), INSTANT if result == BIGINT else TIME)
    array = pa.array(values, arrow_type(of))
    return evaluate_rows(call, Scope(lambda _: array, len(values), 0))


def months_later(time: dt.datetime, months: int) -> dt.datetime | None:
    year, month = divmod(time.year * 12 + time.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    day = min(time.day, calendar.monthrange(year, month + 1)[1])
    return time.replace(year=year, month=month + 1, day=day)


@given(TIMES, st.integers(0, 10**11), st.sampled_from(["+", "-"]))
@settings(max_examples=examples(100))
def test_milliseconds_are_added_as_by_the_calendar(times, ms, sign):
    found = called(sign, times, TIME, Constant(str(ms), BIGINT))
    assert found.errors == {}
    micros = found.values.cast(pa.int64()).to_pylist()
    delta = ms * 1_000 * (1 if sign == "+" else -1)
    assert micros == [
        None if time is None else (time - EPOCH) // dt.timedelta(microseconds=1) + delta
        for time in times
    ]


@given(TIMES, st.integers(-5_000, 5_000))
@settings(max_examples=examples(200))
def test_months_are_added_as_by_the_calendar(times, months):
    found = called("ADD_MONTHS", times, TIME, Constant(str(months), INT))
    assert found.errors == {}
    for time, micros in zip(times, found.values.cast(pa.int64()).to_pylist(), strict=True):
        later = None if time is None else months_later(time, months)
        if time is None:
            assert micros is None
        elif later is not None:
            assert micros == (later - EPOCH) // dt.timedelta(microseconds=1)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20), st.booleans())
@settings(max_examples=examples(200))
def test_a_number_is_a_time_or_null_and_of_the_year_0_its_row_fails(numbers, of_seconds):
    precision = Constant("0" if of_seconds else "3", INT)
    found = called("TO_TIMESTAMP_LTZ", numbers, BIGINT, precision)
    unit = 1_000_000 if of_seconds else 1_000
    first, last = (
        (time - EPOCH) // dt.timedelta(microseconds=1)
        for time in (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))
    )
    fits = [number is not None and first <= number * unit <= last for number in numbers]
    expected = [number * unit if ok else None for number, ok in zip(numbers, fits, strict=True)]
    assert found.values.cast(pa.int64()).to_pylist() == expected
    year_0 = first - 366 * 86_400_000_000
    told = {i for i, n in enumerate(numbers) if n is not None and year_0 <= n * unit < first}
    assert set(found.errors) == told


def test_a_time_that_does_not_fit_fails_its_row_alone():
    times = pa.array([2**63 - 2, -(2**63) + 1, None, 0]).cast(pa.timestamp("us"))
    for sign, row in (("+", 0), ("-", 1)):
        call = Call(sign, (Column("s", "x", TIME), Constant("1", BIGINT)), TIME)
        found = evaluate_rows(call, Scope(lambda _: times, 4, 0))
        assert set(found.errors) == {row}
        assert found.values.is_valid().to_pylist() == [row != 0, row != 1, False, True]
