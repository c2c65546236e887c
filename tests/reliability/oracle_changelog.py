"""Which prefix of the binlog each dimension version holds, from the changelog's coordinates alone.

Every partition gets a source's changes in their order, so the newest place in a partition says what
the version holds of it; a watermark record stands for everything before HIGH. While a newer
generation is being copied a row may be as old as the end of the one before, or newer: such versions
have a span instead of one place. So have those whose files a compaction has removed. The changes of
a topic have their offsets, also those of a copy: a version that is incomplete has a place, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.reliability.oracle_history import Place
from tests.reliability.oracle_log import TableLog

_COLUMNS = ("_op", "_epoch", "_file", "_pos", "_row", "_partition", "_generation")
_FIRST: Place = (-1, -1, -1)
EPlace = tuple[int, int, int, int]


@dataclass(frozen=True)
class Cut:
    """What one version holds.

    Attributes:
        low: partition → everything up to this place is held.
        high: partition → nothing beyond this place is held, None for no such limit.
        complete: whether the copy was complete in every partition.
        certain: whether all its files could be read.
        whole: the places of the newest version up to this one whose copy was complete.
    """

    version: int
    low: Mapping[int, Place]
    high: Mapping[int, Place] | None
    complete: bool
    certain: bool = True
    whole: Mapping[int, Place] = field(default_factory=dict)


@dataclass
class _State:
    """The rows read so far, by partition."""

    newest: dict[int, EPlace] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    generation: int = 0
    certain: bool = True
    by_offset: bool = False

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        self.generation = max(self.generation, pc.max(rows.column("_generation")).as_py() or 0)
        partitions = rows.column("_partition").to_numpy()
        for partition in np.unique(partitions).tolist():
            own = rows.filter(pa.array(partitions == partition))
            told = own.filter(pc.not_equal(own.column("_op"), "w" if self.by_offset else "r"))
            if told.num_rows:
                place = _newest(told)
                self.newest[partition] = max(place, self.newest.get(partition, place))
            marks = own.filter(pc.equal(own.column("_op"), "w"))
            if marks.num_rows:
                marked = pc.max(marks.column("_generation")).as_py()
                self.marks[partition] = max(marked, self.marks.get(partition, marked))

    def seen(self, version: int) -> "_Seen":
        places = {p: (file, pos, row) for p, (_, file, pos, row) in self.newest.items()}
        marked = frozenset(p for p, mark in self.marks.items() if mark >= self.generation)
        return _Seen(version, places, marked, self.certain)


@dataclass(frozen=True)
class _Seen:
    """What the walk saw at one version.

    Attributes:
        marked: partitions with the watermark record of the newest generation.
    """

    version: int
    places: Mapping[int, Place]
    marked: frozenset[int]
    certain: bool


def _newest(rows: pa.Table) -> EPlace:
    columns = [
        rows.column(name).to_numpy().astype(np.int64)
        for name in ("_epoch", "_file", "_pos", "_row")
    ]
    last = np.lexsort(columns[::-1])[-1]
    epoch, file, pos, row = (int(column[last]) for column in columns)
    return epoch, file, pos, row


class _Walk:
    """Reads the log once, oldest version first."""

    def __init__(self, log: TableLog, *, by_offset: bool) -> None:
        self._log = log
        self._state = _State(by_offset=by_offset)

    def run(self, first: int, last: int) -> Iterator[_Seen]:
        """What each version from `first` to `last` holds."""
        self._resync(first)
        yield self._state.seen(first)
        for version in range(first + 1, last + 1):
            self._advance(version)
            yield self._state.seen(version)

    def _resync(self, version: int) -> None:
        """The state of `version` from all its files; uncertain if one of them is gone."""
        state = _State(by_offset=self._state.by_offset)
        try:
            files = sorted(self._log.files_at(version))
        except LookupError:
            state.certain, files = False, []
        for file in files:
            rows = self._log.read(file, _COLUMNS)
            if rows is None:
                state.certain = False
            else:
                state.add(rows)
        if state.certain:
            self._state = state
        else:
            self._state.certain = False

    def _advance(self, version: int) -> None:
        if not self._state.certain:
            self._resync(version)
            return
        added = self._log.commit(version).added if version in self._log.entries else None
        tables = None if added is None else [self._log.read(file, _COLUMNS) for file in added]
        if tables is None or any(table is None for table in tables):
            self._resync(version)
            return
        for table in tables:
            assert table is not None
            self._state.add(table)


def _cuts_of(seen: Iterable[_Seen], partitions: int, *, by_offset: bool) -> Iterator[Cut]:
    """A complete version has a place; an incomplete one begins at the complete one before it."""
    held: Mapping[int, Place] = {}
    for one in seen:
        complete = one.certain and len(one.marked) == partitions
        held = one.places if complete else held
        is_exact = complete or (by_offset and one.certain)
        low = one.places if is_exact else held
        yield Cut(one.version, low, low if is_exact else None, complete, one.certain, held)


def _is_readable(log: TableLog, version: int) -> bool:
    try:
        return all((log.root / file).exists() for file in log.files_at(version))
    except LookupError:
        return False


def _first_readable(log: TableLog, versions: list[int]) -> int:
    """Index of the oldest version whose files are all there; maintenance removes old ones first."""
    low, high = 0, len(versions)
    while low < high:
        middle = (low + high) // 2
        if _is_readable(log, versions[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def read_cuts(
    changelog: Path,
    versions: Iterable[int],
    partitions: int | None = None,
    *,
    by_offset: bool = False,
) -> dict[int, Cut]:
    """The cuts of `versions`; an uncertain one ends where the next complete one does.

    Args:
        changelog: the table.
        versions: of it.
        partitions: of the changelog topic, None if all of them have rows.
        by_offset: each change has its place in the order of its partition, those of a copy, too.
    """
    log, asked = TableLog(changelog), set(versions)
    wanted = sorted(version for version in asked if version <= log.newest)
    first = _first_readable(log, wanted)
    cuts = [Cut(version, {}, None, False, False) for version in wanted[:first]]
    if first < len(wanted):
        seen = list(_Walk(log, by_offset=by_offset).run(wanted[first], log.newest))
        count = partitions or max((p + 1 for p in seen[-1].places), default=0)
        cuts += [cut for cut in _cuts_of(seen, count, by_offset=by_offset) if cut.version in asked]
    found: dict[int, Cut] = {}
    limit: Mapping[int, Place] | None = None
    for cut in reversed(cuts):
        limit = cut.high if cut.high is not None else limit
        found[cut.version] = cut if cut.high is not None else replace(cut, high=limit)
    return found


def place_of(places: Mapping[int, Place], partition: int) -> Place:
    return places.get(partition, _FIRST)
