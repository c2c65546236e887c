"""A statement set of several INSERTs as one job: they read one stream, once opened, batch by batch.

Each INSERT is planned by itself; what they have in common becomes the job's.
"""

from collections.abc import Sequence
from dataclasses import replace

from joins.plan.plan import (
    SET_FORMAT_VERSION,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    FileSource,
    FurtherInsert,
    JoinPlan,
    KafkaSink,
    ProbeSource,
)
from service.sql.grammar.syntax import Insert, Select
from service.sql.planner.dimension_planner import same_path
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


def one_job(script: Script, planned: Sequence[tuple[Insert | Select, JoinPlan]]) -> JoinPlan:
    """The plan of all INSERTs together; the first gives the job its name.

    Raises:
        SqlError: they cannot be one job.
    """
    (_, first), *others = planned
    check_count(script, planned[-1][0], len(planned))
    for node, plan in planned:
        if plan.needs_event_batches:
            raise script.error(
                node.at,
                f'INSERT INTO "{plan.sink_table}" joins by event time or has a window, which a '
                "statement set of several INSERTs cannot",
                hint=_APART,
            )
    for node, plan in others:
        _check_stream(script, node, first, plan)
    _check_topics(script, planned)
    dimensions = _all_dimensions(script, planned)
    _check_not_joined(script, planned, dimensions)
    return replace(
        first,
        dimensions=dimensions,
        format_version=SET_FORMAT_VERSION,
        more_inserts=tuple(_further(plan) for _, plan in others),
    )


def _further(plan: JoinPlan) -> FurtherInsert:
    return FurtherInsert(
        alias=plan.probe.alias,
        computed_fields=plan.probe.computed_fields,
        joins=plan.joins,
        where=plan.where,
        output=plan.output,
        sink_table=plan.sink_table,
        sink=plan.sink,
        unnests=plan.unnests,
    )


def _query(node: Insert | Select) -> Select:
    return node if isinstance(node, Select) else node.select


def _written_at(node: Insert | Select) -> int:
    return node.at if isinstance(node, Select) else node.table.at


def _check_stream(script: Script, node: Insert | Select, first: JoinPlan, plan: JoinPlan) -> None:
    one, other = first.probe, plan.probe
    query = _query(node)
    at = query.probe.table.at
    if one.table != other.table and query.others:
        raise script.error(
            query.others[0].at,
            f'UNION ALL reads two streams: table "{one.table}" and table "{other.table}"',
            hint="Submit a job for each of them: jobs may INSERT INTO the same table.",
        )
    if one.table != other.table:
        raise script.error(
            at,
            f'the statement set reads two streams: table "{one.table}" into "{first.sink_table}" '
            f'and table "{other.table}" into "{plan.sink_table}"',
            hint="Submit a job for each stream.",
        )
    if _source(one) != _source(other):
        raise script.error(
            at,
            f'table "{other.table}" has other OPTIONS into "{plan.sink_table}" than into '
            f'"{first.sink_table}"',
            hint="Give it the same OPTIONS in all INSERTs of the set: the job reads it once.",
        )


def _source(probe: ProbeSource) -> ProbeSource:
    return replace(probe, alias="", computed_fields=())


def _check_topics(script: Script, planned: Sequence[tuple[Insert | Select, JoinPlan]]) -> None:
    """See that each Kafka sink is alone in its topic: headers tell records apart, not INSERTs."""
    taken: dict[tuple[str, str], str] = {}
    nodes: dict[tuple[str, str], Insert | Select] = {}
    for node, plan in planned:
        if not isinstance(plan.sink, KafkaSink):
            continue
        place = (plan.sink.kafka.bootstrap_servers, plan.sink.kafka.topic)
        if place in taken and node is nodes.get(place):
            raise script.error(
                _query(node).at,
                f'UNION ALL writes to topic "{place[1]}"',
                hint="Write to a delta table, or submit a job for each of its queries: after a "
                "crash, repeats of a record could not be told from the rows of the other query.",
            )
        nodes[place] = node
        if place in taken:
            raise script.error(
                _written_at(node),
                f'INSERT INTO "{plan.sink_table}" writes to topic "{place[1]}", as INSERT INTO '
                f'"{taken[place]}" does',
                hint="Give each INSERT of the set a topic of its own: after a crash, repeats of a "
                "record could not be told from the rows of the other INSERT.",
            )
        taken[place] = plan.sink_table


def _all_dimensions(
    script: Script, planned: Sequence[tuple[Insert | Select, JoinPlan]]
) -> tuple[Dimension, ...]:
    by_name: dict[str, Dimension] = {}
    for node, plan in planned:
        for dimension in plan.dimensions:
            if by_name.setdefault(dimension.name, dimension) != dimension:
                raise script.error(
                    _query(node).at,
                    f'table "{dimension.name}" has other OPTIONS into "{plan.sink_table}" than in '
                    "an INSERT before",
                    hint="Give it the same OPTIONS in all INSERTs of the set: the job keeps it "
                    "once.",
                )
    return tuple(by_name.values())


def _check_not_joined(
    script: Script,
    planned: Sequence[tuple[Insert | Select, JoinPlan]],
    dimensions: Sequence[Dimension],
) -> None:
    """See that no INSERT writes a table that another one joins."""
    sources = [(d.name, d.source) for d in dimensions]
    for node, plan in planned:
        for name, source in sources:
            if not isinstance(plan.sink, DeltaSink):
                continue
            if not isinstance(source, DeltaTableSource | FileSource):
                continue
            if same_path(plan.sink.path, source.path):
                raise script.error(
                    _written_at(node),
                    f'table "{name}" is joined, and written by the same job',
                    hint="Write to another path; another job may then join that table.",
                )
