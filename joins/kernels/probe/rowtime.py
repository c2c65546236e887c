"""Rowtime columns as numbers: they hold microseconds, watermarks and the clock are milliseconds."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Times = npt.NDArray[np.int64]

_MICROS = 1_000
_MOST_MS = (2**63 - 1) // _MICROS - 1


def micros(times_ms: Times) -> Times:
    """The last microsecond of each millisecond, as rowtime columns have them."""
    clipped = np.clip(times_ms, -_MOST_MS, _MOST_MS)
    last: Times = clipped * _MICROS + (_MICROS - 1)
    return last


def rowtimes(column: pa.Array) -> Times:
    """Microseconds of a rowtime column without NULL."""
    return np.asarray(column.view(pa.int64()).to_numpy(), dtype=np.int64)


def millis(column: pa.Array) -> Times:
    """Milliseconds of a rowtime column without NULL."""
    times: Times = rowtimes(column) // _MICROS
    return times
