"""The process of a `delta` dimension: sends a table's versions to its changelog topic.

Positions are versions and ordinals within a commit, so that a repeated commit has the same ones.
docs/reference/contracts.md ("The process of a `delta` dimension") describes the protocol.
"""
# reads better long: the copy and what follows it share one position, which each step moves.

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.delta.feed_rows import (
    CommitFiles,
    DataFile,
    empty_rows,
    files_changed,
    files_of,
    read_rows,
    read_told,
    rows_in,
)
from joins.adapters.delta.source import (
    DeltaFeedConfig,
    DeltaFeedState,
    SourceTable,
    check_source_table,
)
from joins.adapters.process.sessions import SourceProtocol, abandon, run_process, run_sessions
from joins.adapters.topic.producer import RecordSink, TopicProducer
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import as_json
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.kernels.changelog.envelope import Envelopes, now_ms
from joins.kernels.changelog.row_changes import changes_at, row_changes, source_block
from joins.kernels.expressions.casts import whole_batch
from joins.kernels.table_path import TablePath
from joins.plan.errors import (
    DefinitionError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from watermark.errors import SluiceError
from watermark.freshness import Freshness, Proof

MAX_COMPARED_ROWS = 2_000_000
_BATCH_ROWS = 5_000
_MOST_AHEAD = 200  # versions that one question looks up; the commits wait meanwhile
_BEFORE = ("delete", "update_preimage")
_COPIED_AGAIN = "No action is needed: the table is copied again by itself."

Sides = tuple[pa.RecordBatch, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A log entry as the file system shows it; a replaced entry differs."""

    inode: int
    modified_ns: int
    size: int


class FeedSession:
    """Follows the table from the stored state until it is stopped or cannot continue.

    A row that no message of the topic can hold is left out.
    """

    def __init__(self, config: DeltaFeedConfig, protocol: SourceProtocol) -> None:
        self._config = config
        self._protocol = protocol
        kept = read_document(config.state_file, DeltaFeedState)
        self._table = _checked(config, kept)
        self._state = self._begin(kept)
        self._dead: DeadRows | None = None
        self._seen = self._look(self._state.version)
        self._is_marked = False
        self._records = 0
        self._source_ts_ms = 0
        self._proofs = Freshness()
        self._asked_at_s = float("-inf")
        self._newest = 0

    def run(self, producer: RecordSink) -> None:
        """Copy the rest of the snapshot, then follow the table until the protocol stops.

        SourceUnavailableError: a new session may succeed. SnapshotNeededError: the changes cannot
        be followed. SourceError: the table cannot be read as declared.
        """
        self._tell("streaming")
        while not self._protocol.stopped.is_set():
            if not self.step(producer):
                self._tell("progress", paced=True)
                pause_s = min(self._config.monitor_interval_ms / 1000, self._config.freshness_s)
                self._protocol.stopped.wait(pause_s)

    def step(self, producer: RecordSink) -> bool:
        """Send the copy, its watermark or the next commit; False if there is nothing to do."""
        if not self._state.copied:
            self._copy(producer)
        elif not self._is_marked:
            self._write_watermark(producer)
        else:
            self._ask()
            advanced = self._advance(producer)
            self._prove()
            return advanced
        return True

    def _ask(self) -> None:
        """Once an interval, note which version is the newest now, unless it is far ahead."""
        if time.monotonic() - self._asked_at_s < self._config.freshness_s:
            return
        self._asked_at_s, asked_ms = time.monotonic(), now_ms()
        first = max(self._newest, self._state.version)
        for self._newest in range(first, first + _MOST_AHEAD):
            if not self._entry_path(self._newest + 1).exists():
                newest = self._newest
                self._proofs.add(Proof(asked_ms, {"version": newest}, {0: newest}))
                return

    def _prove(self) -> None:
        """Tell the newest answer whose version is sent."""
        proof = self._proofs.news({0: self._state.version})
        if proof is not None:
            self._protocol.tell_proof(proof)

    # The beginning
    # -----------------------------------------------------------------------------------------

    def _begin(self, kept: DeltaFeedState | None) -> DeltaFeedState:
        if kept is not None and kept.needed is None and self._is_continuous(kept):
            return kept
        epoch, generation = (0, 1) if kept is None else (kept.epoch + 1, kept.generation + 1)
        files, rows = files_of(self._table)
        state = DeltaFeedState(
            epoch=epoch,
            generation=generation,
            table_id=self._table.table_id,
            snapshot_version=self._table.version,
            files_total=len(files),
            rows_total=rows,
            version=self._table.version,
            commit=self._digest(self._table.version),
        )
        write_document(self._config.state_file, state)
        return state

    def _is_continuous(self, state: DeltaFeedState) -> bool:
        if self._table.table_id != state.table_id or self._table.version < state.version:
            return False
        digest = self._digest(state.version)
        return state.commit is None or digest is None or digest == state.commit

    def _keep(self, state: DeltaFeedState) -> None:
        write_document(self._config.state_file, state)
        self._state = state

    # The copy
    # -----------------------------------------------------------------------------------------

    def _copy(self, producer: RecordSink) -> None:
        """Send the rows of the snapshot version; progress is stored per file."""
        state = self._state
        table = self._table_at(state.snapshot_version)
        files, _ = files_of(table)
        for number, file in enumerate(files[state.files_done :], state.files_done + 1):
            for rows in read_rows(table, file):
                self._send_copy(producer, rows)
                self._tell("progress", paced=True)
                if self._protocol.stopped.is_set():
                    return
            self._keep(replace(self._state, files_done=number))
        self._keep(replace(self._state, copied=True))

    def _send_copy(self, producer: RecordSink, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        config, place = self._config, self._state.place(self._state.snapshot_version)
        dead = self._dead_rows(producer)
        for records in dead.copied(rows, config.primary_key, place, config.partitions):
            self._send(producer, records)

    def _write_watermark(self, producer: RecordSink) -> None:
        """Runs after each start; a repeated watermark record has no effect."""
        state = self._state
        written = producer.watermark(state.place(state.snapshot_version), state.generation)
        self._protocol.tell_watermark(state.generation, written)
        self._is_marked = True

    # The commits
    # -----------------------------------------------------------------------------------------

    def _advance(self, producer: RecordSink) -> bool:
        version = self._state.version + 1
        entry = self._entry(version)
        if entry is None:
            self._require_same_history()
            return False
        if self._look(self._state.version) != self._seen:
            self._require_same_history()
        table = replace(self._table, version=version)
        files = files_changed(table, entry)
        if files.redefines:
            self._table = table = self._table_at(version)
            files = files_changed(table, entry)
        at_ms = files.at_ms or self._entry_path(version).stat().st_mtime_ns // 1_000_000
        config, dead = self._config, self._dead_rows(producer)
        for changes in _changes_of(config, self._state, table, files, at_ms):
            for records in dead.changed(changes, config.primary_key, config.partitions):
                self._send(producer, records)
            self._source_ts_ms = at_ms
        digest = hashlib.sha256(entry).hexdigest()
        self._seen = self._look(version)
        self._keep(replace(self._state, version=version, commit=digest))
        self._tell("progress", paced=True)
        return True

    def _dead_rows(self, producer: RecordSink) -> DeadRows:
        if self._dead is None:
            file = self._config.state_file.with_suffix(SUFFIX)
            self._dead = DeadRows(file, self._state.generation, producer.message_bytes())
        return self._dead

    def _send(self, producer: RecordSink, records: pa.RecordBatch) -> None:
        producer.send(records)
        self._records += records.num_rows

    # What the table is
    # -----------------------------------------------------------------------------------------

    def _table_at(self, version: int) -> SourceTable:
        """The table at `version`; SnapshotNeededError if it is gone or did not fit then."""
        config = self._config
        try:
            return check_source_table(
                config.path, config.fields, config.primary_key, version=version
            )
        except SourceUnavailableError:
            raise
        except SourceError as exc:
            hint = f"{exc.hint} The table is copied again as soon as its newest version fits."
            if isinstance(exc, DefinitionError):
                hint = exc.OF_A_JOB
            raise SnapshotNeededError(
                f'delta table "{config.path}" cannot be followed at version {version}: '
                f"{exc.message}",
                hint=hint,
            ) from exc

    def _require_same_history(self) -> None:
        """Raise unless no version was skipped and the table is the same."""
        state = self._state
        if self._look(state.version) == self._seen and self._seen is not None:
            return
        config = self._config
        now = check_source_table(config.path, config.fields, config.primary_key)
        if not self._is_continuous_with(now):
            raise SnapshotNeededError(
                f'delta table "{config.path}" was created again, restored, or lost the log of '
                f"version {state.version + 1} before it was read",
                hint=_COPIED_AGAIN,
            )
        self._seen = self._look(state.version)

    def _is_continuous_with(self, now: SourceTable) -> bool:
        state = self._state
        if now.table_id != state.table_id or now.version < state.version:
            return False
        digest = self._digest(state.version)
        if digest is not None and state.commit is not None and digest != state.commit:
            return False
        return now.version == state.version or self._entry(state.version + 1) is not None

    def _entry_path(self, version: int) -> TablePath:
        return self._config.path / "_delta_log" / f"{version:020d}.json"

    def _entry(self, version: int) -> bytes | None:
        try:
            return self._entry_path(version).read_bytes()
        except FileNotFoundError:
            return None
        except SluiceError:  # a store's error says what is wrong
            raise
        except OSError as exc:
            raise SourceUnavailableError(
                f'commit {version} of delta table "{self._config.path}" cannot be read: '
                f"{exc.strerror or exc}",
                hint="Let this user read the files of the table's log; it is tried again.",
            ) from exc

    def _digest(self, version: int) -> str | None:
        entry = self._entry(version)
        return None if entry is None else hashlib.sha256(entry).hexdigest()

    def _look(self, version: int) -> _Seen | None:
        try:
            stat = self._entry_path(version).stat()
        except FileNotFoundError:
            return None
        return _Seen(getattr(stat, "st_ino", 0), stat.st_mtime_ns, stat.st_size)

    def _tell(self, event: str, *, paced: bool = False) -> None:
        if not self._protocol.is_due(paced=paced):
            return
        state = self._state
        place = state.place(state.version)
        self._protocol.tell(
            event,
            {
                "state": as_json(state),
                "position": {"epoch": place.epoch, "file": place.file, "pos": place.pos},
                "records": self._records,
                "source_ts_ms": self._source_ts_ms,
            },
        )


def _checked(config: DeltaFeedConfig, kept: DeltaFeedState | None) -> SourceTable:
    """The table now; SourceUnavailableError, SourceError if it does not fit `kept`."""
    try:
        return check_source_table(config.path, config.fields, config.primary_key)
    except SourceUnavailableError:
        raise
    except SourceError as exc:
        if kept is None or kept.needed is None:
            raise
        again = f"{exc.hint} The table is then copied again by itself."
        raise SourceError(
            f"{kept.needed}; now {exc.message}",
            hint=exc.OF_A_JOB if isinstance(exc, DefinitionError) else again,
        ) from exc


def _changes_of(
    config: DeltaFeedConfig,
    state: DeltaFeedState,
    table: SourceTable,
    files: CommitFiles,
    at_ms: int,
) -> Iterator[Envelopes]:
    """The changes of a commit in pieces, with ordinals from 0.

    SnapshotNeededError if a file is gone or too many rows would have to be compared.
    """
    place, source = state.place(table.version), (state.generation, at_ms)
    if not files.feed and not files.removed:
        ordinal = 0
        for file in files.added:
            for rows in read_rows(table, file):
                ordinals = np.arange(ordinal, ordinal + rows.num_rows)
                ordinal += rows.num_rows
                ops = pa.repeat(pa.scalar("c"), rows.num_rows)
                if rows.num_rows:
                    yield Envelopes(ops, source_block(ordinals, place, source), None, rows)
        return
    sides = _sides(table, files)
    paired = row_changes(*sides, config.primary_key)
    for first in range(0, paired.num_rows, _BATCH_ROWS):
        piece = paired.slice(first, _BATCH_ROWS)
        yield changes_at(piece, sides, place, first=first, source=source)


def _sides(table: SourceTable, files: CommitFiles) -> Sides:
    """The rows that a commit removed or changed, and the rows it wrote.

    Without a change data feed these are all rows of the rewritten files.
    """
    _check_size(table, files)
    before: list[pa.RecordBatch] = []
    after: list[pa.RecordBatch] = []
    for file in files.feed:
        for rows, kind in read_told(table, file):
            was = pc.is_in(kind, value_set=pa.array(_BEFORE))
            before.append(rows.filter(was))
            after.append(rows.filter(pc.invert(was)))
    if not files.feed:
        before += _rows(table, files.removed)
        after += _rows(table, files.added)
    return _joined(table, before), _joined(table, after)


def _rows(table: SourceTable, files: tuple[DataFile, ...]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from read_rows(table, file)


def _joined(table: SourceTable, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    try:
        return whole_batch([empty_rows(table.columns), *batches])
    except pa.ArrowInvalid as exc:  # more than 2 GiB of texts in one column
        raise SnapshotNeededError(
            f'version {table.version} of delta table "{table.path}" rewrote files with more text '
            f"than can be compared: {exc}",
            hint=_NOT_COMPARED,
        ) from exc


def _check_size(table: SourceTable, files: CommitFiles) -> None:
    count = rows_in(table, files.feed or (*files.removed, *files.added))
    if count > MAX_COMPARED_ROWS:
        raise SnapshotNeededError(
            f'version {table.version} of delta table "{table.path}" rewrote files with {count:,} '
            f"rows, more than the {MAX_COMPARED_ROWS:,} that are compared",
            hint=_NOT_COMPARED,
        )


_NOT_COMPARED = (
    "The table is copied again by itself; its change data feed (delta.enableChangeDataFeed) makes "
    "such commits cheap."
)


def run(config: DeltaFeedConfig, protocol: SourceProtocol) -> int:
    retried = (SnapshotNeededError, SourceUnavailableError)
    return run_sessions(protocol, lambda: _run_session(config, protocol), retried)


def _run_session(config: DeltaFeedConfig, protocol: SourceProtocol) -> None:
    try:
        session = FeedSession(config, protocol)
        kafka, partitions = config.kafka, config.partitions
        with closing(TopicProducer(kafka, partitions, str(config.path))) as producer:
            session.run(producer)
    except SnapshotNeededError as error:
        abandon(config.state_file, DeltaFeedState, error.message)
        raise


def main() -> int:
    return run_process(SourceProtocol(), DeltaFeedConfig, run)


if __name__ == "__main__":
    sys.exit(main())
