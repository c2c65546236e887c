"""datagen's rows: row `i` is a pure function of the seed and `i`, so a restart goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.nested import Parts, assembled
from joins.plan.errors import SourceError
from joins.plan.plan import COLLECTION_SIZE, DatagenField, DatagenKind, DatagenSource, Field
from joins.plan.types import TypeName, arrow_type

_INTEGER_BOUNDS = {
    TypeName.TINYINT: (-(2**7), 2**7 - 1),
    TypeName.SMALLINT: (-(2**15), 2**15 - 1),
    TypeName.INT: (-(2**31), 2**31 - 1),
    TypeName.BIGINT: (-(2**63), 2**63 - 1),
}
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_DEFAULT_LENGTH = 100
_PARTS = 1 << 16


def _random_bits(seed: int, column: int, first: int, count: int, words: int = 1) -> np.ndarray:
    """`words` 64-bit numbers for each row, by counter: `uint64[count, words]`."""
    rows = np.arange(first, first + count, dtype=np.uint64)[:, None]
    lanes = np.arange(words, dtype=np.uint64)[None, :]
    salt = np.uint64((seed * 0x9E3779B97F4A7C15 + column * 0xD1342543DE82EF95 + 1) % 2**64)
    with np.errstate(over="ignore"):
        x = (rows * np.uint64(words) + lanes + salt) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def sequence_length(fields: Sequence[DatagenField]) -> int | None:
    """Rows until the shortest sequence ends, None if no field is a sequence."""
    lengths = [
        int(f.end or "0") - int(f.start or "0") + 1
        for f in fields
        if f.generator is DatagenKind.SEQUENCE
    ]
    return min(lengths) if lengths else None


def row_limit(source: DatagenSource) -> int | None:
    """Rows until the source ends, None if it never does."""
    limits = (source.number_of_rows, sequence_length(source.fields))
    return min((limit for limit in limits if limit is not None), default=None)


def _integers(field: DatagenField, kind: TypeName, bits: np.ndarray) -> np.ndarray:
    low, high = _INTEGER_BOUNDS[kind]
    low = int(field.minimum) if field.minimum is not None else low
    high = int(field.maximum) if field.maximum is not None else high
    span = high - low + 1
    offsets = bits if span == 2**64 else bits % np.uint64(span)
    with np.errstate(over="ignore"):
        return (offsets + np.uint64(low % 2**64)).astype(np.int64)


def _floats(field: DatagenField, bits: np.ndarray) -> np.ndarray:
    low = float(field.minimum or 0.0)
    high = float(field.maximum or 1.0)
    return low + (bits >> np.uint64(11)).astype(np.float64) / 2**53 * (high - low)


def _strings(field: DatagenField, bits: np.ndarray) -> pa.Array:
    length = field.length or _DEFAULT_LENGTH
    raw = _HEX[bits.view(np.uint8) & 15][:, :length]
    offsets = np.arange(0, (len(raw) + 1) * length, length, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(raw))]
    return pa.Array.from_buffers(pa.string(), len(raw), buffers)


@dataclass(frozen=True, slots=True)
class _Generator:
    """What makes all columns: their rules, and the seed."""

    rules: Mapping[str, DatagenField]
    seed: int

    def values(self, field: Field, column: int, rows: range) -> pa.Array:
        """A column, or a part of one: each part has a name below its column, and a number."""
        rule = self.rules.get(field.name) or DatagenField(field.name, DatagenKind.RANDOM)
        if not field.type.is_nested:
            return _column(field, rule, seed=self.seed, column=column, rows=rows)
        size = 1 if field.type.name is TypeName.ROW else rule.length or COLLECTION_SIZE
        inner = range(rows.start * size, rows.stop * size)
        children = [
            self.values(Field(f"{field.name}.{part.name}", part.type), _below(column, at), inner)
            for at, part in enumerate(field.type.members)
        ]
        lengths = None if field.type.name is TypeName.ROW else np.full(len(rows), size)
        there = np.zeros(len(rows), dtype=np.bool_)
        return assembled(Parts(children, lengths), arrow_type(field.type), there)


def _below(column: int, at: int) -> int:
    """The number of a part: that of no column, and of no other part."""
    return (column + 1) * _PARTS + at + 1


def _column(field: Field, rule: DatagenField, *, seed: int, column: int, rows: range) -> pa.Array:
    kind = field.type.name
    target = arrow_type(field.type)
    first, count = rows.start, len(rows)
    if rule.generator is DatagenKind.SEQUENCE:
        numbers = pa.array(np.arange(first, first + count) + int(rule.start or "0"))
        # Arrow casts an integer to a DECIMAL of 19 whole digits or more only; text to any.
        return (numbers.cast(pa.string()) if kind is TypeName.DECIMAL else numbers).cast(target)
    if kind is TypeName.STRING:
        words = -(-(rule.length or _DEFAULT_LENGTH) // 8)
        return _strings(rule, _random_bits(seed, column, first, count, words))
    bits = _random_bits(seed, column, first, count)[:, 0]
    if kind in _INTEGER_BOUNDS:
        return pa.array(_integers(rule, kind, bits)).cast(target)
    if kind in (TypeName.FLOAT, TypeName.DOUBLE):
        return pa.array(_floats(rule, bits)).cast(target)
    if kind is TypeName.DECIMAL:
        return pa.array(_floats(rule, bits)).cast(target, safe=False)
    if kind is TypeName.BOOLEAN:
        return pa.array((bits & np.uint64(1)).astype(bool))
    raise SourceError(
        f'datagen cannot make field "{field.name}" of type {field.type}',
        hint="Use BOOLEAN, an integer, FLOAT, DOUBLE, DECIMAL or STRING, or a computed column.",
    )


def generate(
    fields: Sequence[Field], rules: Sequence[DatagenField], *, seed: int, rows: range
) -> pa.RecordBatch:
    """Rows `rows.start` to `rows.stop - 1` of the stream, a column for each field.

    Raises:
        SourceError: a field has a type that datagen does not make.
    """
    made = _Generator({rule.name: rule for rule in rules}, seed)
    columns = [made.values(field, index, rows) for index, field in enumerate(fields)]
    schema = pa.schema([(field.name, arrow_type(field.type)) for field in fields])
    return pa.record_batch(columns, schema=schema)
