"""The files of a stream's history at submission: their order, sizes and rows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from joins.adapters.files.delta_version import VersionFiles
from joins.adapters.files.listing import list_files, readable
from joins.adapters.files.readers import matched_columns
from joins.kernels.table_path import TablePath, value_bounds
from joins.plan.errors import SourceError
from joins.plan.plan import DeltaTableSource, Field, FileListing, ListedFile, TopicHistory

MOST_FILES = 10_000
"""The plan of a job has them all."""


def list_history(
    history: TopicHistory, path: TablePath, fields: tuple[Field, ...]
) -> tuple[FileListing, int | None]:
    """The files in order, and the greatest value of the startup column in milliseconds.

    Raises:
        SourceError: there are no files, too many, or one does not fit its declaration.
    """
    sized: Sequence[ListedFile]
    files: _Files | VersionFiles
    if isinstance(history.files, DeltaTableSource):
        assert history.version is not None, "the caller has resolved it"
        files = VersionFiles(path, history.version, fields)
    else:
        assert isinstance(path, Path), "files are in a directory"
        files = _Files(path, fields)
    sized = files.sized()
    if len(sized) > MOST_FILES:
        raise SourceError(
            f'the history at "{path}" has {len(sized):,} files, expected at most {MOST_FILES:,}',
            hint="Write larger files, for example with OPTIMIZE of a Delta table.",
        )
    filled = [file for file in sized if file.rows]
    if history.order_column is not None:
        filled = _ordered(files, filled, history.order_column)
    newest = None
    if history.startup_column is not None:
        bounds = [files.bounds(file.path, history.startup_column)[1] for file in filled]
        newest = max((_millis(at) for at in bounds if at is not None), default=None)
    return FileListing(tuple(filled)), newest


class _Files:
    """Parquet files of a directory, each opened once to be checked."""

    def __init__(self, root: Path, fields: tuple[Field, ...]) -> None:
        self._root = root
        self._fields = fields
        self._names: dict[str, dict[str, str]] = {}

    def sized(self) -> tuple[ListedFile, ...]:
        stamps = list_files(self._root)
        if len(stamps) > MOST_FILES:  # counted by the caller, without their footers
            return tuple(ListedFile(each.path, each.size, 0) for each in stamps)
        return tuple(ListedFile(s.path, s.size, self._rows(s.path)) for s in stamps)

    def _rows(self, path: str) -> int:
        file = self._root / path
        with readable(file, "Parquet"), pq.ParquetFile(file) as opened:
            items = matched_columns(file, opened.schema_arrow, self._fields)
            self._names[path] = {name: item["name"] for name, item in items.items()}
            return int(opened.metadata.num_rows)

    def bounds(self, path: str, column: str) -> tuple[Any, Any]:
        file = self._root / path
        with (
            readable(file, "Parquet"),
            pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened,
        ):
            return value_bounds(opened, self._names[path][column])


def _ordered(
    files: _Files | VersionFiles, sized: Sequence[ListedFile], column: str
) -> list[ListedFile]:
    least = {file.path: files.bounds(file.path, column)[0] for file in sized}
    without = next((path for path, value in least.items() if value is None), None)
    if without is not None:
        raise SourceError(
            f'file "{without}" of the history has no value in column "{column}", which orders the '
            "files",
            hint="Correct 'history.order-column', or remove it: files are then read by path.",
        )
    return sorted(sized, key=lambda file: (least[file.path], file.path))


def _millis(value: datetime) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000)
