"""Compares the rows of a dimension with its source, read between two positions of its log.

The source is read first, from LOW to HIGH, which are one position P where the read is a consistent
snapshot. A row of the source is right if it equals any state that its key had from LOW to HIGH
(`joins.kernels.changelog.comparison`); keys with several are "changing". The changelog is read once
a proof of freshness says that it has everything up to HIGH. Later changes take no part, so a job
that joins meanwhile makes no difference. `service.jobs.inspect.verify` calls it.
"""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.dimension.build_side import committed_offsets
from joins.dimension.changelog_scan import NO_MARK, DimensionStates, State
from joins.dimension.changes import json_columns
from joins.kernels.changelog.changes import GENERATION, newest_rows, numbers
from joins.kernels.changelog.comparison import (
    STATE_COLUMNS,
    DifferenceKind,
    Place,
    RecordDigests,
    RowDigests,
    hashes_of,
    is_before,
    is_in,
    states_between,
)
from joins.kernels.changelog.digest import POSITION_COLUMNS
from joins.kernels.expressions.casts import Mask
from joins.kernels.index.hash_table import Hashes
from joins.kernels.json.exact import row_texts
from joins.kernels.table_path import TablePath
from joins.plan.errors import VerificationError

_POLL_S = 0.2
_GONE = "_gone"
Chunk = TypeVar("Chunk")


class SourceRead(Protocol[Chunk]):
    """The source, read from the position `low` on; `ConsistentRead` is one."""

    low: Place
    is_repeatable: bool  # rows read twice are the same
    left_out: int  # rows so far that `without` has excluded

    def chunks(self, rows_each: int) -> list[Chunk]: ...

    def rows(self, chunk: Chunk, without: Collection[str] = ()) -> Iterator[pa.Table]:
        """Without those whose keys, as JSON, are in `without`."""

    def high(self) -> tuple[Place, Mapping[str, Any]]:
        """A position after all rows that were read, also as the document that shows it."""

    def keys_in(self, keys: pa.Table, chunk: Chunk) -> Mask | None:
        """Which keys are in the range of `chunk`; None if keys cannot be compared here."""


@dataclass(frozen=True, slots=True)
class VerifyLimits:
    """What one comparison reads and shows."""

    sample: float = 1.0  # share of the chunks, above 0, 1 for all; at least one chunk is read
    rows_per_s: int | None = None  # pace of reading the source; None for no limit
    shown: int = 100  # differences that are shown with their rows
    repaired: int = 0  # differences whose keys the result lists for a repair, 0 without one
    proof_s: float = 60.0  # how long the changelog may take to reach the position
    chunk_rows: int = 10_000
    seed: int | None = None


class Verification(Generic[Chunk]):
    """One comparison of one dimension.

    `proven` returns the place up to which the changelog has everything, None without a proof;
    `without` are keys, as JSON, that the copy has left out and reports. Records of the changelog
    for which `counted` is false take no part. `is_over` says that no proof can come any more.
    """

    def __init__(
        self,
        states: DimensionStates,
        read: SourceRead[Chunk],
        proven: Callable[[], Place | None],
        limits: VerifyLimits,
        without: Collection[str] = (),
        counted: pc.Expression | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_over = is_over
        self._counted = NO_MARK if counted is None else NO_MARK & counted
        self._states = states
        self._read = read
        self._proven = proven
        self._limits = limits
        self._without = without
        self._key = list(states.dimension.primary_key)
        self._columns = [item.name for item in states.dimension.compared_fields]
        self._names = list(dict.fromkeys([*self._columns, *STATE_COLUMNS]))

    def run(self, first: int) -> dict[str, Any]:
        """The result as a document; `first` is a version from before the read began.

        VerificationError if the copy is not complete or does not reach the position in time.
        """
        read, limits = self._read, self._limits
        # before the source is read, and before the wait for a proof
        before = self._complete(self._states.at(first))
        every = read.chunks(limits.chunk_rows)
        chosen = _sample(every, limits)
        parts = [self._digests(chunk) for chunk in chosen]
        source = RowDigests.concatenated(parts)
        high, position = read.high()
        self._wait_for(high, position)
        state = self._complete(self._states.at(since=before))
        files = self._files(first, state)
        is_whole = len(chosen) == len(every)
        records, finds_extra = self._records(files, state, source, None if is_whole else chosen)
        copied = states_between(records, read.low, high, generation=state.generation)
        wrong, extra = copied.differing(source), copied.extra(source)
        suspects = np.unique(np.concatenate([source.key[wrong], records.rows.key[extra]]))
        looked_up = suspects[: max(limits.shown, limits.repaired)]
        items: list[tuple[dict[str, Any], str]] = []
        equal = 0
        if len(looked_up):
            theirs = self._source_rows(chosen, parts, looked_up)
            items, equal = self._items(files, state, theirs, looked_up, high)
        return {
            "table": self._states.dimension.name,
            "position": position,
            "version": state.version,
            "sample": limits.sample,
            "chunks": len(chosen),
            "chunks_total": len(every),
            "rows": len(source),
            "changing": copied.changing,
            "left_out": read.left_out,
            "finds_extra": finds_extra,
            "differences": len(suspects) - equal,
            "items": [item for item, _ in items[: limits.shown]],
            "keys": _keys_of(items[: limits.repaired], extra=False),
            "extra": _keys_of(items[: limits.repaired], extra=True),
        }

    def _complete(self, state: State) -> State:
        if state.complete:
            return state
        raise VerificationError(
            f'table "{self._states.dimension.name}" is being copied, so there is nothing to '
            "compare yet",
            hint="Verify it when the copy is complete; sluice jobs ls shows that.",
        )

    def _digests(self, chunk: Chunk) -> RowDigests:
        parts = []
        for rows in self._read.rows(chunk, self._without):
            began = time.monotonic()
            parts.append(RowDigests.of(rows, self._key, self._columns))
            if self._limits.rows_per_s is not None:
                due_s = rows.num_rows / self._limits.rows_per_s
                time.sleep(max(0.0, due_s - (time.monotonic() - began)))
        return RowDigests.concatenated(parts)

    def _wait_for(self, high: Place, position: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + self._limits.proof_s
        while (at := self._proven()) is None or at < high:
            is_over = self._is_over()
            if is_over or time.monotonic() > deadline:
                why = (
                    ", and the job has ended" if is_over else f" within {self._limits.proof_s:g} s"
                )
                raise VerificationError(
                    f'table "{self._states.dimension.name}" has not reached {dict(position)}{why}',
                    hint="The job must run, and its source be followed; see sluice jobs get.",
                )
            time.sleep(_POLL_S)

    def _files(self, first: int, state: State) -> list[TablePath]:
        """The files of version `first` and those added since, so without later compactions."""
        files = self._states.log.files
        return [*files.files_at(first), *files.files_added(first + 1, state.version)]

    def _records(
        self,
        files: Sequence[TablePath],
        state: State,
        source: RowDigests,
        chunks: Sequence[Chunk] | None,
    ) -> tuple[RecordDigests, bool]:
        """Records of the compared keys, and whether they include keys that the source lacks.

        A sample's `chunks` limit them to keys of the source and of these chunks; None is no sample.
        """
        parts, finds_extra, compared = [], True, np.sort(source.key)
        for batch in self._states.scan.rows(files, self._names, self._counted):
            table = pa.Table.from_batches([batch])
            if chunks is not None:
                keys = table.select(self._key)
                kept = is_in(hashes_of(keys, self._key), compared)
                for chunk in chunks:
                    inside = self._read.keys_in(keys, chunk)
                    if inside is None:
                        finds_extra = False
                        break
                    kept |= inside
                table = table.filter(pa.array(kept))
            parts.append(RecordDigests.of(table, self._key, self._columns, state.progress))
        return RecordDigests.concatenated(parts), finds_extra

    def _source_rows(
        self, chunks: Sequence[Chunk], parts: Sequence[RowDigests], keys: Hashes
    ) -> pa.Table:
        """The source's rows with these hashes of keys, newer ones if the read is not repeatable."""
        parts_of_keys = []
        for chunk, part in zip(chunks, parts, strict=True):
            if not is_in(part.key, keys).any():
                continue
            for rows in self._read.rows(chunk, self._without):
                kept = is_in(hashes_of(rows, self._key), keys)
                parts_of_keys.append(rows.filter(pa.array(kept)))
        nothing = self._states.no_rows().select(self._columns)
        return pa.concat_tables([nothing, *(rows.select(self._columns) for rows in parts_of_keys)])

    def _items(
        self,
        files: Sequence[TablePath],
        state: State,
        theirs: pa.Table,
        keys: Hashes,
        high: Place,
    ) -> tuple[list[tuple[dict[str, Any], str]], int]:
        """Differences with the row of the copy (ours) and of the source, each with its key's JSON.

        Also how many were none: other keys with an equal hash.
        """
        newest = self._newest(files, state, keys, high)
        gone = newest.column(_GONE).to_pylist()
        ours = self._by_key(newest)
        sources = self._by_key(theirs)
        items: list[tuple[dict[str, Any], str]] = []
        equal = 0
        for key in {**sources, **ours}:
            index, our = ours.get(key, (None, None))
            their = sources[key][1] if key in sources else None
            if index is not None and gone[index]:
                our = None
            if their == our:
                equal += 1
                continue
            item = {
                "key": {name: (their or our or {}).get(name) for name in self._key},
                "kind": _kind(their, our).value,
                "ours": our,
                "theirs": their,
            }
            items.append(({**item, **self._since(index, newest, state)}, key))
        return items, equal

    def _newest(
        self, files: Sequence[TablePath], state: State, keys: Hashes, high: Place
    ) -> pa.Table:
        parts = [self._states.scan.empty(self._names)]
        for batch in self._states.scan.rows(files, self._names, self._counted):
            table = pa.Table.from_batches([batch])
            kept = is_in(hashes_of(table, self._key), keys) & ~state.progress.ignored(table)
            kept &= is_before([numbers(table, name) for name in POSITION_COLUMNS], high)
            parts.append(table.filter(pa.array(kept)))
        newest = newest_rows(pa.concat_tables(parts), self._key)
        deleted = pc.equal(newest.column("_op"), "d")
        gone = pc.or_(deleted, pc.less(newest.column(GENERATION), state.generation))
        return newest.append_column(_GONE, gone)

    def _since(self, index: int | None, newest: pa.Table, state: State) -> dict[str, Any]:
        """Version and position of our record; None if there never was one."""
        if index is None:
            return {"since_version": None, "our_position": None}
        record = newest.slice(index, 1).to_pylist()[0]
        place = {name.strip("_"): record[name] for name in POSITION_COLUMNS}
        version = self._committed_in(record["_partition"], record["_offset"], state.version)
        return {"since_version": version, "our_position": place}

    def _by_key(self, rows: pa.Table) -> dict[str, tuple[int, dict[str, Any]]]:
        """Key as JSON → index and values of its row."""
        keys = [t for b in rows.select(self._key).to_batches() for t in row_texts(b).to_pylist()]
        values = zip(*json_columns(rows, self._states.dimension.compared_fields), strict=True)
        shown = [dict(zip(self._columns, row, strict=True)) for row in values]
        return {text: (at, row) for at, (text, row) in enumerate(zip(keys, shown, strict=True))}

    def _committed_in(self, partition: int, offset: int, newest: int) -> int | None:
        """The first kept version that has the record, which may be older than all kept ones."""
        log, partitions = self._states.log, self._states.scan.spec.partitions
        low, high = log.versions.oldest_version(), newest
        while low < high:
            middle = (low + high) // 2
            if committed_offsets(log, middle, partitions).get(partition, 0) > offset:
                high = middle
            else:
                low = middle + 1
        return low


def _keys_of(items: Sequence[tuple[dict[str, Any], str]], *, extra: bool) -> list[str]:
    is_extra = DifferenceKind.EXTRA.value
    return [key for item, key in items if (item["kind"] == is_extra) is extra]


def _sample(chunks: Sequence[Chunk], limits: VerifyLimits) -> list[Chunk]:
    count = max(1, round(len(chunks) * limits.sample))
    if count >= len(chunks):
        return list(chunks)
    chosen = random.Random(limits.seed).sample(range(len(chunks)), count)
    return [chunks[at] for at in sorted(chosen)]


def _kind(their: object, our: object) -> DifferenceKind:
    if our is None:
        return DifferenceKind.MISSING
    return DifferenceKind.EXTRA if their is None else DifferenceKind.CHANGED
