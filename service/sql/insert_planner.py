"""The one INSERT of a script over its declared tables: probe, joins, filter, output, sink."""

from dataclasses import replace

from joins.expressions import Constant
from joins.kernels.generate import row_limit
from joins.plan import (
    BlackholeSink,
    BoundedMode,
    ComputedField,
    DatagenSource,
    DeltaSink,
    Dimension,
    DimensionJoin,
    JoinPlan,
    JoinType,
    KafkaSource,
    MysqlCdcSource,
    OutputColumn,
    PrintSink,
    ProbeSource,
    Sink,
)
from service.sql.catalog import (
    Table,
    computed_columns,
    relation_of,
)
from service.sql.connectors import KafkaTable
from service.sql.errors import SqlError, suggestion
from service.sql.expression_planner import ExpressionPlanner
from service.sql.join_planner import JoinPlanner
from service.sql.query_parser import MAX_COLUMNS
from service.sql.scope import MAX_PLAN_NODES, Scope, ScopeRelation, Typed
from service.sql.script import Script
from service.sql.settings import BATCH, RUNTIME_MODE
from service.sql.syntax import (
    Insert,
    MetadataColumn,
    Name,
    Select,
    Star,
)

ROW_METADATA = ("_topic", "_partition", "_offset", "_batch", "_dimension_versions")
MAX_DIMENSIONS = 32


class InsertPlanner:
    """Plans the INSERT over the declared tables."""

    def __init__(self, script: Script, tables: dict[str, Table], insert: Insert) -> None:
        self._script = script
        self._tables = tables
        self._insert = insert
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the author of the script should know, in full sentences."""
        return tuple(self._warnings)

    def plan(self, name: str, sql: str, settings: tuple[tuple[str, str], ...]) -> JoinPlan:
        """The plan of the INSERT.

        Raises:
            SqlError: a name is unknown, a type does not fit or a form is not supported.
        """
        select = self._insert.select
        probe_table = self._table(select.probe.table)
        batch = dict(settings).get(RUNTIME_MODE) == BATCH
        probe = self._probe(probe_table, select.probe.alias, batch=batch)
        scope, dimensions, joins = self._joins(probe_table, select)
        planner = ExpressionPlanner(scope)
        where = None
        if select.where is not None:
            where = planner.condition(select.where, "the WHERE condition").expression
        sink_table = self._table(self._insert.table)
        sink = self._sink(sink_table)
        output = self._output(sink_table, planner, self._selected(planner, scope, select))
        self._check_size(output)
        return JoinPlan(
            name=name,
            sql=sql,
            probe=probe,
            dimensions=dimensions,
            joins=joins,
            where=where,
            output=tuple(column for column, _ in output),
            sink_table=sink_table.name,
            sink=sink,
            settings=settings,
        )

    def _table(self, name: Name) -> Table:
        table = self._tables.get(name.text)
        if table is not None:
            return table
        known = "Declared tables are " + ", ".join(self._tables) + "."
        if not self._tables:
            known = "Declare it by CREATE TABLE."
        raise self._script.error(
            name.at,
            f'unknown table "{name.text}"',
            hint=suggestion(name.text, self._tables, known),
        )

    def _probe(self, table: Table, alias: Name, *, batch: bool) -> ProbeSource:
        source: KafkaSource | DatagenSource
        if isinstance(table.connector, KafkaTable):
            source = self._kafka(table, table.connector, batch=batch)
        elif isinstance(table.connector, DatagenSource):
            source = table.connector
            if batch and row_limit(source) is None:
                raise self._endless(table)
        else:
            raise self._script.error(
                self._insert.select.probe.table.at,
                f'table "{table.name}" is {table.connector_name}, which cannot be a probe',
                hint="The first table is the stream: kafka or datagen.",
            )
        computed = computed_columns(self._script, table, alias.text)
        return ProbeSource(
            alias=alias.text,
            table=table.name,
            source=source,
            fields=table.fields,
            metadata_fields=table.metadata_fields,
            computed_fields=tuple(
                ComputedField(name, typed.expression) for name, typed in computed.items()
            ),
        )

    def _kafka(self, table: Table, found: KafkaTable, *, batch: bool) -> KafkaSource:
        """The stream; in batch mode it ends where its topic ends at submission, if not before."""
        source = found.source
        if batch and source.bounded_mode is BoundedMode.UNBOUNDED:
            source = replace(source, bounded_mode=BoundedMode.LATEST)
        if not found.has_startup_mode:
            lost = source.bounded_mode is BoundedMode.LATEST
            told = "starts at its end" + (", so that there is nothing to join" if lost else "")
            self._warnings.append(f'Table "{table.name}" has no scan.startup.mode: it {told}.')
        return source

    def _endless(self, table: Table) -> SqlError:
        return self._script.error(
            self._insert.select.probe.table.at,
            f'table "{table.name}" never ends, but the job runs in batch mode',
            hint="Add 'number-of-rows' or a sequence, or remove SET 'execution.runtime-mode'.",
        )

    def _joins(
        self, probe: Table, select: Select
    ) -> tuple[Scope, tuple[Dimension, ...], tuple[DimensionJoin, ...]]:
        if not select.joins:
            raise self._script.error(
                select.probe.table.at,
                "the query joins no dimension",
                hint="Add JOIN dim FOR SYSTEM_TIME AS OF probe.proctime AS d ON probe.k = d.k.",
            )
        relation = relation_of(self._script, probe, select.probe.alias.text, nullable=False)
        scope = Scope(self._script, (relation,))
        dimensions: dict[str, Dimension] = {}
        joins: list[DimensionJoin] = []
        for node in select.joins:
            table = self._table(node.relation.table)
            dimensions[table.name] = self._dimension(table, node.relation.table)
            alias = self._new_alias(scope, node.relation.alias)
            strict = relation_of(self._script, table, alias, nullable=False)
            joined = Scope(self._script, (*scope.relations, strict))
            joins.append(JoinPlanner(joined, strict).plan(node))
            seen = relation_of(self._script, table, alias, nullable=node.join_type is JoinType.LEFT)
            scope = Scope(self._script, (*scope.relations, seen))
        return scope, tuple(dimensions.values()), tuple(joins)

    def _new_alias(self, scope: Scope, alias: Name) -> str:
        if any(relation.alias == alias.text for relation in scope.relations):
            raise self._script.error(
                alias.at,
                f'alias "{alias.text}" is used twice',
                hint="Give each role of a table its own alias: … AS OF p.proctime AS other ON ….",
            )
        if len(scope.relations) > MAX_DIMENSIONS:
            raise self._script.error(
                alias.at, f"more than {MAX_DIMENSIONS} joins", hint="Split the job."
            )
        return alias.text

    def _dimension(self, table: Table, name: Name) -> Dimension:
        if not isinstance(table.connector, MysqlCdcSource):
            raise self._script.error(
                name.at,
                f'table "{table.name}" is {table.connector_name}, which cannot be a dimension',
                hint="Join a mysql-cdc table.",
            )
        return Dimension(table.name, table.connector, table.fields, table.primary_key)

    def _sink(self, table: Table) -> Sink:
        connector = table.connector
        if isinstance(connector, KafkaTable):
            for column in table.columns:
                if isinstance(column, MetadataColumn) and not column.virtual:
                    raise self._script.error(
                        column.name.at,
                        f'metadata column "{column.name.text}" cannot be written',
                        hint="Add VIRTUAL, which leaves it out of the sink.",
                    )
            return connector.sink
        if isinstance(connector, DeltaSink | PrintSink | BlackholeSink):
            self._check_row_metadata(table, connector)
            return connector
        raise self._script.error(
            self._insert.table.at,
            f'table "{table.name}" is {table.connector_name}, which cannot be written',
            hint="Write to delta, kafka, print or blackhole.",
        )

    def _check_row_metadata(self, table: Table, sink: Sink) -> None:
        if not isinstance(sink, DeltaSink) or not sink.row_metadata:
            return
        for column in table.columns:
            if column.name.text in ROW_METADATA:
                raise self._script.error(
                    column.name.at,
                    f'column name "{column.name.text}" is taken by the row metadata',
                    hint="Rename the column or write 'row-metadata' = 'false'.",
                )

    def _selected(self, planner: ExpressionPlanner, scope: Scope, select: Select) -> list[Typed]:
        values: list[Typed] = []
        for item in select.items:
            if not isinstance(item, Star):
                values.append(planner.plan(item.expression))
                continue
            relations = scope.relations
            if item.relation is not None:
                relations = (scope.relation(item.relation),)
            values.extend(self._all_columns(scope, relations, item.at))
        return values

    def _all_columns(
        self, scope: Scope, relations: tuple[ScopeRelation, ...], at: int
    ) -> list[Typed]:
        return [scope.typed(relation, c, at) for relation in relations for c in relation.columns]

    def _output(
        self, sink: Table, planner: ExpressionPlanner, values: list[Typed]
    ) -> list[tuple[OutputColumn, Typed]]:
        targets = self._targets(sink)
        if len(values) != len(targets) or len(values) > MAX_COLUMNS:
            raise self._script.error(
                self._insert.select.at,
                f'the query has {len(values)} columns, "{sink.name}" takes {len(targets)}: '
                + ", ".join(targets[:20]),
                hint="Columns are matched by position; add, remove or name them.",
            )
        by_name = dict(zip(targets, values, strict=True))
        output: list[tuple[OutputColumn, Typed]] = []
        for field in sink.fields:
            value = by_name.get(field.name)
            if value is None:
                value = Typed(Constant(None, field.type), nullable=True, at=self._insert.table.at)
            what = f'the value of column "{field.name}" of "{sink.name}"'
            typed = planner.implicit_cast(value, field.type, what)
            if typed.nullable and not field.nullable:
                self._warn_not_null(sink, field.name, given=field.name in by_name)
            column = OutputColumn(field.name, typed.expression, field.nullable)
            output.append((column, typed))
        return output

    def _warn_not_null(self, sink: Table, column: str, *, given: bool) -> None:
        if not given:
            raise self._script.error(
                self._insert.table.at,
                f'column "{column}" of "{sink.name}" is NOT NULL and gets no value',
                hint="Name it in the column list and select a value for it.",
            )
        self._warnings.append(
            f'Column "{column}" of "{sink.name}" is NOT NULL: '
            "a record that gives it NULL goes to the dead letters."
        )

    def _targets(self, sink: Table) -> list[str]:
        known = [field.name for field in sink.fields]
        if self._insert.columns is None:
            return known
        names = [name.text for name in self._insert.columns]
        for name in self._insert.columns:
            if name.text not in known or names.count(name.text) > 1:
                raise self._script.error(
                    name.at,
                    f'column "{name.text}" is not in "{sink.name}" or comes twice',
                    hint=suggestion(name.text, known, "Columns are " + ", ".join(known) + "."),
                )
        return names

    def _check_size(self, output: list[tuple[OutputColumn, Typed]]) -> None:
        if sum(typed.size for _, typed in output) > 5 * MAX_PLAN_NODES:
            raise self._script.error(
                self._insert.select.at,
                "the select list is too large once it is written out",
                hint="Move repeated parts into computed columns of the probe.",
            )
