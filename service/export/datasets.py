"""Inputs and outputs of a job in OpenLineage's names, and the origins of output columns.

Source: OpenLineage, "Dataset naming" and "Column level lineage".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from joins.plan.plan import (
    ROW_NUMBER,
    WINDOW,
    DatasetName,
    Field,
    JoinPlan,
    KafkaSource,
    MetadataField,
    TableStream,
    files_of,
)
from joins.plan.types import Call, Column, Expression, columns_of


@dataclass(frozen=True, slots=True)
class Origin:
    """An input column that an output column depends on.

    `kind` is IDENTITY, TRANSFORMATION or AGGREGATION.
    """

    dataset: DatasetName
    column: str
    kind: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """An input or output with its columns, (name, SQL type) each."""

    dataset: DatasetName
    columns: tuple[tuple[str, str], ...]


def stream_names(plan: JoinPlan) -> list[DatasetName]:
    source = plan.probe.source
    if isinstance(source, TableStream):
        return [source.table.dataset]
    if not isinstance(source, KafkaSource):
        return []
    return [replace(source.kafka, topic=name).dataset for name in plan.probe.topic_names]


def inputs(plan: JoinPlan) -> list[Dataset]:
    """Stream and tables, each once, with the columns that any INSERT declares."""
    topics: dict[DatasetName, dict[str, Field | MetadataField]] = {}
    for insert in plan.inserts:
        known: dict[str, Field | MetadataField] = {f.name: f for f in insert.probe.fields}
        known |= {f.name: f for f in insert.probe.metadata_fields}
        for name in stream_names(insert):
            topics.setdefault(name, {}).update(known)
    tables = [_table(name, columns.values()) for name, columns in topics.items()]
    tables += [_table(d.source.dataset, d.declared_fields) for d in plan.dimensions]
    stream = plan.probe.source
    if isinstance(stream, KafkaSource) and stream.history is not None:
        tables.append(_table(stream.history.files.dataset, plan.probe.fields))
    histories = ((d, files_of(d.source)) for d in plan.dimensions)
    tables += [
        _table(files.dataset, d.declared_fields)
        for d, files in histories
        if files is not None and files is not d.source
    ]
    return [table for table in tables if table is not None]


def _table(name: DatasetName | None, fields: Iterable[Field | MetadataField]) -> Dataset | None:
    return None if name is None else Dataset(name, tuple((f.name, str(f.type)) for f in fields))


def output(plan: JoinPlan) -> Dataset | None:
    """The sink of a plan of one INSERT; None if its rows are not stored."""
    name = plan.sink.dataset
    if name is None:
        return None
    columns = ((column.name, str(column.expression.type)) for column in plan.output)
    return Dataset(name, tuple(columns))


def outputs(plan: JoinPlan) -> list[tuple[Dataset, dict[str, list[Origin]]]]:
    """The sinks of all INSERTs with the origins of their columns, each dataset once."""
    by_name: dict[DatasetName, tuple[Dataset, dict[str, list[Origin]]]] = {}
    for insert in plan.inserts:
        table = output(insert)
        if table is not None:
            _, made_of = by_name.setdefault(table.dataset, (table, {}))
            for column, more in origins(insert).items():
                known = made_of.setdefault(column, [])
                known += [origin for origin in more if origin not in known]
    return list(by_name.values())


def origins(plan: JoinPlan) -> dict[str, list[Origin]]:
    """Output column → input columns that it depends on, each once."""
    names = _relations(plan)
    by_column: dict[str, list[Origin]] = {}
    for column in plan.output:
        made_of = dict.fromkeys(_made_of(plan, column.expression, "IDENTITY"))
        by_column[column.name] = [
            Origin(name, c.name, kind) for c, kind in made_of for name in names.get(c.relation, ())
        ]
    return by_column


def _relations(plan: JoinPlan) -> dict[str, list[DatasetName]]:
    """Alias in the statement → datasets; a stream may have several topics."""
    sources = {dimension.name: dimension.source.dataset for dimension in plan.dimensions}
    by_alias = {join.alias: sources[join.dimension] for join in plan.joins}
    known = {alias: [name] for alias, name in by_alias.items() if name is not None}
    return {**known, plan.probe.alias: stream_names(plan)}


def _made_of(plan: JoinPlan, expression: Expression, kind: str) -> Iterator[tuple[Column, str]]:
    """The table columns below an expression, through windows and computed columns."""
    direct = isinstance(expression, Column)
    kind = kind if direct or kind != "IDENTITY" else "TRANSFORMATION"
    for column in columns_of(expression):
        below = list(_below(plan, column))
        if not below:
            yield column, kind
        for inner, through in below:
            yield from _made_of(plan, inner, kind if through == "IDENTITY" else through)


def _below(plan: JoinPlan, column: Column) -> Iterable[tuple[Expression, str]]:
    if column.relation == plan.probe.alias:
        computed = plan.probe.computed_fields
        return [(f.expression, "TRANSFORMATION") for f in computed if f.name == column.name]
    unnests = [each.value for each in plan.unnests if each.alias == column.relation]
    if unnests:
        return [(value, "TRANSFORMATION") for value in unnests]
    if column.relation != WINDOW or plan.window is None:
        return []
    window = plan.window
    if window.rank is not None and column.name == ROW_NUMBER:
        return [(key.expression, "TRANSFORMATION") for key in window.rank.order]
    rows = None if window.rows is None else window.rows.argument
    if isinstance(rows, Call):
        names = [member.name for member in rows.type.members]
        if column.name in names:
            return [(rows.arguments[names.index(column.name)], "IDENTITY")]
    keys = [(key.expression, "IDENTITY") for key in window.keys if key.name == column.name]
    aggregates = [a for a in window.aggregates if a.name == column.name]
    arguments = [e for a in aggregates for e in (a.argument, a.where) if e is not None]
    borders = [] if keys or aggregates or window.time is None else [window.time]
    return [
        *keys,
        *((e, "AGGREGATION") for e in arguments),
        *((e, "TRANSFORMATION") for e in borders),
    ]
