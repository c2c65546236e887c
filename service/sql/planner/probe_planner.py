"""The probe of a job: the first table of its query as a stream, with its end if it has one."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto

from joins.kernels.probe.generate import row_limit
from joins.plan.plan import (
    BoundedMode,
    ComputedField,
    DatagenSource,
    Dimension,
    KafkaSource,
    ProbeSource,
    StartupMode,
    TopicSource,
)
from service.sql.catalog.catalog import Table, computed_columns, relation_of
from service.sql.catalog.connectors import KafkaTable
from service.sql.catalog.option import TableRole
from service.sql.planner.dimension_planner import check_no_effect
from service.sql.planner.relations import Base
from service.sql.planner.session import ScriptSession
from service.sql.text.script import Script

PREVIEW_RECORDS = 10_000


class Extent(Enum):
    """How much of the stream a job reads."""

    STREAMING = auto()
    BATCH = auto()
    PREVIEW = auto()


def plan_probe(script: Script, base: Base, extent: Extent) -> tuple[ProbeSource, tuple[str, ...]]:
    """The probe, and what the author of the script should know of it.

    Raises:
        SqlError: the stream does not end although the job must.
    """
    table, warnings = base.table, list[str]()
    source: KafkaSource | DatagenSource
    if isinstance(table.connector, KafkaTable):
        warnings += check_no_effect(script, table, TableRole.STREAM)
        source = _kafka(table.connector, extent)
        if not table.connector.has_startup_mode and extent is not Extent.PREVIEW:
            warnings.append(_told_start(table, source))
    else:
        assert isinstance(table.connector, DatagenSource), "the query planner has refused others"
        source = _datagen(script, base, table.connector, extent)
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


def with_watermark(
    session: ScriptSession, probe: ProbeSource, base: Base, extent: Extent
) -> ProbeSource:
    """`probe` with the watermark of its table, which the job waits for.

    Its late records go to a table of the user's, but not those of a preview. In a job that must end
    the stream has an end, so it does not switch to processing time.
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


def _kafka(table: KafkaTable, extent: Extent) -> KafkaSource:
    """The stream; a job that must end does so where its topic ends at submission, if not before."""
    source = table.source
    if extent is not Extent.STREAMING and source.bounded_mode is BoundedMode.UNBOUNDED:
        source = replace(source, bounded_mode=BoundedMode.LATEST)
    if extent is Extent.PREVIEW:
        start = source.startup_mode if table.has_startup_mode else StartupMode.EARLIEST
        source = replace(
            source,
            kafka=source.kafka.unreported(),
            startup_mode=start,
            bounded_records=PREVIEW_RECORDS,
        )
    return source


def unreported(dimensions: Iterable[Dimension], extent: Extent) -> Iterator[Dimension]:
    """The dimensions; those of a preview tell no consumer group where they are."""
    for dimension in dimensions:
        source = dimension.source
        if extent is Extent.PREVIEW and isinstance(source, TopicSource):
            yield replace(dimension, source=replace(source, kafka=source.kafka.unreported()))
        else:
            yield dimension


def _told_start(table: Table, source: KafkaSource) -> str:
    lost = source.bounded_mode is BoundedMode.LATEST
    effect = "starts at its end" + (", so that there is nothing to join" if lost else "")
    return f'Table "{table.name}" has no scan.startup.mode: it {effect}.'


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
