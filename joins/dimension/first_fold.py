"""The first fold as files of `current`: here if it is small, else in a process that gives way.

A copied table is folded while the probe's backlog is drained, on the same cores. Spark's merge
takes nine times the CPU, and a task of it keeps its core to itself; this process is one that the
scheduler serves last.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from joins.adapters.process.protocol import bind_to_parent
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.first_fold import FirstFold, first_rows
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile

MAX_ROWS = 8_000_000  # of larger tables the keys alone would take gigabytes
HERE_ROWS = 50_000
_NICE = 10
_SHOWN = 2_000  # characters of what the process said

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FirstFiles:
    """The files that a first fold writes.

    Attributes:
        fold: what is folded.
        root: of `current`.
        origin: for their names.
    """

    fold: FirstFold
    root: Path
    origin: FileOrigin

    def to_json(self) -> str:
        """For the process."""
        fold = self.fold
        marks = [[*place, at] for place, at in fold.progress.watermarks.items()]
        return json.dumps(
            {
                "files": [str(file) for file in fold.files],
                "primary_key": fold.primary_key,
                "marks": marks,
                "complete": fold.complete,
                "root": str(self.root),
                "origin": asdict(self.origin),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        progress = Progress({(partition, made): at for partition, made, at in document["marks"]})
        files = [Path(file) for file in document["files"]]
        fold = FirstFold(files, tuple(document["primary_key"]), progress, document["complete"])
        return cls(fold, Path(document["root"]), FileOrigin(**document["origin"]))

    def write(self) -> list[StagedFile]:
        """Write them; none if the table has no row.

        Raises:
            OSError: a file of the changelog is gone, or the file system refused.
        """
        schema = pq.read_schema(self.fold.files[0]).remove_metadata()
        with ParquetStage(self.root, schema, self.origin) as stage:
            for batch in first_rows(self.fold, schema):
                stage.write(batch)
            staged = stage.finish()
        return [] if staged is None else [staged]

    def write_aside(self) -> list[StagedFile] | None:
        """`write`, in a process that gives way to all others if there are many rows.

        Returns:
            None if there are too many rows, or if the process failed, as the log says then.
        """
        rows = sum(pq.read_metadata(file).num_rows for file in self.fold.files)
        if rows <= HERE_ROWS:
            return self.write()
        if rows > MAX_ROWS:
            return None
        command = [sys.executable, "-m", __name__]
        done = subprocess.run(command, input=self.to_json(), capture_output=True, text=True)
        if done.returncode:
            _log.warning(
                "the process of the first fold failed; spark folds",
                table=str(self.root),
                status=done.returncode,
                error=done.stderr[-_SHOWN:],
            )
            return None
        return [StagedFile(**file) for file in json.loads(done.stdout)]


def main() -> None:
    """Entry of the process: a job on standard input, the files on standard output."""
    bind_to_parent()
    os.nice(_NICE)
    pa.set_cpu_count(1)
    files = FirstFiles.from_json(sys.stdin.read()).write()
    sys.stdout.write(json.dumps([asdict(file) for file in files]))


if __name__ == "__main__":
    main()
