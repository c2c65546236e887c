"""Jobs of a script: INSERTs with their sinks, or a SELECT as a preview."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import count

from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.probe.generate import row_limit
from joins.plan.plan import (
    BoundedMode,
    ComputedField,
    DatagenSource,
    DeltaSink,
    Dimension,
    JoinPlan,
    KafkaSink,
    KafkaSource,
    OutputColumn,
    PrintSink,
    ProbeSource,
    Sink,
    StartupMode,
    TableStream,
    TopicSource,
    Windowing,
)
from joins.plan.types import Constant, Expression
from service.sql.catalog.catalog import Table, computed_columns, relation_of
from service.sql.catalog.connectors import swapped
from service.sql.catalog.format_columns import refusal_of_delta, refusal_of_sink
from service.sql.catalog.option import TableRole
from service.sql.catalog.settings import ALLOW_LATENESS, BATCH, PIPELINE_NAME, RUNTIME_MODE
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import MAX_PLAN_NODES, NameScope, Typed
from service.sql.grammar.query_parser import MAX_COLUMNS
from service.sql.grammar.syntax import (
    CreateTableAs,
    CreateView,
    Insert,
    JobStatement,
    MetadataColumn,
    Select,
    StatementSet,
)
from service.sql.planner.change_streams import (
    check_changes,
    newest_of_stream,
    taking_changes,
)
from service.sql.planner.dimension_planner import check_no_effect, check_one_topic, same_path
from service.sql.planner.late_rows import check_late_rows, corrected_sink, waits_for_late_rows
from service.sql.planner.query_planner import QueryPlanner
from service.sql.planner.relations import QUERY, Base, Unions, preview_output
from service.sql.planner.session import ScriptSession
from service.sql.planner.set_planner import PlannedInsert, check_count, one_job
from service.sql.planner.update_sinks import (
    check_written,
    created_columns,
    partitioned_sink,
    shown,
    taking_updates,
)
from service.sql.text.dialect import Use, pieces
from service.sql.text.script import OUTSIDE, Edit, Script, suggestion

PREVIEW_RECORDS = 10_000


class Extent(Enum):
    """How much of the stream a job reads."""

    STREAMING = auto()
    BATCH = auto()
    PREVIEW = auto()


def plan_probe(
    script: Script, base: Base, extent: Extent, select: Select
) -> tuple[ProbeSource, tuple[str, ...]]:
    table, warnings = base.table, list[str]()
    source = table.endpoints.stream
    assert source is not None, "the query planner has refused others"
    if isinstance(source, KafkaSource):
        warnings += check_no_effect(script, table, TableRole.STREAM)
        source = _kafka(source, extent, has_startup_mode=table.endpoints.has_startup_mode)
        if not table.endpoints.has_startup_mode and extent is not Extent.PREVIEW:
            lost = source.bounded_mode is BoundedMode.LATEST
            effect = "starts at its end" + (", so that there is nothing to join" if lost else "")
            warnings.append(f'Table "{table.name}" has no scan.startup.mode: it {effect}.')
    elif isinstance(source, TableStream):
        warnings += check_no_effect(script, table, TableRole.STREAM)
        if extent is not Extent.STREAMING:
            raise script.error(
                base.at,
                f'table "{table.name}" is followed without an end, and a preview or a job in batch '
                "mode ends",
                hint="INSERT INTO a table of upsert-kafka, delta or print, without SET "
                "'execution.runtime-mode'.",
                edit=_printed(script, select) if extent is Extent.PREVIEW else None,
            )
    else:
        source = _datagen(script, base, source, extent)
    computed = computed_columns(script, table, base.alias)
    probe = ProbeSource(
        alias=base.alias,
        table=table.name,
        source=source,
        fields=table.fields,
        metadata_fields=table.metadata_fields,
        computed_fields=tuple(
            ComputedField(name, typed.expression) for name, typed in computed.items()
        ),
    )
    return probe, tuple(warnings)


def _printed(script: Script, select: Select) -> Edit | None:
    """The query of a preview as a job that prints its rows; None within EXPLAIN."""
    *_, piece = (each for each in pieces(script.text) if each.start <= select.at)
    if piece.use is not Use.PREVIEWS:
        return None
    used = set(re.findall(r"\w+", script.text.lower()))
    name = next(each for n in count(1) if (each := f"shown_{n}") not in used)
    text = f"CREATE TABLE {name} WITH ('connector' = 'print') AS "
    return Edit(piece.start, piece.start, text, note="The job prints its rows until it is stopped.")


def with_watermark(
    session: ScriptSession, probe: ProbeSource, base: Base, extent: Extent
) -> ProbeSource:
    """`probe` with its table's watermark.

    Late records of a preview go nowhere. A bounded job does not switch to processing time.
    """
    watermark = base.table.watermark
    assert watermark is not None, "a column is a rowtime by its WATERMARK FOR"
    relation = relation_of(session.script, base.table, base.alias, base.alias)
    spec = watermark.spec(session.script, relation, session.settings)
    return replace(
        probe,
        watermark=spec if extent is Extent.STREAMING else replace(spec, after_backlog=False),
        late_records_path=None if extent is Extent.PREVIEW else watermark.late_records_path,
        late_store=() if extent is Extent.PREVIEW else watermark.late_store,
    )


def _kafka(source: KafkaSource, extent: Extent, *, has_startup_mode: bool) -> KafkaSource:
    """A bounded job ends where its topic ends at submission, unless the table ends it earlier."""
    if extent is not Extent.STREAMING and source.bounded_mode is BoundedMode.UNBOUNDED:
        source = replace(source, bounded_mode=BoundedMode.LATEST)
    if extent is Extent.PREVIEW:
        start = source.startup_mode if has_startup_mode else StartupMode.EARLIEST
        source = replace(
            source,
            kafka=source.kafka.unreported(),
            startup_mode=start,
            bounded_records=PREVIEW_RECORDS,
        )
    return source


def unreported(dimensions: Iterable[Dimension], extent: Extent) -> Iterator[Dimension]:
    """The dimensions; in a preview no offsets go to a consumer group and no record waits."""
    for dimension in dimensions:
        source = dimension.source
        if extent is not Extent.PREVIEW:
            yield dimension
            continue
        if isinstance(source, TopicSource):
            source = replace(source, kafka=source.kafka.unreported())
        yield replace(dimension, source=source, late_wait_ms=None, late_correct_ms=None)


def _datagen(script: Script, base: Base, source: DatagenSource, extent: Extent) -> DatagenSource:
    if extent is Extent.PREVIEW:
        rows = min(PREVIEW_RECORDS, source.number_of_rows or PREVIEW_RECORDS)
        return replace(source, number_of_rows=rows)
    if extent is Extent.BATCH and row_limit(source) is None:
        raise script.error(
            base.at,
            f'table "{base.table.name}" never ends, but the job runs in batch mode',
            hint="Add 'number-of-rows' or a sequence, or remove SET 'execution.runtime-mode'.",
        )
    return source


ROW_METADATA = ("_topic", "_partition", "_offset", "_batch", "_dimension_versions")
PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of a script; `base` is the stream, `tables` have their hints applied."""

    plan: JoinPlan
    base: Base
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    """Where the rows of a query go."""

    table: str
    sink: Sink
    output: tuple[OutputColumn, ...]


class JobPlanner:
    """Plans one job over the declarations of a session."""

    def __init__(self, session: ScriptSession) -> None:
        self._session = session
        self._script = session.script
        self._warnings: list[str] = []

    def plan(self, statement: JobStatement, name: str | None = None) -> PlannedJob:
        """The plan of a statement; `name` overrides SET 'pipeline.name'."""
        if isinstance(statement, CreateTableAs):
            statement = self._created(statement)
        jobs = statement.inserts if isinstance(statement, StatementSet) else (statement,)
        check_count(self._script, jobs[-1], len(jobs))
        planned = [
            (node, job)
            for node in jobs
            for job in JobPlanner(self._session)._queries_of(node, name)
        ]
        if len(planned) == 1:
            return planned[0][1]
        inserts = [PlannedInsert(node, job.plan, job.base) for node, job in planned]
        plan = one_job(self._script, inserts)
        tables = tuple(table for _, job in planned for table in job.tables)
        warnings = dict.fromkeys(text for _, job in planned for text in job.warnings)
        return PlannedJob(plan, inserts[0].base, tables, tuple(warnings))

    def _queries_of(self, node: Insert | Select, name: str | None) -> list[PlannedJob]:
        jobs: list[PlannedJob] = []
        pending: list[tuple[int, ...]] = [()]
        while pending:
            check_count(self._script, node, len(jobs) + len(pending))
            unions, planner = Unions(pending.pop(0)), JobPlanner(self._session)
            if isinstance(node, Select):
                jobs.append(planner._preview(node, unions, name))
            else:
                jobs.append(planner._insert(node, unions, name))
            pending += unions.others()
        return jobs

    def _created(self, node: CreateTableAs) -> Insert:
        """Declare the table with the columns of the query; returns the INSERT that fills it."""
        view = CreateView(node.table.name, False, None, node.select, node.at, node.at, node.at)
        columns = QueryPlanner(self._session).view(view, QUERY)
        fields = created_columns(self._script, columns, node.at)
        table = replace(node.table, columns=fields)
        self._session.create_table(replace(table, if_not_exists=False))
        return Insert(table.name, None, node.select, node.at)

    def _insert(self, insert: Insert, unions: Unions, name: str | None) -> PlannedJob:
        table = self._written(insert)
        query = QueryPlanner(
            self._session,
            of_job=True,
            written=table,
            written_at=insert.table.at,
            unions=unions,
        )
        rows = [column.written_out for column in query.query(insert.select)]
        rows = newest_of_stream(self._script, query, rows)
        values = query.windows.assigned(rows, query.unnests)
        sink = self._sink(insert, table)
        output = self._output(insert, table, values)
        window = query.windows.planned()
        check_changes(self._script, query, insert.select)
        sink = taking_changes(self._script, query, table, sink, output)
        if window is not None and window.lateness_ms:
            sink = taking_updates(self._script, table, sink, output, window)
        sink = corrected_sink(self._script, query, table, sink, output)
        target = _Target(table.name, sink, output)
        if insert.conflict == "NOTHING" and table.primary_key:
            raise self._script.error(
                insert.at,
                f'ON CONFLICT DO NOTHING keeps the first row of each key of "{table.name}"',
                hint=f"{OUTSIDE} Write ON CONFLICT DO DEDUPLICATE: the newest row of a key is "
                "kept.",
            )
        if insert.conflict:
            self._warnings.append(
                f'ON CONFLICT of "{table.name}" has no effect: rows are written in the order of '
                "their batch, so that the newest row of a key is the one that is kept."
            )
        query.tables.append(table)
        batch = self._session.settings.get(RUNTIME_MODE) == BATCH
        extent = Extent.BATCH if batch else Extent.STREAMING
        return self._job(query, insert.select, target, extent, name)

    def _preview(self, select: Select, unions: Unions, name: str | None) -> PlannedJob:
        query = QueryPlanner(self._session, of_job=True, unions=unions)
        columns = query.query(select)
        written = [column.written_out for column in columns]
        written = newest_of_stream(self._script, query, written)
        check_changes(self._script, query, select)
        values = query.windows.assigned(written, query.unnests)
        rows = select.preview_rows
        values = shown(self._script, values)
        output = preview_output([column.name for column in columns], values)
        self._check_size(select, values)
        target = _Target(PREVIEW, PrintSink(row_limit=rows), output)
        of_each = " of each query of UNION ALL" if unions.is_used else ""
        self._warnings.append(
            f"This is a preview: it reads {PREVIEW_RECORDS:,} records of each partition at the "
            f"most, prints {rows:,} rows at the most{of_each} to the job's log, and ends."
        )
        return self._job(query, select, target, Extent.PREVIEW, name)

    def _job(
        self,
        query: QueryPlanner,
        select: Select,
        target: _Target,
        extent: Extent,
        name: str | None,
    ) -> PlannedJob:
        assert query.base is not None
        probe, warnings = plan_probe(self._script, query.base, extent, select)
        probe = replace(probe, newest_by=query.newest_by)
        window = query.windows.planned()
        if _waits(query, window):
            probe = with_watermark(self._session, probe, query.base, extent)
            self._check_late_records(query, probe, target.sink)
        check_late_rows(self._script, query, window, target.sink, target.output)
        waits_for_rows = waits_for_late_rows(query.dimensions.values())
        if window is not None or _waits(query, window) or waits_for_rows:
            query.unions.refuse_beside_state(self._script, select)
        self._check_times(query, window)
        settings = self._session.settings
        plan = JoinPlan(
            name=name or settings.get(PIPELINE_NAME) or target.table,
            sql=self._session.secrets.redacted(self._script).removesuffix(self._script.catalog),
            probe=probe,
            dimensions=tuple(unreported(query.dimensions.values(), extent)),
            joins=tuple(query.joins),
            where=self._where(query.filters),
            output=target.output,
            sink_table=target.table,
            sink=target.sink,
            settings=tuple(sorted(settings.items())),
            window=window,
            unnests=tuple(query.unnests),
        )
        texts = (*warnings, *query.warnings, *self._warnings)
        return PlannedJob(plan, query.base, tuple(query.tables), tuple(dict.fromkeys(texts)))

    def _check_times(self, query: QueryPlanner, window: Windowing | None) -> None:
        assert query.base is not None
        by_event_time = any(join.time is not None for join in query.joins)
        if window is not None and window.time is None and by_event_time:
            raise self._script.error(
                query.base.at,
                "a window by processing time over a join by event time",
                hint="Name the rowtime in DESCRIPTOR, or join by PROCTIME().",
            )
        if (window is None or window.rows is not None) and ALLOW_LATENESS in self._session.settings:
            self._warnings.append(f'Setting "{ALLOW_LATENESS}" has no effect without aggregates.')

    def _check_late_records(self, query: QueryPlanner, probe: ProbeSource, sink: Sink) -> None:
        assert query.base is not None
        path, watermark = probe.late_records_path, query.base.table.watermark
        if path is None or watermark is None:
            return
        taken = [d.source.path for d in query.dimensions.values() if d.source.kind == "delta"]
        if isinstance(sink, DeltaSink):
            taken.append(sink.path)
        if any(same_path(path, other) for other in taken):
            raise self._script.error(
                watermark.node.at,
                f'option "late-records.path" of table "{probe.table}" is the path of another '
                "table of the job",
                hint="Choose a different path for the late records.",
            )

    def _where(self, filters: Sequence[Typed]) -> Expression | None:
        if not filters:
            return None
        planner = ExpressionPlanner(NameScope(self._script, ()))
        return planner.conjunction("AND", filters, filters[0].at).expression

    def _written(self, insert: Insert) -> Table:
        target = self._session.find(insert.table)
        if isinstance(target, CreateView):
            raise self._script.error(
                insert.table.at,
                f'"{insert.table.text}" is a view, which cannot be written',
                hint="Write to a table of delta, kafka, print or blackhole.",
            )
        check_written(self._script, target, insert.table.at)
        return self._session.hinted(target, insert.options)

    def _sink(self, insert: Insert, table: Table) -> Sink:
        sink = table.endpoints.sink
        if sink is None:
            raise self._script.error(
                insert.table.at,
                f'table "{table.name}" is {table.connector.name}, which cannot be written',
                hint="Write to delta, kafka, upsert-kafka, print or blackhole.",
                edit=swapped(self._script, table.node),
            )
        for column in table.columns:
            if isinstance(column, MetadataColumn) and not column.virtual:
                raise self._script.error(
                    column.name.at,
                    f'metadata column "{column.name.text}" cannot be written',
                    hint="Add VIRTUAL to leave it out of the sink.",
                )
        if isinstance(sink, KafkaSink):
            misfit = refusal_of_sink(RecordColumns(table.fields, sink.value, sink.key))
            if misfit is not None:
                raise self._script.error(insert.table.at, misfit.message, hint=misfit.hint)
        self._warnings += check_no_effect(self._script, table, TableRole.SINK)
        check_one_topic(self._script, table, "a sink")
        if isinstance(sink, DeltaSink):
            self._check_delta(table, sink)
            sink = partitioned_sink(self._script, table, sink)
        return sink

    def _check_delta(self, table: Table, sink: DeltaSink) -> None:
        misfit = refusal_of_delta(table.fields, ROW_METADATA if sink.row_metadata else ())
        if misfit is not None:
            at = next(c.name.at for c in table.columns if c.name.text == misfit.column)
            raise self._script.error(at, misfit.message, hint=misfit.hint)

    def _output(self, insert: Insert, sink: Table, values: list[Typed]) -> tuple[OutputColumn, ...]:
        planner = ExpressionPlanner(NameScope(self._script, ()))
        targets = self._targets(insert, sink)
        if len(values) != len(targets) or len(values) > MAX_COLUMNS:
            columns = "1 column" if len(values) == 1 else f"{len(values)} columns"
            raise self._script.error(
                insert.select.at,
                f'the query has {columns}, "{sink.name}" takes {len(targets)}: '
                + ", ".join(targets[:20]),
                hint="Columns are matched by position; add, remove or name them.",
            )
        by_name = dict(zip(targets, values, strict=True))
        output: list[OutputColumn] = []
        written: list[Typed] = []
        for field in sink.fields:
            value = by_name.get(field.name)
            if value is None:
                value = Typed(Constant(None, field.type), nullable=True, at=insert.table.at)
            what = f'the value of column "{field.name}" of "{sink.name}"'
            typed = planner.implicit_cast(value, field.type, what)
            if typed.nullable and not field.nullable:
                self._warn_not_null(insert, sink, field.name, has_value=field.name in by_name)
            output.append(OutputColumn(field.name, typed.expression, field.nullable))
            written.append(typed)
        self._check_size(insert.select, written)
        return tuple(output)

    def _warn_not_null(self, insert: Insert, sink: Table, column: str, *, has_value: bool) -> None:
        if not has_value:
            raise self._script.error(
                insert.table.at,
                f'column "{column}" of "{sink.name}" is NOT NULL and gets no value',
                hint="Name it in the column list and select a value for it.",
            )
        self._warnings.append(
            f'Column "{column}" of "{sink.name}" is NOT NULL: '
            f"a {'record' if insert.select.group_by is None else 'result'} that gives it NULL goes "
            "to the dead letters."
        )

    def _targets(self, insert: Insert, sink: Table) -> list[str]:
        known = [field.name for field in sink.fields]
        if insert.columns is None:
            return known
        names = [name.text for name in insert.columns]
        for name in insert.columns:
            if name.text not in known or names.count(name.text) > 1:
                raise self._script.error(
                    name.at,
                    f'column "{name.text}" is not in "{sink.name}" or is listed twice',
                    hint=suggestion(name.text, known, "Columns are " + ", ".join(known) + "."),
                )
        return names

    def _check_size(self, select: Select, values: Sequence[Typed]) -> None:
        if sum(value.size for value in values) > 5 * MAX_PLAN_NODES or len(values) > MAX_COLUMNS:
            raise self._script.error(
                select.at,
                "the select list is too large once it is written out",
                hint="Move repeated parts into computed columns of the stream.",
            )


def _waits(query: QueryPlanner, window: Windowing | None) -> bool:
    by_event_time = any(join.time is not None for join in query.joins)
    return by_event_time or (window is not None and window.time is not None)
