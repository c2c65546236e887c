"""The data files of one Delta table, and their rows."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from joins.adapters.delta.entries import added_files, changed_files
from joins.adapters.delta.rows import TableRows
from joins.adapters.delta.versions import TableVersions
from joins.kernels.table_path import TablePath, readable
from joins.plan.errors import SinkError

_PLAIN_READER_FEATURES = frozenset({"timestampNtz"})
_MAPPED_COLUMNS_READER = 2  # of readers before table features


class TableFiles:
    """What the versions of a table have as files; threads may share it."""

    def __init__(self, versions: TableVersions) -> None:
        self._versions = versions
        self._path = versions.path

    def table_rows(self) -> TableRows:
        with self._versions.lock:
            return TableRows(self._versions.whole(self._versions.fresh()), self._path)

    def read_commit(self, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        tables = list(self.read_files(self.files_added(version, version), columns))
        return pa.concat_tables(tables) if tables else pa.table({})

    def read_files(
        self, files: Sequence[TablePath], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows of data files, one table a file.

        Raises:
            SinkError: a file is gone.
        """
        names = list(columns) if columns is not None else None
        for file in files:
            try:
                yield pq.read_table(
                    readable(file),
                    columns=names,
                    partitioning=None,
                    coerce_int96_timestamp_unit="us",
                )
            except FileNotFoundError as exc:
                raise SinkError(
                    f'data file "{file}" is gone',
                    hint="Maintenance removes files of versions that no pin needs; if a needed "
                    "one is gone, restore it from a backup.",
                ) from exc

    def files_added(self, first: int, last: int) -> list[TablePath]:
        """The data files with the changes of commits `first` to `last`, in commit order.

        Files that only say anew what was there (`dataChange` is false) are no changes.

        Raises:
            SinkError: the log has one of the commits no more.
        """
        return [
            self._path / unquote(action["path"])
            for version in range(first, last + 1)
            for action in changed_files(self._versions.commit_entry(version))
        ]

    def files_named(self, first: int, last: int) -> set[str]:
        return {
            action["path"]
            for version in range(first, last + 1)
            for action in added_files(self._versions.commit_entry(version))
        }

    def files_at(self, version: int) -> list[TablePath]:
        """The data files of `version`, in no order.

        Raises:
            SinkError: the version cannot be read (any more).
        """
        return [self._path / unquote(path) for path in self._versions.of(version, paths_of)]

    def check_plain(self, version: int) -> None:
        """See that the rows of `version` are those of its data files, under their own names.

        Raises:
            SinkError: the table has deletion vectors or mapped columns, or cannot be read.
        """
        protocol = self._versions.load(version).protocol()
        denied = set(protocol.reader_features or ()) - _PLAIN_READER_FEATURES
        if protocol.min_reader_version == _MAPPED_COLUMNS_READER:
            denied.add("columnMapping")
        if denied:
            raise SinkError(
                f'delta table "{self._path}" uses {", ".join(sorted(denied))}, '
                "so its data files alone are not its rows",
                hint="Remove the feature from the table's properties and rewrite its files.",
            )

    def rows_at(self, version: int) -> dict[str, int]:
        actions = self._versions.of(version, _add_actions)
        names, rows = (actions.column(name).to_pylist() for name in ("path", "num_records"))
        return dict(zip(names, rows, strict=True))

    def described_at(self, version: int) -> list[dict[str, Any]]:
        """The data files of `version` with path, size, rows, and statistics by column.

        Raises:
            SinkError: the version cannot be read (any more).
        """
        described: list[dict[str, Any]] = self._versions.of(version, _add_actions).to_pylist()
        return described


def _add_actions(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions())


def paths_of(table: DeltaTable) -> list[str]:
    paths: list[str] = _add_actions(table).column("path").to_pylist()
    return paths
