"""The data files of a Delta table, and their rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from joins.adapters.delta.entries import added_files, changed_files
from joins.adapters.delta.versions import TableVersions
from joins.kernels.table_path import TablePath, dataset_of, readable
from joins.plan.errors import SinkError

_PHYSICAL_NAME = "delta.columnMapping.physicalName"


class TableRows:
    """Reads rows of a loaded table."""

    def __init__(self, table: DeltaTable, root: TablePath) -> None:
        self._table = table
        self._root = root
        fields = table.schema().fields
        self._names = {str(f.metadata.get(_PHYSICAL_NAME, f.name)): f.name for f in fields}
        self._schema = pa.schema(table.schema().to_arrow())
        protocol = table.protocol()
        self.has_deletion_vectors = "deletionVectors" in (protocol.reader_features or ())

    @property
    def _is_plain(self) -> bool:
        is_mapped = any(physical != name for physical, name in self._names.items())
        partitioned = bool(self._table.metadata().partition_columns)
        return not (is_mapped or partitioned or self.has_deletion_vectors)

    def of_files(self, added: Sequence[Mapping[str, Any]]) -> Iterator[pa.Table]:
        """The rows of files as added by a commit, one table a file; OSError if a file is gone."""
        for action in added:
            file = pq.read_table(readable(self._root / unquote(action["path"])), partitioning=None)
            columns = {self._names.get(n, n): file.column(n) for n in file.column_names}
            for physical, text in (action.get("partitionValues") or {}).items():
                name = self._names.get(physical, physical)
                value = _partition_value(text, self._schema.field(name).type)
                columns[name] = pa.repeat(value, file.num_rows)
            yield pa.table(columns)

    def where(self, equal: Mapping[str, int], schema: pa.Schema) -> pa.Table:
        nullable = pa.schema([item.with_nullable(True) for item in schema])
        if self._is_plain:
            paths = pa.table(self._table.get_add_actions()).column("path").to_pylist()
            files = [self._root / unquote(path) for path in sorted(paths)]
            terms = [pc.field(name) == value for name, value in equal.items()]
            condition = terms[0]
            for term in terms[1:]:
                condition &= term
            return dataset_of(files, nullable).to_table(filter=condition)
        columns = ", ".join(map(_quoted, schema.names))
        terms = [f"{_quoted(name)} = {int(value)}" for name, value in equal.items()]
        query = f"SELECT {columns} FROM output WHERE {' AND '.join(terms)}"
        try:
            rows = QueryBuilder().register("output", self._table).execute(query)
            return pa.table(rows).cast(nullable)
        except DeltaError as exc:
            raise SinkError(
                f'delta table "{self._root}" cannot be read without spark: {str(exc)[:200]}',
                hint="Look at its rows with Spark; the job itself goes on.",
            ) from exc


def _partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(text.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_PLAIN_READER_FEATURES = frozenset({"timestampNtz"})
_MAPPED_COLUMNS_READER = 2  # of readers before table features


class TableFiles:
    """The files of a table's versions; thread-safe."""

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
        """Data files with changes of commits `first` to `last`, in commit order; no rewrites."""
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
        """The data files of `version`, in no order."""
        return [self._path / unquote(path) for path in self._versions.of(version, paths_of)]

    def check_plain(self, version: int) -> None:
        """Require that the rows of `version` are those of its files, under their own names."""
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
        """The data files of `version` with path, size, row count and column statistics."""
        described: list[dict[str, Any]] = self._versions.of(version, _add_actions).to_pylist()
        return described


def _add_actions(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions())


def paths_of(table: DeltaTable) -> list[str]:
    paths: list[str] = _add_actions(table).column("path").to_pylist()
    return paths
