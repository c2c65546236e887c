"""The start of a row's window is that of the reference's windows, also before 1970."""

from datetime import datetime, timedelta

import pyarrow as pa
from hypothesis import given, strategies

from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.plan.types import Call, Column, Constant, SqlType, TypeName, array_type
from watermark.reference.windows.assigners import (
    CumulativeWindows,
    SlidingWindows,
    window_start,
)

TIME, BIGINT = SqlType(TypeName.TIMESTAMP, 3), SqlType(TypeName.BIGINT)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone


def started(times: list[int | None], size_ms: int, offset_ms: int):
    column = Column("s", "ts", TIME)
    sizes = (Constant(str(ms), BIGINT) for ms in (size_ms, offset_ms))
    micros = [None if at is None else at * 1000 for at in times]
    values = pa.array(micros, pa.timestamp("us"))
    scope = Scope(lambda _: values, len(times), 0)
    return evaluate_rows(Call("WINDOW_START", (column, *sizes), TIME), scope)


@given(
    strategies.lists(strategies.integers(-(10**13), 10**13), min_size=1, max_size=5),
    strategies.integers(1, 10**9),
    strategies.integers(-(10**6), 10**6),
)
def test_windows_start_where_those_of_the_reference_do(times, size_ms, offset_ms):
    offset_ms %= size_ms
    found = started(times, size_ms, offset_ms)
    expected = [EPOCH + timedelta(milliseconds=window_start(t, offset_ms, size_ms)) for t in times]
    assert found.values.to_pylist() == expected
    assert found.errors == {}


ASSIGNERS = {False: SlidingWindows, True: CumulativeWindows}


@given(
    strategies.lists(strategies.integers(-(10**13), 10**13), min_size=1, max_size=5),
    strategies.integers(1, 10**6),
    strategies.integers(1, 7),
    strategies.integers(-(10**6), 10**6),
    strategies.booleans(),
)
def test_the_windows_of_a_row_are_those_of_the_reference(times, step_ms, steps, offset_ms, grows):
    size_ms = steps * step_ms
    offset_ms %= size_ms if grows else step_ms
    found = placed([*times, None], size_ms, step_ms, offset_ms, grows)
    assigner = ASSIGNERS[grows](size_ms, step_ms, offset_ms)
    expected = [
        [EPOCH + timedelta(milliseconds=w.end_ms if grows else w.start_ms) for w in windows]
        for windows in (assigner.assign(None, at, 0) for at in times)
    ]
    assert found.values.to_pylist() == [*expected, None]
    assert list(found.errors) == [len(times)]


def placed(times: list[int | None], size_ms: int, step_ms: int, offset_ms: int, grows: bool):
    column = Column("s", "ts", TIME)
    sizes = (Constant(str(ms), BIGINT) for ms in (size_ms, step_ms, offset_ms))
    micros = [None if at is None else at * 1000 for at in times]
    values = pa.array(micros, pa.timestamp("us"))
    flag = Constant(str(grows).lower(), SqlType(TypeName.BOOLEAN))
    call = Call("WINDOW_PLACES", (column, *sizes, flag), array_type(TIME, nullable=False))
    return evaluate_rows(call, Scope(lambda _: values, len(times), 0))


def test_a_row_without_a_time_is_in_no_window():
    result = started([5, None], 10, 0)
    assert result.values.to_pylist() == [EPOCH, None]
    assert list(result.errors) == [1]
