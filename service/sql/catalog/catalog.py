"""Tables of a script, from CREATE TABLE: typed columns, key and connector."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from joins.plan.formats import OF_CHANGES, RECORD_TIMESTAMP, SOURCE_TIMESTAMP
from joins.plan.plan import (
    COORDINATES,
    DATABASE_NAME,
    OP_TS,
    TABLE_NAME,
    Field,
    MetadataField,
    MysqlCdcSource,
    SharedSource,
    TableStream,
    TopicSource,
    VerifySchedule,
)
from joins.plan.types import SqlType, TypeName, map_type
from service.sql.catalog.connectors import read_options
from service.sql.catalog.format_columns import alike_names
from service.sql.catalog.jdbc_connector import without_login
from service.sql.catalog.kafka_options import with_login
from service.sql.catalog.mysql_connector import require_type, table_metadata
from service.sql.catalog.option import TableRole, with_later_options
from service.sql.catalog.option_values import (
    Connector,
    Endpoints,
    Home,
    InlineSecret,
    InlineSecrets,
    without,
)
from service.sql.catalog.watermarks import (
    LATE_ROWS_CORRECT,
    LATE_ROWS_WAIT,
    MAX_STALENESS,
    TableWatermark,
    declared_watermark,
    verify_schedule,
)
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.grammar.expression_nodes import (
    CastNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Name,
)
from service.sql.grammar.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateTable,
    MetadataColumn,
    PhysicalColumn,
)
from service.sql.grammar.type_parser import STRING, type_text
from service.sql.text.script import Edit, Script, suggestion

_TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_CHANGELOG_COLUMNS = frozenset(
    ["_op", "_epoch", "_file", "_pos", "_row", "_source_ts", "_partition", "_offset", "_generation"]
)
_INSTANTS = tuple(
    SqlType(name, digits)
    for digits in (3, 6, 0, 1, 2, 4, 5)
    for name in (TypeName.TIMESTAMP_LTZ, TypeName.TIMESTAMP)
)
BYTES = SqlType(TypeName.BYTES)
METADATA: dict[str, tuple[SqlType, ...]] = {
    "topic": (STRING,),
    "partition": (SqlType(TypeName.INT), SqlType(TypeName.BIGINT)),
    "offset": (SqlType(TypeName.BIGINT),),
    RECORD_TIMESTAMP: _INSTANTS,
    "key": (BYTES,),
    "headers": (map_type(BYTES),),
    "leader-epoch": (SqlType(TypeName.INT), SqlType(TypeName.BIGINT)),
    "timestamp-type": (STRING,),
    SOURCE_TIMESTAMP: _INSTANTS,
}
ROW_KIND = "row_kind"
_OF_DATABASES = (
    *(DATABASE_NAME, "schema_name", TABLE_NAME, OP_TS, ROW_KIND),
    *(f"value.source.{name}" for name in ("database", "schema", "table")),
)
"""Keys of metadata that connectors of CDC and formats of Debezium have in Flink."""
_MAY_BE_NULL = (RECORD_TIMESTAMP, "key", "leader-epoch", SOURCE_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table; columns are in the order of the DDL, `fields` are the physical ones.

    Attributes:
        without_effect: role → options that are set and have no effect there.
        node: the statement, with LIKE and hints applied.
        notes: warnings about its options.
        shared: where a shared table of the catalog is stored; None otherwise.
        max_staleness_ms: how old the table may be as a dimension; None without a limit.
        late_wait_ms: how long a record waits for a row of the table; None if it does not.
        late_correct_ms: how long a row of the table corrects a record that went out without it.
        verify: how often the control plane compares its copy with its source.
    """

    name: str
    node: CreateTable
    at: int
    columns: tuple[ColumnNode, ...]
    fields: tuple[Field, ...]
    metadata_fields: tuple[MetadataField, ...]
    primary_key: tuple[str, ...]
    connector: Connector
    endpoints: Endpoints
    inline_secrets: tuple[InlineSecret, ...]
    without_effect: Mapping[TableRole, tuple[str, ...]]
    watermark: TableWatermark | None = None
    shared: SharedSource | None = None
    notes: tuple[str, ...] = ()
    max_staleness_ms: int | None = None
    verify: VerifySchedule | None = None
    late_wait_ms: int | None = None
    late_correct_ms: int | None = None


def build_table(script: Script, node: CreateTable, secrets: InlineSecrets) -> Table:
    """Check a CREATE TABLE and build its table; its credentials are added to `secrets`."""
    _check_names(script, node)
    node, of_form = with_later_options(node)
    node = without_login(script, node)
    node, of_login = with_login(node)
    connector, values = read_options(script, node)
    read = table_metadata(script, node, connector, values)
    key = tuple(name.text for name in read.node.primary_key)
    fields = _fields(read.node, key)
    _check_key(script, read.node, fields, key)
    _check_partitions(script, node, connector, fields)
    inline = secrets.take(node.name.text, values)
    if connector.needs_primary_key and not key:
        raise script.error(
            node.name.at,
            f'table "{node.name.text}" of {connector.name} has no primary key',
            hint="Add PRIMARY KEY (…) NOT ENFORCED: it is the key of the records.",
        )
    endpoints = _with_metadata(connector.endpoints(values, fields, key), read.fields)
    columns = tuple(_constant_or_same(script, column, endpoints) for column in read.node.columns)
    metadata = tuple(
        _metadata(script, column, connector, endpoints)
        for column in columns
        if isinstance(column, MetadataColumn)
    )
    roles = {key: values.option(key).roles for key in values.nodes}
    table = Table(
        node.name.text,
        node,
        node.name.at,
        columns,
        fields,
        metadata,
        key,
        connector,
        endpoints,
        inline,
        {role: tuple(key for key in roles if role not in roles[key]) for role in TableRole},
        max_staleness_ms=values.milliseconds_if_set(MAX_STALENESS),
        verify=verify_schedule(values),
        late_wait_ms=values.milliseconds_if_set(LATE_ROWS_WAIT),
        late_correct_ms=values.milliseconds_if_set(LATE_ROWS_CORRECT),
    )
    if connector.home is Home.DATABASE and key:
        check_dimension(script, table)
    relation = relation_of(script, table, table.name, "")
    watermark = declared_watermark(node, relation, connector, values)
    notes = (*of_form, *of_login, *read.notes, *values.notes, *_clause_notes(node, connector))
    return replace(table, watermark=watermark, notes=notes)


def _with_metadata(endpoints: Endpoints, fields: tuple[MetadataField, ...]) -> Endpoints:
    source, stream = endpoints.dimension, endpoints.stream
    if not fields or not isinstance(source, MysqlCdcSource):
        return endpoints
    assert isinstance(stream, TableStream), "such a table has both roles"
    source = replace(source, metadata=fields)
    return replace(endpoints, dimension=source, stream=replace(stream, table=source))


def _clause_notes(node: CreateTable, connector: Connector) -> Iterator[str]:
    for clause in node.clauses:
        yield f'Table "{node.name.text}" {clause}.'
    if node.partitioned and connector.home is not Home.DELTA:
        yield (
            f'PARTITIONED BY of table "{node.name.text}" has no effect: only delta tables are '
            "partitioned by columns."
        )


def _fields(node: CreateTable, key: tuple[str, ...]) -> tuple[Field, ...]:
    return tuple(
        Field(column.name.text, column.type.type, column.nullable and column.name.text not in key)
        for column in node.columns
        if isinstance(column, PhysicalColumn)
    )


def _check_names(script: Script, node: CreateTable) -> None:
    if not _TABLE_NAME.fullmatch(node.name.text):
        raise script.error(
            node.name.at,
            f'table name "{node.name.text}" is not usable for topics and directories',
            hint="Use 1 to 100 letters, digits, _ and -.",
        )
    seen: set[str] = set()
    for column in node.columns:
        if column.name.text in seen:
            raise script.error(
                column.name.at,
                f'column "{column.name.text}" is declared twice',
                hint="Rename one of the two.",
            )
        seen.add(column.name.text)
    if not any(isinstance(column, PhysicalColumn) for column in node.columns):
        raise script.error(
            node.name.at,
            f'table "{node.name.text}" has no physical column',
            hint="Declare at least one column with a type.",
        )


def _check_key(
    script: Script, node: CreateTable, fields: tuple[Field, ...], key: tuple[str, ...]
) -> None:
    physical = [field.name for field in fields]
    names = [name.text for name in node.primary_key]
    for name in node.primary_key:
        if name.text not in physical or names.count(name.text) > 1:
            raise script.error(
                name.at,
                f'primary key column "{name.text}" is not a physical column or is listed twice',
                hint=suggestion(
                    name.text, physical, "Physical columns are " + ", ".join(physical) + "."
                ),
            )
    for field in fields:
        if field.name in key and field.type.is_nested:
            raise script.error(
                node.name.at,
                f'column "{field.name}" of the primary key is {type_text(field.type)[:200]}',
                hint="Use scalar columns: copy the value that identifies the row into a separate "
                "column.",
            )


def _check_partitions(
    script: Script, node: CreateTable, connector: Connector, fields: tuple[Field, ...]
) -> None:
    names = [name.text for name in node.partitioned]
    if names and connector.home is Home.FILES:
        raise script.error(
            node.partitioned[0].at,
            f'table "{node.name.text}" is {connector.name}, which has no PARTITIONED BY',
            hint="Remove PARTITIONED BY, and the columns that only the names of directories have; "
            "or read a delta table.",
        )
    if connector.home is not Home.DELTA:
        return
    scalar = [field.name for field in fields if not field.type.is_nested]
    for name in node.partitioned:
        if name.text not in scalar or names.count(name.text) > 1:
            raise script.error(
                name.at,
                f'PARTITIONED BY names "{name.text}", which is not a scalar physical column or '
                "is listed twice",
                hint=suggestion(name.text, scalar, "Columns are " + ", ".join(scalar) + "."),
            )
    if len(names) == len(fields):
        raise script.error(
            node.partitioned[0].at,
            "PARTITIONED BY lists all columns of the table",
            hint="Leave at least one column out.",
        )


def _constant_or_same(script: Script, column: ColumnNode, endpoints: Endpoints) -> ColumnNode:
    """The names of the one table that mysql-cdc reads, as in Flink CDC, are constants."""
    source = endpoints.dimension
    if not isinstance(column, MetadataColumn) or not isinstance(source, MysqlCdcSource):
        return column
    names = {DATABASE_NAME: source.database, TABLE_NAME: source.table}
    if column.key not in names:
        return column
    node, at = column.type, column.name.at
    require_type(script, column, (STRING,))
    text = Literal(LiteralKind.STRING, names[column.key], at)
    return ComputedColumn(column.name, CastNode(text, node, safe=False, at=at, depth=2), at, at)


def _metadata(
    script: Script, column: MetadataColumn, connector: Connector, endpoints: Endpoints
) -> MetadataField:
    if connector.home is not Home.RECORDS:
        raise script.error(
            column.name.at,
            f'metadata column "{column.name.text}" needs a Kafka record, and the table has none',
            hint="Remove the column; mysql-cdc has 'database_name', 'table_name' and 'op_ts'.",
            edit=without(script, column.name.at, column.end, sure=False),
        )
    types = METADATA.get(column.key)
    assert isinstance(endpoints.dimension, TopicSource), "every topic can be a dimension"
    form = endpoints.dimension.value.name
    if types is None and column.key in _OF_DATABASES and form in OF_CHANGES:
        edit, hint = _as_of_a_topic(script, column)
        raise script.error(
            column.key_at, f'unknown metadata key "{column.key}"', hint=hint, edit=edit
        )
    if types is None:
        raise script.error(
            column.key_at,
            f'unknown metadata key "{column.key}"',
            hint=suggestion(column.key, METADATA, "Keys are " + ", ".join(METADATA) + "."),
        )
    if column.key == SOURCE_TIMESTAMP and form not in OF_CHANGES:
        raise script.error(
            column.name.at,
            f'metadata "{column.key}" exists only in Debezium formats, and the format is {form}',
            hint="Write METADATA FROM 'timestamp': the time of the record.",
        )
    require_type(script, column, types)
    return MetadataField(column.name.text, column.key, column.type.type)


def _as_of_a_topic(script: Script, column: MetadataColumn) -> tuple[Edit, str]:
    """A metadata column of a CDC connector as a topic of Debezium has it, and what to write."""
    start, end = column.name.at, column.end
    if column.key == ROW_KIND:
        edit = without(script, start, end, sure=False)
        return edit, "Remove the column: rows do not have the kind of their change."
    text = script.text[start:end]
    if column.key == OP_TS:
        key = f"METADATA FROM '{SOURCE_TIMESTAMP}'"
        text = re.sub(r"\bMETADATA\b(?:\s+FROM\s+'[^']*')?", key, text, count=1, flags=re.I)
        return Edit(start, end, text, sure=False), f"Write {key}."
    name = re.match(r"`(?:[^`]|``)*`|\w+", text)
    assert name is not None, "a column begins with its name"
    text = f"{name[0]} AS CAST('{column.key}' AS STRING)"
    hint = f"A topic has the rows of one table: write {name[0]} AS 'its name'."
    return Edit(start, end, text, sure=False), hint


def check_dimension(script: Script, table: Table, *, needs_key: bool = True) -> None:
    taken = _CHANGELOG_COLUMNS | {field.name for field in COORDINATES}
    if needs_key and not table.primary_key:
        raise script.error(
            table.at,
            f'table "{table.name}" has no primary key',
            hint="Add PRIMARY KEY (…) NOT ENFORCED: changes of a row are matched by its key.",
        )
    for column in table.columns:
        if isinstance(column, PhysicalColumn):
            _check_database_type(script, table, column)
        if column.name.text.lower() in taken:
            raise script.error(
                column.name.at,
                f'column name "{column.name.text}" is reserved for the changelog',
                hint=f"Leave the column out or rename it in the {table.connector.home}.",
            )
    misfit = alike_names([*table.fields, *table.metadata_fields])
    if misfit is not None:  # the changelog is a Delta table
        at = next(c.name.at for c in table.columns if c.name.text == misfit.column)
        raise script.error(at, misfit.message, hint=misfit.hint)


def _check_database_type(script: Script, table: Table, column: PhysicalColumn) -> None:
    if table.connector.home is Home.DATABASE and column.type.type.is_nested:
        raise script.error(
            column.type.at,
            f'column "{column.name.text}" of {table.connector.name} table "{table.name}" is '
            f"{column.type.type.name}, which a database column cannot be",
            hint="Declare a JSON column as STRING; ROW, ARRAY and MAP are read from delta tables "
            "and from the stream.",
        )


def physical_columns(table: Table) -> tuple[ScopeColumn, ...]:
    fields = tuple(ScopeColumn(f.name, f.type, f.nullable) for f in table.fields)
    metadata = tuple(
        ScopeColumn(m.name, m.type, nullable=m.key in _MAY_BE_NULL) for m in table.metadata_fields
    )
    return fields + metadata


def computed_columns(script: Script, table: Table, alias: str) -> dict[str, Typed]:
    """The table's computed columns by name, over its physical and metadata columns."""
    relation = ScopeRelation(alias, table.name, physical_columns(table), alias)
    planner = ExpressionPlanner(NameScope(script, (relation,)))
    computed: dict[str, Typed] = {}
    for column in table.columns:
        if isinstance(column, ComputedColumn):
            typed = planner.plan(column.expression)
            if typed.is_bare_null:
                raise _untyped(script, column.name)
            computed[column.name.text] = typed
    return computed


def relation_of(script: Script, table: Table, alias: str, source: str) -> ScopeRelation:
    """The table as a relation of a query; `source` is its alias in the plan."""
    by_name = {column.name: column for column in physical_columns(table)}
    now = {column.name.text for column in table.columns if _is_processing_time(column)}
    for name, typed in computed_columns(script, table, source).items():
        time = TimeAttribute.PROCESSING if name in now else None
        by_name[name] = ScopeColumn(name, typed.type, typed.nullable, time)
    if table.watermark is not None:
        rowtime = table.watermark.node.column.text
        by_name[rowtime] = replace(by_name[rowtime], time=TimeAttribute.EVENT)
    ordered = tuple(by_name[column.name.text] for column in table.columns)
    return ScopeRelation(alias, table.name, ordered, source)


def _is_processing_time(column: ColumnNode) -> bool:
    return (
        isinstance(column, ComputedColumn)
        and isinstance(column.expression, FunctionCall)
        and column.expression.name == "PROCTIME"
    )


def _untyped(script: Script, name: Name) -> Exception:
    return script.error(
        name.at, f'computed column "{name.text}" has no type', hint="Write CAST(NULL AS STRING)."
    )
