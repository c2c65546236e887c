"""Read-only access to a job's batches, pins and commits; works with and without a runner."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from joins.adapters.delta.entries import committed_at_ms, has_log
from joins.adapters.delta.log import DeltaLog, added_files
from joins.adapters.files.stream_rows import StreamFiles
from joins.durable.checkpoint import (
    Checkpoint,
    late_app_id,
    output_app_id,
    read_json,
    replay_app_id,
)
from joins.durable.pins import DAMAGED, Pin, PinStore, pin_of_json
from joins.durable.probe_lives import Life, first_life, life_of, read_lives
from joins.kernels.probe.probe import ProbeKernelSpec
from joins.kernels.table_path import TablePath
from joins.plan.errors import CheckpointError, NotReadableError, SinkError, UnknownBatchError
from joins.plan.plan import Dimension, JoinPlan, KafkaOptions, Sink
from joins.plan.stream_topics import StreamTopics
from joins.worker.event_task import EventPlaces
from joins.worker.probe_task import IndexPlace


@dataclass(frozen=True, slots=True)
class PastEvent:
    """What lookback needs of a job with event time or windows."""

    plan: JoinPlan
    places: EventPlaces


@dataclass(frozen=True, slots=True)
class HistoryPlaces:
    """Locations of everything that lookback reads."""

    app_id: str  # of the job's commits
    checkpoint: Checkpoint
    kernel: ProbeKernelSpec
    roles: Mapping[str, IndexPlace]  # alias → where the runner keeps the index for lookups
    tables: Mapping[str, TablePath]  # dimension → directory with `changelog` and `current`
    dimensions: Mapping[str, Dimension]
    dead_letters: TablePath
    replays: Path  # outcomes of replayed dead letters
    output: TablePath | None  # the Delta output; None for other sinks
    probe_kafka: KafkaOptions  # cluster and topic of the probe, its secrets resolved
    sink: Sink  # with its secrets resolved if it is a Kafka sink
    insert: int = 0  # index of the INSERT from 0; kernel, roles, output and sink belong to it
    has_own_table: bool = True  # no other INSERT of the job writes to `output`
    event: PastEvent | None = None
    stream_files: StreamFiles | None = None  # of the stream's history
    plan: int = 1  # number of the plan that all this is of
    # number of another plan of the job → its places; None for a job with one plan
    places_of: "Callable[[int], HistoryPlaces] | None" = None


def sent_note(insert: int) -> str:
    return "kafka_sink.json" if insert == 0 else f"kafka_sink_{insert + 1}.json"


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """The commit of one batch in one Delta table; `added` and `removed` are entries of its log."""

    batch: int
    version: int
    committed_at_ms: int | None
    metadata: Mapping[str, Any]
    added: tuple[Mapping[str, Any], ...]
    files: tuple[TablePath, ...]
    removed: tuple[Mapping[str, Any], ...] = ()


class BatchCommits:
    """The commits of batches in one table."""

    def __init__(self, path: TablePath, app_id: str) -> None:
        self._log = DeltaLog(path, app_id)
        self._path = path
        self._active: tuple[int, frozenset[TablePath]] | None = None

    def of(self, batch: int) -> BatchCommit | None:
        """None if there is no commit, or its log entry is gone."""
        version = self._log.batches.version_of(batch)
        if version is None:
            return None
        actions = self._log.versions.commit_entry(version)
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        added = tuple(added_files(actions))
        return BatchCommit(
            batch=batch,
            version=version,
            committed_at_ms=committed_at_ms(actions),
            metadata=user_metadata(info),
            added=added,
            files=tuple(self._path / unquote(action["path"]) for action in added),
            removed=tuple(action["remove"] for action in actions if "remove" in action),
        )

    def has(self, batch: int) -> bool:
        """True also if the log entry of its commit is gone."""
        last = self._log.batches.last_batch()
        return last is not None and last >= batch

    @property
    def has_deletion_vectors(self) -> bool:
        return self._log.files.table_rows().has_deletion_vectors

    def is_untouched(self, commit: BatchCommit) -> bool:
        if self.has_deletion_vectors:
            return False  # rows of an existing file may be deleted
        return set(commit.files) <= self._active_files()

    def _active_files(self) -> frozenset[TablePath]:
        version = self._log.version()
        if self._active is None or self._active[0] != version:
            self._active = (version, frozenset(self._log.files.files_at(version)))
        return self._active[1]

    def covers(self, batch: int) -> bool:
        """True if the log would have the commit of `batch`: without one the batch made none."""
        is_complete = self._log.versions.oldest_entry() == 0
        return is_complete or self._log.batches.newest_batch(batch) is not None

    def rows_added(self, commit: BatchCommit) -> Iterator[pa.Table]:
        yield from self._log.files.table_rows().of_files(commit.added)

    def rows_removed(self, commit: BatchCommit) -> Iterator[pa.Table]:
        """One table a file; OSError if VACUUM has removed one."""
        yield from self._log.files.table_rows().of_files(commit.removed)

    def rows_now(self, equal: Mapping[str, int], schema: pa.Schema) -> pa.Table:
        return self._log.files.table_rows().where(equal, schema)


def user_metadata(commit_info: Mapping[str, Any]) -> dict[str, Any]:
    """The writer's JSON object in a commit, {} without one."""
    try:
        value = json.loads(commit_info.get("userMetadata") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class History:
    """The batches of one job."""

    def __init__(self, places: HistoryPlaces) -> None:
        self.places = places
        self.pins = PinStore(places.checkpoint.pins_directory)
        self.dead_letters = BatchCommits(places.dead_letters, places.app_id)
        app_id = output_app_id(places.app_id, places.insert)
        self.output = None if places.output is None else BatchCommits(places.output, app_id)
        self.late: BatchCommits | None = None
        if places.event is not None:
            self.late = BatchCommits(places.event.places.late.root, late_app_id(places.app_id))
        meta = places.checkpoint.read_meta()
        if meta is None:
            raise UnknownBatchError(
                f'job "{places.checkpoint.directory.parent.name}" has no batch yet',
                hint="Its runner has not started; look again when the job is JOINING.",
            )
        self._meta = meta

    def of_plan(self, number: int) -> "History":
        """The same batches by plan `number`. Raises CheckpointError if that cannot be read."""
        if number == self.places.plan:
            return self
        if self.places.places_of is None:
            raise CheckpointError(
                f"a batch is pinned under plan {number}, and the job has plan {self.places.plan}",
                hint="Restore the directory plans of the job.",
            )
        return History(self.places.places_of(number))

    def pin(self, batch: int) -> Pin:
        """The pin of `batch`: its file, or the copy in the output's commit once that is pruned.

        Raises:
            UnknownBatchError: neither exists.
        """
        pin = self._find_pin(batch)
        if pin is None:
            newest = self.pins.newest()
            known = "none yet" if newest is None else f"up to {newest.batch}"
            raise UnknownBatchError(
                f"batch {batch} has no pin, the job has batches {known}",
                hint="Use a batch number from the output's column _batch or from the job's status.",
            )
        return pin

    def _find_pin(self, batch: int) -> Pin | None:
        pin = self.pins.read(batch) if batch >= 0 else None
        if pin is not None or self.output is None or batch < 0:
            return pin
        commit = self.output.of(batch)
        return None if commit is None else _pin_of(commit.metadata)

    def is_committed(self, batch: int) -> bool:
        if self.output is not None:
            return self.output.has(batch)
        for name in (sent_note(self.places.insert), "progress.json"):
            noted = read_json(self.places.checkpoint.directory / name)
            if noted is not None and noted.get("batch") is not None:
                return int(noted["batch"]) >= batch
        return False

    def committed_at_ms(self, batch: int) -> int | None:
        """By the output's commit, or the dead letters', or the pin behind; None if unknown."""
        for table in (self.output, self.dead_letters):
            commit = None if table is None else table.of(batch)
            if commit is not None:
                return commit.committed_at_ms
        after = self.pins.read(batch + 1)
        before = {} if after is None else after.before
        return before.get("at_ms") if before.get("batch") == batch else None

    def lives(self) -> tuple[Life, ...]:
        return read_lives(self.places.checkpoint)

    @property
    def topics(self) -> StreamTopics:
        return self.lives()[-1].topics

    def life_of(self, batch: int) -> Life:
        return life_of(self.lives(), batch) or first_life(self._meta)

    def oldest_pin(self) -> Pin | None:
        directory = self.places.checkpoint.pins_directory
        batches = sorted(int(p.stem) for p in directory.glob("*.json") if p.stem.isdigit())
        return next((pin for batch in batches if (pin := self.pins.read(batch))), None)

    def pins_below(self, batch: int | None) -> Iterator[Pin]:
        """Pins of the batches below `batch` (None: of all), the newest first."""
        newest, oldest = self.pins.newest(), self.oldest_pin()
        if newest is None:
            return
        first = newest.batch if batch is None else min(batch - 1, newest.batch)
        least = 0 if self.output is not None or oldest is None else oldest.batch
        for number in range(first, least - 1, -1):
            pin = self._find_pin(number)
            if pin is not None:
                yield pin

    def first_behind(self, pin: Pin, holds: Callable[[Pin], bool]) -> Pin | None:
        """The first pin after `pin` that `holds`, by binary search: all later pins must hold."""
        newest = self.pins.newest()
        first, last = pin.batch + 1, pin.batch if newest is None else newest.batch
        behind: Pin | None = None
        while first <= last:
            middle = (first + last) // 2
            candidate = self._next_pin(middle, last)
            if candidate is None:
                last = middle - 1
            elif holds(candidate):
                behind, last = candidate, middle - 1
            else:
                first = candidate.batch + 1
        return behind

    def last_before(self, pin: Pin, first: Pin) -> Pin:
        numbers = range(pin.batch - 1, first.batch, -1)
        return next((p for b in numbers if (p := self._find_pin(b))), first)

    def covering(self, partition: int, offset: int) -> Pin | None:
        """The newest batch whose range has the record at `offset`; None if no batch has it."""
        newest, oldest = self.pins.newest(), self.oldest_pin()
        last = -1 if newest is None else newest.batch
        least = 0 if self.output is not None or oldest is None else oldest.batch
        for life in reversed(self.lives()):
            covering_pin = self._covering(partition, offset, max(least, life.first_batch), last)
            if covering_pin is not None:
                return covering_pin
            last = life.first_batch - 1
        return None

    def _covering(self, partition: int, offset: int, first: int, last: int) -> Pin | None:
        """Binary search within one life, where offsets only grow."""
        candidate: Pin | None = None
        while first <= last:
            middle = (first + last) // 2
            pin = self._next_pin(middle, last)
            if pin is None:
                last = middle - 1
            elif pin.start_offsets.get(partition, 0) <= offset:
                candidate, first = pin, pin.batch + 1
            else:
                last = middle - 1
        if candidate is not None and offset < candidate.end_offsets.get(partition, 0):
            return candidate
        return None

    def _next_pin(self, batch: int, last: int) -> Pin | None:
        return next((p for b in range(batch, last + 1) if (p := self._find_pin(b))), None)


def _pin_of(value: Mapping[str, Any]) -> Pin:
    try:
        return pin_of_json(value)
    except DAMAGED as exc:
        raise CheckpointError(
            f"commit of a batch does not name its pin: {exc!r}",
            hint="Another program has written under this job's app id; stop it.",
        ) from exc


_BATCH_COLUMN = "_batch"
_MOST_COMMITS = 2_000


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Newest rows of one commit."""

    batch: int | None  # None for a replay of dead letters
    replay: int | None  # number of that replay, else None
    version: int  # of the output, after the commit
    committed_at_ms: int | None
    metadata: Mapping[str, Any]  # of the commit: for a batch its pin and its counts
    rows: pa.Table  # the last ones in stream order, with the output's columns
    row_count: int  # rows of the commit that the table still has


class OutputPreview:
    """Reads the newest rows of one job's output, whose commits have the job's app id."""

    def __init__(self, log: DeltaLog, schema: pa.Schema, *, has_own_table: bool = True) -> None:
        self._has_own_table = has_own_table
        self._log = log
        self._replays = DeltaLog(log.path, replay_app_id(log.app_id))
        self._schema = pa.schema([item.with_nullable(True) for item in schema])

    def newest(self, rows: int) -> list[WrittenRows]:
        """The newest `rows` rows by commit, newest commit first; none before the first batch.

        Raises:
            NotReadableError: rows of a batch cannot be told from rows of other INSERTs.
            SinkError: the table cannot be read without Spark.
        """
        if not has_log(self._log.path):
            return []
        newest = self._log.version()
        active = {path.name for path in self._log.files.files_at(newest)}
        batches_shown: list[WrittenRows] = []
        for version in range(
            newest, max(self._log.versions.oldest_entry(), newest - _MOST_COMMITS) - 1, -1
        ):
            written = self._written(version, rows, active)
            if written is not None and written.rows.num_rows:
                batches_shown.append(written)
                rows -= written.rows.num_rows
            if rows <= 0:
                break
        return batches_shown

    def _written(self, version: int, most: int, active: set[str]) -> WrittenRows | None:
        entry = self._log.versions.commit_entry(version)
        info: Mapping[str, Any] = next((a["commitInfo"] for a in entry if "commitInfo" in a), {})
        metadata = user_metadata(info)
        batch = self._log.batches.batch_in(entry)
        replay = self._replays.batches.batch_in(entry) if batch is None else None
        added = [action for action in added_files(entry) if action.get("dataChange", True)]
        if not added or (batch is None and replay is None):
            return None
        rows = self._rows_left(added, batch, active)
        return WrittenRows(
            batch=batch,
            replay=replay,
            version=version,
            committed_at_ms=info.get("timestamp"),
            metadata=metadata,
            rows=self._newest_of(rows, most),
            row_count=rows.num_rows,
        )

    def _rows_left(
        self, added: Sequence[Mapping[str, Any]], batch: int | None, active: set[str]
    ) -> pa.Table:
        table = self._log.files.table_rows()
        left = [action for action in added if action["path"].rpartition("/")[2] in active]
        untouched = len(left) == len(added) and not table.has_deletion_vectors
        if not untouched and not self._has_own_table:
            raise NotReadableError(
                f'files of delta table "{self._log.path}" were rewritten, and its rows do not tell '
                "which INSERT of the job they are of",
                hint="Read the table itself, or give each INSERT a separate table.",
            )
        if not untouched and batch is not None and _BATCH_COLUMN in self._schema.names:
            return table.where({_BATCH_COLUMN: batch}, self._schema)
        try:
            parts = list(table.of_files(left))
        except OSError as exc:
            raise SinkError(
                f'a file of delta table "{self._log.path}" is gone: {exc}',
                hint="Restore the file; the table's log still names it.",
            ) from exc
        typed = [self._typed(part) for part in parts]
        return pa.concat_tables([self._schema.empty_table(), *typed])

    def _typed(self, part: pa.Table) -> pa.Table:
        """Rows of an older plan have NULL in the columns that it did not have."""
        for field in self._schema:
            if field.name not in part.column_names:
                part = part.append_column(field, pa.nulls(part.num_rows, field.type))
        return part.select(self._schema.names).cast(self._schema)

    def _newest_of(self, rows: pa.Table, most: int) -> pa.Table:
        places = [(n, "ascending") for n in ("_partition", "_offset") if n in rows.schema.names]
        if len(places) == 2:
            rows = rows.sort_by(places)
        return rows.slice(max(0, rows.num_rows - most))
