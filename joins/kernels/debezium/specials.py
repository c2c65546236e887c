"""Values of PostgreSQL that no declared type has: infinite days and instants, NaN of NUMERIC.

The forms are those that Debezium's connectors write, as recorded in tests/golden: a snapshot and
the log have different ones. As nanoseconds (`time.precision.mode=nanoseconds`) an infinite instant
is written as one of 1970, which nothing tells from a real one.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium.options import SpecialValues
from joins.kernels.debezium.raw import RawValues
from joins.kernels.debezium.times import last_and_first
from joins.kernels.expressions.casts import Checked
from joins.plan.types import SqlType, TypeName, arrow_type

_INFINITE: dict[TypeName, tuple[Sequence[bytes], Sequence[bytes]]] = {
    TypeName.DATE: (
        (b"-622191234", b"-2147472692", b'"+292278994-08-16Z"', b'"-5877611-06-21Z"'),
        (b"-625821272", b"-2147472691", b'"+292269055-12-02Z"', b'"-5877611-06-22Z"'),
    ),
    TypeName.TIMESTAMP: (
        (b"9223372036825200000", b"9223372036825200", b'"+294247-01-10T04:00:25.2Z"'),
        (b"-9223372036832400000", b"-9223372036832400", b'"-290308-12-21T19:59:27.6Z"'),
    ),
    TypeName.TIMESTAMP_LTZ: ((b'"infinity"',), (b'"-infinity"',)),
    TypeName.DECIMAL: (
        (b'"Infinity"', b'"POSITIVE_INFINITY"'),
        (b'"-Infinity"', b'"NEGATIVE_INFINITY"'),
    ),
}
"""By type the forms of infinity, and those of -infinity."""
_NO_NUMBER = (b'"NaN"', b'"NAN"')


def without_specials(
    values: RawValues, kind: SqlType, read: Checked, handling: SpecialValues
) -> Checked:
    """What was `read` of `values`, with the special ones among the failed as `handling` says.

    NaN, and infinite numbers, which have no last day, are NULL unless they fail.
    """
    if handling is SpecialValues.FAIL or kind.name not in _INFINITE or not read.failed.any():
        return read
    positive, negative = (_any(values, forms) & read.failed for forms in _INFINITE[kind.name])
    special = positive | negative
    if kind.name is TypeName.DECIMAL:
        special |= _any(values, _NO_NUMBER) & read.failed
    column = read.values
    if handling is SpecialValues.LAST_DAY and kind.name is not TypeName.DECIMAL:
        for which, limit in zip((positive, negative), last_and_first(kind), strict=True):
            scalar = pa.array([limit]).cast(_storage(kind)).cast(arrow_type(kind))[0]
            column = pc.if_else(pa.array(which), scalar, column)
    return Checked(column, read.failed & ~special)


def _storage(kind: SqlType) -> pa.DataType:
    return pa.int32() if kind.name is TypeName.DATE else pa.int64()


def _any(values: RawValues, forms: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.logical_or.reduce([values.are(form) for form in forms]), np.bool_)
