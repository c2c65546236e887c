"""Queries over a stream of changes: what they may be, and how their output takes deletions.

An output has for each key of the stream the row of the newest record of that key, joined when the
record was read. It has no row of the key if that record deletes it, finds no match in an INNER
JOIN, or does not pass WHERE.
"""

from collections.abc import Mapping, Sequence

from joins.plan.plan import DeltaSink, KafkaSink, KafkaSource, OutputColumn, Sink, TableStream
from joins.plan.types import Cast, Column, Constant, Expression, TypeName, columns_of
from service.sql.catalog.catalog import Table
from service.sql.expressions.scope import TimeAttribute, Typed
from service.sql.grammar.expression_parser import rank_refused
from service.sql.grammar.syntax import Select
from service.sql.grammar.type_parser import STRING, is_lossless
from service.sql.planner.join_planner import split
from service.sql.planner.late_rows import waits_for_late_rows
from service.sql.planner.newest_rows import RANK, is_first_row, without_rank
from service.sql.planner.query_planner import QueryPlanner
from service.sql.planner.relations import Base
from service.sql.planner.update_sinks import merged_by_key
from service.sql.text.script import OUTSIDE, Edit, Script

_SHOWN_APART = frozenset(
    (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT, TypeName.DATE)
)
"""Types whose values have one text each."""


def changes_by(query: QueryPlanner) -> tuple[str, ...]:
    """The primary key of the stream, if that has changes of rows; empty for a stream of rows.

    Of a stream of rows the columns of `ROW_NUMBER() … = 1`, by which newer rows replace older ones.
    """
    assert query.base is not None, "a query has its first table"
    if query.newest_by:
        return query.newest_by
    source = query.base.table.endpoints.stream
    return source.changes_by if isinstance(source, KafkaSource | TableStream) else ()


_BY_ORDER = (
    "keeps the row of each key that its order puts first, whenever it comes",
    "Write ORDER BY a PROCTIME() column DESC: the row that came last is the newest.",
)
_OLDEST = (
    "keeps the first row of each key, which needs every key that ever came",
    f"{OUTSIDE} Write ORDER BY a PROCTIME() column DESC for the newest row; for the first row of "
    "each key in a window number the rows of TABLE(TUMBLE(…)), PARTITION BY window_start, "
    "window_end and the key.",
)


def newest_of_stream(script: Script, query: QueryPlanner, rows: Sequence[Typed]) -> list[Typed]:
    """The rows of a query with `ROW_NUMBER() OVER (PARTITION BY k ORDER BY proctime DESC) = 1`.

    Each record then replaces the row of its key, as a change does.
    """
    if not query.ranks:
        return list(rows)
    rank, *more = query.ranks
    if more:
        raise rank_refused(script, "ROW_NUMBER", more[0].at)
    conditions = [part for each in query.filters for part in split(each)]
    rest = [each for each in conditions if not is_first_row(each)]
    base = query.base
    assert base is not None, "a query has its first table"
    names = tuple(dict.fromkeys(_own_column(each, base) or "" for each in rank.partition))
    shown = [without_rank(value) for value in (*rows, *rest)]
    fault: tuple[str, str] | None = None
    if len(rest) == len(conditions) or query.windows.is_used or changes_by(query):
        raise rank_refused(script, "ROW_NUMBER", rank.at)
    if rank.time is not TimeAttribute.PROCESSING:
        fault = _OLDEST if rank.is_oldest else _BY_ORDER
    elif "" in names or not names:
        fault = (
            "has PARTITION BY of something else than columns of the stream",
            "Write PARTITION BY with the bare columns of the key.",
        )
    elif rank.drops_rows or any(
        {(column.relation, column.name) for column in columns_of(each.expression)}
        - {(base.alias, name) for name in names}
        for each in rank.before
    ):
        fault = (
            "numbers rows behind a condition or an INNER JOIN, so that an older row may be the "
            "newest one left",
            "Write the condition or the join beside row_num = 1, where a key whose newest row "
            "does not meet it has no row.",
        )
    elif None in shown or any(
        column.relation == RANK
        for join in query.joins
        for each in (*(pair.probe for pair in join.keys), join.condition)
        if each is not None
        for column in columns_of(each)
    ):
        fault = (
            "is computed with",
            "Compare ROW_NUMBER() with 1 in WHERE, and do nothing else with it.",
        )
    if fault is not None:
        raise script.error(rank.at, f"ROW_NUMBER() over a stream {fault[0]}", hint=fault[1])
    query.newest_by, query.filters = names, rest
    return [value for value in shown[: len(rows)] if value is not None]


def _own_column(value: Typed, base: Base) -> str | None:
    column, physical = value.expression, {field.name for field in base.table.fields}
    is_own = isinstance(column, Column) and column.relation == base.alias
    return (
        column.name if is_own and isinstance(column, Column) and column.name in physical else None
    )


def check_changes(script: Script, query: QueryPlanner, select: Select) -> None:
    """Refuse what does not keep one row for each key of a stream of changes."""
    if not changes_by(query):
        return
    base = query.base
    assert base is not None, "a query has its first table"
    what = f'the records of table "{base.table.name}" are changes of rows'
    if query.newest_by:
        what = f'newer rows of table "{base.table.name}" replace older ones by ROW_NUMBER()'
    if query.windows.is_used:
        raise script.error(
            base.at,
            f"{what}, and a window cannot take back a row that it has counted",
            hint=f"{OUTSIDE} Let a window read a topic of rows, with 'connector' = 'kafka' and a "
            "format that is not of Debezium.",
        )
    if query.unnests:
        raise script.error(
            base.at,
            f"{what}, and UNNEST makes several rows of one key",
            hint=f"{OUTSIDE} Write the array into the output, and unnest it where it is read.",
        )
    if any(join.time is not None for join in query.joins):
        raise script.error(
            base.at,
            f"{what}, and a record that waits for its rowtime could replace the row of a newer one",
            hint="Write FOR SYSTEM_TIME AS OF PROCTIME(): each record is joined when it is read.",
        )
    if waits_for_late_rows(query.dimensions.values()):
        raise script.error(
            base.at,
            f"{what}, and one that has waited for a match could replace the row of a newer one",
            hint="Remove 'join.late-rows.wait'.",
        )
    if query.unions.is_used:
        raise script.error(
            select.at,
            f"{what}, and a row of UNION ALL does not tell which query of it has its key",
            hint="Write an INSERT into a separate table for each query.",
        )
    for join in query.joins:
        dimension = query.dimensions[join.dimension]
        compared = {pair.dimension_column for pair in join.keys if pair.computed is None}
        if not set(dimension.primary_key) <= compared:
            key = ", ".join(dimension.declared_key)
            raise script.error(
                base.at,
                f'{what}, and the join with "{dimension.name}" may give several rows for one of '
                "them",
                hint=f"Compare all of its PRIMARY KEY ({key}) with columns of the stream in ON."
                if key
                else f'Declare the PRIMARY KEY (…) NOT ENFORCED of "{dimension.name}", and compare '
                "all of it in ON.",
            )


def taking_changes(
    script: Script, query: QueryPlanner, table: Table, sink: Sink, output: Sequence[OutputColumn]
) -> Sink:
    """The sink of a stream of changes: one with rows by key, or one that only shows rows."""
    key = changes_by(query)
    if not key or not isinstance(sink, DeltaSink | KafkaSink):
        return sink
    assert query.base is not None, "a query has its first table"
    stream, alias = query.base.table.name, query.base.alias
    keyed = f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED"
    if isinstance(sink, KafkaSink) and not sink.upsert:
        raise script.error(
            table.at,
            f'table "{table.name}" is kafka with format {sink.value.name}, to which rows are only '
            f'appended, and table "{stream}" has updates and deletions',
            hint=f"Write 'connector' = 'upsert-kafka' with 'key.format' and 'value.format', and "
            f"{keyed}; or to delta with that key.",
        )
    by_name = {column.name: column.expression for column in output}
    if not table.primary_key:
        raise script.error(
            table.at,
            f'table "{table.name}" has no primary key, and table "{stream}" has updates and '
            "deletions",
            hint=f'Add {keyed}, with the columns that have the key of "{stream}".',
            edit=_with_key(
                table, {_kept(each, alias): name for name, each in by_name.items()}, key
            ),
        )
    of_key = {name: _kept(by_name[name], alias) for name in table.primary_key}
    constants = {name for name in table.primary_key if isinstance(by_name[name], Constant)}
    others = [name for name, of in of_key.items() if of not in key and name not in constants]
    missing = [name for name in key if name not in of_key.values()]
    if others or missing:
        raise script.error(
            table.at,
            f'the primary key of table "{table.name}" '
            + (
                f'has column "{others[0]}", which is no column of the key of "{stream}"'
                if others
                else f'lacks "{missing[0]}" of the key of "{stream}"'
            )
            + ": the row that a change replaces is not known",
            hint=f"Make the PRIMARY KEY those columns that have ({', '.join(key)}) of "
            f'"{stream}", as they are or by a CAST that keeps each value.',
        )
    return merged_by_key(script, table, sink) if isinstance(sink, DeltaSink) else sink


def _with_key(table: Table, written: Mapping[str | None, str], key: Sequence[str]) -> Edit | None:
    """The table with the columns as its key that have the key of the stream."""
    at = table.node.columns_end
    if not at or table.node.partitioned or any(name not in written for name in key):
        return None
    names = ", ".join(f"`{written[name]}`" for name in key)
    note = "A newer row of a key replaces an older one."
    return Edit(at, at, f",\n  PRIMARY KEY ({names}) NOT ENFORCED", note=note)


def _kept(expression: Expression, alias: str) -> str | None:
    """The column of the stream whose values an expression keeps apart; None for others."""
    while isinstance(expression, Cast):
        source, target = expression.operand.type, expression.type
        is_shown = target == STRING and source.name in _SHOWN_APART
        if not is_shown and not is_lossless(source, target):
            return None
        expression = expression.operand
    is_own = isinstance(expression, Column) and expression.relation == alias
    return expression.name if is_own and isinstance(expression, Column) else None
