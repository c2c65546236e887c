"""The process of a dimension of files: sends all their rows to its changelog topic.

The files are listed once and read in order. If a file changes before all are read, a new generation
begins. docs/reference/contracts.md ("The process of a dimension of files") describes the protocol.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.files.listing import (
    FileFeedConfig,
    FileFeedState,
    FileStamp,
    list_files,
    stamp_of,
)
from joins.adapters.files.readers import read_file
from joins.adapters.process.sessions import SourceProtocol, run_process, run_sessions
from joins.adapters.topic.producer import RecordSink, TopicProducer
from joins.durable.checkpoint import read_document, write_document
from joins.durable.dead_rows import SUFFIX, DeadRows
from joins.kernels.json.wire import declared_encoding, to_declared
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.plan import COORDINATES, FileSource, declared_fields


class SourceFiles(Protocol):
    """Files that are read once; errors as `list_files` and `read_file`."""

    def listed(self) -> tuple[FileStamp, ...]:
        """All files, sorted by path."""

    def stamp(self, path: str) -> FileStamp | None:
        """The file as it is now, None if it is missing."""

    def rows(self, path: str) -> Iterator[pa.RecordBatch]:
        """Wire columns of the declared fields."""


class DirectoryFiles:
    """A file, or a directory of files."""

    def __init__(self, root: Path, source: FileSource, config: FileFeedConfig) -> None:
        self._root = root
        self._source = source
        self._fields = declared_fields(config.fields)

    def listed(self) -> tuple[FileStamp, ...]:
        return list_files(self._root)

    def stamp(self, path: str) -> FileStamp | None:
        return stamp_of(self._root, path)

    def rows(self, path: str) -> Iterator[pa.RecordBatch]:
        return read_file(self._root / path, self._source, self._fields)


def table_files(config: FileFeedConfig) -> SourceFiles:
    if config.source is None:
        from joins.adapters.files.delta_version import VersionFiles  # most tables are no history

        assert config.version is not None, "submission has resolved it"
        return VersionFiles(config.path, config.version, config.fields, config.primary_key)
    assert isinstance(config.path, Path), "files are in a directory"
    return DirectoryFiles(config.path, config.source, config)


class FileFeedSession:
    """Reads the files from the stored state until all are read or one fails.

    `behind` is the newest generation of the topic whose history the files are; None for a table of
    files alone, whose files are not looked at again once all are read. A row that no message of
    the topic can hold is left out.
    """

    def __init__(
        self, config: FileFeedConfig, protocol: SourceProtocol, behind: int | None = None
    ) -> None:
        self._config = config
        self._protocol = protocol
        self._behind = behind
        self._files: SourceFiles | None = None
        self.state = self._begin(read_document(config.state_file, FileFeedState))
        self._newest_ms: int | None = None
        self._sent = 0

    def run(self, producer: RecordSink) -> None:
        """Send the remaining rows and the watermark record, unless the protocol stops it.

        SourceUnavailableError without a file or Kafka, SnapshotNeededError if a file has changed
        since it was listed, SourceError if it cannot be read as declared.
        """
        if self.copy(producer):
            self._write_watermark(producer)

    def copy(self, producer: RecordSink) -> bool:
        """Send the remaining rows; False if the protocol stopped it. Raises as `run`."""
        self._tell("streaming")
        file_of_dead = self._config.state_file.with_suffix(SUFFIX)
        dead = DeadRows(file_of_dead, self.state.generation, producer.message_bytes())
        for file in self.state.files[self.state.files_done :]:
            self._newest_ms = self.state.newest_ms
            rows = self._send(producer, file, dead)
            if self._protocol.stopped.is_set():
                return False
            state = replace(self.state, files_done=self.state.files_done + 1)
            self._keep(replace(state, rows=state.rows + rows, newest_ms=self._newest_ms))
        return True

    def _begin(self, kept: FileFeedState | None) -> FileFeedState:
        """The stored state if it is valid, else a new one; raises an earlier refusal again."""
        if kept is not None and kept.is_copied and self._behind is None:
            return kept
        self._files = table_files(self._config)
        files, newest = self._files.listed(), self._behind or 0
        is_newer = kept is not None and kept.generation > newest
        if kept is not None and is_newer and kept.files == files and kept.needed is None:
            if kept.refused is not None:
                raise SourceError(kept.refused["message"], hint=kept.refused["hint"])
            return kept
        newest = max(newest, 0 if kept is None else kept.generation)
        state = FileFeedState(newest + 1, files)
        write_document(self._config.state_file, state)
        return state

    def _send(self, producer: RecordSink, file: FileStamp, dead: DeadRows) -> int:
        rows = 0
        declared = declared_fields(self._config.fields)
        for batch in self._rows(file):
            if not batch.num_rows:
                continue
            placed = batch if declared == self._config.fields else self._placed(batch, rows)
            key, partitions = self._config.primary_key, self._config.partitions
            for records in dead.copied(placed, key, self.state.place, partitions):
                producer.send(records)
            self._note_newest(batch)
            rows += int(batch.num_rows)
            self._sent += batch.num_rows
            self._tell("progress", paced=True)
            if self._protocol.stopped.is_set():
                return rows
        self._require_same(file)
        return rows

    def _rows(self, file: FileStamp) -> Iterator[pa.RecordBatch]:
        """The rows of a file; keeps its refusal, but no error of Kafka, until the files change."""
        assert self._files is not None, "they were listed"
        try:
            yield from self._files.rows(file.path)
        except SourceUnavailableError:
            raise
        except SourceError as error:
            self._require_same(file)
            refused = {"message": error.message, "hint": error.hint}
            self._keep(replace(self.state, refused=refused))
            raise

    def _note_newest(self, batch: pa.RecordBatch) -> None:
        if self._config.newest_of is None:
            return
        field = next(each for each in self._config.fields if each.name == self._config.newest_of)
        wire = batch.column(field.name)
        times = to_declared(wire, declared_encoding(field.type), field.type).values
        newest = pc.max(times.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())).as_py()
        if newest is not None:
            self._newest_ms = max(newest, newest if self._newest_ms is None else self._newest_ms)

    def _placed(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Rows of the next file from row `first` on, with the coordinates that are their key."""
        places = (
            np.full(batch.num_rows, self.state.files_done),
            np.arange(first, first + batch.num_rows),
        )
        columns = [*batch.columns, *(pa.array(each, pa.int64()) for each in places)]
        names = [*batch.schema.names, *(field.name for field in COORDINATES)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _require_same(self, file: FileStamp) -> None:
        assert self._files is not None, "they were listed"
        if self._files.stamp(file.path) != file:
            raise SnapshotNeededError(
                f'file "{self._config.path / file.path}" was changed before the table was whole',
                hint="Nothing to do: the table is read again. Rename finished "
                "files into their place to avoid it.",
            )

    def _write_watermark(self, producer: RecordSink) -> None:
        """Runs after each start; a repeated watermark record has no effect."""
        state = self.state
        self._tell("progress")
        written = producer.watermark(state.place, state.generation)
        self._protocol.tell_watermark(state.generation, written)

    def _keep(self, state: FileFeedState) -> None:
        write_document(self._config.state_file, state)
        self.state = state

    def _tell(self, event: str, *, paced: bool = False) -> None:
        if not self._protocol.is_due(paced=paced):
            return
        state = self.state
        self._protocol.tell(
            event,
            {
                "state": state.progress,
                "position": {"epoch": state.place.epoch, "file": 0, "pos": 0},
                "records": self._sent,
                "source_ts_ms": 0,
            },
        )


def run(config: FileFeedConfig, protocol: SourceProtocol) -> int:
    """Sessions until the table is complete or the protocol stops; returns the exit code."""

    def session() -> None:
        feed = FileFeedSession(config, protocol)
        with closing(TopicProducer(config.kafka, config.partitions, str(config.path))) as producer:
            feed.run(producer)
        protocol.tell("ended", {})
        protocol.stopped.set()

    return run_sessions(protocol, session, (SourceError,))


def main() -> int:
    return run_process(SourceProtocol(), FileFeedConfig, run)


if __name__ == "__main__":
    sys.exit(main())
