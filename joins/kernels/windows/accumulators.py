"""Accumulators of the aggregates: columns that add up, so that a window can have several parts.

As in Flink: NULL does not count; without any value COUNT is 0 and all others are NULL; SUM of
integers wraps, of DECIMAL(p, s) it is DECIMAL(38, s) and NULL when it does not fit; AVG of integers
truncates. FLOAT adds up in double precision, which is more exact than Flink's sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask, cast, integers, mask_of, null_where, whole
from joins.kernels.expressions.conversion import to_decimal
from joins.kernels.windows.spec import FirstRows, Groups, Rows, WindowAggregate
from joins.plan.plan import AggregateKind
from joins.plan.types import SqlType, TypeName, arrow_type

Columns: TypeAlias = list[pa.Array]

_MOST_DIGITS = 38
_WIDE_DIGITS, _WIDE_BYTES = 76, 32


class Accumulator(Protocol):
    """Columns and operations of one aggregate."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """Types of its columns."""

    def lift(self, values: pa.Array) -> Columns:
        """The accumulators of single arguments, NULL where a row does not count."""

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        """The accumulators of groups of accumulators."""

    def result(self, columns: Columns) -> pa.Array:
        """The value of each accumulator."""
        return columns[0]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of a window: its arguments and its accumulator."""

    spec: WindowAggregate
    accumulator: Accumulator

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return self.accumulator.types

    def of_rows(self, rows: pa.RecordBatch, groups: Groups) -> Columns:
        values = self._values(rows)
        if values is None:
            return [pa.array(np.bincount(groups.codes, minlength=groups.count).astype(np.int64))]
        lifted = self.accumulator.lift(values)
        return lifted if groups.are_rows else self.merge(lifted, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return self.accumulator.merge(columns, groups)

    def result(self, columns: Columns) -> pa.Array:
        values = self.accumulator.result(columns)
        to = arrow_type(self.spec.type)
        return values if values.type.equals(to) else cast(values, to, safe=False)

    def _values(self, rows: pa.RecordBatch) -> pa.Array | None:
        """The arguments, NULL where FILTER is not true; None if all rows count."""
        counts_all = self.spec.argument is None
        if counts_all and self.spec.where is None:
            return None
        values = (
            pa.repeat(pa.scalar(True), rows.num_rows)
            if counts_all
            else rows.column(self.spec.argument)
        )
        if self.spec.where is not None:
            values = null_where(values, ~mask_of(rows.column(self.spec.where)))
        return values


def aggregations(aggregates: Sequence[WindowAggregate]) -> tuple[Aggregation, ...]:
    return tuple(Aggregation(item, _accumulator(item)) for item in aggregates)


def _accumulator(item: WindowAggregate) -> Accumulator:
    kind = item.argument_type
    if kind is None or item.function is AggregateKind.COUNT_ALL:
        return _Count()
    plain = _plain(item.function, kind, item)
    extreme = item.function in {AggregateKind.MIN, AggregateKind.MAX}
    return _Distinct(arrow_type(kind), plain) if item.distinct and not extreme else plain


def _plain(function: AggregateKind, kind: SqlType, item: WindowAggregate) -> Accumulator:
    if function is AggregateKind.COUNT:
        return _Count()
    if function in {AggregateKind.SUM, AggregateKind.AVG}:
        decimal = kind.name is TypeName.DECIMAL
        sums = _DecimalSum(kind.scale) if decimal else _Sum.of(kind)
        return sums if function is AggregateKind.SUM else _Average(sums, item.type)
    if function is AggregateKind.LISTAGG:
        return _ListAgg(item.separator)
    if function is AggregateKind.ROWS:
        return _Rows(arrow_type(kind), item.first_rows)
    if function in {AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE}:
        return _Outermost(arrow_type(kind), function is AggregateKind.FIRST_VALUE)
    return _Extreme(arrow_type(kind), function is AggregateKind.MIN)


@dataclass(frozen=True, slots=True)
class _Count(Accumulator):
    types: tuple[pa.DataType, ...] = (pa.int64(),)

    def lift(self, values: pa.Array) -> Columns:
        return [pa.array(_valid(values).astype(np.int64))]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return [pa.array(_added(integers(columns[0]), groups))]


@dataclass(frozen=True, slots=True)
class _Sum(Accumulator):
    """The sum and its number of values: integers in 64 bits that wrap, floats in double."""

    types: tuple[pa.DataType, ...]

    @classmethod
    def of(cls, kind: SqlType) -> "_Sum":
        floating = kind.name in {TypeName.FLOAT, TypeName.DOUBLE}
        return cls((pa.float64() if floating else pa.int64(), pa.int64()))

    def lift(self, values: pa.Array) -> Columns:
        return [cast(values, self.types[0]), pa.array(_valid(values).astype(np.int64))]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        sums, counts = columns
        added = _added(integers(counts), groups)
        if pa.types.is_floating(sums.type):
            numbers = np.asarray(pc.fill_null(sums, 0.0).to_numpy(zero_copy_only=False))
            total = np.bincount(groups.codes, weights=numbers, minlength=groups.count)
        else:
            total = _added(integers(sums), groups)
        return [null_where(pa.array(total), added == 0), pa.array(added)]


@dataclass(frozen=True, slots=True)
class _DecimalSum(Accumulator):
    """The exact sum of decimals of any size, as bytes of 76 digits, and its number of values."""

    scale: int
    types: tuple[pa.DataType, ...] = (pa.binary(_WIDE_BYTES), pa.int64())

    def lift(self, values: pa.Array) -> Columns:
        wide = cast(values, pa.decimal256(_WIDE_DIGITS, self.scale))
        counts = pa.array(_valid(values).astype(np.int64))
        return [_viewed(wide, self.types[0]), counts]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        wide = _viewed(columns[0], pa.decimal256(_WIDE_DIGITS, self.scale))
        sums = _grouped(wide, groups, "sum")
        return [_viewed(sums, self.types[0]), pa.array(_added(integers(columns[1]), groups))]

    def result(self, columns: Columns) -> pa.Array:
        digits = _viewed(columns[0], pa.decimal256(_WIDE_DIGITS, 0))
        limit = pa.scalar(Decimal(10**_MOST_DIGITS), pa.decimal256(_WIDE_DIGITS, 0))
        fits = mask_of(pc.less(pc.abs(digits), limit))
        sums = _viewed(columns[0], pa.decimal256(_WIDE_DIGITS, self.scale))
        return cast(null_where(sums, ~fits), pa.decimal128(_MOST_DIGITS, self.scale))


@dataclass(frozen=True, slots=True)
class _Average(Accumulator):
    sums: _Sum | _DecimalSum
    to: SqlType

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return self.sums.types

    def lift(self, values: pa.Array) -> Columns:
        return self.sums.lift(values)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return self.sums.merge(columns, groups)

    def result(self, columns: Columns) -> pa.Array:
        sums, counts = self.sums.result(columns), columns[1]
        divisor = null_where(counts, integers(counts) == 0)
        if pa.types.is_decimal(sums.type):
            wide = cast(sums, pa.decimal256(sums.type.precision, sums.type.scale))
            quotient = pc.divide(wide, cast(divisor, pa.decimal256(19, 0)))
            return to_decimal(quotient, self.to).values
        if pa.types.is_floating(sums.type):
            return pc.divide(sums, cast(divisor, pa.float64(), safe=False))
        return pc.divide(sums, divisor)


@dataclass(frozen=True, slots=True)
class _Extreme(Accumulator):
    kind: pa.DataType
    smallest: bool

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return (self.kind,)

    def lift(self, values: pa.Array) -> Columns:
        return [values]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        # Arrow compares decimals in a wider type, which it returns.
        column = columns[0]
        if pa.types.is_decimal(self.kind):
            column = cast(column, pa.decimal256(_WIDE_DIGITS, self.kind.scale))
        extremes = _grouped(column, groups, "min" if self.smallest else "max")
        return [extremes if extremes.type.equals(self.kind) else cast(extremes, self.kind)]


@dataclass(frozen=True, slots=True)
class _Outermost(Accumulator):
    kind: pa.DataType
    first: bool

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return (self.kind,)

    def lift(self, values: pa.Array) -> Columns:
        return [values]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        order = groups.order()
        order = order[_valid(columns[0])[order]]
        codes = groups.codes[order]
        at = np.full(groups.count, -1)
        edge = np.ones(len(codes), dtype=np.bool_)
        differs = codes[1:] != codes[:-1]
        if self.first:
            edge[1:] = differs
        else:
            edge[:-1] = differs
        at[codes[edge]] = order[edge]
        return [columns[0].take(pa.array(at, mask=at < 0))]


@dataclass(frozen=True, slots=True)
class _ListAgg(Accumulator):
    separator: str
    types: tuple[pa.DataType, ...] = (pa.string(),)

    def lift(self, values: pa.Array) -> Columns:
        return [values.cast(pa.string())]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        lists = _lists(columns[0], groups)
        joined = pc.binary_join(lists, self.separator)
        return [null_where(joined, integers(pc.list_value_length(lists)) == 0)]


@dataclass(frozen=True, slots=True)
class _Rows(Accumulator):
    """The rows in the order of arrival, or the first ones by their sort keys."""

    kind: pa.DataType
    first: FirstRows | None

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return (pa.list_(self.kind),)

    def lift(self, values: pa.Array) -> Columns:
        return [_lists(values, Groups.each(len(values)))]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        values = columns[0].flatten()
        codes = groups.codes[pc.list_parent_indices(columns[0]).to_numpy()]
        if self.first is None:
            return [_lists(values, Groups(codes, groups.count))]
        keys = [
            SortColumn(pc.struct_field(values, [field]), descending, nulls_last)
            for field, descending, nulls_last in self.first.order
        ]
        rows = numbered(codes, keys, newest_first=self.first.newest_first)
        kept = np.sort(rows.order[rows.numbers <= self.first.count])
        return [_lists(values.take(pa.array(kept)), Groups(codes[kept], groups.count))]


@dataclass(frozen=True, slots=True)
class _Distinct(Accumulator):
    """The different values in the order of their first row; input of another aggregate."""

    kind: pa.DataType
    inner: Accumulator

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return (pa.list_(self.kind),)

    def lift(self, values: pa.Array) -> Columns:
        return [_lists(values, Groups.each(len(values)))]

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        values = columns[0].flatten()
        codes = groups.codes[pc.list_parent_indices(columns[0]).to_numpy()]
        firsts = Groups.of([codes, values], len(values)).firsts()
        firsts.sort()
        kept = Groups(codes[firsts], groups.count)
        return [_lists(values.take(pa.array(firsts)), kept)]

    def result(self, columns: Columns) -> pa.Array:
        values = columns[0].flatten()
        codes = pc.list_parent_indices(columns[0]).to_numpy().astype(np.int64)
        # One NULL a list, so that each has a group; NULL does not count.
        count = len(columns[0])
        padded = pa.concat_arrays([values, pa.nulls(count, self.kind)])
        groups = Groups(np.concatenate([codes, np.arange(count)]), count)
        return self.inner.result(self.inner.merge(self.inner.lift(padded), groups))


def _valid(values: pa.Array) -> Mask:
    if not values.null_count:
        return np.ones(len(values), dtype=np.bool_)
    return mask_of(values.is_valid())


def _added(numbers: npt.NDArray[np.int64], groups: Groups) -> npt.NDArray[np.int64]:
    total = np.zeros(groups.count, dtype=np.int64)
    np.add.at(total, groups.codes, numbers)
    return total


def _viewed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(column), column.buffers()[:2], -1, column.offset)


def _grouped(column: pa.Array, groups: Groups, function: str) -> pa.Array:
    table = pa.table({"code": pa.array(groups.codes), "value": column})
    aggregated = table.group_by("code", use_threads=False).aggregate([("value", function)])
    order = np.argsort(aggregated.column("code").to_numpy())
    return whole(aggregated.column(f"value_{function}")).take(pa.array(order))


def _lists(values: pa.Array, groups: Groups) -> pa.Array:
    valid = _valid(values)
    order = groups.order()
    order = order[valid[order]]
    ends = np.cumsum(np.bincount(groups.codes[valid], minlength=groups.count))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(order)))


# ROW_NUMBER(): rows in the order of their sort keys, numbered
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortColumn:
    """Values to sort by."""

    values: pa.Array
    descending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True)
class Numbered:
    """`order` sorts rows by code, then by their keys; `numbers` counts those of a code from 1."""

    order: Rows
    numbers: Rows


def numbered(codes: Rows, keys: Sequence[SortColumn], *, newest_first: bool) -> Numbered:
    """Number the rows of each code; equal ones in the order of arrival, or in the reverse one."""
    arrival = np.arange(len(codes))
    ranks = [_ranks(key) for key in reversed(keys)]
    order = np.lexsort([-arrival if newest_first else arrival, *ranks, codes])
    opens = np.ones(len(codes), dtype=np.bool_)
    opens[1:] = np.diff(codes[order]) != 0
    starts = np.flatnonzero(opens)
    numbers = arrival + 1 - np.repeat(starts, np.diff([*starts, len(codes)]))
    return Numbered(order, numbers)


def _ranks(key: SortColumn) -> Rows:
    direction = "descending" if key.descending else "ascending"
    ranks = pc.rank(key.values, sort_keys=direction, tiebreaker="dense")
    numbers = np.asarray(ranks, dtype=np.int64)
    nulls = mask_of(key.values.is_null())
    return np.where(nulls, len(numbers) + 1 if key.nulls_last else -1, numbers)
