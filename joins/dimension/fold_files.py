"""A fold as files of `current`: written here if it is small, else in a low-priority process.

Folds run while the probe's backlog is drained, on the same cores. A Spark task keeps its core; the
scheduler serves this process last.

| fold | made by |
|---|---|
| of at most `HERE_ROWS` rows, those of `current` included | the thread that folds |
| of at most `MAX_CHANGES` changes, if Sluice may write entries into the log | the process |
| any other, and where the process fails | Spark's MERGE, but never in an object store |
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from joins.adapters.process.parent import bind_to_parent
from joins.adapters.store_path import path_as_json, path_from_json
from joins.durable.codec import as_json, from_json
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.fold_rows import CHANGE_TYPE, FILE_ROWS, FoldRows, FoldTask
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile
from joins.kernels.table_path import TablePath, readable, row_count

MAX_CHANGES = 8_000_000  # with more, the keys alone would take gigabytes
HERE_ROWS = 50_000
_NICE = 10
IDLE_S = 60.0
_LOOK_S = 1.0
_SHOWN = 2_000  # characters of the process's output
_IMAGES = "_change_data"  # Delta's directory for change data

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StagedFold:
    """The files of a fold before its commit: rows, change data, and the files to replace.

    `changed` is empty if no file is rewritten, as the added rows then say it all.
    """

    added: tuple[StagedFile, ...] = ()
    changed: tuple[StagedFile, ...] = ()
    rewritten: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FoldFiles:
    """Writes the files of a fold of `task` into `root`, the location of `current`."""

    task: FoldTask
    root: TablePath
    origin: FileOrigin

    def to_json(self) -> str:
        task = self.task
        marks = [[*place, at] for place, at in task.progress.watermarks.items()]
        return json.dumps(
            {
                "files": [path_as_json(file) for file in task.files],
                "current": [path_as_json(file) for file in task.current],
                "primary_key": task.primary_key,
                "marks": marks,
                "complete": task.complete,
                "root": path_as_json(self.root),
                "origin": asdict(self.origin),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        document: dict[str, Any] = json.loads(text)
        progress = Progress({(partition, made): at for partition, made, at in document["marks"]})
        files, current = (
            [path_from_json(file) for file in document[name]] for name in ("files", "current")
        )
        key, complete = tuple(document["primary_key"]), document["complete"]
        task = FoldTask(files, key, progress, complete, current)
        return cls(task, path_from_json(document["root"]), FileOrigin(**document["origin"]))

    def write(self) -> StagedFold:
        """Write the files; OSError if an input is gone or the file system refuses."""
        schema = pq.read_schema(readable(self.task.files[0])).remove_metadata()
        rows = FoldRows(self.task)
        has_images = bool(rows.rewritten)
        with ParquetStage(self.root / _IMAGES, schema.append(CHANGE_TYPE), self.origin) as images:

            def written() -> Iterator[pa.RecordBatch]:
                for each in rows.slices(schema):
                    if has_images:
                        images.write(each.images)
                    yield each.rows

            added = tuple(self._staged(written(), schema))
            changed = images.finish()
        renamed = () if changed is None else (replace(changed, path=f"{_IMAGES}/{changed.path}"),)
        return StagedFold(added, renamed, rows.rewritten)

    def _staged(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[StagedFile]:
        while (first := next(batches, None)) is not None:
            with ParquetStage(self.root, schema, self.origin) as stage:
                rows = 0
                for batch in chain([first], batches):
                    stage.write(batch)
                    rows += batch.num_rows
                    if rows >= FILE_ROWS:
                        break
                staged = stage.finish()
            if staged is not None:
                yield staged

    def write_aside(self) -> StagedFold | None:
        """`write`, in a low-priority process if there are many rows.

        A process that uses no processor time for `IDLE_S` hangs and is killed. None if there are
        too many changes for a table in a directory, or if the process failed, which is logged.
        """
        changes = sum(map(row_count, self.task.files))
        held = sum(map(row_count, self.task.current))
        if changes + held <= HERE_ROWS:
            return self.write()
        if changes > MAX_CHANGES and isinstance(self.root, Path):
            return None
        command = [sys.executable, "-m", __name__]
        status, output, said = run_watched(command, self.to_json(), idle_s=IDLE_S)
        if status:
            _log.warning(
                "the process of a fold failed",
                table=str(self.root),
                status=status,
                error=said[-_SHOWN:],
            )
            return None
        return from_json(StagedFold, json.loads(output))


def run_watched(command: list[str], text: str, *, idle_s: float) -> tuple[int, str, str]:
    """Run a process, killed after `idle_s` without CPU time: exit status, output, error output."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watched = psutil.Process(process.pid)
        used, moved_at = watched.cpu_times(), time.monotonic()
        unread: str | None = text
        while True:
            try:
                output, said = process.communicate(unread, timeout=_LOOK_S)
                return process.returncode, output, said
            except subprocess.TimeoutExpired:
                unread = None  # `communicate` continues with the rest
            if (now := watched.cpu_times()) != used:
                used, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > idle_s:
                process.kill()
                _, said = process.communicate()
                return -1, "", f"{said}\nit was killed: no processor time for {idle_s:g} s"


def main() -> None:
    """Entry of the process: a task on standard input, its files on standard output."""
    bind_to_parent()
    os.nice(_NICE)
    pa.set_cpu_count(1)
    sys.stdout.write(json.dumps(as_json(FoldFiles.from_json(sys.stdin.read()).write())))


if __name__ == "__main__":
    main()
