"""What a sample of a topic's records looks like: layout, encodings, keys, marks of snapshots.

It decides nothing: where a value without a schema may be several things, the proposal is what it is
in JSON, and says what else it may be.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from joins.kernels.debezium.connect import ConnectType
from joins.kernels.debezium.guesses import of_schema, of_values
from joins.kernels.debezium.options import ValueLayout
from joins.kernels.debezium.payloads import NO_SCHEMA, JsonPayloads, PayloadReader
from joins.kernels.debezium.raw import RawValues
from joins.plan.types import quoted

_OPERATIONS = frozenset("rcudtm")
_PREFIX = "__"

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """A column of the rows.

    Attributes:
        encodings: how its values are written, the most frequent first: the schema's type, or the
            kind of JSON.
        sql: the type that is proposed, None if there is none for it.
        note: what else it may be, or why there is no type; empty if nothing is to be said.
        in_key: whether the record's key has it.
    """

    name: str
    encodings: tuple[str, ...]
    sql: str | None
    note: str
    in_key: bool


@dataclass(frozen=True, slots=True)
class TopicReport:
    """What a sample shows.

    Attributes:
        records: how many were looked at.
        layout: None if the records are no changes that are known.
        with_schema: how many values have a schema in front.
        kinds: operations and how often they are there; `tombstone`, `flat`, `unreadable`.
        tables: (database, schema, table) and how often they are there.
        columns: of the rows, in the order of the newest row.
        key: the columns of the keys, in their order.
        marks: by partition the marks of snapshots, and how often they are there.
    """

    records: int
    layout: ValueLayout | None
    with_schema: int
    kinds: Mapping[str, int]
    tables: Mapping[tuple[str | None, str | None, str | None], int]
    columns: tuple[ColumnReport, ...]
    key: tuple[str, ...]
    marks: Mapping[int, Mapping[str, int]]

    def create_table(self, name: str, options: Mapping[str, str]) -> str:
        """A CREATE TABLE of the columns that have a type; notes are comments."""
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
    """What `records` look like, of which `key`, `value` (binary) and `partition` are read.

    Args:
        records: a sample, in the order of their offsets.
        payloads: take keys and values apart; None: they are JSON.
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
    return TopicReport(
        records.num_rows,
        layout,
        sample.with_schema,
        dict(sample.kinds),
        dict(sample.tables),
        tuple(_column(name, each, in_key=name in key) for name, each in sample.columns.items()),
        key,
        {partition: dict(marks) for partition, marks in sample.marks.items()},
    )


@dataclass(slots=True)
class _Values:
    """What a column has in the sample."""

    values: list[object] = field(default_factory=list)
    encodings: Counter[str] = field(default_factory=Counter)
    connect: ConnectType | None = None


@dataclass(slots=True)
class _Sample:
    with_schema: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    tables: Counter[tuple[str | None, str | None, str | None]] = field(default_factory=Counter)
    columns: dict[str, _Values] = field(default_factory=dict)
    marks: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, payload: object, connect: ConnectType | None, partition: int) -> None:
        """Look at the payload of one more record."""
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


_KINDS: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


def _taken_apart(
    column: pa.Array, reader: PayloadReader
) -> Iterator[tuple[int, object, ConnectType | None]]:
    """Position, payload and type of each; an odd payload is a text."""
    payloads = reader.unwrapped(RawValues.of(column))
    numbers = payloads.schemas.tolist()
    for at, text in enumerate(payloads.values.copied().to_pylist()):
        number = numbers[at]
        connect = None if number == NO_SCHEMA else reader.type_of(number)
        yield at, _parsed(text) if at not in payloads.reasons else "", connect


def _parsed(text: bytes | None) -> object:
    try:
        return None if text is None else json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return ""


def _column(name: str, seen: _Values, *, in_key: bool) -> ColumnReport:
    guess = of_values(seen.values) if seen.connect is None else of_schema(seen.connect)
    encodings = tuple(word for word, _ in seen.encodings.most_common())
    if seen.connect is None and set(encodings) == {"boolean", "integer"}:
        return ColumnReport(name, encodings, "BOOLEAN", "true and false, or 1 and 0", in_key)
    note = guess.note
    if len(encodings) > 1:
        note = f"written in several ways: {', '.join(encodings)}" + (f"; {note}" if note else "")
    return ColumnReport(name, encodings, guess.sql, note, in_key)
