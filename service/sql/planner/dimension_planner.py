"""Dimensions of a plan, and the rules of joins by event time."""

from dataclasses import replace
from typing import TYPE_CHECKING

from joins.plan.connections import StoreTable, is_in_store
from joins.plan.formats import OF_CHANGES, RECORD_TIMESTAMP, SOURCE_TIMESTAMP
from joins.plan.plan import (
    COORDINATES,
    BoundedMode,
    ComputedField,
    Database,
    DeltaSink,
    Dimension,
    DimensionJoin,
    DimensionSource,
    Field,
    KafkaSource,
    OffsetReset,
    PolledSource,
    StartupMode,
    TopicSource,
    files_of,
)
from joins.plan.types import Column, TypeName
from service.sql.catalog.catalog import (
    Table,
    check_dimension,
    computed_columns,
    relation_of,
)
from service.sql.catalog.connectors import swapped
from service.sql.catalog.format_columns import alike_names
from service.sql.catalog.kafka_tables import RESET
from service.sql.catalog.option import TableRole
from service.sql.catalog.option_values import Home, removed
from service.sql.catalog.topic_history import HISTORY, stream_history_fault
from service.sql.catalog.watermarks import OF_COLUMNS, reads_clock
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, ScopeRelation, Typed
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import TemporalJoinClause
from service.sql.grammar.type_parser import type_text
from service.sql.text.script import OUTSIDE, Script, SqlError

if TYPE_CHECKING:
    from service.sql.planner.session import ScriptSession

_UTC = "UTC"
_TIMES = (RECORD_TIMESTAMP, SOURCE_TIMESTAMP)


def plan_dimension(
    context: "ScriptSession", table: Table, name: Name, *, is_versioned: bool
) -> Dimension:
    """The dimension of a table; `is_versioned` if the join is by event time.

    A table with WATERMARK then keeps versions. `name` is its position in the join.
    """
    source = _source(context, table, name, is_versioned=is_versioned)
    fields = (*table.fields, *(Field(each.name, each.type) for each in table.metadata_fields))
    dimension = Dimension(
        table.name,
        source,
        fields,
        table.primary_key,
        max_staleness_ms=table.max_staleness_ms,
        verify=table.verify,
        late_wait_ms=table.late_wait_ms,
        late_correct_ms=table.late_correct_ms,
    )
    if not table.primary_key:
        key = tuple(field.name for field in COORDINATES)
        dimension = replace(dimension, fields=(*fields, *COORDINATES), primary_key=key)
    if not is_versioned or table.watermark is None:
        return dimension
    dimension = _with_computed_time(context.script, table, dimension)
    _check_versions(context.script, table, dimension)
    relation = dimension_relation(context.script, table, table.name, "")
    watermark = table.watermark.spec(context.script, relation, context.settings)
    if isinstance(source, TopicSource) and reads_clock(watermark.expression):
        raise context.script.error(
            table.watermark.node.column.at,
            f'the watermark of table "{table.name}" reads the clock, which is not '
            "allowed for a dimension",
            hint=OF_COLUMNS,
        )
    return replace(dimension, watermark=watermark)


def _source(
    context: "ScriptSession", table: Table, name: Name, *, is_versioned: bool
) -> DimensionSource:
    script = context.script
    if table.shared is not None:
        return table.shared  # checked when it was declared
    source, home = table.endpoints.dimension, table.connector.home
    if source is None:
        raise script.error(
            name.at,
            f'table "{table.name}" is {table.connector.name}, which cannot be a dimension',
            hint="Join a mysql-cdc, a jdbc, a delta, a filesystem, a kafka or an upsert-kafka "
            "table.",
        )
    check_dimension(script, table, needs_key=home in (Home.DATABASE, Home.DELTA))
    if isinstance(source, TopicSource):
        _check_topic(script, table, source)
        source = replace(source, metadata=table.metadata_fields)
    context.warnings += (
        text
        for text in check_no_effect(script, table, TableRole.DIMENSION)
        if text not in context.warnings
    )
    if home is Home.DELTA:
        _check_types_of_delta(script, table)
    elif isinstance(source, PolledSource) and is_versioned and table.watermark is not None:
        raise script.error(
            name.at,
            f'table "{table.name}" has WATERMARK FOR, but is read again and again, and lacks the '
            "versions between two reads",
            hint="Remove WATERMARK FOR, or join with FOR SYSTEM_TIME AS OF a processing time; or "
            + (
                "let Debezium write the table into a topic."
                if source.database_kind is Database.POSTGRESQL
                else "read the table by 'mysql-cdc'."
            ),
        )
    elif files_of(source) is not None and is_versioned and table.watermark is not None:
        raise script.error(
            name.at,
            f'table "{table.name}" has WATERMARK FOR, but files keep no versions of a row',
            hint="Remove WATERMARK FOR, or join with FOR SYSTEM_TIME AS OF a processing time.",
        )
    for column in table.metadata_fields:
        if files_of(source) is not None:
            raise script.error(
                name.at,
                f'table "{table.name}" has metadata column "{column.name}", which its history does '
                "not have",
                hint="Remove the column, or declare one that files and records have.",
            )
        if column.key not in _TIMES:
            raise script.error(
                name.at,
                f'table "{table.name}" has metadata column "{column.name}", which a dimension '
                "cannot have",
                hint="Remove the column, or use METADATA FROM 'timestamp'.",
            )
    return source


def _with_computed_time(script: Script, table: Table, dimension: Dimension) -> Dimension:
    """A topic's rows are stored with the time of their version, also if it is computed."""
    assert table.watermark is not None, "a versioned table has its time"
    column, source = table.watermark.node.column, dimension.source
    typed = computed_columns(script, table, "").get(column.text)
    if typed is None or not isinstance(source, TopicSource) or source.history is not None:
        return dimension
    if reads_clock(typed.expression):
        raise script.error(
            column.at,
            f'the time column "{column.text}" of table "{table.name}" reads the clock',
            hint="Compute it from the columns of the table, or write METADATA FROM 'timestamp'.",
        )
    fields = (*dimension.fields, Field(column.text, typed.type))
    misfit = alike_names(fields)
    if misfit is not None:  # the changelog is a Delta table
        raise script.error(column.at, misfit.message, hint=misfit.hint)
    computed = ComputedField(column.text, typed.expression)
    return replace(dimension, source=replace(source, computed=(computed,)), fields=fields)


def _check_versions(script: Script, table: Table, dimension: Dimension) -> None:
    assert table.watermark is not None, "a versioned table has its time"
    column = table.watermark.node.column
    if not table.primary_key:
        raise script.error(
            column.at,
            f'table "{table.name}" has WATERMARK FOR and no primary key, which identifies '
            "the versions of a row",
            hint="Add PRIMARY KEY (…) NOT ENFORCED: a version belongs to a key.",
        )
    if column.text not in {field.name for field in dimension.fields}:
        raise script.error(
            column.at,
            f'the time column "{column.text}" of table "{table.name}" is computed, and stored '
            "rows do not have it",
            hint="Name a TIMESTAMP(3) or TIMESTAMP_LTZ(3) column of the table in WATERMARK FOR.",
        )


def check_versioned(
    script: Script, node: TemporalJoinClause, table: Table, join: DimensionJoin
) -> None:
    """For a versioned table, require ON to compare its primary key, and times of one type."""
    if table.watermark is None:
        return
    _check_times(script, node, table, join)
    compared = {key.dimension_column for key in join.keys if key.computed is None}
    for column in table.primary_key:
        if column not in compared:
            at = node.relation.table.at if node.condition is None else node.condition.at
            raise script.error(
                at,
                f'a join by event time needs column "{column}" of the primary key of table '
                f'"{table.name}"',
                hint=f"Add an equality with {node.relation.alias.text}.{column}: the version is "
                "that of one row.",
            )


def _check_times(
    script: Script, node: TemporalJoinClause, table: Table, join: DimensionJoin
) -> None:
    """Refuse a timestamp with an instant, except in UTC, where a timestamp identifies an instant.

    Source: Flink, "Event-Time Temporal Table Join requires same rowtime type", in any zone.
    """
    assert table.watermark is not None, "it has versions"
    assert join.time is not None, "it is a join by event time"
    assert node.time is not None, "that of PROCTIME() is none"
    rowtime = table.watermark.node.column.text
    types = {field.name: field.type for field in table.fields}
    types |= {field.name: field.type for field in table.metadata_fields}
    types |= {name: typed.type for name, typed in computed_columns(script, table, "").items()}
    own = types.get(rowtime)
    if own is not None and own.name is not join.time.type.name and script.zone != _UTC:
        raise script.error(
            node.time.at,
            f'"{join.time.name}" is {type_text(join.time.type)}, and the time "{rowtime}" of '
            f'table "{table.name}" is {type_text(own)}, in the zone {script.zone}',
            hint="Declare both as TIMESTAMP_LTZ(3), or both as TIMESTAMP(3).",
        )


def dimension_relation(script: Script, table: Table, alias: str, source: str) -> ScopeRelation:
    """The table as a relation; its computed columns are expressions over its physical ones."""
    relation = relation_of(script, table, alias, source)
    computed = computed_columns(script, table, source)
    return replace(
        relation,
        columns=tuple(replace(c, value=computed.get(c.name)) for c in relation.columns),
    )


def with_compared_key(table: Table, join: DimensionJoin) -> Table:
    """`table`; without a primary key, the columns that the join compares become its key.

    This is for database tables only; at submission the key is compared with that of the database.
    """
    if table.primary_key or table.connector.home is not Home.DATABASE:
        return table
    compared = {key.dimension_column for key in join.keys if key.computed is None}
    key = tuple(field.name for field in table.fields if field.name in compared)
    fields = tuple(
        replace(field, nullable=field.nullable and field.name not in compared)
        for field in table.fields
    )
    return replace(table, primary_key=key, fields=fields)


def outer_columns(script: Script, table: Table, relation: ScopeRelation) -> tuple[ScopeColumn, ...]:
    """Columns of a dimension, nullable: without a matching row they are NULL."""
    fields = (*table.fields, *COORDINATES)  # its key, or the coordinates that replace it
    key = next(f for f in fields if f.name in table.primary_key or f in COORDINATES)
    planner = ExpressionPlanner(NameScope(script, ()))
    columns = []
    for column in relation.columns:
        value = column.value
        if value is not None and not isinstance(value.expression, Column):
            row = Column(relation.source, key.name, key.type)
            value = planner.if_present(Typed(row, nullable=True, at=value.at), value)
        columns.append(replace(column, nullable=True, value=value))
    return tuple(columns)


def check_not_written(script: Script, table: Table, written: Table, at: int) -> None:
    sink, source = written.endpoints.sink, table.endpoints.dimension
    if not isinstance(sink, DeltaSink) or source is None:
        return
    read = files_of(source)
    if read is not None and same_path(sink.path, read.path):
        raise script.error(
            at,
            f'table "{table.name}" is both joined and written by the same job',
            hint="Write to another path; another job may then join that table.",
        )


def check_no_effect(script: Script, table: Table, role: TableRole) -> tuple[str, ...]:
    """Warnings for options without effect in this role; those that change what is read are refused.

    Flink names a start and a delivery guarantee in one table; a stream and a sink each use one.
    """
    source = table.endpoints.dimension
    options = table.without_effect[role]
    nodes = {node.key: node for node in table.node.options}
    if role is not TableRole.SINK:
        _check_history(script, table, role)
    if role is TableRole.DIMENSION:
        if isinstance(source, TopicSource) and source.history is not None:
            options = tuple(key for key in options if not key.startswith("scan.startup."))
        for option in options:
            node = nodes[option]
            starts_late = option.startswith("scan.startup.") and node.value != StartupMode.EARLIEST
            if starts_late or (option == RESET and node.value == OffsetReset.LATEST):
                raise script.error(
                    node.at,
                    f'option "{option}" of table "{table.name}" is "{node.value[:100]}", which '
                    "leaves out rows of a dimension",
                    hint="Remove the option: a dimension is read from its beginning.",
                    edit=removed(script, node, sure=False),
                )
    return tuple(
        f'Option "{option}" of table "{table.name}" has no effect on {role}.' for option in options
    )


def _check_history(script: Script, table: Table, role: TableRole) -> None:
    """Refuse a history that the table cannot have in this role."""
    stream, dimension = table.endpoints.stream, table.endpoints.dimension
    node = next((node for node in table.node.options if node.key.startswith(HISTORY)), None)
    if node is None:
        return
    fault: tuple[str, str] | None = None
    if role is TableRole.DIMENSION:
        if isinstance(dimension, TopicSource) and dimension.history is None:
            fault = (
                "has a history and no primary key",
                "Add PRIMARY KEY (…) NOT ENFORCED: a record replaces the row of its key.",
            )
    elif isinstance(stream, KafkaSource) and stream.changes_by:
        fault = (
            "has a history, and its records are changes of rows, which files do not have",
            "Remove the history options: the topic is read from where the stream starts.",
        )
    elif isinstance(stream, KafkaSource) and stream.history is not None:
        has_metadata = bool(table.metadata_fields)
        fault = stream_history_fault(stream.history, stream, has_metadata=has_metadata)
    if fault is not None:
        text, hint = fault
        edit = removed(script, node, sure=False)
        raise script.error(node.at, f'table "{table.name}" {text}', hint=hint, edit=edit)


def _no_effect(script: Script, table: Table, option: str, role: TableRole) -> SqlError:
    return script.error(
        table.at,
        f'option "{option}" of table "{table.name}" has no effect on {role}',
        hint="Remove the option.",
    )


def check_one_topic(script: Script, table: Table, what: str) -> None:
    if table.endpoints.several_topics is not None:
        raise script.error(
            table.at,
            f'table "{table.name}" has several topics by "{table.endpoints.several_topics}", '
            f"{what} has one",
            hint="Name one topic with 'topic', and declare a table for each of the others.",
        )


def check_probe(script: Script, table: Table, at: int) -> None:
    if table.shared is not None:
        raise script.error(
            at,
            f'"{table.name}" is a shared table, which cannot be the stream',
            hint=f"{OUTSIDE} "
            "The first table is the stream: kafka, upsert-kafka or datagen; join the shared table.",
        )
    if table.endpoints.stream is None and table.connector.home in (Home.FILES, Home.DELTA):
        raise script.error(
            at,
            f'table "{table.name}" is {table.connector.name}, which cannot be the stream',
            hint="The first table is the stream: let Kafka Connect bring its rows to 'kafka'.",
            edit=swapped(script, table.node),
        )
    if table.endpoints.stream is None:
        raise script.error(
            at,
            f'table "{table.name}" is {table.connector.name}, which cannot be the stream',
            hint="Let Debezium bring the changes of the table into a topic, and declare that as "
            "'kafka' with 'format' = 'debezium-json' and a PRIMARY KEY."
            if table.connector.home is Home.DATABASE
            else f"{OUTSIDE} The first table is the stream: kafka, upsert-kafka or datagen.",
            edit=swapped(script, table.node) if table.connector.home is Home.DATABASE else None,
        )


def same_path(one: str, other: str) -> bool:
    if is_in_store(one) and is_in_store(other):
        return StoreTable.of(one) == StoreTable.of(other)
    first, second = (path.removeprefix("file://").rstrip("/") for path in (one, other))
    return first == second


def _check_topic(script: Script, table: Table, source: TopicSource) -> None:
    check_one_topic(script, table, "a dimension")
    if not table.primary_key and source.value.name in OF_CHANGES:
        raise script.error(
            table.at,
            f'table "{table.name}" has no primary key, and its records are changes of rows',
            hint="Add PRIMARY KEY (…) NOT ENFORCED: changes of a row are matched by its key.",
        )
    if source.bounded_mode is BoundedMode.GROUP:
        raise _no_effect(script, table, "scan.bounded.mode", TableRole.DIMENSION)


def _check_types_of_delta(script: Script, table: Table) -> None:
    for column in table.fields:
        if column.type.name is TypeName.TIME:
            raise script.error(
                table.at,
                f'column "{column.name}" of delta table "{table.name}" is TIME, which Delta '
                "does not have",
                hint="Declare it as the table has it; a TIME that this service wrote is BIGINT "
                "there, microseconds since midnight.",
            )
