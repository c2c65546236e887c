"""Windows that fire: the state and the parts of a batch become results (`fire`) and sink rows.

    TUMBLE, HOP     a part is added to its window; `_FixedWindows` fires it
    CUMULATE        `spec.carries`: the contents also become a part of the next window
    SESSION         `spec.merges`: `sessions` merges, fires and deletes sessions

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
from joins.kernels.windows.accumulators import SortColumn, aggregations, numbered
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
        fixed = _FixedWindows(spec, old, new, advance)
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
class _FixedWindows:
    """Windows with bounds of the clock. A late row of `new` comes after its window has fired."""

    spec: WindowSpec
    old: pa.Table
    new: pa.Table
    advance: WatermarkAdvance

    def emissions(self) -> list[WindowFiring]:
        is_late = column(self.new, IS_LATE)
        late = self.new.filter(is_late)
        on_time = self.new.filter(pc.invert(is_late)) if late.num_rows else self.new
        contents, windows = self._contents(on_time, late)
        fires = numbers(contents, DUE) > self.advance.before_ms
        fired = contents if fires.all() else contents.filter(pa.array(fires))
        at_the_end = by_steps(fired, self.advance, INSERT)
        return (
            [at_the_end, self._of_late(contents, late, windows)] if late.num_rows else [at_the_end]
        )

    def kept(self) -> pa.Table:
        names = state_schema(self.spec).names
        table = living(self.new.select(names), self.advance.after_ms)
        return merged(self.spec, table, by_window(self.spec, table))

    def _contents(self, on_time: pa.Table, late: pa.Table) -> tuple[pa.Table, Groups]:
        """Contents, one row a window, before any late row; and the window of each late row.

        Windows that fire now have a row, and those with late rows. A late row whose window has no
        contents has a number behind them.
        """
        names, after = state_schema(self.spec).names, self.advance.after_ms
        parts = [_up_to(table, after).select(names) for table in (self.old, on_time)]
        whole = pa.concat_tables([*parts, late.select(names)]).combine_chunks()
        groups = by_window(self.spec, whole)
        count = whole.num_rows - late.num_rows
        of_parts, of_late = groups.codes[:count], groups.codes[count:]
        fires, has_parts, has_late = (np.zeros(groups.count, dtype=np.bool_) for _ in range(3))
        has_parts[of_parts] = True
        has_late[of_late] = True
        fires[of_parts[numbers(whole, DUE)[:count] > self.advance.before_ms]] = True
        has_row = has_parts & (fires | has_late)
        has_late_only = has_late & ~has_parts
        number = np.empty(groups.count, dtype=np.int64)
        number[has_row] = np.arange(has_row.sum())
        number[has_late_only] = has_row.sum() + np.arange(has_late_only.sum())
        rows = np.flatnonzero(has_row[of_parts])
        table = whole if len(rows) == whole.num_rows else whole.take(pa.array(rows))
        contents = merged(self.spec, table, Groups(number[of_parts[rows]], int(has_row.sum())))
        return contents, Groups(number[of_late], int((has_row | has_late_only).sum()))

    def _of_late(self, contents: pa.Table, late: pa.Table, windows: Groups) -> WindowFiring:
        """Each late row fires its window with the contents and all late rows up to it.

        That updates the result before it, unless the window had no contents.
        """
        has_late = np.zeros(max(windows.count, contents.num_rows), dtype=np.bool_)
        has_late[windows.codes] = True
        before = np.flatnonzero(has_late[: contents.num_rows])
        rows = pa.concat_tables(
            [contents.take(pa.array(before)), late.select(contents.schema.names)]
        )
        codes = np.concatenate([before, windows.codes])
        order = np.argsort(codes, kind="stable")
        sums = running(self.spec, rows.combine_chunks().take(pa.array(order)), codes[order])
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        at = position[len(before) :]
        is_first = np.ones(len(codes), dtype=np.bool_)
        is_first[1:] = codes[order][1:] != codes[order][:-1]
        kinds = np.where(is_first[at], INSERT, UPDATE_AFTER)
        causes = np.arange(late.num_rows)
        ranks = 2 * causes + 1
        if self.spec.needs_old_rows:  # right before each new one
            updates = np.flatnonzero(~is_first[at])
            causes, ranks = np.concatenate([causes, updates]), np.concatenate([ranks, 2 * updates])
            kinds = np.concatenate([kinds, np.full(len(updates), UPDATE_BEFORE)])
            at = np.concatenate([at, at[updates] - 1])
        watermarks = numbers(late, WATERMARK)[causes]
        steps, results = self.advance.seen(watermarks), sums.take(pa.array(at))
        return WindowFiring(results, kinds.astype(np.int8), steps, ranks, watermarks)


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
    last_end = starts + spec.size_ms
    # The first end behind the watermark; the watermark may be the end of time.
    reached = np.minimum(advance.after_ms, last_end - 1) + 1 - starts
    waiting_end = np.minimum(last_end, starts + (reached // spec.slide_ms + 1) * spec.slide_ms)
    is_followed = np.append(codes[1:] == codes[:-1], False)[: len(codes)]
    until = np.where(is_followed, np.roll(ends, -1), waiting_end)
    count = (until - ends) // spec.slide_ms
    of = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(of)) - (np.cumsum(count) - count)[of] + 1
    at = ends[of] + step * spec.slide_ms
    carried = sums.take(pa.array(of))
    values = {END: at, DUE: at - 1, KEEP: keeps(at - 1, spec.lateness_ms)}
    for name, moved in values.items():
        index = carried.schema.get_field_index(name)
        carried = carried.set_column(index, carried.schema.field(index), pa.array(moved))
    record = [pa.nulls(len(of), each.type) for each in LATE]
    schema = partial_schema(spec)
    late = pa.repeat(pa.scalar(False), len(of))
    return pa.table([*carried.columns, late, *record], schema=schema)


def running(spec: WindowSpec, rows: pa.Table, codes: Rows) -> pa.Table:
    """Each row with the accumulators of all rows of its code up to it; codes ascend.

    Each round adds the sum of as many rows again, so a code of n rows takes log2(n) rounds.
    """
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(codes)]]))
    ranks = np.arange(len(codes)) - np.repeat(starts, lengths)
    sums, reach = rows, 1
    while reach < int(lengths.max()):
        later = np.flatnonzero(ranks >= reach)
        pairs = np.concatenate([later - reach, later])
        halves = Groups(np.tile(np.arange(len(later)), 2), len(later))
        longer = merged(spec, sums.take(pa.array(pairs)), halves)
        newest = np.arange(len(codes))
        newest[later] = len(codes) + np.arange(len(later))
        sums = pa.concat_tables([sums, longer]).combine_chunks().take(pa.array(newest))
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
    fields = [
        pa.field(item.name, arrow_type(item.expression.type), nullable=item.nullable)
        for item in spec.output
    ]
    mask = pa.array(keep)
    columns = [item.filter(mask) for item in columns]
    return Projected(
        pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)),
        pa.array(kinds[keep]),
        fired.watermarks.filter(mask),
        pa.concat_batches([unranked, run.dead(fired)]),
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
    firing_order = np.argsort(firsts[codes[order]], kind="stable")
    order, numbers = pa.array(at[order[firing_order]]), pa.array(numbers[firing_order])
    taken = run.rows.take(order).append_column(pa.field(ROW_NUMBER, pa.int64()), numbers)
    kinds, watermarks = fired.kinds.take(order), fired.watermarks.take(order)
    return replace(fired, rows=taken, kinds=kinds, watermarks=watermarks), run.dead(fired)


@dataclass(frozen=True, slots=True)
class _Projection:
    rows: pa.RecordBatch
    proctime_ms: int
    failed: dict[int, str]

    def evaluate(self, expression: Expression, where: Mask | None = None) -> pa.Array:
        """The values; failures count in the rows of `where`."""
        scope = Scope(lambda c: self.rows.column(c.name), self.rows.num_rows, self.proctime_ms)
        result = evaluate_rows(expression, scope)
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
        values = texts.cast(pa.binary())
        return pa.RecordBatch.from_arrays([reasons, values], names=["reason", "value"])


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
