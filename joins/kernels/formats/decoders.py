"""Decoders: the keys or the values of records as columns of their declared types."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from joins.kernels.avro.derived import avro_schema, is_legacy
from joins.kernels.csv.dialect import dialect_of
from joins.kernels.formats.parsed import ParsedRows
from joins.kernels.json.each import JsonRules
from joins.kernels.json.rows import json_schema, parse
from joins.plan.connections import RegistryOptions
from joins.plan.formats import (
    FAIL_ON_MISSING_FIELD,
    IGNORE_PARSE_ERRORS,
    KafkaFormat,
    RecordFormat,
)
from joins.plan.plan import Field

SchemasOf = Callable[[RegistryOptions], Callable[[int], str | None]]
"""Of a registry what tells the schema of a number; picklable."""


class ValueDecoder(Protocol):
    """Reads the keys, or the values, of a topic."""

    def parse(self, values: pa.Array) -> ParsedRows:
        """The rows of `values` (binary, nullable), with the columns that are read."""


@dataclass(frozen=True, slots=True)
class JsonDecoder:
    """Reads JSON objects.

    Attributes:
        format: its options.
        read: the columns that are read.
    """

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
    """What reads keys or values of the format `form`; kept, for it may remember what it has seen.

    Args:
        form: the format.
        columns: that are declared, in their order.
        read: the names of those that are read, in the order of the rows' columns.
        schemas: of the registries of schemas.
    """
    if form.name is KafkaFormat.CSV:
        from joins.kernels.csv.rows import CsvRows  # loads numba, which who plans does without

        return CsvRows(columns, read, dialect_of(form), form.flag(IGNORE_PARSE_ERRORS))
    if form.name is KafkaFormat.RAW:
        from joins.kernels.formats.raw import RawForm  # as above

        return RawForm.of(form, columns[0], read=bool(read))
    by_name = {item.name: item for item in columns}
    chosen = tuple(by_name[name] for name in read)
    if form.name in (KafkaFormat.AVRO, KafkaFormat.AVRO_CONFLUENT):
        from joins.kernels.avro.rows import AvroRows  # as above

        if form.name is KafkaFormat.AVRO:
            return AvroRows(chosen, avro_schema(columns, legacy=is_legacy(form)))
        assert form.registry is not None, "such a format has a registry"
        assert schemas is not None, "schemas are asked for"
        return AvroRows(chosen, schemas(form.registry))
    assert form.name is KafkaFormat.JSON, "no other format has rows"
    return JsonDecoder(form, chosen)
