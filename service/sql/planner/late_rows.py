"""`join.late-rows`: queries whose unmatched records can wait, and whose output can be corrected."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from joins.plan.plan import (
    DeltaSink,
    Dimension,
    JoinType,
    KafkaSink,
    OutputColumn,
    Sink,
    Windowing,
)
from joins.plan.types import Column, columns_of
from service.sql.catalog.catalog import Table
from service.sql.catalog.watermarks import LATE_ROWS_CORRECT, LATE_ROWS_WAIT
from service.sql.planner.query_planner import QueryPlanner
from service.sql.text.script import Script

_WITHOUT = f"Remove '{LATE_ROWS_WAIT}'"


def waits_for_late_rows(dimensions: Collection[Dimension]) -> bool:
    return any(each.late_wait_ms is not None for each in dimensions)


def check_late_rows(
    script: Script,
    query: QueryPlanner,
    window: Windowing | None,
    sink: Sink,
    output: Sequence[OutputColumn],
) -> None:
    """Refuse tables with the option where records cannot wait for them."""
    waited = [each for each in query.dimensions.values() if each.late_wait_ms is not None]
    if not waited:
        return
    assert query.base is not None, "a query with a dimension has a stream"
    first = waited[0]
    what = f"table \"{first.name}\" has '{LATE_ROWS_WAIT}'"
    if any(join.time is not None for join in query.joins):
        raise script.error(
            query.base.at,
            f"{what}, but the query joins by event time, where records wait for the watermark",
            hint=f"{_WITHOUT}, or join FOR SYSTEM_TIME AS OF a column that is PROCTIME().",
        )
    if window is not None:
        raise script.error(
            query.base.at,
            f"{what}, but the query has a window, which may fire before the record is joined",
            hint=f"{_WITHOUT}, or let another job have the window over the output of this one.",
        )
    changes = _to_wait_together(query, sink, output) if isinstance(sink, KafkaSink) else []
    if changes:
        raise script.error(
            query.base.at,
            f"{what}, but the output is upsert-kafka, where a record that has waited could replace "
            "the row of a newer one",
            hint=f"{_WITHOUT}, write to a table with 'connector' = 'kafka' or 'delta', or "
            f"{' and '.join(changes)}.",
        )
    for other in waited[1:]:
        if other.late_wait_ms != first.late_wait_ms:
            raise script.error(
                query.base.at,
                f'{what} of {first.late_wait_ms} ms, and table "{other.name}" of '
                f"{other.late_wait_ms} ms; a record has one bound",
                hint=f"Write '{LATE_ROWS_WAIT}' = '{first.late_wait_ms} ms' in both tables.",
            )


_COORDINATES = ("_topic", "_partition", "_offset")


def corrected_sink(
    script: Script, query: QueryPlanner, table: Table, sink: Sink, output: Sequence[OutputColumn]
) -> Sink:
    """`sink`, or one that replaces rows, if a table has the option; refuses other queries.

    A record has one row, which goes out with NULL and may be replaced: by the record's coordinates
    in a Delta table, by the key of `upsert-kafka`.
    """
    corrected = [each for each in query.dimensions.values() if each.late_correct_ms is not None]
    if not corrected:
        return sink
    assert query.base is not None, "a query with a dimension has a stream"
    first = next((each for each in corrected if each.late_wait_ms is None), corrected[0])
    reason = _uncorrected(query, first) or _unreplaced(query, table, sink, output)
    if reason is not None:
        what = f"table \"{first.name}\" has '{LATE_ROWS_CORRECT}'"
        raise script.error(query.base.at, f"{what}, but {reason[0]}", hint=reason[1])
    return replace(sink, merge_key=_COORDINATES) if isinstance(sink, DeltaSink) else sink


_Reason = tuple[str, str]


def _uncorrected(query: QueryPlanner, first: Dimension) -> _Reason | None:
    """Why no row of the query is corrected, and a hint."""
    if first.late_wait_ms is None:
        hint = f"Add '{LATE_ROWS_WAIT}' = '1 s', or as long as the record should wait for the row."
        return f"no '{LATE_ROWS_WAIT}', after which a record goes out with NULL", hint
    for other in query.dimensions.values():
        if other.late_wait_ms is not None and other.late_correct_ms != first.late_correct_ms:
            bound = f"'{LATE_ROWS_CORRECT}' = '{first.late_correct_ms} ms'"
            hint = f"Write {bound} in both tables."
            other_has = "none" if other.late_correct_ms is None else "another value"
            return f'table "{other.name}" has {other_has}, and a record has one bound', hint
    if any(join.join_type is JoinType.INNER for join in query.joins):
        hint = f"Write LEFT JOIN, or a longer '{LATE_ROWS_WAIT}' without '{LATE_ROWS_CORRECT}'."
        return "the query has an INNER JOIN, which gives such a record no row to correct", hint
    tables = {join.alias for join in query.joins}
    for condition in query.filters:
        for column in columns_of(condition.expression):
            if column.relation in tables:
                hint = "Write the condition into ON, or filter the output."
                return f'WHERE reads "{column.name}" of a joined table, which may change', hint
    return None


def _unreplaced(
    query: QueryPlanner, table: Table, sink: Sink, output: Sequence[OutputColumn]
) -> _Reason | None:
    """Why a row of the output cannot be replaced by the corrected one, and a hint."""
    without = f"remove '{LATE_ROWS_CORRECT}'"
    assert query.base is not None, "a query with a dimension has a stream"
    if isinstance(sink, KafkaSink) and sink.upsert:
        fields = () if sink.key is None else sink.key.fields
        for item in output:
            of_tables = (c for c in columns_of(item.expression) if c.relation != query.base.alias)
            if item.name in fields and next(of_tables, None) is not None:
                hint = f"Leave it out of the PRIMARY KEY, or {without}."
                return f'column "{item.name}" of the output\'s key is of a joined table', hint
        return None
    if not isinstance(sink, DeltaSink):
        hint = f"Write to a table with 'connector' = 'upsert-kafka' or 'delta', or {without}."
        return f'the output "{table.name}" takes no updates', hint
    if not sink.row_metadata:
        hint = f"Remove 'row-metadata' = 'false', or {without}."
        return f'the rows of the output "{table.name}" do not tell their records', hint
    if sink.partition_by:
        hint = f"Remove PARTITIONED BY, or {without}."
        return f'the output "{table.name}" is PARTITIONED BY columns, and its rows change', hint
    if query.unnests:
        hint = f"Let another job unnest the output, or {without}."
        return "UNNEST gives a record several rows", hint
    for join in query.joins:
        dimension = query.dimensions[join.dimension]
        if not {pair.dimension_column for pair in join.keys} >= set(dimension.primary_key):
            hint = f"Join by all columns of its PRIMARY KEY, or {without}."
            return f'a record may match several rows of table "{dimension.name}"', hint
    return None


def _to_wait_together(
    query: QueryPlanner, sink: KafkaSink, output: Sequence[OutputColumn]
) -> list[str]:
    """The changes of the query after which records of one key of `upsert-kafka` wait together.

    They do if they have the same keys of all tables: then the same batch has the rows that they
    wait for, and they leave in the order of the stream.
    """
    if not sink.upsert:
        return []
    fields = () if sink.key is None else sink.key.fields
    columns = [each.expression for each in output if each.name in fields]
    assert query.base is not None, "a query with a dimension has a stream"
    own = [key for key in columns if isinstance(key, Column) and key.relation == query.base.alias]
    keys = [pair.probe for join in query.joins for pair in join.keys]
    changes = {
        "join only by columns of the stream that are in the PRIMARY KEY of the output": any(
            key not in own for key in keys
        ),
        "remove the further conditions of ON": any(
            join.condition is not None for join in query.joins
        ),
        "let another job unnest the output": bool(query.unnests),
    }
    return [change for change, is_needed in changes.items() if is_needed]
