"""Sinks with an update mode or with retractions, and the types that a sink keeps."""

from collections.abc import Sequence
from dataclasses import replace

from joins.plan.formats import OF_CHANGES
from joins.plan.plan import (
    DeltaSink,
    KafkaSink,
    OutputColumn,
    Sink,
    SinkWriter,
    Windowing,
    WindowKind,
)
from joins.plan.types import columns_of
from service.sql.catalog.catalog import Table
from service.sql.catalog.settings import ALLOW_LATENESS
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, Typed
from service.sql.grammar.expression_nodes import Name, TypeNode
from service.sql.grammar.syntax import PhysicalColumn
from service.sql.grammar.type_parser import STRING, type_text, unfit
from service.sql.planner.window_planner import WINDOW_COLUMNS, window_column
from service.sql.text.script import Script


def refuse_unkept(script: Script, value: Typed, what: str) -> None:
    if unfit(value.type) is not None:
        raise script.error(
            value.at,
            f"{what} takes no {type_text(value.type)[:200]}",
            hint="Write CAST(… AS STRING), or EXTRACT a number from it.",
        )


def shown(script: Script, values: Sequence[Typed]) -> list[Typed]:
    planner = ExpressionPlanner(NameScope(script, ()))
    return [value if unfit(value.type) is None else planner.cast(value, STRING) for value in values]


def created_columns(
    script: Script, columns: Sequence[ScopeColumn], at: int
) -> tuple[PhysicalColumn, ...]:
    for column in columns:
        reason = unfit(column.type)
        if reason is not None:
            raise script.error(
                at,
                f'column "{column.name}" of the query: {reason[0]}',
                hint="Write CAST(… AS STRING) in the query, or another type of columns.",
            )
    return tuple(
        PhysicalColumn(Name(column.name, at), TypeNode(column.type, at), column.nullable)
        for column in columns
    )


def partitioned_sink(script: Script, table: Table, sink: DeltaSink) -> DeltaSink:
    if table.node.partitioned and sink.writer is SinkWriter.COLUMNAR:
        raise script.error(
            table.node.partitioned[0].at,
            f'table "{table.name}" is PARTITIONED BY columns, which the columnar writer does not '
            "support",
            hint="Remove 'sink.writer', or PARTITIONED BY.",
        )
    return replace(sink, partition_by=tuple(name.text for name in table.node.partitioned))


def taking_updates(
    script: Script, table: Table, sink: Sink, output: Sequence[OutputColumn], window: Windowing
) -> Sink:
    """The sink of a window that is emitted again when late records arrive.

    A Delta table is merged by its primary key; `upsert-kafka` writes it as the record's key. The
    key must identify a result: all keys of GROUP BY and a bound of the window.
    """
    if isinstance(sink, DeltaSink) or (isinstance(sink, KafkaSink) and sink.upsert):
        if not table.primary_key:
            raise script.error(
                table.at,
                f'table "{table.name}" has no primary key, but {ALLOW_LATENESS} gives updates',
                hint="Add PRIMARY KEY (window_start, …) NOT ENFORCED with the keys of GROUP BY.",
            )
        _check_key(script, table, output, window)
        return merged_by_key(script, table, sink) if isinstance(sink, DeltaSink) else sink
    if isinstance(sink, KafkaSink) and sink.value.name not in OF_CHANGES:
        raise script.error(
            table.at,
            f'table "{table.name}" is kafka with format {sink.value.name}, but {ALLOW_LATENESS} '
            "gives updates",
            hint="Write 'connector' = 'upsert-kafka' and a PRIMARY KEY, or 'format' = "
            "'debezium-json'.",
        )
    return sink


def merged_by_key(script: Script, table: Table, sink: DeltaSink) -> DeltaSink:
    if table.node.partitioned:
        raise script.error(
            table.node.partitioned[0].at,
            f'table "{table.name}" is PARTITIONED BY columns, but its rows are replaced by key',
            hint="Remove PARTITIONED BY.",
        )
    return replace(sink, merge_key=table.primary_key)


def _check_key(
    script: Script, table: Table, output: Sequence[OutputColumn], window: Windowing
) -> None:
    by_name = {column.name: column.expression for column in output}
    named = [window_column(by_name[name]) for name in table.primary_key]
    missing = [key.name for key in window.keys if key.name not in named]
    # Windows of CUMULATE that begin together differ by their ends.
    grows = window.kind is WindowKind.CUMULATE
    bounds = [name for name in WINDOW_COLUMNS if not (grows and name == "window_start")]
    if not any(name in named for name in bounds):
        missing.append(bounds[0])
    if missing:
        first = missing[0]
        what = next((f"key {n} of GROUP BY" for n, k in _numbered(window) if k == first), first)
        raise script.error(
            table.at,
            f'the primary key of table "{table.name}" does not identify the updated rows: it lacks '
            f"{what}",
            hint=f"Use all keys of GROUP BY and a bound of the window: PRIMARY KEY ({bounds[0]}, "
            "…) NOT ENFORCED.",
        )
    aggregates = {item.name for item in window.aggregates}
    for name in table.primary_key:
        if any(column.name in aggregates for column in columns_of(by_name[name])):
            raise script.error(
                table.at,
                f'column "{name}" of the primary key of table "{table.name}" is an aggregate, '
                "which changes",
                hint="Leave it out of the PRIMARY KEY.",
            )


def _numbered(window: Windowing) -> list[tuple[int, str]]:
    return [(number, key.name) for number, key in enumerate(window.keys, 1)]


def check_written(script: Script, table: Table, at: int) -> None:
    if table.shared is not None:
        raise script.error(
            at,
            f'"{table.name}" is a shared table, which cannot be written',
            hint="Write to a table of delta, kafka, print or blackhole.",
        )
