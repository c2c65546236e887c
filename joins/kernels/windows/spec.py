"""Windows as the workers see them (picklable, without secrets), and groups of equal rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.plan.errors import ExpressionError
from joins.plan.plan import (
    IN_ORDER_OF_ARRIVAL,
    WINDOW,
    AggregateKind,
    DeltaSink,
    JoinPlan,
    KafkaSink,
    OutputColumn,
    TopN,
    Windowing,
    WindowKind,
)
from joins.plan.types import Column, Expression, SqlType

Rows = npt.NDArray[np.int64]

_ROOM = 1 << 62


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each row, from 0 to `count` - 1, each of them present."""

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
    """A number below the returned count for each different value; some may be missing."""
    if len(column) == 0:
        return np.zeros(0, dtype=np.int64), 1
    if isinstance(column, np.ndarray):
        return _shifted(column) or _encoded(pa.array(column))
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = np.asarray(column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False))
        return _shifted(numbers) or _encoded(column)
    return _encoded(column)


def _shifted(numbers: Rows) -> tuple[Rows, int] | None:
    """Numbers in a narrow range, less the smallest; None for a wide range."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= 4 * len(numbers) + 1024:
        return None
    return numbers - low, high - low + 1


def _encoded(column: pa.Array) -> tuple[Rows, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _dense(codes: Rows, room: int) -> tuple[Rows, int]:
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


WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A column of GROUP BY besides the window's bounds; `key_<n>` in the windows' input."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The rows that have the lowest numbers: at most `count`, in the order of these fields."""

    count: int
    order: tuple[tuple[int, bool, bool], ...]  # field, descending, nulls last
    newest_first: bool


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """One aggregate over columns of the window's input.

    `name` is its column in the relation of the windows. `argument` is None for `COUNT(*)`; `where`
    is the column of `FILTER (WHERE …)`, None without.
    """

    name: str
    function: AggregateKind
    argument: str | None
    argument_type: SqlType | None
    where: str | None
    distinct: bool
    separator: str
    type: SqlType
    first_rows: FirstRows | None = None  # of `ROWS`, those that are kept; None for all


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows of a plan for the kernels."""

    kind: WindowKind
    size_ms: int  # of a window; the gap of a session, the largest size of CUMULATE
    slide_ms: int  # from window to window; the size for TUMBLE and SESSION
    offset_ms: int
    lateness_ms: int  # how long after its end a window takes late rows
    time_type: SqlType
    keys: tuple[WindowKey, ...]
    aggregates: tuple[WindowAggregate, ...]
    buckets: int  # number of buckets; a key is always in the same one
    retracts: bool  # the sink needs the old row, as -U, before a new one
    # output, having: over the relation of the windows
    output: tuple[OutputColumn, ...]
    having: Expression | None
    rank: TopN | None = None
    # the places of the keys that say in which bucket a row is; None for all keys
    bucket_keys: tuple[int, ...] | None = None

    @classmethod
    def of(cls, plan: JoinPlan, buckets: int) -> Self:
        """The windows of `plan`; raises ExpressionError if it has none."""
        window = _window_of(plan)
        aggregates = tuple(
            WindowAggregate(
                item.name,
                item.function,
                None if item.argument is None else f"arg_{at}",
                None if item.argument is None else item.argument.type,
                None if item.where is None else f"where_{at}",
                item.distinct,
                item.separator,
                item.type,
                _first_rows(window) if item.function is AggregateKind.ROWS else None,
            )
            for at, item in enumerate(window.aggregates)
        )
        return cls(
            kind=window.kind,
            size_ms=window.size_ms,
            slide_ms=window.slide_ms or window.size_ms,
            offset_ms=window.offset_ms,
            # The clock brings no late rows.
            lateness_ms=window.lateness_ms if window.time is not None else 0,
            time_type=window.time_type,
            keys=tuple(WindowKey(item.name, item.expression.type) for item in window.keys),
            aggregates=aggregates,
            buckets=buckets,
            retracts=_wants_old_rows(plan),
            output=plan.output,
            having=window.having,
            rank=window.rank,
            bucket_keys=_bucket_keys(window),
        )

    @property
    def rows(self) -> WindowAggregate | None:
        """The aggregate whose elements are rows."""
        return next((a for a in self.aggregates if a.function is AggregateKind.ROWS), None)

    @property
    def needs_old_rows(self) -> bool:
        return self.retracts or self.having is not None or any(map(self._may_fail, self.output))

    def _may_fail(self, item: OutputColumn) -> bool:
        if not isinstance(item.expression, Column):
            return True
        return not item.nullable and any(item.expression.name == a.name for a in self.aggregates)

    @property
    def lists_rows(self) -> bool:
        return any(item.function in IN_ORDER_OF_ARRIVAL for item in self.aggregates)

    @property
    def grows(self) -> bool:
        return self.kind is WindowKind.CUMULATE

    @property
    def carries(self) -> bool:
        """True if a row is added to its first window alone, whose contents go on to the next one.

        Otherwise it is added to each of its windows, so that all list it in the order of arrival.
        """
        return self.grows and not self.lists_rows

    @property
    def merges(self) -> bool:
        return self.kind is WindowKind.SESSION


def _bucket_keys(window: Windowing) -> tuple[int, ...] | None:
    """The rows that are numbered together are in one bucket."""
    if window.rank is None:
        return None
    names = {e.name for e in window.rank.partition if isinstance(e, Column)}
    return tuple(at for at, key in enumerate(window.keys) if key.name in names)


def _first_rows(window: Windowing) -> FirstRows | None:
    """The rows that a rank keeps of the rows of one key; None if it has others, too."""
    rank, rows = window.rank, window.rows
    if rank is None or rows is None or rows.argument is None or window.having is not None:
        return None
    fields = [member.name for member in rows.argument.type.members]
    keys = {Column(WINDOW, key.name, key.expression.type) for key in window.keys}
    order = [each.expression for each in rank.order]
    if set(rank.partition) != keys or not all(
        isinstance(each, Column) and each.name in fields for each in order
    ):
        return None
    columns = tuple(
        (fields.index(each.expression.name), each.descending, each.nulls_last)
        for each in rank.order
        if isinstance(each.expression, Column)
    )
    return FirstRows(rank.last, columns, rank.newest_first)


def _window_of(plan: JoinPlan) -> Windowing:
    if plan.window is None:
        raise ExpressionError(
            f'job "{plan.name}" has no window to aggregate into',
            hint="Report this with the job's script: only windowed plans have this step.",
        )
    return plan.window


def _wants_old_rows(plan: JoinPlan) -> bool:
    if isinstance(plan.sink, DeltaSink):
        return False
    return not (isinstance(plan.sink, KafkaSink) and plan.sink.upsert)
