"""`join.late-rows.wait`: queries whose unmatched records can wait, and why others cannot."""

from collections.abc import Collection, Sequence

from joins.plan.plan import Dimension, KafkaSink, OutputColumn, Sink, Windowing
from joins.plan.types import Column
from service.sql.catalog.watermarks import LATE_ROWS_WAIT
from service.sql.planner.query_planner import QueryPlanner
from service.sql.text.script import Script

_WITHOUT = f"Remove '{LATE_ROWS_WAIT}'"


def has_late_rows(dimensions: Collection[Dimension]) -> bool:
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
    if isinstance(sink, KafkaSink) and sink.upsert and not _wait_together(query, sink, output):
        raise script.error(
            query.base.at,
            f"{what}, but the output is upsert-kafka, where a record that has waited could replace "
            "the row of a newer one",
            hint=f"{_WITHOUT}, write to a table with 'connector' = 'kafka' or 'delta', or join "
            "only by columns of the stream that are in the PRIMARY KEY of the output.",
        )
    for other in waited[1:]:
        if other.late_wait_ms != first.late_wait_ms:
            raise script.error(
                query.base.at,
                f'{what} of {first.late_wait_ms} ms, and table "{other.name}" of '
                f"{other.late_wait_ms} ms; a record has one bound",
                hint=f"Write '{LATE_ROWS_WAIT}' = '{first.late_wait_ms} ms' in both tables.",
            )


def _wait_together(query: QueryPlanner, sink: KafkaSink, output: Sequence[OutputColumn]) -> bool:
    """True if records of one key of the output have the same keys of all tables.

    Such records wait until the same batch has their rows, and leave in the order of the stream.
    """
    fields = () if sink.key is None else sink.key.fields
    columns = [each.expression for each in output if each.name in fields]
    assert query.base is not None, "a query with a dimension has a stream"
    own = [key for key in columns if isinstance(key, Column) and key.relation == query.base.alias]
    keys = [pair.probe for join in query.joins for pair in join.keys]
    has_conditions = any(join.condition is not None for join in query.joins)
    return all(key in own for key in keys) and not has_conditions and not query.unnests
