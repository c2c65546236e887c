"""Rows of a Delta table as its users see them, without Spark: mapped columns, partitions, deletes.

In a plain table a data file has the columns of its rows. In others a file has other names for them,
or none for what its directory says, and a deletion vector hides rows of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from joins.kernels.table_path import TablePath, dataset_of, readable
from joins.plan.errors import SinkError

_PHYSICAL_NAME = "delta.columnMapping.physicalName"


class TableRows:
    """Reads rows of one table as it was loaded."""

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
        """The rows of files as a commit has added them, one table a file.

        Raises:
            OSError: a file is gone.
        """
        for action in added:
            file = pq.read_table(readable(self._root / unquote(action["path"])), partitioning=None)
            columns = {self._names.get(n, n): file.column(n) for n in file.column_names}
            for physical, text in (action.get("partitionValues") or {}).items():
                name = self._names.get(physical, physical)
                value = _partition_value(text, self._schema.field(name).type)
                columns[name] = pa.repeat(value, file.num_rows)
            yield pa.table(columns)

    def where(self, equal: Mapping[str, int], schema: pa.Schema) -> pa.Table:
        """The columns of `schema` of all rows whose columns have these values.

        Raises:
            SinkError: only Spark can read the table.
        """
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
    """A value as a commit writes it."""
    if text is None:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(text.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
