"""The dimension rows that match one record of the stream, one document a role.

A role is one join of the statement: a dimension under an alias. The join's kernel evaluates the
keys; the rows and their origin come from the changelog. `joins.lookback.explain_row` calls it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.versions import newest_numbered
from joins.dimension.changelog_scan import rows_of_keys
from joins.durable.pins import Pin
from joins.kernels.changelog.changes import CHANGE_COLUMNS, Progress, newest_rows
from joins.kernels.changelog.envelope import Op
from joins.kernels.changelog.row_kinds import DELETE, all_kinds
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.index.segment import IndexSpec
from joins.kernels.json.exact import row_texts
from joins.kernels.probe.probe import ProbeKernelSpec, join_batch
from joins.lookback.history import HistoryPlaces, user_metadata
from joins.lookback.past_indexes import PastIndexes
from joins.plan.errors import SinkError
from joins.plan.plan import DimensionJoin, JoinType, OutputColumn
from joins.plan.types import Column
from joins.worker.probe_task import pinned_context

_MOST_ROWS = 1000  # of a role, or of the output
_FOLDED = "sluice.changelog_version"  # of a commit to `current`: the changelog version it contains
_POSITION = ("_epoch", "_file", "_pos", "_row")


class RowMatches:
    """Finds the rows that a record was joined with."""

    def __init__(self, places: HistoryPlaces, past: PastIndexes) -> None:
        self._places = places
        self._past = past

    def of(
        self, record: pa.RecordBatch | None, indexes: Mapping[str, DimensionIndex], pin: Pin
    ) -> list[dict[str, Any]]:
        return [
            self._role(at, join, record, indexes, pin)
            for at, join in enumerate(self._places.kernel.joins)
        ]

    def _role(
        self,
        at: int,
        join: DimensionJoin,
        record: pa.RecordBatch | None,
        indexes: Mapping[str, DimensionIndex],
        pin: Pin,
    ) -> dict[str, Any]:
        version, proof = pin.versions[join.dimension], pin.as_of.get(join.dimension)
        key: dict[str, Any] | None = None
        rows: list[dict[str, Any]] = []
        if record is not None:
            spec = _role_spec(self._places.kernel, at, indexes[join.alias])
            joined = join_batch(spec, record, indexes, pinned_context(pin))
            kinds = all_kinds(joined.kinds, joined.rows.num_rows)
            joined_rows = joined.rows.filter(pc.not_equal(kinds, DELETE))
            key, matched = _key_and_matches(joined_rows, join, indexes[join.alias])
            rows = self._dimension_rows(join.dimension, version, matched, indexes[join.alias].spec)
        folded = self._folded(join.dimension, version)
        return {
            "name": join.dimension,
            "alias": join.alias,
            "version": version,
            "as_of_ms": None if proof is None else proof.time_ms,
            "key": key,
            **limited_rows("rows", rows),
            **folded,
        }

    def _dimension_rows(
        self, dimension: str, version: int, matched: pa.Table, spec: IndexSpec
    ) -> list[dict[str, Any]]:
        """The newest record of each identity (key, in event time with its time) in `matched`."""
        if matched.num_rows == 0:
            return []
        place = self._places.dimensions[dimension]
        names = tuple(item.name for item in place.fields)
        tables = [
            _of_keys(table, matched, spec.identity)
            for table in self._past.changelog_rows(dimension, version, (*names, *CHANGE_COLUMNS))
        ]
        table = pa.concat_tables(tables)
        marks = pc.equal(table.column("_op"), Op.WATERMARK)
        progress = Progress().with_records(table.filter(marks))
        table = table.filter(pc.invert(marks))
        table = table.filter(pa.array(~progress.ignored(table)))
        newest = newest_rows(table, spec.identity, versioned=spec.versioned)
        if len(spec.identity) > 1:  # `_of_keys` compares each column alone
            newest = rows_of_keys(newest, matched)
        rows = newest.sort_by([(k, "ascending") for k in spec.identity])
        shown = json_rows(rows.select([*names, "_op", "_partition", "_offset", "_generation"]))
        columns = [rows.column(name).to_pylist() for name in _POSITION]
        for row, (epoch, file, pos, ordinal) in zip(shown, zip(*columns, strict=True), strict=True):
            row["_position"] = {"epoch": epoch, "file": file, "pos": pos, "row": ordinal}
        return shown

    def _folded(self, dimension: str, version: int) -> dict[str, Any]:
        """The newest version of `current`, the dimension's table of newest rows, up to the pin.

        `current_equal` is true if nothing changed between the two. All are None if it was removed
        or cannot be read: Delta's logs raise SinkError for that, too.
        """
        path = self._places.tables[dimension] / "current"
        try:
            folded = folded_version(DeltaLog(path, ""), version)
            if folded is None:
                return {"current_version": None, "current_equal": None}
            changes = self._past.changelog(dimension).files.files_added(folded[1] + 1, version)
        except SinkError:
            return {"current_version": None, "current_equal": None}
        return {
            "current_version": folded[0],
            "current_changelog_version": folded[1],
            "current_equal": not changes,
        }


def folded_version(current: DeltaLog, version: int) -> tuple[int, int] | None:
    """(version of `current`, changelog version) of the newest fold up to changelog `version`."""
    return newest_numbered(current.versions, version, _fold_in)


def _fold_in(entry: Sequence[Mapping[str, Any]]) -> int | None:
    folds = (user_metadata(action.get("commitInfo", {})).get(_FOLDED) for action in entry)
    return next((int(fold) for fold in folds if fold is not None), None)


def _role_spec(kernel: ProbeKernelSpec, at: int, index: DimensionIndex) -> ProbeKernelSpec:
    """`kernel` up to the join `at`, with its keys and the identity of matching rows as output.

    All joins are LEFT, so that the keys appear also without a match.
    """
    joins = tuple(replace(join, join_type=JoinType.LEFT) for join in kernel.joins[: at + 1])
    join = joins[-1]
    types = {item.name: item.type for item in index.spec.fields}
    columns = [OutputColumn(f"key{n}", pair.probe) for n, pair in enumerate(join.keys)]
    columns += [
        OutputColumn(f"uncast{n}", pair.uncast)
        for n, pair in enumerate(join.keys)
        if pair.uncast is not None
    ]
    columns += [
        OutputColumn(f"found{n}", Column(join.alias, name, types[name]))
        for n, name in enumerate(index.spec.identity)
    ]
    return replace(
        kernel,
        joins=joins,
        where=None,
        output=tuple(columns),
        row_metadata=False,
        window_input=None,
    )


def _key_and_matches(
    matches: pa.RecordBatch, join: DimensionJoin, index: DimensionIndex
) -> tuple[dict[str, Any] | None, pa.Table]:
    names = index.spec.identity
    keys = matches.select([name for name in matches.schema.names if not name.startswith("found")])
    matched = pa.table({name: matches.column(f"found{n}") for n, name in enumerate(names)})
    matched = matched.filter(pc.is_valid(matched.column(names[0])))
    matched = matched.group_by(list(names)).aggregate([])
    if matches.num_rows == 0:
        return None, matched
    values = json.loads(row_texts(keys.slice(0, 1))[0].as_py())
    return {pair.dimension_column: _key_of(values, n) for n, pair in enumerate(join.keys)}, matched


def _key_of(values: Mapping[str, Any], n: int) -> object:
    """The n-th key; the record's own value where a cast made it NULL."""
    key = values[f"key{n}"]
    return values.get(f"uncast{n}") if key is None else key


def _of_keys(table: pa.Table, matched: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Rows of `table` that may have one of the keys `matched`, and the watermark records."""
    keep = pc.equal(table.column("_op"), Op.WATERMARK)
    same = None
    for name in identity:
        keys = matched.column(name).combine_chunks().cast(table.column(name).type)
        one = pc.is_in(table.column(name), value_set=keys)
        same = one if same is None else pc.and_(same, one)
    return table.filter(pc.or_(keep, same))


def limited_rows(name: str, rows: Sequence[Any]) -> dict[str, Any]:
    """The first rows under `name`, and under `name`_left_out how many are not among them."""
    left_out = max(0, len(rows) - _MOST_ROWS)
    return {name: list(rows)[:_MOST_ROWS], f"{name}_left_out": left_out}


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    return [
        json.loads(text) for batch in table.to_batches() for text in row_texts(batch).to_pylist()
    ]
