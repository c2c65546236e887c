"""Joins batches of the past again under another plan of their job: which rows would differ."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.durable.pins import Pin
from joins.kernels.json.exact import row_texts
from joins.kernels.probe.probe import JoinedBatch, join_batch
from joins.lookback.history import History, HistoryPlaces
from joins.lookback.past_indexes import PastIndexes, PastRecords
from joins.lookback.plans import OfPlans, PlanIndexes
from joins.lookback.row_matches import json_rows
from joins.plan.stream_topics import StreamTopics, partition_of
from joins.worker.probe_task import pinned_context
from watermark.errors import SluiceError

MAX_EXAMPLES = 10
_ORDINAL, _BEFORE, _AFTER = "ordinal", "before", "after"
_KEYS = ["partition", "offset", _ORDINAL]
_KIND = "row kind"


@dataclass(slots=True)
class _RowCounts:
    """What the batches so far have shown."""

    batches: list[int] = field(default_factory=list)
    records: int = 0
    records_gone: int = 0
    rows_before: int = 0
    rows_after: int = 0
    rows_changed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    dead_letters_before: int = 0
    dead_letters_after: int = 0
    changed_values: dict[str, int] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self, new_columns: Sequence[str], reason: str | None) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        values["examples"] = self.examples[:MAX_EXAMPLES]
        values["batches"] = len(self.batches)
        return {
            **values,
            "oldest_batch": min(self.batches, default=None),
            "newest_batch": max(self.batches, default=None),
            "new_columns": list(new_columns),
            "reason": reason,
        }


class PlanPreview:
    """Compares rows of committed batches under the plan of their pins and under `other`.

    Both are computed: the output itself is not read. Close it when done.
    """

    def __init__(self, history: History, other: HistoryPlaces) -> None:
        self._history = history
        self._other = other
        self._at_end = ExitStack()
        self._indexes = self._at_end.enter_context(PastIndexes(other))
        self._plans = self._at_end.enter_context(closing(OfPlans(history, PlanIndexes)))
        columns = (*history.places.kernel.record_columns, *other.kernel.record_columns)
        records = PastRecords(history, tuple(dict.fromkeys(columns)))
        self._records = self._at_end.enter_context(closing(records))

    def close(self) -> None:
        self._at_end.close()

    def compare(self, *, batches: int, within_s: float) -> dict[str, Any]:
        """Compare the newest `batches` committed batches, as many as `within_s` seconds allow.

        Returns JSON values: counts of records, rows and dead letters, `changed_values` by column,
        `new_columns`, the first `MAX_EXAMPLES` rows that differ, and `reason`: why batches are
        left out, None if none is.
        """
        total, reason = _RowCounts(), None
        until = time.monotonic() + within_s
        pins = self._history.pins_below(None)
        committed = (pin for pin in pins if self._history.is_committed(pin.batch))
        for pin in islice(committed, batches):
            if time.monotonic() >= until:
                reason = f"{within_s:g} s were over before the other batches were joined again"
                break
            new = sorted({j.dimension for j in self._other.kernel.joins} - {*pin.versions})
            if new:
                reason = f'table "{new[0]}" is new: its rows are known after the update only'
                break
            try:
                self._add(total, pin)
            except SluiceError as exc:
                reason = f"batch {pin.batch} cannot be joined again: {exc.message}"
                break
        old = {column.name for column in self._history.places.kernel.output}
        new_columns = [c.name for c in self._other.kernel.output if c.name not in old]
        return total.as_json(new_columns, reason)

    def _add(self, total: _RowCounts, pin: Pin) -> None:
        plan = self._plans.of(pin.plan)
        kernels = [
            replace(kernel, row_metadata=False)
            for kernel in (plan.history.places.kernel, self._other.kernel)
        ]
        indexes = plan.indexes.of(pin.versions), self._indexes.of(pin.versions)
        ranges, gone = self._records.kept(pin)
        context, seen = pinned_context(pin), 0
        answers: list[tuple[JoinedBatch, JoinedBatch]] = []
        for records in self._records.read(ranges):
            seen += records.num_rows
            before, after = (
                join_batch(kernel, records, of_plan, context)
                for kernel, of_plan in zip(kernels, indexes, strict=True)
            )
            answers.append((before, after))
        # A batch is counted as a whole or not at all.
        total.batches.append(pin.batch)
        total.records += seen
        total.records_gone += sum(end - first for _, first, end in gone)
        for before, after in answers:
            total.dead_letters_before += before.dead_letters.num_rows
            total.dead_letters_after += after.dead_letters.num_rows
            _add_rows(total, before, after, self._records.topics)


def _add_rows(
    total: _RowCounts, before: JoinedBatch, after: JoinedBatch, topics: StreamTopics
) -> None:
    total.rows_before += before.rows.num_rows
    total.rows_after += after.rows.num_rows
    pairs = _paired(before, after)
    is_added, is_removed = pc.is_null(pairs[_BEFORE]), pc.is_null(pairs[_AFTER])
    total.rows_added += pc.sum(is_added).as_py() or 0
    total.rows_removed += pc.sum(is_removed).as_py() or 0
    both = pairs.filter(pc.invert(pc.or_(is_added, is_removed)))
    old, new = _values(before), _values(after)
    has_changed = np.zeros(both.num_rows, dtype=np.bool_)
    for name in old.column_names:
        if name not in new.column_names:
            continue
        left, right = (
            table[name].take(both[side]) for table, side in ((old, _BEFORE), (new, _AFTER))
        )
        if left.equals(right):
            continue
        differs = pc.not_equal(_texts(left), _texts(right)).to_numpy(zero_copy_only=False)
        if differs.any():
            total.changed_values[name] = total.changed_values.get(name, 0) + int(differs.sum())
            has_changed |= differs
    total.rows_changed += int(has_changed.sum())
    if len(total.examples) < MAX_EXAMPLES:
        more = new.column_names != old.column_names
        shown = both if more else both.filter(pa.array(has_changed))
        alone = pairs.filter(pc.or_(is_added, is_removed))
        total.examples += _examples(pa.concat_tables([alone, shown]), old, new, topics)


def _paired(before: JoinedBatch, after: JoinedBatch) -> pa.Table:
    """The numbers of rows of one record that stand at one place among its rows; NULL for none."""
    old, new = _keys(before, _BEFORE), _keys(after, _AFTER)
    if old.select(_KEYS).equals(new.select(_KEYS)):
        return old.append_column(_AFTER, new[_AFTER])
    return old.join(new, _KEYS, join_type="full outer").sort_by(
        [("partition", "ascending"), ("offset", "ascending"), (_ORDINAL, "ascending")]
    )


def _keys(joined: JoinedBatch, side: str) -> pa.Table:
    keys = pa.Table.from_batches([joined.coordinates]).select(["partition", "offset"])
    rows = np.arange(keys.num_rows)
    is_first = np.ones(keys.num_rows, dtype=np.bool_)
    if keys.num_rows > 1:
        places = [column.to_numpy() for column in keys.columns]
        is_first[1:] = np.logical_or.reduce([place[1:] != place[:-1] for place in places])
    ordinal = rows - np.maximum.accumulate(np.where(is_first, rows, 0))
    return keys.append_column(_ORDINAL, pa.array(ordinal)).append_column(side, pa.array(rows))


def _values(joined: JoinedBatch) -> pa.Table:
    rows = pa.Table.from_batches([joined.rows])
    return rows if joined.kinds is None else rows.append_column(_KIND, joined.kinds)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """NaN equals itself, nested values are compared as a whole."""
    return row_texts(pa.record_batch([column.combine_chunks()], names=["value"]))


def _examples(
    pairs: pa.Table, old: pa.Table, new: pa.Table, topics: StreamTopics
) -> Iterator[dict[str, Any]]:
    for pair in pairs.slice(0, MAX_EXAMPLES).to_pylist():
        sides = {
            side: None if pair[side] is None else json_rows(table.slice(pair[side], 1))[0]
            for side, table in ((_BEFORE, old), (_AFTER, new))
        }
        number = pair["partition"]
        place = f"{topics.topic_of(number).name}/{partition_of(number)}/{pair['offset']}"
        yield {"place": place, **sides}
