"""Which keys the files of a Delta table may hold: the range of each key column, file by file.

The log tells it with each file (column statistics). It is read once; from then on the entries of
new commits are, by name, so that what a batch pays does not grow with the log.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from joins.adapters.delta.versions import Seen, TableVersions
from joins.plan.errors import SinkError

Bounds = tuple[Any, Any]
"""The least and the greatest value of a column that has no NULL among what is bounded."""

_BOUNDED = (pa.types.is_integer, pa.types.is_date, pa.types.is_timestamp)
_ROUNDED = timedelta(milliseconds=1)  # what statistics may leave of a time
_MOST_STEPS = 200


class KeyBounds:
    """The bounds of the key columns in the files of one table; its caller holds its lock.

    Args:
        versions: of the table.
        key: the columns; those of types that Delta may shorten or orders otherwise tell nothing.
    """

    def __init__(self, versions: TableVersions, key: Sequence[pa.Field]) -> None:
        self._versions = versions
        self._key = tuple(key)
        self._files: dict[str, list[Bounds | None]] = {}
        self._at = 0
        self._rules: DeltaTable | None = None

    def may_hold(self, table: Seen, keys: Sequence[Bounds | None]) -> bool:
        """Whether a file of `table` may have one of the keys with these bounds, column by column.

        None bounds nothing. A file whose statistics do not tell may have any key.
        """
        files = self.files_with(table, keys)
        return files is None or bool(files)

    def files_with(self, table: Seen, keys: Sequence[Bounds | None]) -> list[str] | None:
        """The files of `table` that may have one of such keys, as its log names them.

        None if the log does not tell the files.
        """
        if not self._has_followed(table):
            return None
        return [path for path, file in self._files.items() if not _are_apart(file, keys)]

    def _has_followed(self, table: Seen) -> bool:
        """Know the files of `table`; False if the log does not tell them."""
        is_near = self._rules is table.rules and 0 <= table.at - self._at <= _MOST_STEPS
        if not (is_near and self._has_read(table.at)):
            self._rules = None
            try:
                self._files = dict(self._described(self._versions.whole(table)))
            except (DeltaError, SinkError):
                return False
        self._at, self._rules = table.at, table.rules
        return True

    def _has_read(self, version: int) -> bool:
        with suppress(SinkError):
            for each in range(self._at + 1, version + 1):
                self._apply(self._versions.commit_entry(each))
            return True
        return False

    def _apply(self, entry: Sequence[Mapping[str, Any]]) -> None:
        for action in entry:
            if "remove" in action:
                self._files.pop(action["remove"]["path"], None)
        for action in entry:
            if "add" in action:
                stats = action["add"].get("stats")
                self._files[action["add"]["path"]] = _stated(stats, self._key)

    def _described(self, table: DeltaTable) -> Iterator[tuple[str, list[Bounds | None]]]:
        """The files of `table` with their bounds, as delta-rs tells them."""
        actions = pa.table(table.get_add_actions())
        sides = [
            [_column(actions, side, column) for column in self._key] for side in ("min", "max")
        ]
        for at, path in enumerate(actions.column("path").to_pylist()):
            pairs = zip(*sides, strict=True)
            yield path, [_widened((lows[at], highs[at])) for lows, highs in pairs]


def bounds_of(files: Sequence[str], column: str, kind: pa.DataType) -> Bounds | None:
    """The bounds of `column` in Parquet files of ours, from their own statistics.

    None if they do not tell, if a value is NULL, or if Delta keeps no such statistics.
    """
    if not files or not any(test(kind) for test in _BOUNDED):
        return None
    lows, highs = [], []
    for file in files:
        metadata = pq.read_metadata(file)
        at = metadata.schema.names.index(column)
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(at).statistics
            if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
                return None
            try:
                lows.append(statistics.min)
                highs.append(statistics.max)
            except (OverflowError, ValueError):  # a day that Python's calendar does not have
                return None
    return min(lows), max(highs)


def may_have_key(stats: object, key: pa.Table) -> bool:
    """Whether a file with these statistics, as an entry has them, may have rows of a key.

    Args:
        stats: JSON text.
        key: one row, a column each. A row that has NULL in one of them may be there, too.
    """
    return _may_have_nulls(stats, key.column_names) or not _are_apart(
        _stated(stats, key.schema), [_point(column) for column in key.columns]
    )


def _may_have_nulls(stats: object, names: Sequence[str]) -> bool:
    try:
        counts = json.loads(str(stats or "{}")).get("nullCount") or {}
        return any(counts.get(name) != 0 for name in names)
    except (ValueError, AttributeError):
        return True


def _point(column: pa.ChunkedArray) -> Bounds | None:
    """The bounds of a column of one row."""
    with suppress(OverflowError, ValueError):  # a day that Python's calendar does not have
        if any(test(column.type) for test in _BOUNDED):
            value = column[0].as_py()
            return value, value
    return None


def _stated(stats: object, key: Iterable[pa.Field]) -> list[Bounds | None]:
    """The bounds of columns in the statistics of an entry, which are JSON."""
    fields = list(key)
    try:
        document = json.loads(str(stats or "{}"))
        low, high = (document.get(side) or {} for side in ("minValues", "maxValues"))
        return [
            _widened(
                (_value(low.get(each.name), each.type), _value(high.get(each.name), each.type))
            )
            for each in fields
        ]
    except (ValueError, AttributeError):
        return [None] * len(fields)


def _are_apart(file: Sequence[Bounds | None], keys: Sequence[Bounds | None]) -> bool:
    return any(
        one is not None and other is not None and (one[1] < other[0] or one[0] > other[1])
        for one, other in zip(file, keys, strict=True)
    )


def _widened(stated: Bounds) -> Bounds | None:
    """Bounds that hold whatever way a time was rounded to milliseconds; None if one is missing."""
    low, high = stated
    if low is None or high is None:
        return None
    if not isinstance(low, datetime):
        return low, high
    try:
        return low - _ROUNDED, high + _ROUNDED
    except OverflowError:
        return None


def _value(text: object, kind: pa.DataType) -> int | date | None:
    """A value of the statistics, which are JSON; None if it is none of the type."""
    if pa.types.is_integer(kind):
        return text if isinstance(text, int) and not isinstance(text, bool) else None
    if not isinstance(text, str):
        return None
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    if not pa.types.is_timestamp(kind):
        return None
    moment = datetime.fromisoformat(text)
    return moment if (moment.tzinfo is None) == (kind.tz is None) else None


def _column(actions: pa.Table, side: str, column: pa.Field) -> list[Any]:
    """The values of one side of the statistics; None where they are of no use."""
    nothing = [None] * actions.num_rows
    kind = actions.schema.field(side).type if side in actions.schema.names else pa.struct([])
    at = kind.get_field_index(column.name)
    if at < 0 or kind.field(at).type != column.type:
        return nothing
    if not any(test(column.type) for test in _BOUNDED):
        return nothing
    with suppress(OverflowError, ValueError):  # a day that Python's calendar does not have
        return list(pc.struct_field(actions.column(side), [at]).to_pylist())
    return nothing
