"""A statement set of several INSERTs as one job: they read one stream, once opened, batch by batch.

Each INSERT is planned by itself; what they have in common becomes the job's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from joins.plan.plan import (
    SET_FORMAT_VERSION,
    TABLES_FORMAT_VERSION,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    FileSource,
    FurtherInsert,
    JoinPlan,
    KafkaSink,
)
from service.sql.grammar.syntax import Insert, Select
from service.sql.planner.dimension_planner import same_path
from service.sql.planner.sets.stream_planner import PlannedInsert, over_one_stream, table_behind
from service.sql.text.script import Script

MOST_INSERTS = 16
_APART = "Submit it as a job of its own; jobs that read one topic do not disturb each other."


def check_count(script: Script, node: Insert | Select, count: int) -> None:
    """See that a job may run `count` INSERTs, the last of which is `node` or of its queries.

    Raises:
        SqlError: they are too many.
    """
    if count > MOST_INSERTS:
        raise script.error(
            node.at,
            f"a job of {count} INSERTs, expected {MOST_INSERTS} at the most; each query of UNION "
            "ALL is one",
            hint="Submit the others as jobs of their own.",
        )


def one_job(script: Script, inserts: Sequence[PlannedInsert]) -> JoinPlan:
    """The plan of all INSERTs together; the first gives the job its name.

    Raises:
        SqlError: they cannot be one job.
    """
    check_count(script, inserts[-1].node, len(inserts))
    for each in inserts:
        if each.plan.needs_event_batches:
            raise script.error(
                each.node.at,
                f'INSERT INTO "{each.plan.sink_table}" joins by event time or has a window, which '
                "a statement set of several INSERTs cannot",
                hint=_APART,
            )
    inserts = over_one_stream(script, inserts)
    _check_topics(script, inserts)
    dimensions = _all_dimensions(script, inserts)
    _check_not_joined(script, inserts, dimensions)
    first, *others = (each.plan for each in inserts)
    return replace(
        first,
        dimensions=dimensions,
        format_version=TABLES_FORMAT_VERSION if first.probe.reads else SET_FORMAT_VERSION,
        more_inserts=tuple(_further(first, plan) for plan in others),
    )


def _further(first: JoinPlan, plan: JoinPlan) -> FurtherInsert:
    return FurtherInsert(
        alias=plan.probe.alias,
        computed_fields=plan.probe.computed_fields,
        joins=plan.joins,
        where=plan.where,
        output=plan.output,
        sink_table=plan.sink_table,
        sink=plan.sink,
        unnests=plan.unnests,
        table=table_behind(first.probe, plan.probe),
    )


def _written_at(node: Insert | Select) -> int:
    return node.at if isinstance(node, Select) else node.table.at


def _check_topics(script: Script, inserts: Sequence[PlannedInsert]) -> None:
    """See that of each record only one INSERT writes to a topic: headers tell records apart."""
    for number, insert in enumerate(inserts):
        for before in inserts[:number]:
            if _share_a_topic(before.plan, insert.plan):
                _refuse_one_topic(script, before, insert)


def _share_a_topic(one: JoinPlan, other: JoinPlan) -> bool:
    """Whether both write records of the same topic to the same one."""
    if not isinstance(one.sink, KafkaSink) or not isinstance(other.sink, KafkaSink):
        return False
    places = [(s.kafka.bootstrap_servers, s.kafka.topic) for s in (one.sink, other.sink)]
    reads = set(one.probe.topic_names), set(other.probe.topic_names)
    return places[0] == places[1] and (reads[0] == reads[1] or bool(reads[0] & reads[1]))


def _refuse_one_topic(script: Script, before: PlannedInsert, insert: PlannedInsert) -> NoReturn:
    sink = insert.plan.sink
    assert isinstance(sink, KafkaSink), "others have no topic"
    if before.node is insert.node:
        raise script.error(
            insert.query.at,
            f'UNION ALL writes to topic "{sink.kafka.topic}"',
            hint="Write to a delta table, or submit a job for each of its queries: after a "
            "crash, repeats of a record could not be told from the rows of the other query.",
        )
    raise script.error(
        _written_at(insert.node),
        f'INSERT INTO "{insert.plan.sink_table}" writes to topic "{sink.kafka.topic}", as INSERT '
        f'INTO "{before.plan.sink_table}" does',
        hint="Give each INSERT of the set a topic of its own: after a crash, repeats of a "
        "record could not be told from the rows of the other INSERT.",
    )


def _all_dimensions(script: Script, inserts: Sequence[PlannedInsert]) -> tuple[Dimension, ...]:
    by_name: dict[str, Dimension] = {}
    for each in inserts:
        for dimension in each.plan.dimensions:
            if by_name.setdefault(dimension.name, dimension) != dimension:
                raise script.error(
                    each.query.at,
                    f'table "{dimension.name}" has other OPTIONS into "{each.plan.sink_table}" '
                    "than in an INSERT before",
                    hint="Give it the same OPTIONS in all INSERTs of the set: the job keeps it "
                    "once.",
                )
    return tuple(by_name.values())


def _check_not_joined(
    script: Script, inserts: Sequence[PlannedInsert], dimensions: Sequence[Dimension]
) -> None:
    """See that no INSERT writes a table that another one joins."""
    sources = [(d.name, d.source) for d in dimensions]
    for each in inserts:
        for name, source in sources:
            if not isinstance(each.plan.sink, DeltaSink):
                continue
            if not isinstance(source, DeltaTableSource | FileSource):
                continue
            if same_path(each.plan.sink.path, source.path):
                raise script.error(
                    _written_at(each.node),
                    f'table "{name}" is joined, and written by the same job',
                    hint="Write to another path; another job may then join that table.",
                )
