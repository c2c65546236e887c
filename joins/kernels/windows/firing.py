"""Windows that fire: the state and the parts of a batch become results, state and sink rows.

Results come in the order of `watermark.reference.windows`: a late row fires its windows at once; a
step of the watermark fires windows by their ends, and keys of one window by their hash. Each result
carries the watermark before the step. A row whose expression fails is a dead letter.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.json.exact import row_texts
from joins.kernels.probe.arrival_files import OFFSET, PARTITION, WATERMARK
from joins.kernels.windows.accumulators import aggregations
from joins.kernels.windows.ranking import SortColumn, numbered
from joins.kernels.windows.sessions import fire_sessions
from joins.kernels.windows.spec import Groups, Rows, WindowSpec
from joins.kernels.windows.state import (
    DUE,
    END,
    IS_LATE,
    KEEP,
    LATE,
    START,
    WatermarkAdvance,
    WindowFiring,
    accumulator_names,
    by_steps,
    by_window,
    column,
    joined,
    keeps,
    key_names,
    living,
    merged,
    numbers,
    ordered,
    partial_schema,
    state_schema,
)
from joins.plan.plan import ROW_NUMBER, TopN
from joins.plan.types import Expression, arrow_type
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Fired:
    """Results of a batch in one bucket."""

    # the relation of the windows: its columns, the keys and the aggregates, by name
    rows: pa.RecordBatch
    kinds: pa.Array  # int8, the kind of each row (`row_kinds`)
    watermarks: pa.Array  # int64, the operator's watermark before each row, milliseconds
    state: pa.Table  # rows to append to the bucket's state, or all of it if `replaces_state`
    replaces_state: bool
    late: pa.Table  # as `Partials.late`; only for sessions


def fire(
    spec: WindowSpec,
    state: Iterable[pa.Table],
    partials: Iterable[pa.Table],
    advance: WatermarkAdvance,
) -> Fired:
    """Fire the windows of one bucket that `advance` reaches, and those that late rows change.

    `state` has the bucket's tables, oldest first, whose `_due` is in `reads`; `partials` are in the
    order of the partitions.
    """
    old = living(joined(state, state_schema(spec)), advance.before_ms)
    new = in_order(joined(partials, partial_schema(spec)))
    if spec.merges:
        sessions = fire_sessions(spec, old, new, advance)
        out, kept, late = ordered(spec, sessions.emissions), sessions.state, sessions.late
    else:
        if spec.carries:
            new = pa.concat_tables([_carried(spec, old, new, advance), new]).combine_chunks()
        fixed = _Fixed(spec, old, new, advance)
        out, kept, late = ordered(spec, fixed.emissions()), fixed.kept(), LATE.empty_table()
    return Fired(out.rows, out.kinds, out.watermarks, kept, spec.merges, late)


def reads(
    spec: WindowSpec, partials: Iterable[pa.Table], advance: WatermarkAdvance
) -> tuple[int, int] | None:
    """First and last `_due`, both included, of the bucket's state that `fire` needs; None for none.

    Sessions are needed when the batch has something for the bucket.
    """
    low, high = advance.before_ms + 1, advance.after_ms
    if spec.merges:
        if any(table.num_rows for table in partials):
            return MIN_TIMESTAMP, MAX_TIMESTAMP
        return (low, high) if low <= high else None
    for table in partials:
        late = table.filter(table.column(IS_LATE))
        if late.num_rows:
            low = min(low, int(numbers(late, DUE).min()))
            high = max(high, int(numbers(late, DUE).max()))
    return (low, high) if low <= high else None


@dataclass(frozen=True, slots=True)
class _Fixed:
    spec: WindowSpec
    old: pa.Table
    new: pa.Table
    advance: WatermarkAdvance

    def emissions(self) -> list[WindowFiring]:
        is_late = column(self.new, IS_LATE)
        late = self.new.filter(is_late)
        on_time = self.new.filter(pc.invert(is_late)) if late.num_rows else self.new
        base, groups = self._contents(on_time, late)
        fires = numbers(base, DUE) > self.advance.before_ms
        fired = base if fires.all() else base.filter(pa.array(fires))
        at_the_end = by_steps(fired, self.advance, INSERT)
        return [at_the_end, self._late(base, late, groups)] if late.num_rows else [at_the_end]

    def kept(self) -> pa.Table:
        names = state_schema(self.spec).names
        table = living(self.new.select(names), self.advance.after_ms)
        return merged(self.spec, table, by_window(self.spec, table))

    def _contents(self, on_time: pa.Table, late: pa.Table) -> tuple[pa.Table, Groups]:
        """Contents of fired windows without late rows, empty ones last; window of each late row."""
        names, after = state_schema(self.spec).names, self.advance.after_ms
        parts = [_up_to(table, after).select(names) for table in (self.old, on_time)]
        whole = pa.concat_tables([*parts, late.select(names)]).combine_chunks()
        groups = by_window(self.spec, whole)
        count = whole.num_rows - late.num_rows
        of_rows, of_late = groups.codes[:count], groups.codes[count:]
        is_due, has_rows, has_late = (np.zeros(groups.count, dtype=np.bool_) for _ in range(3))
        has_rows[of_rows] = True
        has_late[of_late] = True
        is_due[of_rows[numbers(whole, DUE)[:count] > self.advance.before_ms]] = True
        present = has_rows & (is_due | has_late)
        lonely = has_late & ~has_rows
        place = np.empty(groups.count, dtype=np.int64)
        place[present] = np.arange(present.sum())
        place[lonely] = present.sum() + np.arange(lonely.sum())
        rows = np.flatnonzero(present[of_rows])
        base = whole if len(rows) == whole.num_rows else whole.take(pa.array(rows))
        base = merged(self.spec, base, Groups(place[of_rows[rows]], int(present.sum())))
        return base, Groups(place[of_late], int((present | lonely).sum()))

    def _late(self, base: pa.Table, late: pa.Table, groups: Groups) -> WindowFiring:
        """Each late row fires its window with the present contents and all late rows up to it."""
        is_late = np.zeros(max(groups.count, base.num_rows), dtype=np.bool_)
        is_late[groups.codes] = True
        before = np.flatnonzero(is_late[: base.num_rows])
        rows = pa.concat_tables([base.take(pa.array(before)), late.select(base.schema.names)])
        codes = np.concatenate([before, groups.codes])
        order = np.argsort(codes, kind="stable")
        chain = running(self.spec, rows.combine_chunks().take(pa.array(order)), codes[order])
        at = np.empty(len(order), dtype=np.int64)
        at[order] = np.arange(len(order))
        at = at[len(before) :]
        opens = np.ones(len(codes), dtype=np.bool_)
        opens[1:] = codes[order][1:] != codes[order][:-1]
        return self._refired(late, chain, at, opens[at])

    def _refired(self, late: pa.Table, chain: pa.Table, at: Rows, opens: Mask) -> WindowFiring:
        """The contents of each late row's window, after the former ones if these were emitted."""
        rows = np.arange(late.num_rows)
        kinds = np.where(opens, INSERT, UPDATE_AFTER)
        contents, second = at, np.ones(len(rows), dtype=np.int64)
        if self.spec.needs_old_rows:
            known = np.flatnonzero(~opens)
            rows = np.concatenate([rows, known])
            kinds = np.concatenate([kinds, np.full(len(known), UPDATE_BEFORE)])
            contents = np.concatenate([at, at[known] - 1])
            second = np.concatenate([second, np.zeros(len(known), dtype=np.int64)])
        watermarks = numbers(late, WATERMARK)[rows]
        return WindowFiring(
            chain.take(pa.array(contents)),
            kinds.astype(np.int8),
            self.advance.seen(watermarks),
            2 * rows + second,
            watermarks,
        )


def _carried(spec: WindowSpec, old: pa.Table, new: pa.Table, advance: WatermarkAdvance) -> pa.Table:
    """Contents of the windows that fire, as a part of the next window that begins with them.

    They go on from window to window up to the first one that does not fire.
    """
    names = state_schema(spec).names
    on_time = new.filter(pc.invert(column(new, IS_LATE))).select(names)
    parts = pa.concat_tables([old.select(names), on_time]).combine_chunks()
    due = numbers(parts, DUE)
    fires = (due > advance.before_ms) & (due <= advance.after_ms)
    parts = parts.filter(pa.array(fires))
    parts = merged(spec, parts, by_window(spec, parts))
    keys = [column(parts, name) for name in key_names(spec)]
    codes = Groups.of([numbers(parts, START), *keys], parts.num_rows).codes
    order = np.lexsort([numbers(parts, END), codes])
    codes = codes[order]
    sums = running(spec, parts.take(pa.array(order)), codes)
    starts, ends = numbers(sums, START), numbers(sums, END)
    last = starts + spec.size_ms
    # The first end behind the watermark; the watermark may be the end of time.
    reached = np.minimum(advance.after_ms, last - 1) + 1 - starts
    waits = np.minimum(last, starts + (reached // spec.slide_ms + 1) * spec.slide_ms)
    follows = np.append(codes[1:] == codes[:-1], False)[: len(codes)]
    until = np.where(follows, np.roll(ends, -1), waits)
    count = (until - ends) // spec.slide_ms
    of = np.repeat(np.arange(len(count)), count)
    further = np.arange(len(of)) - (np.cumsum(count) - count)[of] + 1
    at = ends[of] + further * spec.slide_ms
    carried = sums.take(pa.array(of))
    values = {END: at, DUE: at - 1, KEEP: keeps(at - 1, spec.lateness_ms)}
    for name, moved in values.items():
        place = carried.schema.get_field_index(name)
        carried = carried.set_column(place, carried.schema.field(place), pa.array(moved))
    place = [pa.nulls(len(of), each.type) for each in LATE]
    schema = partial_schema(spec)
    late = pa.repeat(pa.scalar(False), len(of))
    return pa.table([*carried.columns, late, *place], schema=schema)


def running(spec: WindowSpec, rows: pa.Table, codes: Rows) -> pa.Table:
    """Each row with the accumulators of all rows of its code up to it; codes ascend."""
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(codes)]]))
    ranks = np.arange(len(codes)) - np.repeat(starts, lengths)
    sums, reach = rows, 1
    while reach < int(lengths.max()):
        later = np.flatnonzero(ranks >= reach)
        pairs = np.concatenate([later - reach, later])
        halves = Groups(np.tile(np.arange(len(later)), 2), len(later))
        longer = merged(spec, sums.take(pa.array(pairs)), halves)
        place = np.arange(len(codes))
        place[later] = len(codes) + np.arange(len(later))
        sums = pa.concat_tables([sums, longer]).combine_chunks().take(pa.array(place))
        reach *= 2
    for names in accumulator_names(aggregations(spec.aggregates)):
        for name in names:
            rows = rows.set_column(rows.schema.get_field_index(name), name, sums.column(name))
    return rows


def in_order(parts: pa.Table) -> pa.Table:
    order = np.lexsort([numbers(parts, name) for name in (OFFSET, PARTITION, WATERMARK)])
    return parts.take(pa.array(order))


def _up_to(table: pa.Table, due_ms: int) -> pa.Table:
    reached = numbers(table, DUE) <= due_ms
    return table if reached.all() else table.filter(pa.array(reached))


@dataclass(frozen=True, slots=True)
class Projected:
    """Sink rows in the order in which windows fired; `kinds` are Flink's RowKind bytes.

    `watermarks` is int64, the operator's watermark before each row, milliseconds. `dead` is
    `[reason: string, value: binary]`, rows of the windows' relation that failed.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    watermarks: pa.Array
    dead: pa.RecordBatch


def project(spec: WindowSpec, fired: Fired, proctime_ms: int) -> Projected:
    run = _Projection(fired.rows, proctime_ms, {})
    passes = run.passing(spec.having)
    unranked = run.dead(fired).slice(0, 0)
    if spec.rank is not None:
        fired, unranked = _ranked(spec.rank, fired, run, passes)
        run = _Projection(fired.rows, proctime_ms, {})
        passes = run.passing(spec.rank.having)
    columns = []
    for item in spec.output:
        values = run.evaluate(item.expression, passes)
        if not item.nullable:
            reason = f'column "{item.name}" of the sink is NOT NULL and would be NULL'
            run.fail(np.flatnonzero(mask_of(values.is_null()) & passes), reason)
        columns.append(values)
    passes[list(run.failed)] = False
    kinds, keep = _kinds(np.asarray(fired.kinds), passes, retracts=spec.retracts)
    schema = pa.schema(
        [
            pa.field(item.name, arrow_type(item.expression.type), nullable=item.nullable)
            for item in spec.output
        ]
    )
    mask = pa.array(keep)
    rows = pa.RecordBatch.from_arrays([item.filter(mask) for item in columns], schema=schema)
    dead = pa.Table.from_batches([unranked, run.dead(fired)]).combine_chunks()
    return Projected(
        rows,
        pa.array(kinds[keep]),
        fired.watermarks.filter(mask),
        dead.to_batches()[0] if dead.num_rows else unranked.slice(0, 0),
    )


def _ranked(
    rank: TopN, fired: Fired, run: "_Projection", passes: Mask
) -> tuple[Fired, pa.RecordBatch]:
    """The rows that `rank` keeps, with their numbers; and the dead rows, which have none."""
    partition = [run.evaluate(each, passes) for each in rank.partition]
    values = [run.evaluate(each.expression, passes) for each in rank.order]
    passes = passes.copy()
    passes[list(run.failed)] = False
    at = np.flatnonzero(passes)
    rows = pa.array(at)
    same = [*map(run.rows.column, (START, END)), *partition]
    codes = Groups.of([each.take(rows) for each in same], len(at)).codes
    keys = [
        SortColumn(each.take(rows), key.descending, key.nulls_last)
        for each, key in zip(values, rank.order, strict=True)
    ]
    ranks = numbered(codes, keys, newest_first=rank.newest_first)
    # Results of a window stay together, in the order in which windows fire.
    firsts = Groups(codes, int(codes.max()) + 1 if len(codes) else 0).firsts()
    kept = (ranks.numbers >= rank.first) & (ranks.numbers <= rank.last)
    order, numbers = ranks.order[kept], ranks.numbers[kept]
    by_place = np.argsort(firsts[codes[order]], kind="stable")
    order, numbers = pa.array(at[order[by_place]]), pa.array(numbers[by_place])
    taken = run.rows.take(order).append_column(pa.field(ROW_NUMBER, pa.int64()), numbers)
    return (
        replace(
            fired,
            rows=taken,
            kinds=fired.kinds.take(order),
            watermarks=fired.watermarks.take(order),
        ),
        run.dead(fired),
    )


@dataclass(frozen=True, slots=True)
class _Projection:
    rows: pa.RecordBatch
    proctime_ms: int
    failed: dict[int, str]

    def evaluate(self, expression: Expression, where: Mask | None = None) -> pa.Array:
        """The values; failures count in the rows of `where`."""
        result = evaluate_rows(
            expression,
            Scope(
                lambda column: self.rows.column(column.name), self.rows.num_rows, self.proctime_ms
            ),
        )
        for row, reason in result.errors.items():
            if where is None or where[row]:
                self.failed.setdefault(row, reason)
        return result.values

    def passing(self, condition: Expression | None) -> Mask:
        if condition is None:
            return np.ones(self.rows.num_rows, dtype=np.bool_)
        return mask_of(self.evaluate(condition))

    def fail(self, rows: np.ndarray, reason: str) -> None:
        for row in rows:
            self.failed.setdefault(int(row), reason)

    def dead(self, fired: Fired) -> pa.RecordBatch:
        kinds = fired.kinds.to_numpy()
        at = [row for row in sorted(self.failed) if kinds[row] in {INSERT, UPDATE_AFTER}]
        texts = row_texts(self.rows.take(pa.array(at, pa.int64())))
        reasons = pa.array([self.failed[row] for row in at], pa.string())
        return pa.RecordBatch.from_arrays(
            [reasons, texts.cast(pa.binary())], names=["reason", "value"]
        )


def _kinds(kinds: np.ndarray, passes: Mask, *, retracts: bool) -> tuple[np.ndarray, Mask]:
    """The kinds after HAVING, and the remaining rows: a -U directly precedes its +U."""
    changed, keep = kinds.copy(), passes.copy()
    after = np.flatnonzero(kinds == UPDATE_AFTER)
    paired = after[(after > 0) & (kinds[after - 1] == UPDATE_BEFORE)]
    before = paired - 1
    changed[paired[passes[paired] & ~passes[before]]] = INSERT
    gone = before[passes[before] & ~passes[paired]]
    changed[gone] = DELETE
    if not retracts:
        keep &= changed != UPDATE_BEFORE
    return changed, keep
