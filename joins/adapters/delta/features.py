"""Chooses the writer of a Delta table: columnar commits, or Spark's writer.

Columnar commits check no rules of a table, so they need a table within an allow-list. Spark's
writer handles NOT NULL, CHECK, generated columns, column mapping and partitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from joins.adapters.store_path import StorePath
from joins.plan.errors import SinkError
from joins.plan.plan import DeltaSink, SinkWriter

_ALLOWED_FEATURES = frozenset({"timestampNtz", "appendOnly", "invariants", "changeDataFeed"})
_ALLOWED_PROPERTIES = frozenset(
    {"delta.enableExpiredLogCleanup", "delta.enableChangeDataFeed", "delta.checkpointInterval"}
)
_OF_REMOVALS = frozenset({"delta.deletedFileRetentionDuration"})
_READER, _WRITER = 3, 7  # the newest protocol, which lists its features
_ALLOWED_METADATA = frozenset({"comment", "PARQUET:field_id", "column"})  # the last is ours
_FILLED_BY_DELTA = ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")
_EXACT = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)
_CONSTRAINT = "delta.constraints."
_APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class WriterChoice:
    """The writer, never AUTO, and its reason; a row that violates `rules` fails its whole batch."""

    writer: SinkWriter
    reason: str | None = None
    rules: tuple[str, ...] = ()

    @property
    def is_spark(self) -> bool:
        return self.writer is SinkWriter.SPARK


@dataclass(frozen=True, slots=True)
class Appends:
    """What a job appends to a table.

    Rows replace others by `merge_key`, empty for appends. `partition_by` is from the script; empty
    leaves partitions to the table. `grows` for a job whose plan was changed: its table may have the
    columns in another order, and nullable ones of its other plans.
    """

    rows: pa.Schema
    writer: SinkWriter = SinkWriter.AUTO
    merge_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    grows: bool = False

    @classmethod
    def into(cls, sink: DeltaSink, rows: pa.Schema, *, grows: bool = False) -> "Appends":
        return cls(rows, sink.writer, sink.merge_key, sink.partition_by, grows)

    def missing_in(self, table: DeltaTable) -> pa.Schema:
        """The nullable columns of the rows that the table does not have yet."""
        there = {field.name for field in table.schema().fields}
        return pa.schema([f for f in self.rows if f.nullable and f.name not in there])

    def choose(self, path: object, table: DeltaTable) -> WriterChoice:
        """`path` is for errors."""
        self._check_columns(path, table)
        self._check_partitions(path, table)
        self._check_keys(path)
        configuration = table.metadata().configuration
        if self.merge_key and configuration.get(_APPEND_ONLY, "").lower() == "true":
            raise SinkError(
                f'delta table "{path}" is append-only, and rows of this job replace others',
                hint=f"Unset the table's property {_APPEND_ONLY}, or use another path.",
            )
        return self._choice(path, list(_reasons(table, self.rows)), _rules(table))

    def choose_new(self, path: object) -> WriterChoice:
        self._check_keys(path)
        cuts = [f"the table has partition columns {', '.join(self.partition_by)}"]
        return self._choice(path, cuts if self.partition_by else [], ())

    def are_columnar(self, table: DeltaTable) -> bool:
        return self.writer is not SinkWriter.SPARK and not any(_reasons(table, self.rows))

    def _choice(self, path: object, needs: list[str], rules: tuple[str, ...]) -> WriterChoice:
        merges = [f"its rows replace others by ({', '.join(self.merge_key)})"]
        in_store = isinstance(path, StorePath)  # Sluice merges there itself
        reasons = [*(merges if self.merge_key and not in_store else ()), *needs]
        if self.writer is SinkWriter.SPARK:
            reasons = ["'sink.writer' is 'spark'"]
        if not reasons:
            return WriterChoice(SinkWriter.COLUMNAR)
        if in_store:
            raise SinkError(
                f'delta table "{path}" needs spark\'s writer, which does not commit to object '
                f"stores: {'; '.join(reasons)}",
                hint="Use a table without what needs it, or one in a directory.",
            )
        if self.writer is not SinkWriter.COLUMNAR:
            return WriterChoice(SinkWriter.SPARK, "; ".join(reasons), rules)
        raise SinkError(
            f'delta table "{path}" cannot have the columnar writer: {"; ".join(reasons)}',
            hint="Write 'sink.writer' = 'auto' for Spark's own writer, or use another path.",
        )

    def _check_keys(self, path: object) -> None:
        inexact = [name for name in self.merge_key if not is_exact(self.rows.field(name).type)]
        if inexact and isinstance(path, StorePath):
            raise SinkError(
                f'delta table "{path}" has "{inexact[0]}" in its key, whose type '
                f"{self.rows.field(inexact[0]).type} is not exact",
                hint="Use a key of exact types, or a table in a directory.",
            )

    def _check_partitions(self, path: object, table: DeltaTable) -> None:
        own = tuple(table.metadata().partition_columns)
        if self.partition_by and own != self.partition_by:
            raise SinkError(
                f'delta table "{path}" is partitioned by ({", ".join(own)}), expected '
                f"({', '.join(self.partition_by)})",
                hint="Use another path, or leave PARTITIONED BY out for a table that is there.",
            )

    def _check_columns(self, path: object, table: DeltaTable) -> None:
        """Require the columns of the rows in their order; Delta may fill others."""
        filled = {
            f.name
            for f in table.schema().fields
            if any(key in f.metadata for key in _FILLED_BY_DELTA)
        }
        whole = pa.schema(table.schema().to_arrow())
        own = set(self.rows.names)
        written = [f for f in whole if f.name not in filled or f.name in own]
        if self.grows:
            at = {name: place for place, name in enumerate(self.rows.names)}
            written = [f for f in written if f.name in own or not f.nullable]
            written.sort(key=lambda f: at.get(f.name, len(at)))
        fits = [f.name for f in written] == self.rows.names and all(
            _same_type(a.type, b.type) for a, b in zip(written, self.rows, strict=True)
        )
        if not fits:
            raise SinkError(
                f'delta table "{path}" has columns {_describe(whole)}, '
                f"expected {_describe(self.rows)}",
                hint="Use another path, or a table with these columns.",
            )


def is_exact(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _EXACT)


def takes_plain_entries(table: DeltaTable) -> bool:
    protocol = table.protocol()
    is_known = protocol.min_reader_version <= _READER and protocol.min_writer_version <= _WRITER
    return is_known and not any(_beyond(table, _ALLOWED_PROPERTIES | _OF_REMOVALS))


def _reasons(table: DeltaTable, rows: pa.Schema) -> Iterator[str]:
    """Requirements of the table that the columnar writer ignores."""
    yield from _beyond(table, _ALLOWED_PROPERTIES)
    nullable = {f.name for f in rows if f.nullable}
    strict = [f.name for f in table.schema().fields if not f.nullable and f.name in nullable]
    if strict:
        yield f"column {strict[0]} is NOT NULL in the table and may be NULL in a row"


def _beyond(table: DeltaTable, known: frozenset[str]) -> Iterator[str]:
    protocol = table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    properties = {k for k in table.metadata().configuration if k.startswith("delta.")}
    denied = sorted((features - _ALLOWED_FEATURES) | (properties - known))
    fields = table.schema().fields
    metadata = ((k, f.name) for f in fields for k in f.metadata if k not in _ALLOWED_METADATA)
    rules = sorted({f"{key} of {name}" for key, name in metadata})
    if denied or rules:
        yield f"the table uses {', '.join(denied or rules)}"
    if table.metadata().partition_columns:
        yield f"the table has partition columns {', '.join(table.metadata().partition_columns)}"


def _rules(table: DeltaTable) -> tuple[str, ...]:
    keys = (key for key in table.metadata().configuration if key.startswith(_CONSTRAINT))
    checks = (key.removeprefix(_CONSTRAINT) for key in keys)
    strict = (f"NOT NULL of {f.name}" for f in table.schema().fields if not f.nullable)
    return (*(f"CHECK {name}" for name in sorted(checks)), *strict)


def _same_type(actual: pa.DataType, expected: pa.DataType) -> bool:
    pairs = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}
    pairs |= {pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary()}
    if pa.types.is_nested(actual) and actual.id == expected.id:
        return _same_parts(actual, expected)
    return bool(pairs.get(actual, actual) == pairs.get(expected, expected))


def _same_parts(actual: pa.DataType, expected: pa.DataType) -> bool:
    """True if nested types match without NOT NULL; only names of struct fields count."""
    theirs, ours = _parts(actual), _parts(expected)
    if len(theirs) != len(ours):
        return False
    if pa.types.is_struct(actual) and [f.name for f in theirs] != [f.name for f in ours]:
        return False
    strict = theirs[1:] if pa.types.is_map(actual) else theirs
    return all(f.nullable for f in strict) and all(
        _same_type(a.type, b.type) for a, b in zip(theirs, ours, strict=True)
    )


def _parts(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(at) for at in range(kind.num_fields)]


def _describe(schema: pa.Schema) -> str:
    return "(" + ", ".join(f"{field.name} {field.type}" for field in schema) + ")"
