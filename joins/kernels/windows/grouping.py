"""Groups of equal rows, exactly: a small number for each row, equal for equal rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rows = npt.NDArray[np.int64]

_ROOM = 1 << 62


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row is in.

    Attributes:
        codes: the group of each row, from 0 to `count` - 1, each of them present.
    """

    codes: Rows
    count: int

    @classmethod
    def of(cls, columns: Sequence[pa.Array | Rows], num_rows: int) -> Self:
        """Rows that are equal in all `columns` (NULL equals NULL) are a group."""
        codes, room = np.zeros(num_rows, dtype=np.int64), 1
        for column in columns:
            numbers, count = _numbered(column)
            if room * count > _ROOM:
                codes, room = _dense(codes, room)
            codes = codes * count + numbers if room > 1 else numbers
            room *= count
        return cls(*_dense(codes, room))

    @classmethod
    def each(cls, num_rows: int) -> Self:
        return cls(np.arange(num_rows), num_rows)

    @property
    def are_rows(self) -> bool:
        return self.count == len(self.codes) and bool((np.diff(self.codes) == 1).all())

    def firsts(self) -> Rows:
        positions = np.zeros(self.count, dtype=np.int64)
        positions[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return positions

    def order(self) -> Rows:
        return np.argsort(self.codes, kind="stable")


def connected(codes: Rows, starts: Rows, ends: Rows) -> Groups:
    """Groups of spans of the same code that overlap or touch, directly or through others."""
    order = np.lexsort([starts, codes])
    by_end = np.argsort(ends, kind="stable")
    ranks = np.empty(len(ends), dtype=np.int64)
    ranks[by_end] = np.arange(len(ends))
    # The greatest end so far of the same code, as its rank: codes ascend, each has its own range.
    reach = np.maximum.accumulate(codes[order] * len(ends) + ranks[order])
    furthest = ends[by_end][reach % max(1, len(ends))]
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = (np.diff(codes[order]) != 0) | (starts[order][1:] > furthest[:-1])
    numbered = np.empty(len(order), dtype=np.int64)
    numbered[order] = np.cumsum(opens) - 1
    return Groups(numbered, int(opens.sum()))


def plain_floats(column: pa.Array) -> pa.Array:
    """A column of keys with one zero and one NaN, so that equal numbers have equal bits."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = (pa.scalar(value, column.type) for value in (0.0, float("nan")))
    one_zero = pc.if_else(pc.equal(column, zero), zero, column)
    return pc.if_else(pc.is_nan(one_zero), nan, one_zero)


def _numbered(column: pa.Array | Rows) -> tuple[Rows, int]:
    """A number for each different value, below the count given; some may be missing."""
    if len(column) == 0:
        return np.zeros(0, dtype=np.int64), 1
    if isinstance(column, np.ndarray):
        return _shifted(column) or _encoded(pa.array(column))
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = np.asarray(column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False))
        return _shifted(numbers) or _encoded(column)
    return _encoded(column)


def _shifted(numbers: Rows) -> tuple[Rows, int] | None:
    """Numbers that lie close together, less the smallest; None if they do not."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= 4 * len(numbers) + 1024:
        return None
    return numbers - low, high - low + 1


def _encoded(column: pa.Array) -> tuple[Rows, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _dense(codes: Rows, room: int) -> tuple[Rows, int]:
    """Codes without holes."""
    if len(codes) == 0:
        return codes, 0
    if room <= 4 * len(codes) + 1024:
        present = np.zeros(room, dtype=np.bool_)
        present[codes] = True
        if present.all():
            return codes, room
        numbers = np.cumsum(present) - 1
        return numbers[codes], int(numbers[-1]) + 1
    return _encoded(pa.array(codes))
