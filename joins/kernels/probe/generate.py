"""Rows of datagen: row `i` is a function of the seed, `i`, and for times the clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.nested import Parts, assembled
from joins.plan.errors import SourceError
from joins.plan.faker import BETWEEN, DECIMALS, OPTION, TEXTS, FakerCall, parts_of
from joins.plan.plan import COLLECTION_SIZE, DatagenField, DatagenKind, DatagenSource, Field
from joins.plan.types import SqlType, TypeName, arrow_type

_INTEGER_BOUNDS = {
    TypeName.TINYINT: (-(2**7), 2**7 - 1),
    TypeName.SMALLINT: (-(2**15), 2**15 - 1),
    TypeName.INT: (-(2**31), 2**31 - 1),
    TypeName.BIGINT: (-(2**63), 2**63 - 1),
}
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_DEFAULT_LENGTH = 100
_PARTS = 1 << 16
_DAY_MS = 86_400_000
_NULLS = 0x4E55_4C4C  # the lane that chooses NULLs


@dataclass(frozen=True, slots=True)
class Material:
    """The clock, and the texts to choose from by kind (`joins.plan.faker.TEXTS`)."""

    now_ms: int = 0
    texts: Mapping[str, pa.Array] = attribute(default_factory=dict)


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
    lengths = [
        int(f.end or "0") - int(f.start or "0") + 1
        for f in fields
        if f.generator is DatagenKind.SEQUENCE
    ]
    return min(lengths) if lengths else None


def row_limit(source: DatagenSource) -> int | None:
    limits = (source.number_of_rows, sequence_length(source.fields))
    return min((limit for limit in limits if limit is not None), default=None)


def _chosen(bits: np.ndarray, span: int, skew: float | None) -> np.ndarray:
    """A number below `span` for each row: `uint64`; with a skew small ones are frequent."""
    if skew is None:
        return bits if span == 2**64 else bits % np.uint64(span)
    share = _fractions(bits)
    power = 1.0 - skew
    if abs(power) < 1e-9:
        ranks = np.exp(share * np.log(span + 1.0))
    else:
        ranks = ((span + 1.0) ** power * share + (1.0 - share)) ** (1.0 / power)
    chosen: np.ndarray = np.minimum(ranks - 1.0, np.nextafter(float(span), 0.0)).astype(np.uint64)
    return chosen


def _fractions(bits: np.ndarray) -> np.ndarray:
    return (bits >> np.uint64(11)).astype(np.float64) / 2**53


def _integers(rule: DatagenField, bounds: tuple[int, int], bits: np.ndarray) -> np.ndarray:
    low = int(rule.minimum) if rule.minimum is not None else bounds[0]
    high = int(rule.maximum) if rule.maximum is not None else bounds[1]
    offsets = _chosen(bits, high - low + 1, rule.skew)
    with np.errstate(over="ignore"):
        return (offsets + np.uint64(low % 2**64)).astype(np.int64)


def _floats(rule: DatagenField, bits: np.ndarray) -> np.ndarray:
    low = float(rule.minimum or 0.0)
    high = float(rule.maximum or 1.0)
    return low + _fractions(bits) * (high - low)


def _strings(field: DatagenField, bits: np.ndarray) -> pa.Array:
    length = field.length or _DEFAULT_LENGTH
    raw = _HEX[bits.view(np.uint8) & 15][:, :length]
    offsets = np.arange(0, (len(raw) + 1) * length, length, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(raw))]
    return pa.Array.from_buffers(pa.string(), len(raw), buffers)


@dataclass(frozen=True, slots=True)
class _Generator:
    rules: Mapping[str, DatagenField]
    seed: int
    material: Material

    def values(self, field: Field, column: int, rows: range) -> pa.Array:
        rule = self.rules.get(field.name) or DatagenField(field.name, DatagenKind.RANDOM)
        if not field.type.is_nested:
            made = self._made(field.type, rule, column, rows)
            if not rule.null_rate:
                return made
            shares = _fractions(self._bits(_below(column, _NULLS), rows))
            return pc.if_else(pa.array(shares >= rule.null_rate), made, pa.scalar(None, made.type))
        size = 1 if field.type.name is TypeName.ROW else rule.length or COLLECTION_SIZE
        inner = range(rows.start * size, rows.stop * size)
        children = [
            self.values(Field(f"{field.name}.{part.name}", part.type), _below(column, at), inner)
            for at, part in enumerate(field.type.members)
        ]
        lengths = None if field.type.name is TypeName.ROW else np.full(len(rows), size)
        there = np.zeros(len(rows), dtype=np.bool_)
        return assembled(Parts(children, lengths), arrow_type(field.type), there)

    def _bits(self, column: int, rows: range) -> np.ndarray:
        return _random_bits(self.seed, column, rows.start, len(rows))[:, 0]

    def _made(self, kind: SqlType, rule: DatagenField, column: int, rows: range) -> pa.Array:
        if rule.expression is not None:
            made = self._by_expression(rule, column, rows)
            return made.cast(arrow_type(kind), safe=not pa.types.is_floating(made.type))
        if kind.name is TypeName.DATE:
            return self._times(np.zeros(len(rows), np.int64)).cast(arrow_type(kind))
        if kind.name is TypeName.TIME:
            micros = self.material.now_ms % _DAY_MS * 1_000
            return pa.array(np.full(len(rows), micros - micros % 10 ** (6 - kind.precision)))
        if kind.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
            ago = self._bits(column, rows) % np.uint64(rule.max_past_ms + 1)
            return self._times(-ago.astype(np.int64)).cast(arrow_type(kind))
        return _column(Field(rule.name, kind), rule, seed=self.seed, column=column, rows=rows)

    def _times(self, from_now_ms: np.ndarray) -> pa.Array:
        return pa.array(self.material.now_ms + from_now_ms).cast(pa.timestamp("ms"))

    def _by_expression(self, rule: DatagenField, column: int, rows: range) -> pa.Array:
        assert rule.expression is not None
        made = [
            pa.scalar(part)
            if isinstance(part, str)
            else self._called(part, rule, _below(column, at), rows)
            for at, part in enumerate(parts_of(rule.expression))
        ]
        if len(made) == 1 and isinstance(made[0], pa.Array):
            return made[0]
        texts = [part.cast(pa.string()) for part in made]
        constant = pa.nulls(len(rows), pa.string()).fill_null("")
        return pc.binary_join_element_wise(constant, *texts, "")

    def _called(self, call: FakerCall, rule: DatagenField, column: int, rows: range) -> pa.Array:
        bits = self._bits(column, rows)
        if call.name in TEXTS or call.name == OPTION:
            texts = pa.array(call.arguments) if call.name == OPTION else self._texts(call.name)
            return texts.take(pa.array(_chosen(bits, len(texts), rule.skew)))
        unbound = replace(rule, minimum=None, maximum=None)
        numbers = _integers(unbound, call.bounds, bits)
        if call.name == DECIMALS:
            return pa.array(numbers / 10**call.decimals)
        return pa.array(numbers) if call.name == BETWEEN else self._times(numbers)

    def _texts(self, name: str) -> pa.Array:
        return self.material.texts[name]


def _below(column: int, at: int) -> int:
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
        return pa.array(_integers(rule, _INTEGER_BOUNDS[kind], bits)).cast(target)
    if kind in (TypeName.FLOAT, TypeName.DOUBLE):
        return pa.array(_floats(rule, bits)).cast(target)
    if kind is TypeName.DECIMAL:
        return pa.array(_floats(rule, bits)).cast(target, safe=False)
    if kind is TypeName.BOOLEAN:
        return pa.array((bits & np.uint64(1)).astype(bool))
    raise SourceError(
        f'datagen cannot make field "{field.name}" of type {field.type}',
        hint="Use BOOLEAN, a number, STRING or TIMESTAMP, or a computed column.",
    )


def generate(
    fields: Sequence[Field],
    rules: Sequence[DatagenField],
    seed: int,
    rows: range,
    material: Material = Material(),
) -> pa.RecordBatch:
    """The rows `rows` of the stream; raises SourceError if a field's type is not supported."""
    made = _Generator({rule.name: rule for rule in rules}, seed, material)
    columns = [made.values(field, index, rows) for index, field in enumerate(fields)]
    schema = pa.schema([(field.name, arrow_type(field.type)) for field in fields])
    return pa.record_batch(columns, schema=schema)
