"""The columns of a topic's records: which of them the key has, which the value, and both read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joins.kernels.formats.decoders import SchemasOf, decoder_of
from joins.kernels.formats.parsed import BadRow, ParsedRows
from joins.plan.formats import JSON_FORMAT, RecordFormat, RecordKey
from joins.plan.plan import Field


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """What the physical columns of a table are in a record.

    Attributes:
        fields: all of them, in the order of the DDL.
        key: None of records whose key is no column.
    """

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
        """The columns of the key, as they are called there."""
        if self.key is None:
            return ()
        by_name = {item.name: item for item in self.fields}
        return tuple(replace(by_name[n], name=self.key.name_of(n)) for n in self.key.fields)

    @property
    def needed(self) -> frozenset[str]:
        """The columns that are read whoever reads them."""
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
        """The columns `names` of `records`, of which `value` and, if need be, `key` are looked at.

        A record is bad if either of them is.
        """
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
        """The columns `names`, as they are called in SQL, of keys."""
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


def one_a_record(parsed: ParsedRows) -> ParsedRows:
    """`parsed` where each record has one row: those with several, arrays of JSON, are bad."""
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
    """The rows of `values` with a key, the keys of these, and their positions in the input."""
    index, of_keys = values.row_index.to_numpy(), keys.row_index.to_numpy()
    if np.array_equal(index, of_keys):
        return values.batch, keys.batch, values.row_index
    has_key = np.isin(index, of_keys)
    at = pa.array(np.searchsorted(of_keys, index[has_key]))
    chosen = pa.array(has_key)
    return values.batch.filter(chosen), keys.batch.take(at), values.row_index.filter(chosen)
