"""All functions and operators of `Call`: comparison, logic and dates, and references to the rest.

NULL in gives NULL, except where SQL says otherwise.
"""

from collections.abc import Callable, Mapping
from functools import partial, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.text_times import TEXT_TIMES
from joins.kernels.calendar.times import PARTS, add_months, difference, rounded
from joins.kernels.expressions.arithmetic import ARITHMETIC
from joins.kernels.expressions.arrays import ARRAYS, contains
from joins.kernels.expressions.casts import Checked, Mask, cast, mask_of
from joins.kernels.expressions.json_functions import QUESTIONS, VALUES
from joins.kernels.expressions.mathematics import MATHEMATICS
from joins.kernels.expressions.nested_access import (
    MAPS,
    array_contains,
    array_join,
    array_join_bytes,
    array_of,
    cardinality,
    distinct,
    element_of,
    entries_of,
    equal,
    field_of,
    map_of,
    row_of,
)
from joins.kernels.expressions.operation import (
    Function,
    Operation,
    Value,
    bounded,
    broadcast,
    bytes_of_all,
    plain,
)
from joins.kernels.strings.encodings import DIGESTS, ENCODINGS
from joins.kernels.strings.printf import printf
from joins.kernels.strings.regular import REGULAR, similar
from joins.kernels.strings.texts import TEXT, TEXT_OF_ROWS
from joins.plan.types import TypeName, arrow_type

_MICROS_PER_MS = 1_000


def window_start(op: Operation) -> Checked:
    """WINDOW_START(time, size, offset) in milliseconds; a row without a time is in no window."""
    micros, missing = _times(op)
    size, offset = (_micros(op, at) for at in (1, 2))
    starts = micros - np.mod(micros - offset, size)
    return Checked(cast(pa.array(starts, mask=missing), arrow_type(op.result)), missing)


def window_places(op: Operation) -> Checked:
    """WINDOW_PLACES(time, size, step, offset, grows): an array with a time for each window.

    The windows' starts for HOP; with `grows` the ends of CUMULATE's windows, which begin together.
    The latest comes first, as in the reference. A row without a time has none.
    """
    micros, missing = _times(op)
    size, step, offset = (_micros(op, at) for at in (1, 2, 3))
    grows = op.constant(4)
    assert grows is not None, "the planner gives literals"
    latest = micros - np.mod(micros - offset, size if grows.as_py() else step)
    counts = np.maximum(0, -(-(size - (micros - latest)) // step))
    counts[missing] = 0
    ends = np.cumsum(counts)
    back = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    places = np.repeat(latest + (size if grows.as_py() else 0), counts) - back * step
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    kind = arrow_type(op.result)
    values = cast(pa.array(places), kind.value_type)
    lists = pa.ListArray.from_arrays(offsets, values, type=kind, mask=pa.array(missing))
    return Checked(lists, missing)


def _times(op: Operation) -> tuple[npt.NDArray[np.int64], Mask]:
    times = op.array(0)
    micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return micros, mask_of(pc.is_null(times))


def _micros(op: Operation, at: int) -> int:
    constant = op.constant(at)
    assert constant is not None, "the planner gives literals"
    return int(constant.as_py()) * _MICROS_PER_MS


def _comparison(function: Callable[..., Value]) -> Function:
    def apply(op: Operation) -> Value:
        if op.types[0].name is TypeName.BOOLEAN:
            return function(*(item.cast(pa.int8()) for item in op.arguments))
        return function(*op.arguments)

    return apply


def _whole_or(nested: Function, scalar: Function) -> Function:
    return lambda op: (nested if op.types[0].is_nested else scalar)(op)


def _is_distinct(op: Operation) -> Value:
    left, right = op.arrays()
    differs = pc.fill_null(pc.not_equal(left, right), False)
    return pc.or_(differs, pc.xor(pc.is_null(left), pc.is_null(right)))


def _is_true(expected: bool) -> Function:
    def apply(op: Operation) -> Value:
        filled = pc.fill_null(op.array(0), not expected)
        return filled if expected else pc.invert(filled)

    return apply


def _not(function: Function) -> Function:
    def apply(op: Operation) -> Value | Checked:
        value = function(op)
        if isinstance(value, Checked):
            return Checked(pc.invert(value.values), value.failed)
        return pc.invert(value)

    return apply


def _in(op: Operation) -> Value:
    value, *candidates = op.arguments
    equal = (pc.equal(value, candidate) for candidate in candidates)
    if len(candidates) <= 8 or any(isinstance(item, pa.Array) for item in candidates):
        return reduce(pc.or_kleene, equal)
    known = pa.concat_arrays([broadcast(item, 1) for item in candidates]).drop_null()
    is_member = pc.is_in(value, known)
    if len(known) < len(candidates):
        is_member = pc.if_else(is_member, True, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(value), is_member, pa.scalar(None, pa.bool_()))


def _in_wholes(op: Operation) -> Value:
    value, *candidates = op.arguments
    pairs = [
        Operation((value, item), (op.types[0], op.types[0]), op.result, op.num_rows)
        for item in candidates
    ]
    return reduce(pc.or_kleene, [equal(pair) for pair in pairs])


def _null_if(op: Operation) -> Value:
    left, right = op.arrays()
    equal = pc.fill_null(pc.equal(left, right), False)
    return pc.if_else(equal, pa.scalar(None, left.type), left)


def _extreme(function: Callable[..., Value]) -> Function:
    def apply(op: Operation) -> Value:
        kind = _COMPARED_AS.get(op.types[0].name)
        arrays = op.arrays() if kind is None else [cast(item, kind) for item in op.arrays()]
        return function(*arrays, skip_nulls=False)

    return apply


def _date_part(function: Callable[[Value], Value]) -> Function:
    def apply(op: Operation) -> Value:
        values = op.array(0)
        if op.types[0].name in {TypeName.TIME, TypeName.DATE}:
            values = values.cast(pa.timestamp("us"))
        return function(values)

    return apply


# Types whose extremes Arrow does not look for, and those in which it does.
_COMPARED_AS = {TypeName.BOOLEAN: pa.int8(), TypeName.TIMESTAMP_LTZ: pa.timestamp("us")}

FUNCTIONS: Mapping[str, Function] = {
    **ARITHMETIC,
    **MATHEMATICS,
    **TEXT,
    **TEXT_OF_ROWS,
    **ENCODINGS,
    **DIGESTS,
    **REGULAR,
    **ARRAYS,
    **MAPS,
    **QUESTIONS,
    **VALUES,
    **TEXT_TIMES,
    **PARTS,
    ".": field_of,
    "[]": element_of,
    "CARDINALITY": cardinality,
    "ROW": bounded(row_of, bytes_of_all),
    "ARRAY": bounded(array_of, bytes_of_all),
    "MAP": bounded(map_of, bytes_of_all),
    "MAP_KEYS": entries_of(0),
    "MAP_VALUES": entries_of(1),
    "ARRAY_CONTAINS": lambda op: (
        contains if op.types[0].members[0].type.is_nested else array_contains
    )(op),
    "ARRAY_JOIN": bounded(array_join, array_join_bytes),
    "=": _whole_or(equal, plain(pc.equal)),
    "<>": _whole_or(_not(equal), plain(pc.not_equal)),
    "<": _comparison(pc.less),
    "<=": _comparison(pc.less_equal),
    ">": _comparison(pc.greater),
    ">=": _comparison(pc.greater_equal),
    "NOT": plain(pc.invert),
    "IS NULL": plain(pc.is_null),
    "IS NOT NULL": plain(pc.is_valid),
    "IS TRUE": _is_true(True),
    "IS FALSE": _is_true(False),
    "IS NOT TRUE": _not(_is_true(True)),
    "IS NOT FALSE": _not(_is_true(False)),
    "IS DISTINCT FROM": _whole_or(distinct, _is_distinct),
    "IS NOT DISTINCT FROM": _whole_or(_not(distinct), _not(_is_distinct)),
    "IN": _whole_or(_in_wholes, _in),
    "NOT IN": _whole_or(_not(_in_wholes), _not(_in)),
    "SIMILAR": similar,
    "PRINTF": printf,
    "NOT LIKE": _not(TEXT["LIKE"]),
    "NULLIF": _null_if,
    "GREATEST": _extreme(pc.max_element_wise),
    "LEAST": _extreme(pc.min_element_wise),
    "ADD_MONTHS": add_months,
    "TIMESTAMPDIFF": difference,
    "CEIL_TO": rounded(up=True),
    "FLOOR_TO": rounded(up=False),
    "WINDOW_START": window_start,
    "WINDOW_PLACES": window_places,
    "YEAR": _date_part(pc.year),
    "QUARTER": _date_part(pc.quarter),
    "WEEK": _date_part(pc.iso_week),
    "DAYOFWEEK": _date_part(partial(pc.day_of_week, count_from_zero=False, week_start=7)),
    "DAYOFYEAR": _date_part(pc.day_of_year),
    "MONTH": _date_part(pc.month),
    "DAYOFMONTH": _date_part(pc.day),
    "HOUR": _date_part(pc.hour),
    "MINUTE": _date_part(pc.minute),
    "SECOND": _date_part(pc.second),
}
