"""Values of a column by its declared type and the type in the record's schema.

Without a schema the options define the meaning of texts and numbers.
"""

import base64
import hashlib
import json
import uuid
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium import readers, times, tokens
from joins.kernels.debezium.options import (
    BITS,
    DECIMAL,
    DOUBLE_BITS,
    FLOAT_BITS,
    UNION_TYPE,
    VARIABLE_SCALE_DECIMAL,
    BigintUnsignedHandling,
    BinaryHandling,
    ConnectType,
    DebeziumOptions,
    DecimalHandling,
    TimePrecision,
)
from joins.kernels.debezium.raw import (
    RawValues,
    members_of,
    normal,
    parts_of_arrays,
    parts_of_objects,
)
from joins.kernels.debezium.readers import Reader, Readers, read_by_kind
from joins.kernels.debezium.times import TimeUnit, without_specials
from joins.kernels.expressions.casts import Checked, mask_of, null_where
from joins.kernels.expressions.nested import Parts, assembled, equal_keys, missing_parts
from joins.kernels.json.plain import ABSENT
from joins.plan.types import SqlType, TypeName, arrow_type, map_type

Mask = npt.NDArray[np.bool_]

_INTEGERS = frozenset({"int8", "int16", "int32", "int64"})
_BIT_TYPES = frozenset({FLOAT_BITS, DOUBLE_BITS})
_FLOATS = frozenset({"float", "double"})
_CONNECT, _TIME = "org.apache.kafka.connect.data", "io.debezium.time"
_COUNTS = frozenset({f"{_TIME}.Year", f"{_TIME}.MicroDuration", f"{_TIME}.NanoDuration"})
_UNSIGNED = "BIGINT UNSIGNED"
_UNSIGNED_DECIMAL = 20, 0
UNKNOWN = ConnectType("unknown", "unknown")  # a part that a schema does not have
_HSTORE = map_type(SqlType(TypeName.STRING))
_INSTANTS = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ})
_DATES = frozenset({f"{_TIME}.Date", f"{_CONNECT}.Date"})
_AVRO_UNITS = {
    "avro.timestamp-millis": TimeUnit.MILLIS,
    "avro.timestamp-micros": TimeUnit.MICROS,
    "avro.timestamp-nanos": TimeUnit.NANOS,
}
_UNITS: dict[TypeName, dict[str, TimeUnit]] = {
    TypeName.TIME: {
        f"{_TIME}.Time": TimeUnit.MILLIS,
        f"{_CONNECT}.Time": TimeUnit.MILLIS,
        f"{_TIME}.MicroTime": TimeUnit.MICROS,
        f"{_TIME}.NanoTime": TimeUnit.NANOS,
    },
    TypeName.TIMESTAMP: {
        f"{_TIME}.Timestamp": TimeUnit.MILLIS,
        f"{_CONNECT}.Timestamp": TimeUnit.MILLIS,
        f"{_TIME}.MicroTimestamp": TimeUnit.MICROS,
        f"{_TIME}.NanoTimestamp": TimeUnit.NANOS,
        **_AVRO_UNITS,
    },
    TypeName.TIMESTAMP_LTZ: _AVRO_UNITS,
}
_COUNTED_TIMES = frozenset().union(_DATES, *_UNITS.values())
"""Times that are numbers: a column declared as an integer has the number."""
_TEXTS = {
    TypeName.DATE: frozenset({f"{_TIME}.IsoDate"}),
    TypeName.TIME: frozenset({f"{_TIME}.IsoTime", f"{_TIME}.ZonedTime"}),
    TypeName.TIMESTAMP: frozenset({f"{_TIME}.IsoTimestamp", f"{_TIME}.ZonedTimestamp"}),
    TypeName.TIMESTAMP_LTZ: frozenset({f"{_TIME}.ZonedTimestamp"}),
}
_STRUCTURES = {
    TypeName.DATE: (f"{_TIME}.StructuredDate",),
    TypeName.TIME: tuple(f"{_TIME}.Structured{each}" for each in ("Time", "ZonedTime", "Duration")),
    TypeName.TIMESTAMP: (f"{_TIME}.StructuredTimestamp", f"{_TIME}.StructuredZonedTimestamp"),
    TypeName.TIMESTAMP_LTZ: (f"{_TIME}.StructuredZonedTimestamp",),
}
_MODES = {
    TimePrecision.CONNECT: TimeUnit.MILLIS,
    TimePrecision.MICROSECONDS: TimeUnit.MICROS,
    TimePrecision.NANOSECONDS: TimeUnit.NANOS,
}
_MILLIS_DIGITS = 3  # of a precision that is still counted in milliseconds
_NO_READER: Readers = {}
MAY_BE_UNSENT = frozenset({TypeName.STRING, TypeName.BYTES, TypeName.ARRAY, TypeName.MAP})
"""Types of columns that may be large, whose unchanged values a database may leave out."""


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Reads values of columns as `options` say."""

    options: DebeziumOptions

    def read(self, values: RawValues, kind: SqlType, connect: ConnectType | None) -> Checked:
        """Values of one column as `kind`; `connect` is the type in their schema, if any."""
        if connect is not None and connect.type == UNION_TYPE:
            return self._branches(values, kind, connect)
        if kind.is_nested:
            return self._nested(values, kind, connect)
        read = read_by_kind(values, self._readers(kind, connect), arrow_type(kind))
        return without_specials(values, kind, read, self.options.special_values)

    def refused(self, shown: str, kind: SqlType, connect: ConnectType | None) -> str:
        digits = f"({kind.precision})" if kind.name in (TypeName.TIME, *_INSTANTS) else ""
        source = "" if connect is None else f" as {connect}"
        said = f"{shown}{source} is no {kind}{digits}"
        if (
            _may_be_unsigned(kind)
            and self.options.bigint_unsigned is BigintUnsignedHandling.UNKNOWN
        ):
            return f"{said}, or a BIGINT UNSIGNED, whose form is not configured"
        is_cut = connect is not None and str(connect).startswith(_CONNECT)
        is_cut |= connect is None and self.options.time_precision is TimePrecision.CONNECT
        if digits and is_cut and kind.precision > _MILLIS_DIGITS:
            return f"{said}: time.precision.mode=connect has cut it to milliseconds"
        return said

    def unavailable(self, values: RawValues, kind: SqlType) -> Mask:
        """Mask of placeholders for values that the database did not send."""
        text = self.options.unavailable_value
        quoted = json.dumps(text, ensure_ascii=False)
        plain = text.encode()
        stands = [quoted]
        encoded = [base64.b64encode(plain), base64.urlsafe_b64encode(plain)]
        of_bytes = [f'"{text}"' for text in (*(each.decode() for each in encoded), plain.hex())]
        if kind.name is TypeName.BYTES:
            stands += of_bytes
        if kind.name is TypeName.ROW:  # such as a geometry, whose `wkb` stands for the whole
            whole = values.copied()
            masks = [mask_of(pc.match_substring(whole, each)) for each in (quoted, *of_bytes)]
            return np.asarray(np.logical_or.reduce(masks), np.bool_)
        if kind.name is TypeName.ARRAY:
            stands = _unsent_arrays(text, kind.members[0].type)
        if kind.name is TypeName.MAP:
            inner = f"{{{quoted}:{quoted}}}"
            stands += [inner, json.dumps(inner, ensure_ascii=False)]
        masks = [values.are(each.encode()) for each in stands]
        return np.asarray(np.logical_or.reduce(masks), np.bool_)

    def _readers(self, kind: SqlType, connect: ConnectType | None) -> Readers:
        if kind.name is TypeName.BOOLEAN:
            if connect is None or str(connect) in _INTEGERS | {"boolean"}:
                of_integer = readers.integers_as_booleans
                return {tokens.BOOLEAN: readers.booleans, tokens.INTEGER: of_integer}
            return _NO_READER
        if kind.name in (TypeName.FLOAT, TypeName.DOUBLE):
            return _floats(kind, connect)
        if kind.name is TypeName.DECIMAL:
            return self._decimals(kind, connect)
        if kind.name is TypeName.STRING:
            is_text = connect is None or connect.type == "string"
            return {tokens.STRING: readers.texts} if is_text else _NO_READER
        if kind.name is TypeName.BYTES:
            return self._binaries(connect)
        if kind.name in (TypeName.DATE, TypeName.TIME, *_INSTANTS):
            return self._times(kind, connect)
        return _integers(kind, connect)

    def _decimals(self, kind: SqlType, connect: ConnectType | None) -> Readers:
        number = readers.decimals_as_numbers(kind)
        variable: Readers = {tokens.OBJECT: readers.variable_decimals(kind)}
        if connect is None:
            return {**self._bare_decimals(kind), **variable}
        if connect.name == DECIMAL:
            scaled = readers.unscaled_decimals(kind, connect.scale or 0)
            return {tokens.STRING: scaled, tokens.INTEGER: number, tokens.FRACTION: number}
        if connect.name == VARIABLE_SCALE_DECIMAL:
            return variable
        if connect.name is not None:
            return _NO_READER
        return self._plain_decimals(kind, connect)

    def _plain_decimals(self, kind: SqlType, connect: ConnectType) -> Readers:
        if connect.type in _INTEGERS:
            if connect.type != "int64" or not _may_be_unsigned(kind):
                return {tokens.INTEGER: readers.decimals_as_numbers(kind)}
            is_known = (connect.source_type or "").startswith(_UNSIGNED)
            return {tokens.INTEGER: readers.unsigned_longs if is_known else self._longs(kind)}
        if connect.type in _BIT_TYPES:
            return {tokens.INTEGER: readers.decimals_of_bits(kind, connect.type)}
        if connect.type in _FLOATS:
            rounded = readers.rounded_decimals(kind)
            return {tokens.INTEGER: rounded, tokens.FRACTION: rounded}
        text = readers.decimals_as_text(kind)
        return {tokens.STRING: text} if connect.type == "string" else _NO_READER

    def _bare_decimals(self, kind: SqlType) -> Readers:
        handling, unsigned = self.options.decimal_handling, self.options.bigint_unsigned
        number = readers.decimals_as_numbers(kind)
        fraction = readers.rounded_decimals(kind) if handling is DecimalHandling.DOUBLE else number
        by_kind = {tokens.INTEGER: fraction, tokens.FRACTION: fraction}
        if _may_be_unsigned(kind):
            by_kind[tokens.INTEGER] = self._longs(kind)
        if handling is DecimalHandling.PRECISE:
            by_kind[tokens.STRING] = readers.unscaled_decimals(kind, kind.scale)
        elif not _may_be_unsigned(kind) or unsigned is BigintUnsignedHandling.LONG:
            by_kind[tokens.STRING] = readers.decimals_as_text(kind)
        elif handling is DecimalHandling.DOUBLE and unsigned is BigintUnsignedHandling.PRECISE:
            by_kind[tokens.STRING] = readers.unscaled_decimals(kind, 0)
        return by_kind

    def _longs(self, kind: SqlType) -> Reader:
        if self.options.bigint_unsigned is BigintUnsignedHandling.LONG:
            return readers.unsigned_longs
        is_certain = self.options.bigint_unsigned is BigintUnsignedHandling.PRECISE
        number = readers.decimals_as_numbers(kind)
        return number if is_certain else readers.not_negative(number)

    def _binaries(self, connect: ConnectType | None) -> Readers:
        handling = self.options.binary_handling
        if connect is not None and connect.type == "bytes":
            is_plain = connect.name in (None, BITS)
            return {tokens.STRING: readers.binaries(is_url=False)} if is_plain else _NO_READER
        if connect is not None and (str(connect) != "string" or handling is BinaryHandling.BYTES):
            return _NO_READER
        if handling is BinaryHandling.HEX:
            return {tokens.STRING: readers.hexadecimals}
        is_url = handling is BinaryHandling.BASE64_URL_SAFE
        return {tokens.STRING: readers.binaries(is_url=is_url)}

    def _times(self, kind: SqlType, connect: ConnectType | None) -> Readers:
        written, structured = times.written(kind), times.structured(kind)
        if connect is None:
            unit = self._unit(kind)
            numbers = {} if unit is None else {tokens.INTEGER: times.counted(kind, unit)}
            return {tokens.STRING: written, tokens.OBJECT: structured, **numbers}
        name = connect.name or ""
        if kind.name is TypeName.DATE and name in _DATES:
            return {tokens.INTEGER: times.counted(kind, TimeUnit.MILLIS)}
        if name.startswith(_CONNECT) and kind.precision > _MILLIS_DIGITS:
            return _NO_READER  # it has cut all further digits
        if name in _UNITS.get(kind.name, {}):
            return {tokens.INTEGER: times.counted(kind, _UNITS[kind.name][name])}
        if name in _TEXTS[kind.name]:
            return {tokens.STRING: written}
        if any(name.startswith(each) for each in _STRUCTURES[kind.name]):
            return {tokens.OBJECT: structured}
        return _NO_READER

    def _unit(self, kind: SqlType) -> TimeUnit | None:
        """Unit of numbers without a schema; None if the mode does not write numbers."""
        mode = self.options.time_precision
        has_zone = kind.name is TypeName.TIMESTAMP_LTZ  # always a text: a number has no zone
        if has_zone or mode in (TimePrecision.ISOSTRING, TimePrecision.STRUCTURED):
            return None
        if mode in _MODES:
            has_lost = mode is TimePrecision.CONNECT and kind.precision > _MILLIS_DIGITS
            return None if has_lost else _MODES[mode]
        is_micro = mode is TimePrecision.ADAPTIVE_TIME_MICROSECONDS and kind.name is TypeName.TIME
        is_coarse = kind.precision <= _MILLIS_DIGITS and not is_micro
        return TimeUnit.MILLIS if is_coarse else TimeUnit.MICROS

    def _branches(self, values: RawValues, kind: SqlType, union: ConnectType) -> Checked:
        members = members_of(values, list(union.fields))
        by_type = {name: np.flatnonzero(members[name].lasts >= 0) for name in union.fields}
        there = np.concatenate([np.zeros(0, np.int64), *by_type.values()])
        none = np.setdiff1d(np.arange(len(values)), there)
        order = [none, *by_type.values()]
        parts = [
            self.read(members[name].take(rows), kind, union.fields[name])
            for name, rows in by_type.items()
        ]
        parts.insert(0, Checked(pa.nulls(len(none), arrow_type(kind)), values.lasts[none] >= 0))
        back = np.argsort(np.concatenate(order))
        columns = pa.concat_arrays([part.values for part in parts]).take(pa.array(back))
        return Checked(columns, np.concatenate([part.failed for part in parts])[back])

    def _nested(self, values: RawValues, kind: SqlType, connect: ConnectType | None) -> Checked:
        to = arrow_type(kind)
        if kind.name is TypeName.ROW:
            by_kind = {tokens.OBJECT: lambda part: self._rows(part, kind, connect)}
        elif kind.name is TypeName.ARRAY:
            by_kind = {tokens.ARRAY: lambda part: self._arrays(part, kind, connect)}
        else:
            by_kind = {tokens.OBJECT: lambda part: self._maps(part, kind, connect)}
            if kind == _HSTORE:
                by_kind[tokens.STRING] = lambda part: self._written_maps(part, kind)
        checked = read_by_kind(values, by_kind, to)
        failed = checked.failed.copy()
        for _, rows in missing_parts(checked.values, kind, ""):
            failed |= rows
        return Checked(null_where(checked.values, failed), failed)

    def _rows(self, values: RawValues, kind: SqlType, connect: ConnectType | None) -> Checked:
        members = members_of(values, [member.name for member in kind.members])
        failed, valid = np.zeros(len(values), np.bool_), values.lasts >= 0
        failed[list(members.reasons)] = True
        children = []
        for member in kind.members:
            part = members[member.name]
            known = None if connect is None else connect.fields.get(member.name, UNKNOWN)
            child = self.read(part, member.type, known)
            failed |= child.failed
            if not self.options.null_if_missing:
                failed |= valid & (part.lasts == ABSENT)
            children.append(child.values)
        missing = pa.array(failed | ~valid)
        to = arrow_type(kind)
        return Checked(pa.StructArray.from_arrays(children, fields=list(to), mask=missing), failed)

    def _arrays(self, values: RawValues, kind: SqlType, connect: ConnectType | None) -> Checked:
        elements, counts = parts_of_arrays(values)
        item = None if connect is None else connect.items or UNKNOWN
        child = self.read(elements, kind.members[0].type, item)
        parts = Parts([child.values], counts)
        failed = parts.of_rows(child.failed, len(values))
        return Checked(assembled(parts, arrow_type(kind), failed | (values.lasts < 0)), failed)

    def _maps(self, values: RawValues, kind: SqlType, connect: ConnectType | None) -> Checked:
        names, members, counts = parts_of_objects(values)
        item = None if connect is None else connect.items or UNKNOWN
        child = self.read(members, kind.members[1].type, item)
        parts = Parts([names.texts(), child.values], counts)
        failed = parts.of_rows(child.failed, len(values)) | equal_keys(parts)
        return Checked(assembled(parts, arrow_type(kind), failed | (values.lasts < 0)), failed)

    def _written_maps(self, values: RawValues, kind: SqlType) -> Checked:
        """Maps as texts with JSON: `hstore` of PostgreSQL."""
        failed = np.zeros(len(values), np.bool_)
        objects: list[bytes | None] = values.texts().cast(pa.binary()).to_pylist()
        for row, text in enumerate(objects):
            try:
                objects[row] = None if text is None else normal(text)
            except ValueError:
                objects[row] = None
            is_object = (objects[row] or b"").startswith(b"{")
            failed[row] = text is not None and not is_object
            objects[row] = objects[row] if is_object else None
        whole = RawValues.of_texts(objects)
        read = read_by_kind(
            whole, {tokens.OBJECT: lambda part: self._maps(part, kind, None)}, arrow_type(kind)
        )
        return Checked(read.values, read.failed | failed)


def _unsent_arrays(text: str, element: SqlType) -> list[str]:
    """Placeholders of an array: one element, or one for each byte.

    Source: Debezium's PostgreSQL connector, `UnchangedToastedPlaceholder`.
    """
    plain = text.encode()
    quoted = json.dumps(text, ensure_ascii=False)
    single, by_byte = [quoted], []
    signed = [byte - 256 if byte > 127 else byte for byte in plain]  # a byte of Java
    if element.name in (TypeName.STRING, TypeName.DECIMAL):  # decimal.handling.mode=string
        by_byte.append([f'"{number}"' for number in signed])
    if element.name is TypeName.STRING:
        single.append(f'"{uuid.UUID(bytes=hashlib.md5(plain).digest(), version=3)}"')
    elif element.name is TypeName.BYTES:
        encoded = (base64.b64encode(plain), base64.urlsafe_b64encode(plain))
        single += [f'"{each.decode()}"' for each in encoded]
        single.append(f'"{plain.hex()}"')
    elif element.name is TypeName.BOOLEAN:
        by_byte.append(["true"] * len(plain))
    else:
        by_byte += [list(map(str, signed)), [f"{number}.0" for number in signed]]
    if element.name is TypeName.DECIMAL:
        unscaled = [base64.b64encode(bytes([byte])).decode() for byte in plain]
        by_byte.append([f'"{each}"' for each in unscaled])
        by_byte.append([f'{{"scale":0,"value":"{each}"}}' for each in unscaled])
    arrays = [*([each] for each in single), *by_byte]
    return [quoted, *(f"[{comma.join(each)}]" for each in arrays for comma in (",", ", "))]


def _may_be_unsigned(kind: SqlType) -> bool:
    return (kind.precision, kind.scale) == _UNSIGNED_DECIMAL


def _integers(kind: SqlType, connect: ConnectType | None) -> Readers:
    to = arrow_type(kind)
    plain: Readers = {
        tokens.INTEGER: readers.integers(to),
        tokens.FRACTION: readers.whole_numbers(to),
        tokens.BOOLEAN: readers.booleans_as_integers(to),
    }
    if connect is None or str(connect) in _INTEGERS | {"boolean"}:
        is_unsigned = connect is not None and (connect.source_type or "").startswith(_UNSIGNED)
        return {tokens.INTEGER: readers.integers(to, least=0)} if is_unsigned else plain
    if connect.name in _COUNTS or (connect.type in _INTEGERS and connect.name in _COUNTED_TIMES):
        return {tokens.INTEGER: readers.integers(to)}
    if connect.name == DECIMAL:
        scale = connect.scale or 0
        whole = readers.decimals_as_integers(lambda of: readers.unscaled_decimals(of, scale), kind)
        return {tokens.STRING: whole, tokens.INTEGER: readers.integers(to)}
    if connect.name == VARIABLE_SCALE_DECIMAL:
        return {tokens.OBJECT: readers.decimals_as_integers(readers.variable_decimals, kind)}
    return _NO_READER


def _floats(kind: SqlType, connect: ConnectType | None) -> Readers:
    if connect is not None and str(connect) in _BIT_TYPES:
        return {tokens.INTEGER: readers.floats_of_bits(kind, connect.type)}
    if connect is not None and str(connect) not in _INTEGERS | _FLOATS:
        return _NO_READER
    number: Reader = readers.floats if kind.name is TypeName.FLOAT else readers.doubles
    named = readers.named_floats(arrow_type(kind))
    return {tokens.INTEGER: number, tokens.FRACTION: number, tokens.STRING: named}
