"""Decoders: keys and values of records as columns of their declared types.

numba takes 60 MB, so its readers are imported when a decoder is made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.formats.avro_schema import avro_schema, is_legacy
from joins.kernels.formats.parsed import BadRow, ParsedRows, batch_of, dialect_of
from joins.kernels.json.each import JsonRules
from joins.kernels.json.rows import json_schema, parse
from joins.kernels.records.layout import ROW, ROW_ERROR
from joins.plan.connections import RegistryOptions
from joins.plan.formats import (
    FAIL_ON_MISSING_FIELD,
    IGNORE_PARSE_ERRORS,
    JSON_FORMAT,
    KafkaFormat,
    RecordFormat,
    RecordKey,
)
from joins.plan.plan import Field

SchemasOf = Callable[[RegistryOptions], Callable[[int], str | None]]
"""Gives, for a registry, a function from id to schema; picklable."""


class ValueDecoder(Protocol):
    """Reads the keys, or the values, of a topic."""

    def parse(self, values: pa.Array) -> ParsedRows:
        """The rows of `values` (binary, nullable)."""


@dataclass(frozen=True, slots=True)
class JsonDecoder:
    """Reads the columns `read` of JSON objects."""

    format: RecordFormat
    read: tuple[Field, ...]

    def parse(self, values: pa.Array) -> ParsedRows:
        rules = JsonRules(
            ignores_errors=self.format.flag(IGNORE_PARSE_ERRORS),
            needs_all=self.format.flag(FAIL_ON_MISSING_FIELD),
        )
        return parse(values, json_schema(self.read), rules)


@lru_cache(maxsize=64)
def decoder_of(
    form: RecordFormat,
    columns: tuple[Field, ...],
    read: tuple[str, ...],
    schemas: SchemasOf | None = None,
) -> ValueDecoder:
    """A cached decoder of keys or values, which may cache schemas; `read` is in output order."""
    if form.name is KafkaFormat.CSV:
        from joins.kernels.formats.csv_rows import CsvRows

        return CsvRows(columns, read, dialect_of(form), form.flag(IGNORE_PARSE_ERRORS))
    if form.name is KafkaFormat.RAW:
        from joins.kernels.formats.raw import RawForm

        return RawForm.of(form, columns[0], read=bool(read))
    by_name = {item.name: item for item in columns}
    chosen = tuple(by_name[name] for name in read)
    if form.name in (KafkaFormat.AVRO, KafkaFormat.AVRO_CONFLUENT):
        from joins.kernels.formats.avro_payloads import AvroRows

        if form.name is KafkaFormat.AVRO:
            return AvroRows(chosen, avro_schema(columns, legacy=is_legacy(form)))
        assert form.registry is not None, "such a format has a registry"
        assert schemas is not None, "schemas are asked for"
        return AvroRows(chosen, schemas(form.registry))
    assert form.name is KafkaFormat.JSON, "no other format has rows"
    return JsonDecoder(form, chosen)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """A table's physical columns, in DDL order; `key` is None if none is in the key."""

    fields: tuple[Field, ...]
    value: RecordFormat = JSON_FORMAT
    key: RecordKey | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.fields)

    @property
    def of_value(self) -> tuple[Field, ...]:
        if self.key is None or self.key.is_in_value:
            return self.fields
        return tuple(item for item in self.fields if item.name not in self.key.fields)

    @property
    def of_key(self) -> tuple[Field, ...]:
        if self.key is None:
            return ()
        by_name = {item.name: item for item in self.fields}
        return tuple(replace(by_name[n], name=self.key.name_of(n)) for n in self.key.fields)

    @property
    def needed(self) -> frozenset[str]:
        names = {item.name for item in self.of_value} if self.value.needs_all else set()
        key = self.key
        if key is not None and not key.is_in_value and key.format.needs_all:
            names |= set(key.fields)
        return frozenset(names)

    def are_in_key(self, names: Sequence[str]) -> bool:
        key = self.key
        return key is not None and not key.is_in_value and any(n in key.fields for n in names)

    def read(
        self, records: pa.RecordBatch, names: Sequence[str], schemas: SchemasOf | None = None
    ) -> ParsedRows:
        """Columns `names`; reads `value` and, if needed, `key`. Either may make a record bad.

        Rows of files have their columns already.
        """
        if ROW in records.schema.names:
            return _rows_of_files(records, names)
        if not self.are_in_key(names):
            decoder = decoder_of(self.value, self.of_value, tuple(names), schemas)
            return decoder.parse(records.column("value"))
        assert self.key is not None, "columns are in it"
        of_key = tuple(name for name in names if name in self.key.fields)
        rest = tuple(name for name in names if name not in self.key.fields)
        value = decoder_of(self.value, self.of_value, rest, schemas).parse(records.column("value"))
        parsed = self.read_keys(records.column("key"), of_key, schemas)
        both = _rows_of_both(value, parsed)
        at = dict(zip(rest, both[0].columns, strict=True))
        at |= dict(zip(of_key, both[1].columns, strict=True))
        batch = pa.RecordBatch.from_arrays([at[name] for name in names], names=list(names))
        reasons = {each.row: each for each in (*parsed.bad, *value.bad)}
        return ParsedRows(batch, both[2], tuple(reasons[row] for row in sorted(reasons)))

    def read_keys(
        self, keys: pa.Array, names: Sequence[str], schemas: SchemasOf | None = None
    ) -> ParsedRows:
        """Columns `names`, by their SQL names, of keys."""
        assert self.key is not None, "there are columns of the key"
        own = tuple(map(self.key.name_of, names))
        parsed = one_a_record(decoder_of(self.key.format, self.of_key, own, schemas).parse(keys))
        bad = (
            (each.row, f"key: {each.reason}" if keys[each.row].is_valid else "the key is null")
            for each in parsed.bad
        )
        return ParsedRows(
            parsed.batch.rename_columns(list(names)),
            parsed.row_index,
            tuple(BadRow(*each) for each in bad),
        )


def _rows_of_files(records: pa.RecordBatch, names: Sequence[str]) -> ParsedRows:
    errors, rows = records.column(ROW_ERROR), records.column(ROW)
    index = pa.array(np.arange(len(rows), dtype=np.int64))
    bad: tuple[BadRow, ...] = ()
    if errors.null_count < len(errors):
        texts = enumerate(errors.to_pylist())
        bad = tuple(BadRow(row, text) for row, text in texts if text is not None)
        index = index.filter(errors.is_null())
        rows = rows.take(index)
    columns = [pc.struct_field(rows, [rows.type.get_field_index(name)]) for name in names]
    schema = pa.schema([pa.field(n, c.type) for n, c in zip(names, columns, strict=True)])
    return ParsedRows(batch_of(columns, schema, len(rows)), index, bad)


def one_a_record(parsed: ParsedRows) -> ParsedRows:
    """Makes records of several rows (arrays of JSON) bad."""
    index = parsed.row_index.to_numpy()
    repeats = np.unique(index[1:][index[1:] == index[:-1]])
    if not len(repeats):
        return parsed
    keep = pa.array(~np.isin(index, repeats))
    reason = "it is an array of several rows, and a row of a table is one record"
    bad = (*parsed.bad, *(BadRow(int(row), reason) for row in repeats))
    rows = parsed.batch.filter(keep), parsed.row_index.filter(keep)
    return ParsedRows(*rows, tuple(sorted(bad, key=lambda each: each.row)))


def _rows_of_both(
    values: ParsedRows, keys: ParsedRows
) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.Int64Array]:
    index, of_keys = values.row_index.to_numpy(), keys.row_index.to_numpy()
    if np.array_equal(index, of_keys):
        return values.batch, keys.batch, values.row_index
    has_key = np.isin(index, of_keys)
    at = pa.array(np.searchsorted(of_keys, index[has_key]))
    chosen = pa.array(has_key)
    return values.batch.filter(chosen), keys.batch.take(at), values.row_index.filter(chosen)
