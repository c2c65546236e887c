"""Maintenance: bounds the tables and logs of a job, one step after another.

Every step looks at the present state, so it may be interrupted anywhere and restarted. Each is one
commit, or a removal of what no leased version needs. A fenced runner commits nothing, and file
names have the epoch that wrote them.

| table | steps |
|---|---|
| changelog | compaction, Delta checkpoint, log clean-up, removal of files |
| `current` | Delta checkpoint, VACUUM, log clean-up |
| state | Delta checkpoint, log clean-up, removal of files that no batch and no replay reads |
| dead letters | Delta checkpoint, log clean-up, removal of files that are not in the table |
| output, late records | Delta checkpoint, removal of files that were never committed |

The log of an output is never shortened: it is the user's table.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.adapters.delta.log import DeltaLog, Rewrite, added_files
from joins.durable.leases import StateLease
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.digest import compacted_reads
from joins.kernels.changelog.fold_rows import CompactionTask, compact, watermarks
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.table_path import TablePath, readable

_MERGE_FACTOR = 4
_SMALL_FILE_ROWS = 4096
_BATCH_ROWS = 131_072
_FREE_NAMES = 1_000  # a directory of at most so many names is listed in each round
_NAMES_PER_S = 50
_MARK_COLUMNS = ["_op", "_partition", "_offset", "_generation"]


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """Pace and limits of maintenance."""

    checkpoint_every: int = 20  # commits between two Delta checkpoints of a table
    min_files: int = 8  # files of a changelog that are worth a compaction
    max_rows: int = 8_000_000  # rows that one compaction reads at most; larger files stay
    current_retention_hours: float = 168.0  # how long files that `current` no longer needs are kept
    # age of an uncommitted file of this runner in an output before it is removed
    grace_s: float = 3600.0
    replayed_state_bytes: int = 4 << 30  # room in each state table for files that only replays read


@dataclass(frozen=True, slots=True)
class Upkeep:
    """One table, its runner's epoch, and the callback before each step."""

    log: DeltaLog
    epoch: int
    settings: UpkeepSettings = UpkeepSettings()
    on_step: Callable[[str], None] = lambda _: None

    def checkpoint(self) -> None:
        """Write a Delta checkpoint when the last one is many commits back."""
        newest = self.log.version()
        last = max(self.log.upkeep.checkpoints(), default=0)
        if newest - last >= self.settings.checkpoint_every:
            self.on_step("checkpoint")
            self.log.upkeep.make_checkpoint(newest)

    def shorten_log(self, version: int) -> None:
        """Remove the log below a checkpoint that is not newer than `version`."""
        every = self.settings.checkpoint_every
        if version - self.log.versions.oldest_entry() < every:
            return
        checkpoints = [at for at in self.log.upkeep.checkpoints() if at <= version]
        if not checkpoints or version - checkpoints[-1] >= every:
            self.on_step("checkpoint for the log")
            self.log.upkeep.make_checkpoint(version)
            checkpoints.append(version)
        self.log.batches.check_epoch(self.epoch)
        self.on_step("log clean-up")
        self.log.upkeep.remove_log_before(checkpoints[-1])

    def remove(self, names: Sequence[str]) -> None:
        self.log.batches.check_epoch(self.epoch)
        for name in sorted(names):
            self.on_step("removal of a file")
            (self.log.path / name).unlink(missing_ok=True)


class Orphans:
    """Finds files that no commit needs; the names listed per hour are bounded."""

    def __init__(self, table: Upkeep) -> None:
        self._table = table
        self._due_at = float("-inf")

    def find(
        self, last_batch: int | None, needed: Callable[[], Container[str]], writer: str = ""
    ) -> dict[str, FileOrigin]:
        """Name → origin of files of `writer` that no batch will commit; none before it is due.

        `last_batch`, the newest committed one, is determined before this call. `needed`, the names
        that stay, is called only if the directory is listed.
        """
        if time.monotonic() < self._due_at:
            return {}
        stay, count = needed(), 0
        epoch, last = self._table.epoch, -1 if last_batch is None else last_batch
        orphans: dict[str, FileOrigin] = {}
        for name in _names_in(self._table.log.path):
            count += 1
            origin = FileOrigin.of_name(name)
            if origin is None or origin.writer != writer or name in stay:
                continue
            if origin.epoch < epoch or (origin.epoch == epoch and origin.batch <= last):
                orphans[name] = origin
        if count > _FREE_NAMES:
            self._due_at = time.monotonic() + count / _NAMES_PER_S
        return orphans

    def remove(self, leased: int, added: Callable[[int], Collection[str]]) -> int:
        """Remove what no version from `leased` on has; the oldest readable one that stays.

        `added` are the names of a commit's files.
        """
        log = self._table.log
        last, newest = log.batches.last_batch(), log.version()
        oldest = min(max(leased, log.versions.oldest_version()), newest)

        def needed() -> set[str]:
            names = {path.name for path in log.files.files_at(oldest)}
            return names.union(*map(added, range(oldest + 1, newest + 1)))

        self._table.remove([*self.find(last, needed)])
        return oldest


def _names_in(directory: TablePath) -> Iterator[str]:
    if isinstance(directory, Path):
        with os.scandir(directory) as entries:
            yield from (entry.name for entry in entries)
    else:
        yield from (path.name for path in directory.iterdir())


@dataclass(frozen=True, slots=True)
class DimensionKey:
    """A dimension's key and channels; `versioned` is its rowtime column with event time."""

    primary_key: tuple[str, ...]
    partitions: int
    versioned: str | None = None


class ChangelogMaintenance:
    """The upkeep of one changelog; one caller at a time."""

    def __init__(self, table: Upkeep, key: DimensionKey) -> None:
        self._table = table
        self._log = table.log
        self._key = key
        self._known: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self._orphans = Orphans(table)

    def run(
        self, leased: int | None, folded: int | None, needed_from_ms: int | None = None
    ) -> None:
        """Do what is due; FencedError, or SinkError (the next run begins again).

        Args:
            leased: the oldest version that must stay readable, None while unknown.
            folded: the newest version that `current` equals, None before the first fold.
            needed_from_ms: row versions that end before are no longer read.
        """
        if leased is not None and folded is not None:
            self._compact(folded, needed_from_ms)
        self._table.checkpoint()
        if leased is None:
            return
        if folded is not None:
            self._table.shorten_log(min(leased, folded))
        oldest = self._orphans.remove(leased, lambda version: self._added(version)[0])
        self._known = {at: known for at, known in self._known.items() if at > oldest}

    def _added(self, version: int) -> tuple[frozenset[str], frozenset[str]]:
        if version not in self._known:
            changes = {path.name for path in self._log.files.files_added(version, version)}
            named = self._log.files.files_named(version, version)
            self._known[version] = (frozenset(named), frozenset(changes))
        return self._known[version]

    def _compact(self, horizon: int, needed_from_ms: int | None) -> None:
        """Rewrite the files up to `horizon`; leased versions keep their files."""
        newest = self._log.version()
        files = self._log.files.rows_at(newest)
        for version in range(max(horizon + 1, self._log.versions.oldest_entry()), newest + 1):
            for name in self._added(version)[1]:
                files.pop(name, None)
        chosen = self._chosen(files)
        if len(chosen) < self._table.settings.min_files:
            return
        self._table.on_step("compaction")
        others = [name for name in files if name not in set(chosen)]
        change = self._compacted(chosen, others, needed_from_ms)
        self._table.on_step("compaction's commit")
        metadata = {"sluice.maintenance": "compaction", "sluice.horizon": horizon}
        self._log.rewrite(change, self._table.epoch, metadata)

    def _chosen(self, files: Mapping[str, int]) -> list[str]:
        """The small files, and each larger one not much larger than those together."""
        chosen: list[str] = []
        total = 0
        for name, rows in sorted(files.items(), key=lambda item: (item[1], item[0])):
            limit = _MERGE_FACTOR * max(total, _SMALL_FILE_ROWS)
            if rows > limit or total + rows > self._table.settings.max_rows:
                break
            chosen.append(name)
            total += rows
        return chosen

    def _compacted(
        self, chosen: Sequence[str], others: Sequence[str], needed_from_ms: int | None
    ) -> Rewrite:
        root = self._log.path
        rows = pa.concat_tables(self._log.files.read_files([root / name for name in chosen]))
        marks = watermarks([rows, *(_marks(root / name) for name in others)])
        task = self._task(marks, is_whole=not others)
        result = compact(rows, replace(task, needed_from_ms=needed_from_ms))
        version = self._log.version()
        dropped = {compacted_reads(of): rows for of, rows in result.dropped_reads.items()}
        known = self._log.batches.counters(dropped, version)
        dropped = {name: rows + known.get(name, 0) for name, rows in dropped.items()}
        origin = FileOrigin(self._table.epoch, self._log.batches.last_batch() or 0, 0, 0)
        with ParquetStage(root, result.rows.schema, origin) as stage:
            for batch in result.rows.to_batches(_BATCH_ROWS):
                stage.write(batch)
            staged = stage.finish()
        added = () if staged is None else (staged,)
        return Rewrite(added, tuple(chosen), dropped)

    def _task(self, marks: Progress, *, is_whole: bool) -> CompactionTask:
        complete = marks.complete_generation(self._key.partitions)
        key = self._key
        return CompactionTask(key.primary_key, marks, complete, is_whole, key.versioned)


class CurrentMaintenance:
    """The upkeep of one `current`, in the thread that folds."""

    def __init__(self, table: Upkeep) -> None:
        self._table = table

    def run(self) -> None:
        """Do what is due; raises as `ChangelogMaintenance.run`."""
        hours = self._table.settings.current_retention_hours
        self._table.checkpoint()
        self._table.on_step("VACUUM")
        self._table.log.upkeep.vacuum(math.ceil(hours))
        log = self._table.log
        folded = log.batches.newest_batch(log.batches.last_batch() or 0)
        if folded is None:
            return  # only the log's entries have the folded version
        before = time.time() - hours * 3600
        self._table.shorten_log(min(log.upkeep.newest_before(before), folded[0]))


class OutputMaintenance:
    """The upkeep of an output: committed files stay, and so do files of others.

    Files that another job has staged look like orphans until it commits them, and so may files
    without a tag, the naming of older versions; they stay.
    """

    _may_forget = False
    _is_shared = True

    def __init__(self, table: Upkeep) -> None:
        self._table = table
        self._orphans = Orphans(table)
        self._committed: set[str] = set()  # files in the directory that are not in the table
        self._read_to = -1

    def run(self) -> None:
        self._table.checkpoint()
        self._table.remove(self._uncommitted())

    def _uncommitted(self) -> list[str]:
        log = self._table.log
        writer = log.shared.writer if self._is_shared else ""
        oldest = log.versions.oldest_entry()
        if oldest > 0 and not self._may_forget:
            return []  # the log no longer has the files of all commits
        last, newest = log.batches.last_batch(), log.version()
        doubtful = self._orphans.find(
            last, lambda: {path.name for path in log.files.files_at(newest)}, writer
        )
        if not doubtful:
            return []
        # If the log is shortened, a file goes with the commit that added it.
        kinds, first = (("add",), -1) if self._may_forget else (("add", "remove"), self._read_to)
        for version in range(max(first + 1, oldest), newest + 1):
            self._committed |= doubtful.keys() & _named(log.versions.commit_entry(version), kinds)
        self._read_to = newest
        self._committed &= doubtful.keys()
        return [
            name
            for name in doubtful
            if name not in self._committed and self._is_old(log.path / name, doubtful[name])
        ]

    def _is_old(self, path: TablePath, origin: FileOrigin) -> bool:
        """True if no writer is left: a replay of dead letters has no batch number."""
        if origin.epoch < self._table.epoch:
            return True
        try:
            return time.time() - path.stat().st_mtime > self._table.settings.grace_s
        except FileNotFoundError:
            return False


class LetterMaintenance(OutputMaintenance):
    """Keeps all dead letters. Files of abandoned batches go with their commits."""

    _may_forget = True
    _is_shared = False

    def run_behind(self, batch: int | None) -> None:
        """Like `run`; `batch` is the oldest whose commit may be looked up, None while unknown."""
        committed = None if batch is None else self._table.log.batches.newest_batch(batch)
        if committed is not None:
            self._table.shorten_log(committed[0])
        self.run()


class StateMaintenance:
    """The upkeep of one state table; one caller at a time."""

    def __init__(self, table: Upkeep) -> None:
        self._table = table
        self._known: dict[int, _StateCommit] = {}
        self._orphans = Orphans(table)

    def run(self, leased: StateLease | None) -> None:
        """Do what is due; `leased` is None before the first batch."""
        self._table.checkpoint()
        if leased is None:
            return
        first = self._first_kept(leased)
        self._table.shorten_log(first)
        oldest = self._orphans.remove(first, lambda version: self._commit(version).added)
        self._known = {at: known for at, known in self._known.items() if at > oldest}

    def _first_kept(self, leased: StateLease) -> int:
        """The oldest version whose files stay; replays have limited room, newest first."""
        room = self._table.settings.replayed_state_bytes
        version, oldest = (
            leased.needed,
            max(leased.replayed, self._table.log.versions.oldest_entry()),
        )
        while version > oldest:
            superseded = self._commit(version).superseded_bytes
            if superseded is None or superseded > room:
                break
            room -= superseded
            version -= 1
        return version

    def _commit(self, version: int) -> "_StateCommit":
        if version not in self._known:
            entry, root = self._table.log.versions.commit_entry(version), self._table.log.path
            gone = [action["remove"]["path"] for action in entry if "remove" in action]
            sizes = [_size(root / name) for name in gone]
            known = [size for size in sizes if size is not None]
            names = frozenset(action["path"] for action in added_files(entry))
            total = sum(known) if len(known) == len(sizes) else None
            self._known[version] = _StateCommit(names, total)
        return self._known[version]


@dataclass(frozen=True, slots=True)
class _StateCommit:
    """A commit to a state table; `superseded_bytes` is None if some replaced files are gone."""

    added: frozenset[str]
    superseded_bytes: int | None


def _named(entry: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> set[str]:
    return {action[kind]["path"] for action in entry for kind in kinds if kind in action}


def _size(file: TablePath) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def _marks(file: TablePath) -> pa.Table:
    return pq.read_table(
        readable(file), columns=_MARK_COLUMNS, partitioning=None, filters=pc.field("_op") == "w"
    )
