"""One micro-batch of the probe, a pure function: records in, joined rows and dead letters out.

Steps: parse the needed fields, metadata and computed columns (`parse_records`), make a row for each
unnested element, then for each dimension in statement order look up the keys and apply the rest of
ON, then WHERE, then the projection. Records that may wait between parsing and joining are arrivals
(`joins.kernels.probe.arrival_files`), which `join_arrivals` takes.

Rows come in the order of the records, and for one record in the order of the matches' primary keys,
first dimension first. So a replay gives the same rows in the same order, whatever the index's
segments are.

A record is either answered or dead: if it cannot be parsed, an expression fails in one of its rows,
or a NOT NULL column of the sink would be NULL, it is one dead letter with the first reason and has
no rows.

Each INSERT of a statement set answers the records of the topics that it reads. All that read one
table parse the same columns, so an unparsable record is dead for all of them; the reason of a later
failure names the INSERT.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.ticks import millis
from joins.kernels.changelog.row_kinds import DELETE, TYPE, UPDATE_AFTER
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.expressions.evaluate import Evaluated, evaluate_rows
from joins.kernels.expressions.nested import missing_parts
from joins.kernels.index.dimension_index import ChangedKeys
from joins.kernels.index.hash_table import Hashes
from joins.kernels.index.index import DimensionIndex
from joins.kernels.index.segment import taken
from joins.kernels.probe.arrival_files import TIME
from joins.kernels.probe.parsed_records import (
    BatchContext,
    JoinedBatch,
    ParsedRecords,
    is_identity,
    parse_records,
    pin_columns,
)
from joins.kernels.probe.spec import (
    COORDINATES,
    DEAD_LETTERS,
    ROW_METADATA,
    ProbeKernelSpec,
    SetMember,
    index_spec,
    insert_told,
    kernel_spec,
)
from joins.plan.plan import DimensionJoin, JoinType, KeyPair, OutputColumn
from joins.plan.types import Column, Expression, columns_of

ELEMENT = "element"


Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Elements:
    """Concatenated elements of rows; `rows` has the element of each row, -1 for none."""

    columns: Mapping[str, pa.Array]
    rows: Rows

    def taken(self, name: str) -> pa.Array:
        return self.columns[name].take(pa.array(self.rows, mask=self.rows < 0))

    def picked(self, at: Rows) -> "Elements":
        return Elements(self.columns, self.rows[at])


def unnested(values: pa.Array, join_type: JoinType) -> tuple[Rows, Elements]:
    """The position in `values` of each row, ascending, and its elements; NULL has none."""
    lists = _as_list(values)
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    elements = lists.flatten()
    if join_type is JoinType.INNER:
        at = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        return at, Elements(_columns(elements), np.arange(len(at), dtype=np.int64))
    at = np.repeat(np.arange(len(lengths), dtype=np.int64), np.maximum(lengths, 1))
    rows = np.full(len(at), -1, dtype=np.int64)
    rows[(lengths > 0)[at]] = np.arange(len(elements), dtype=np.int64)
    return at, Elements(_columns(elements), rows)


def _as_list(values: pa.Array) -> pa.ListArray:
    if not pa.types.is_map(values.type):
        return values
    if values.offset:
        values = values.take(pa.array(np.arange(len(values))))
    entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    mask = pa.array(mask_of(values.is_null())) if values.null_count else None
    return pa.ListArray.from_arrays(values.offsets, entries, mask=mask)


def _columns(elements: pa.Array) -> Mapping[str, pa.Array]:
    if not pa.types.is_struct(elements.type):
        return {ELEMENT: elements}
    names = [field.name for field in elements.type]
    return dict(zip(names, elements.flatten(), strict=True))


__all__ = [
    "COORDINATES",
    "DEAD_LETTERS",
    "ROW_METADATA",
    "BatchContext",
    "JoinedBatch",
    "LateAnswer",
    "ParsedRecords",
    "ProbeKernelSpec",
    "SetMember",
    "index_spec",
    "insert_told",
    "join_arrivals",
    "join_batch",
    "join_or_hold",
    "join_released",
    "kernel_spec",
    "key_hashes",
    "lacking_match",
    "may_match",
    "parse_records",
    "pin_columns",
    "waited_columns",
]


_NO_TIME = -(2**63)


def join_batch(
    spec: ProbeKernelSpec,
    records: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> JoinedBatch:
    """Join `records` with `indexes`, by the alias of their join.

    `records` is `[value: binary, topic: string?, partition: int32, offset: int64, timestamp?]`, the
    timestamp an Arrow timestamp or int64 milliseconds.
    """
    return _answer(parse_records(spec, records, context), indexes)


def join_arrivals(
    spec: ProbeKernelSpec,
    arrivals: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> JoinedBatch:
    return _answer(ParsedRecords.of_arrivals(spec, arrivals, context), indexes)


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """Records of a job with `join.late-rows.wait`: those that leave, and those that wait."""

    joined: JoinedBatch
    held: pa.RecordBatch  # arrivals that wait; their `_time` is the batch's clock
    dropped: pa.RecordBatch  # arrivals at their bound that INNER JOIN gives no row
    expired: int  # living records that leave without a match, at their bound


def join_or_hold(
    spec: ProbeKernelSpec,
    records: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> LateAnswer:
    """Join new `records`, and hold those that lack a match in a table of `waits_for`."""
    parsed = parse_records(spec, records, context)
    joined = _all_joined(parsed, indexes)
    held = joined.lacking & parsed.alive()
    clock = pa.repeat(pa.scalar(context.proctime_ms, pa.int64()), int(held.sum()))
    waiting = parsed.as_arrivals(np.flatnonzero(held), clock, clock)
    nothing = waiting.slice(0, 0)
    if held.any():
        joined = joined.kept(~held[joined.probe_rows])
    answer = _projected(joined)
    unmatched = answer.unmatched - int(held.sum())
    return LateAnswer(replace(answer, unmatched=unmatched), waiting, nothing, 0)


def lacking_match(
    spec: ProbeKernelSpec,
    arrivals: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
    *,
    answered: bool = False,
) -> Mask:
    """True for waiting rows that still lack a match; dead ones do not.

    With `answered` rows count as dead, too, that die when they go out without a match.
    """
    parsed = ParsedRecords.of_arrivals(spec, arrivals, context)
    joined = _all_joined(parsed, indexes)
    if answered:
        _projected(joined)
    return joined.lacking & parsed.alive()


def waited_columns(spec: ProbeKernelSpec) -> tuple[str, ...]:
    """The carried columns that alone decide which rows of tables a waiting row may match.

    Empty unless all keys are columns of the stream, and of all tables rows are waited for: then a
    waiting row stays without a match while no row of its keys changes.
    """
    carried = {item.name for item in spec.carried}
    keys = [pair.probe for join in spec.joins for pair in join.keys]
    names = {key.name for key in keys if isinstance(key, Column) and key.relation == spec.alias}
    are_plain = all(isinstance(key, Column) and key.relation == spec.alias for key in keys)
    has_conditions = any(join.condition is not None for join in spec.joins)
    are_waited = {join.alias for join in spec.joins} == set(spec.waits_for)
    is_enough = are_plain and are_waited and names <= carried and not has_conditions
    return tuple(sorted(names)) if is_enough and not spec.unnests else ()


def may_match(
    spec: ProbeKernelSpec,
    keys: Mapping[str, pa.Array],
    hashes: Mapping[str, Hashes],
    changed: Mapping[str, ChangedKeys],
) -> Mask:
    """True for rows of `keys` (`waited_columns`) with a row of that key in one of `changed`.

    `hashes` are the `key_hashes` of `keys`.
    """
    may = np.zeros(len(next(iter(hashes.values()))), dtype=np.bool_)
    for join in spec.joins:
        may[changed[join.alias].matched(_of_join(keys, join), hashes[join.alias])] = True
    return may


def key_hashes(
    spec: ProbeKernelSpec, keys: Mapping[str, pa.Array], changed: Mapping[str, ChangedKeys]
) -> dict[str, Hashes]:
    """By alias of the join the hashes of `keys` (`waited_columns`), for `ChangedKeys.may_have`."""
    return {each.alias: changed[each.alias].hashes(_of_join(keys, each)) for each in spec.joins}


def _of_join(keys: Mapping[str, pa.Array], join: DimensionJoin) -> list[pa.Array]:
    return [keys[pair.probe.name] for pair in join.keys if isinstance(pair.probe, Column)]


def join_released(
    spec: ProbeKernelSpec,
    arrivals: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> LateAnswer:
    """Join waiting rows that leave, with a match or at their bound."""
    parsed = ParsedRecords.of_arrivals(spec, arrivals, context)
    joined = _all_joined(parsed, indexes)
    has_rows = np.zeros(len(joined.lacking), dtype=np.bool_)
    has_rows[joined.probe_rows] = True
    answer = _projected(joined)
    expired = joined.lacking & parsed.alive()
    dropped = arrivals.filter(pa.array(expired & ~has_rows))
    return LateAnswer(answer, arrivals.slice(0, 0), dropped, int(expired.sum()))


def _answer(parsed: ParsedRecords, indexes: Mapping[str, DimensionIndex]) -> JoinedBatch:
    return _projected(_all_joined(parsed, indexes))


def _all_joined(parsed: ParsedRecords, indexes: Mapping[str, DimensionIndex]) -> "_Joined":
    joined = _unnested(parsed)
    for join in parsed.spec.joins:
        joined = _join(joined, join, indexes[join.alias])
    return joined


def _projected(joined: "_Joined") -> JoinedBatch:
    parsed, spec = joined.batch, joined.batch.spec
    complete = np.ones(len(joined.probe_rows), dtype=np.bool_)
    for _, rows in joined.dimensions.values():
        complete &= rows >= 0
    matched = joined.probe_rows[complete]
    if spec.where is not None:
        joined = joined.kept(joined.true(spec.where))
    projection = spec.output if spec.window_input is None else spec.window_input
    columns = [joined.output(column) for column in projection]
    if spec.changes is not None:
        return _with_deletions(joined, columns, matched)
    return parsed.answer(joined.probe_rows, columns, matched)


def _with_deletions(joined: "_Joined", columns: list[pa.Array], matched: Rows) -> JoinedBatch:
    """The rows as updates, and a deletion for each record whose key has no row now.

    A record without a match, or for which WHERE is not true, deletes too: the row that an earlier
    record of its key has brought is no row of the newest one.
    """
    parsed, spec = joined.batch, joined.batch.spec
    gone = parsed.without_row(joined.probe_rows)
    deletions = _Joined(parsed, gone, {}, joined.lacking)
    of_key = _columns_of_deletions(spec)
    order = np.argsort(np.concatenate([joined.probe_rows, gone]), kind="stable")
    both = []
    for item, column in zip(spec.output, columns, strict=True):
        own = pa.nulls(len(gone), column.type)
        if item.name in of_key:
            own = deletions.evaluate(item.expression).values.cast(column.type)
        both.append(pa.concat_arrays([column, own]).take(pa.array(order)))
    kinds = np.repeat([UPDATE_AFTER, DELETE], [len(joined.probe_rows), len(gone)])[order]
    rows = np.concatenate([joined.probe_rows, gone])[order]
    return parsed.answer(rows, both, matched, pa.array(kinds, TYPE))


def _columns_of_deletions(spec: ProbeKernelSpec) -> frozenset[str]:
    """The output columns that are computed from columns of the key alone, or from no column."""
    assert spec.changes is not None, "only a stream of changes has deletions"
    known = {(spec.alias, name) for name in spec.changes.key}
    read = {
        item.name: {(column.relation, column.name) for column in columns_of(item.expression)}
        for item in spec.output
    }
    return frozenset(name for name, columns in read.items() if columns <= known)


@dataclass(slots=True)
class _Joined:
    """Rows of the join so far, by ascending parsed row.

    `dimensions` has by alias the index and its row for each row, -1 where LEFT has padded.
    `lacking` marks the parsed rows with a row that lacks a match in a table of `waits_for`.
    """

    batch: ParsedRecords
    probe_rows: Rows
    dimensions: dict[str, tuple[DimensionIndex, Rows]]
    lacking: Mask
    elements: dict[str, Elements] = field(default_factory=dict)
    resolved: dict[tuple[str, str], pa.Array] = field(default_factory=dict)

    def resolve(self, column: Column) -> pa.Array:
        key = (column.relation, column.name)
        if key not in self.resolved:
            if column.relation == self.batch.spec.alias:
                whole = self.batch.columns[column.name]
                same = len(whole) == len(self.probe_rows) and is_identity(self.probe_rows)
                self.resolved[key] = whole if same else whole.take(pa.array(self.probe_rows))
            elif column.relation in self.elements:
                self.resolved[key] = self.elements[column.relation].taken(column.name)
            else:
                index, rows = self.dimensions[column.relation]
                self.resolved[key] = index.take(rows, [column.name]).column(0)
        return self.resolved[key]

    def evaluate(self, expression: Expression) -> Evaluated:
        """The values of `expression`; records of failed rows are dead."""
        result = evaluate_rows(expression, self.batch.scope(self.resolve, len(self.probe_rows)))
        for row, reason in result.errors.items():
            self.batch.kill([int(self.probe_rows[row])], reason)
        return result

    def true(self, condition: Expression) -> Mask:
        return mask_of(self.evaluate(condition).values)

    def picked(self, at: Rows) -> "_Joined":
        picked = {alias: (index, rows[at]) for alias, (index, rows) in self.dimensions.items()}
        elements = {alias: each.picked(at) for alias, each in self.elements.items()}
        return _Joined(self.batch, self.probe_rows[at], picked, self.lacking, elements)

    def kept(self, mask: Mask) -> "_Joined":
        return self if mask.all() else self.picked(np.flatnonzero(mask))

    def with_dimension(self, alias: str, index: DimensionIndex, rows: Rows) -> "_Joined":
        return replace(self, dimensions={**self.dimensions, alias: (index, rows)}, resolved={})

    def output(self, column: OutputColumn) -> pa.Array:
        values = self.evaluate(column.expression).values
        if not column.nullable and values.null_count:
            nulls = np.flatnonzero(mask_of(values.is_null()))
            reason = f'column "{column.name}" of the sink is NOT NULL and would be NULL'
            self.batch.kill(self.probe_rows[nulls], reason)
        for path, rows in missing_parts(values, column.expression.type, column.name):
            reason = f'column "{path}" of the sink is NOT NULL and would be NULL'
            self.batch.kill(self.probe_rows[rows], reason)
        return values


def _unnested(parsed: ParsedRecords) -> _Joined:
    nothing = np.zeros(len(parsed.input_rows), dtype=np.bool_)
    joined = _Joined(parsed, parsed.living(), {}, nothing)
    for unnest in parsed.spec.unnests:
        at, elements = unnested(joined.evaluate(unnest.value).values, unnest.join_type)
        joined = joined.picked(at)
        joined.elements[unnest.alias] = elements
    return joined


def _join(joined: _Joined, join: DimensionJoin, index: DimensionIndex) -> _Joined:
    keys = [joined.evaluate(pair.probe).values for pair in join.keys]
    at, rows = _matches(joined, join, index, keys)
    if join.condition is not None and len(at):
        candidates = joined.picked(at).with_dimension(join.alias, index, rows)
        true = candidates.true(join.condition)
        at, rows = at[true], rows[true]
    if join.alias in joined.batch.spec.waits_for:
        may_match = _may_match(joined, join, keys)
        may_match[at] = False
        joined.lacking[joined.probe_rows[may_match]] = True
    if join.join_type is JoinType.LEFT:
        at, rows = _padded(at, rows, len(joined.probe_rows))
    return joined.picked(at).with_dimension(join.alias, index, rows)


def _matches(
    joined: _Joined, join: DimensionJoin, index: DimensionIndex, keys: Sequence[pa.Array]
) -> tuple[Rows, Rows]:
    """Matches of `lookup`, except for a NULL that comes from a cast of a null-safe pair."""
    if index.spec.versioned is not None:
        return _versions(joined, join, index, keys)
    possible = _possible(joined, join, keys)
    if possible.all():
        return index.lookup(keys)
    rows = np.flatnonzero(possible)
    at, matches = index.lookup(taken(keys, rows))
    return rows[at], matches


def _possible(joined: _Joined, join: DimensionJoin, keys: Sequence[pa.Array]) -> Mask:
    possible = np.ones(len(joined.probe_rows), dtype=np.bool_)
    for pair, key in zip(join.keys, keys, strict=True):
        if pair.uncast is not None and key.null_count:
            value = joined.evaluate(pair.uncast).values
            possible &= mask_of(key.is_valid()) | mask_of(value.is_null())
    return possible


def _may_match(joined: _Joined, join: DimensionJoin, keys: Sequence[pa.Array]) -> Mask:
    """True for rows whose key some row of the table could have: NULL equals nothing."""
    may = _possible(joined, join, keys)
    for pair, key in zip(join.keys, keys, strict=True):
        if not pair.null_safe and key.null_count:
            may &= mask_of(key.is_valid())
    return may


def _versions(
    joined: _Joined, join: DimensionJoin, index: DimensionIndex, keys: Sequence[pa.Array]
) -> tuple[Rows, Rows]:
    """Versions valid at the rows' times; one that fails other equalities restores no older one."""
    pairs = list(zip(join.keys, keys, strict=True))
    by_column = {pair.dimension_column: (pair, key) for pair, key in reversed(pairs)}
    looked_up = [by_column[name] for name in index.spec.join_key]
    at, rows = index.lookup_at([key for _, key in looked_up], _times(joined, join))
    true = _possible(joined, join, keys)[at]
    for pair, key in pairs:
        if not any(pair is other for other, _ in looked_up):
            true &= _equal(index, rows, pair, key.take(pa.array(at)))
    return at[true], rows[true]


def _equal(index: DimensionIndex, rows: Rows, pair: KeyPair, expected: pa.Array) -> Mask:
    column = index.take(rows, [pair.dimension_column]).column(0)
    equal = mask_of(pc.equal(column, expected.cast(column.type)))
    if pair.null_safe:
        equal |= mask_of(column.is_null()) & mask_of(expected.is_null())
    return equal


def _times(joined: _Joined, join: DimensionJoin) -> Rows:
    """Epoch milliseconds of the rows so far; NULL is before all versions."""
    assert join.time is not None, "versions are looked up in event time only"
    arrivals = joined.batch.arrivals
    if arrivals is not None:
        return np.asarray(arrivals.column(TIME).to_numpy()[joined.probe_rows], dtype=np.int64)
    times = joined.resolve(join.time)
    return millis(
        times.fill_null(pa.scalar(_NO_TIME, pa.int64()).cast(times.type))
        if times.null_count
        else times
    )


def _padded(at: Rows, rows: Rows, count: int) -> tuple[Rows, Rows]:
    """Adds a row -1 for each position without a match, in order."""
    has_match = np.zeros(count, dtype=np.bool_)
    has_match[at] = True
    lonely = np.flatnonzero(~has_match)
    if len(lonely) == 0:
        return at, rows
    everything = np.concatenate([at, lonely])
    order = np.argsort(everything, kind="stable")
    padded = np.concatenate([rows, np.full(len(lonely), -1, dtype=np.int64)])
    return everything[order], padded[order]
