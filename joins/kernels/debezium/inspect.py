"""A sample of a topic's records: layout, encodings, keys, snapshot marks, and proposed types."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa

from joins.kernels.debezium.options import (
    DECIMAL,
    DOUBLE_BITS,
    FLOAT_BITS,
    VARIABLE_SCALE_DECIMAL,
    ConnectType,
    ValueLayout,
)
from joins.kernels.debezium.raw import NO_SCHEMA, JsonPayloads, PayloadReader, RawValues
from joins.plan.types import quoted

_TIME, _CONNECT = "io.debezium.time", "org.apache.kafka.connect.data"
_PLAIN = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    FLOAT_BITS: "FLOAT",
    DOUBLE_BITS: "DOUBLE",
    "string": "STRING",
    "bytes": "BYTES",
}
_NAMED = {
    VARIABLE_SCALE_DECIMAL: "DECIMAL(38, 10)",
    f"{_TIME}.Date": "DATE",
    f"{_CONNECT}.Date": "DATE",
    f"{_TIME}.IsoDate": "DATE",
    f"{_TIME}.Time": "TIME(3)",
    f"{_CONNECT}.Time": "TIME(3)",
    f"{_TIME}.MicroTime": "TIME(6)",
    f"{_TIME}.NanoTime": "TIME(6)",
    f"{_TIME}.IsoTime": "TIME(6)",
    f"{_TIME}.ZonedTime": "TIME(6)",
    f"{_TIME}.Timestamp": "TIMESTAMP(3)",
    f"{_CONNECT}.Timestamp": "TIMESTAMP(3)",
    f"{_TIME}.MicroTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.NanoTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.IsoTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.ZonedTimestamp": "TIMESTAMP_LTZ(6)",
    "avro.timestamp-millis": "TIMESTAMP_LTZ(3)",
    "avro.timestamp-micros": "TIMESTAMP_LTZ(6)",
}
_STRUCTURED = {
    "Date": "DATE",
    "Time": "TIME(6)",
    "Timestamp": "TIMESTAMP(6)",
    "ZonedTimestamp": "TIMESTAMP_LTZ(6)",
}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_DAY = re.compile(r"\d{4}-\d\d-\d\dZ?")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_RECENT = tuple(datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1_990, 2_100))
_DAYS = range(7_000, 48_000)  # 1989 to 2101
_INT, _LONG = range(-(2**31), 2**31), range(-(2**63), 2**63)
_OPERATIONS = frozenset("rcudtm")
_PREFIX = "__"
Row = Mapping[str, object]
_KINDS: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class TypeGuess:
    """A proposed type, None if there is none; `note` has alternatives or the reason."""

    sql: str | None
    note: str = ""


def of_schema(connect: ConnectType) -> TypeGuess:
    sql = _sql(connect)
    if sql is None:
        return TypeGuess(None, f"{connect} cannot be declared")
    if connect.name == VARIABLE_SCALE_DECIMAL:
        return TypeGuess(sql, "each value has its own scale: declare as many digits as it needs")
    if connect.type == "int16":
        return TypeGuess(sql, "BOOLEAN if it is a TINYINT(1) of 0 and 1")
    if (connect.source_type or "").startswith("BIGINT UNSIGNED") and connect.type == "int64":
        return TypeGuess("DECIMAL(20, 0)", "BIGINT UNSIGNED")
    return TypeGuess(sql)


def _sql(connect: ConnectType) -> str | None:
    if connect.name == DECIMAL:
        scale = connect.scale or 0
        digits = 38 if scale < 0 else max(connect.precision or 38, scale)
        return f"DECIMAL({digits}, {max(scale, 0)})" if scale <= 38 else None
    if connect.name in _NAMED:
        return _NAMED[connect.name]
    if (connect.name or "").startswith(f"{_TIME}.Structured"):
        suffix = str(connect.name).removeprefix(f"{_TIME}.Structured")
        return next((sql for word, sql in _STRUCTURED.items() if suffix.startswith(word)), None)
    if connect.type == "array" and connect.items is not None:
        item = _sql(connect.items)
        return None if item is None else f"ARRAY<{item}>"
    if connect.type == "map" and connect.items is not None:
        item = _sql(connect.items)
        return None if item is None else f"MAP<STRING, {item}>"
    if connect.type == "struct":
        parts = {name: _sql(part) for name, part in connect.fields.items()}
        if not parts or None in parts.values():
            return None
        return f"ROW<{', '.join(f'{quoted(name)} {sql}' for name, sql in parts.items())}>"
    return _PLAIN.get(connect.type)


def of_values(values: Sequence[object]) -> TypeGuess:
    if not values:
        return TypeGuess("STRING", "it is NULL in the whole sample")
    if all(isinstance(value, bool) for value in values):
        return TypeGuess("BOOLEAN")
    if all(isinstance(value, int) for value in values):
        return _of_integers([int(value) for value in values if isinstance(value, int)])
    if all(isinstance(value, int | float) for value in values):
        return TypeGuess("DOUBLE", "or DECIMAL(p, s), if the connector writes numbers for it")
    if all(isinstance(value, str) for value in values):
        return _of_texts([str(value) for value in values])
    if all(isinstance(value, list) for value in values):
        items = [item for value in values if isinstance(value, list) for item in value]
        inner = of_values([item for item in items if item is not None])
        return TypeGuess(inner.sql and f"ARRAY<{inner.sql}>", inner.note)
    if all(isinstance(value, dict) for value in values):
        return _of_objects([value for value in values if isinstance(value, dict)])
    return TypeGuess(None, "its values are of several kinds")


def _of_integers(values: Sequence[int]) -> TypeGuess:
    if any(value < 0 for value in values) and any(value > 1 << 62 for value in values):
        return TypeGuess("BIGINT", "or DECIMAL(20, 0), if it is BIGINT UNSIGNED")
    if any(value not in _LONG for value in values):
        fits = all(abs(value) < 10**38 for value in values)
        return TypeGuess("DECIMAL(38, 0)" if fits else None, "numbers beyond BIGINT")
    sql = "INT" if all(value in _INT for value in values) else "BIGINT"
    if set(values) <= {0, 1}:
        return TypeGuess(sql, "or BOOLEAN")
    for divisor, kind in ((1_000, "TIMESTAMP(3)"), (1_000_000, "TIMESTAMP(6)")):
        if all(_RECENT[0] * divisor <= value < _RECENT[1] * divisor for value in values):
            shown = datetime.fromtimestamp(values[-1] / divisor, UTC).replace(tzinfo=None)
            return TypeGuess(sql, f"or {kind}: {shown.isoformat(' ')}")
    if all(value in _DAYS for value in values):
        shown = datetime.fromtimestamp(values[-1] * 86_400, UTC)
        return TypeGuess(sql, f"or DATE: {shown.date().isoformat()}")
    return TypeGuess(sql)


def _of_texts(values: Sequence[str]) -> TypeGuess:
    for pattern, sql in ((_INSTANT, "TIMESTAMP_LTZ(6)"), (_DAY, "DATE"), (_CLOCK, "TIME(6)")):
        if all(pattern.fullmatch(value) for value in values):
            return TypeGuess(sql)
    if all(_NUMBER.fullmatch(value) for value in values):
        return TypeGuess("STRING", "or DECIMAL(p, s), in decimal.handling.mode=string")
    if any(values) and all(_BASE64.fullmatch(value) for value in values):
        return TypeGuess("STRING", "or DECIMAL(p, s) or BYTES: all values are base64")
    return TypeGuess("STRING")


def _of_objects(values: Sequence[dict[str, object]]) -> TypeGuess:
    scales = [each for value in values if isinstance(each := value.get("scale"), int)]
    if len(scales) == len(values) and all(v.keys() == {"scale", "value"} for v in values):
        scale = min(max(*scales, 0), 38)
        return TypeGuess(f"DECIMAL(38, {scale})", "each value has its own scale")
    if all({"year", "month", "day"} <= value.keys() for value in values):
        if any("offsetSeconds" in value for value in values):
            return TypeGuess("TIMESTAMP_LTZ(6)")
        return TypeGuess("TIMESTAMP(6)" if any("hour" in value for value in values) else "DATE")
    names = list(dict.fromkeys(name for value in values for name in value))
    inner = {
        name: of_values([value[name] for value in values if value.get(name) is not None])
        for name in names
    }
    if not inner or any(part.sql is None for part in inner.values()):
        return TypeGuess(None, "an object that has no type")
    parts = ", ".join(f"{quoted(name)} {part.sql}" for name, part in inner.items())
    return TypeGuess(f"ROW<{parts}>", "or MAP<STRING, STRING>, if it is an hstore")


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """A column of the rows; `note` has alternatives, or why there is no type `sql`.

    `encodings` are types in the schema, or else kinds of JSON, by descending frequency.
    """

    name: str
    encodings: tuple[str, ...]
    sql: str | None
    note: str
    in_key: bool


@dataclass(frozen=True, slots=True)
class TopicReport:
    """Findings in a sample."""

    records: int
    layout: ValueLayout | None  # None if the records are no known changes
    with_schema: int
    kinds: Mapping[str, int]  # frequency by operation, `tombstone`, `flat` or `unreadable`
    # frequency by (database, schema, table)
    tables: Mapping[tuple[str | None, str | None, str | None], int]
    columns: tuple[ColumnReport, ...]  # in the order of the rows
    key: tuple[str, ...]
    marks: Mapping[int, Mapping[str, int]]  # by partition the frequency of each snapshot mark
    is_stream: bool = False  # rows without key and Debezium's members: records of a stream

    def create_table(self, name: str, options: Mapping[str, str]) -> str:
        """CREATE TABLE with the columns that have a type; notes are comments."""
        lines: list[tuple[str, str]] = []
        comments = []
        for column in self.columns:
            if column.sql is None:
                comments.append(f"  -- {quoted(column.name)}: {_one_line(column.note)}")
            else:
                required = " NOT NULL" if column.in_key else ""
                lines.append((f"  {quoted(column.name)} {column.sql}{required}", column.note))
        if self.key:
            names = ", ".join(quoted(each) for each in self.key)
            lines.append((f"  PRIMARY KEY ({names}) NOT ENFORCED", ""))
        body = [
            f"{text}{'' if at == len(lines) - 1 else ','}"
            + (f"  -- {_one_line(note)}" if note else "")
            for at, (text, note) in enumerate(lines)
        ]
        settings = ",\n".join(
            f"  {_literal(key)} = {_literal(value)}" for key, value in options.items()
        )
        return (
            f"CREATE TABLE {quoted(name)} (\n"
            + "\n".join([*comments, *body])
            + f"\n) WITH (\n{settings}\n);"
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def inspect_topic(
    records: pa.RecordBatch, payloads: tuple[PayloadReader, PayloadReader] | None = None
) -> TopicReport:
    """Reports on `key`, `value` (binary) and `partition` of a sample in offset order.

    `payloads` are the readers of keys and of values; None for JSON.
    """
    keys, values = payloads or (JsonPayloads(), JsonPayloads())
    sample = _Sample()
    partitions = records.column("partition").to_pylist()
    for at, payload, connect in _taken_apart(records.column("value"), values):
        sample.add(payload, connect, partitions[at])
    names = [
        tuple(key)
        for _, key, _ in _taken_apart(records.column("key"), keys)
        if isinstance(key, dict)
    ]
    key = names[-1] if names else ()
    is_envelope = bool(sample.kinds.keys() & _OPERATIONS)
    is_flat = sample.kinds["flat"] > 0
    layout = ValueLayout.ENVELOPE if is_envelope else ValueLayout.FLAT if is_flat else None
    is_stream = layout is ValueLayout.FLAT and not (
        key or sample.added or sample.kinds["tombstone"]
    )
    columns = [_column(name, each, in_key=name in key) for name, each in sample.columns.items()]
    if is_stream:  # later numbers may be larger
        columns = [replace(c, sql="BIGINT") if c.sql == "INT" else c for c in columns]
    return TopicReport(
        records.num_rows,
        layout,
        sample.with_schema,
        dict(sample.kinds),
        dict(sample.tables),
        tuple(columns),
        key,
        {partition: dict(marks) for partition, marks in sample.marks.items()},
        is_stream=is_stream,
    )


@dataclass(slots=True)
class _Values:
    values: list[object] = field(default_factory=list)
    encodings: Counter[str] = field(default_factory=Counter)
    connect: ConnectType | None = None


@dataclass(slots=True)
class _Sample:
    with_schema: int = 0
    added: int = 0  # rows with members that Debezium's transformation adds
    kinds: Counter[str] = field(default_factory=Counter)
    tables: Counter[tuple[str | None, str | None, str | None]] = field(default_factory=Counter)
    columns: dict[str, _Values] = field(default_factory=dict)
    marks: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, payload: object, connect: ConnectType | None, partition: int) -> None:
        self.with_schema += connect is not None
        if payload is None:
            self.kinds["tombstone"] += 1
        elif not isinstance(payload, dict):
            self.kinds["unreadable"] += 1
        elif payload.get("op") in _OPERATIONS and payload.keys() & {"before", "after", "source"}:
            self.kinds[payload["op"]] += 1
            source = payload.get("source")
            self._source(source if isinstance(source, dict) else {}, partition)
            member = "after" if isinstance(payload.get("after"), dict) else "before"
            row = payload.get(member)
            fields = None if connect is None else connect.fields.get(member)
            self._row(row if isinstance(row, dict) else {}, fields)
        else:
            self.kinds["flat"] += 1
            marks = {
                n.removeprefix(_PREFIX): v for n, v in payload.items() if n.startswith(_PREFIX)
            }
            self.added += bool(marks)
            source = marks | {n.removeprefix("source_"): v for n, v in marks.items()}
            self._source(source, partition, default=None)
            self._row({n: v for n, v in payload.items() if not n.startswith(_PREFIX)}, connect)

    def _source(self, source: Row, partition: int, default: str | None = "false") -> None:
        mark = source.get("snapshot")
        word = (
            default if mark is None else str(mark).lower() if isinstance(mark, bool) else str(mark)
        )
        if word is not None:
            self.marks[partition][word] += 1
        names = (source.get(name) for name in ("db", "schema", "table"))
        database, schema, table = (name if isinstance(name, str) else None for name in names)
        self.tables[database, schema, table] += 1

    def _row(self, row: Row, connect: ConnectType | None) -> None:
        for name, value in row.items():
            column = self.columns.setdefault(name, _Values())
            known = None if connect is None else connect.fields.get(name)
            column.connect = known or column.connect
            if value is not None:
                column.values.append(value)
                column.encodings[_KINDS[type(value)] if known is None else str(known)] += 1


def _taken_apart(
    column: pa.Array, reader: PayloadReader
) -> Iterator[tuple[int, object, ConnectType | None]]:
    """Position, payload and type of each; an unreadable payload is an empty text."""
    payloads = reader.unwrapped(RawValues.of(column))
    numbers = payloads.schemas.tolist()
    for at, text in enumerate(payloads.values.copied().to_pylist()):
        number = numbers[at]
        connect = None if number == NO_SCHEMA else reader.type_of(number)
        payload: object = "" if at in payloads.reasons else None
        if text is not None and at not in payloads.reasons:
            try:
                payload = json.loads(text.decode("utf-8"))
            except (ValueError, RecursionError):
                payload = ""
        yield at, payload, connect


def _column(name: str, seen: _Values, *, in_key: bool) -> ColumnReport:
    guess = of_values(seen.values) if seen.connect is None else of_schema(seen.connect)
    encodings = tuple(word for word, _ in seen.encodings.most_common())
    if seen.connect is None and set(encodings) == {"boolean", "integer"}:
        return ColumnReport(name, encodings, "BOOLEAN", "true and false, or 1 and 0", in_key)
    note = guess.note
    if len(encodings) > 1:
        note = f"written in several ways: {', '.join(encodings)}" + (f"; {note}" if note else "")
    return ColumnReport(name, encodings, guess.sql, note, in_key)
