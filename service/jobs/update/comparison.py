"""Compares two plans of a job: each difference with whether an update accepts it, and why not."""

from collections.abc import Collection
from dataclasses import replace

from joins.plan.formats import KafkaFormat
from joins.plan.plan import (
    DeltaSink,
    Dimension,
    JoinPlan,
    KafkaSink,
    KafkaSource,
    OutputColumn,
    SharedSource,
    Sink,
    TopicSource,
)
from service.jobs.update.changes import (
    RULES,
    ChangeKind,
    PlanChange,
    Refused,
    RowEffect,
    effect_of,
    judged,
)
from service.jobs.update.fields import FieldPlace, Part, PlanDifference, differences

K = ChangeKind


def compare(
    old: JoinPlan, new: JoinPlan, *, used_names: Collection[str] = (), returns: bool = False
) -> tuple[PlanChange, ...]:
    """What differs between plan `old` of a job and `new`, which has the values that `old` resolved.

    `used_names` are names of tables in older plans of the job that `old` does not have. `returns`
    if `new` is an older plan: nullable columns that came after it stay in the output, as NULL.
    """
    all_differences = differences(old, new, FieldPlace(K.UNKNOWN, "the plan", 0))
    return tuple(
        PlanChange(each.kind, each.of)
        if returns and each.kind is K.OUTPUT_REMOVED and each.part.nullable
        else _in_context(each, old, new, used_names)
        for each in dict.fromkeys(all_differences)
    )


# Context
# --------------------------------------------------------------------------------------------------

_GROWING = (KafkaFormat.JSON, KafkaFormat.DEBEZIUM_JSON)


def _in_context(
    difference: PlanDifference, old: JoinPlan, new: JoinPlan, used_names: Collection[str]
) -> PlanChange:
    change = judged(difference.kind, difference.of)
    if not change.is_accepted:
        return change
    effect, part = effect_of(change.kind), difference.part
    if old.shared_table is not None:
        return _refused_as(change, K.SHARED_TABLE)
    if effect is not RowEffect.NONE and (old.needs_event_batches or new.needs_event_batches):
        return _refused_as(change, K.EVENT_TIME)
    if isinstance(part, Dimension) and change.kind in (K.DIMENSION_ADDED, K.DIMENSION_REMOVED):
        if isinstance(part.source, SharedSource):
            return _refused_as(change, K.SHARED_DIMENSION)
        return _refused_as(change, K.DIMENSION_NAME) if part.name in used_names else change
    sink = old.inserts[difference.insert].sink
    if change.kind is K.OUTPUT_ADDED:
        return _added_column(change, part, sink)
    key = _replacing_key(sink)
    is_of_key = isinstance(part, OutputColumn) and part.name in key
    if key and (effect is RowEffect.ROWS or (change.kind is K.PROJECTION and is_of_key)):
        return change.refused(
            "rows of the output replace others by key, and rows that older batches wrote would "
            "stay although the new plan does not give them",
            "Submit the script as another job, with another output.",
        )
    return change


def _refused_as(change: PlanChange, kind: ChangeKind) -> PlanChange:
    rule = RULES[kind]
    assert isinstance(rule, Refused), "such a kind is refused"
    return change.refused(rule.reason, rule.hint)


def _added_column(change: PlanChange, column: OutputColumn, sink: Sink) -> PlanChange:
    if not column.nullable:
        return change.refused(
            "rows of older batches have no value for it, and it is NOT NULL",
            f'Declare "{column.name}" in the sink without NOT NULL.',
        )
    if isinstance(sink, DeltaSink) and sink.merge_key:
        return change.refused(
            "rows of the output replace others by key, in files of the columns that are there",
            "Submit the script as another job, with another output.",
        )
    if isinstance(sink, KafkaSink) and sink.value.name not in _GROWING:
        return change.refused(
            f'records of format "{sink.value.name}" have a fixed list of columns',
            f"Write to another topic by another job; {', '.join(_GROWING)} may grow.",
        )
    return change


def _replacing_key(sink: Sink) -> tuple[str, ...]:
    if isinstance(sink, DeltaSink):
        return sink.merge_key
    if isinstance(sink, KafkaSink) and sink.upsert and sink.key is not None:
        return sink.key.fields
    return ()


# Resolved values
# --------------------------------------------------------------------------------------------------

_OF_STREAM = (
    ("more_topics", "topic_ids"),
    ("startup_mode", "startup_timestamp_ms", "startup_offsets", "backlog_offsets"),
    ("bounded_mode", "bounded_timestamp_ms", "bounded_offsets"),
)
_OF_TOPIC = (
    ("bounded_mode", "bounded_timestamp_ms", "bounded_offsets", "end_offsets"),
    ("changelog_partitions",),
    ("topic_id",),
    ("history",),
)


def with_resolved(new: JoinPlan, declared: JoinPlan, old: JoinPlan) -> JoinPlan:
    """`new` with what the submission of `old` resolved: topics, offsets, ids, partitions.

    `declared` is the plan of the script of `old` before that. A value that `new` and `declared`
    have in common is replaced by that of `old`; one that the new script changes stays.
    """
    probe, known = new.probe, {each.name: each for each in old.dimensions}
    said = {each.name: each for each in declared.dimensions}
    source = probe.source
    parts = (source, declared.probe.source, old.probe.source)
    if all(isinstance(part, KafkaSource) for part in parts):
        probe = replace(probe, source=_taken(_OF_STREAM, *parts))
    dimensions = tuple(
        replace(d, source=_taken(_OF_TOPIC, d.source, said[d.name].source, known[d.name].source))
        if d.name in known and d.name in said and _are(TopicSource, d, said[d.name], known[d.name])
        else d
        for d in new.dimensions
    )
    first, *more = (_with_cluster(*pair) for pair in zip(new.inserts, old.inserts, strict=False))
    further = [
        replace(insert, sink=sink) for insert, sink in zip(new.more_inserts, more, strict=False)
    ]
    return replace(
        new,
        name=old.name,
        probe=probe,
        dimensions=dimensions,
        sink=first,
        more_inserts=(*further, *new.more_inserts[len(further) :]),
    )


def _are(kind: type[TopicSource], *dimensions: Dimension) -> bool:
    return all(isinstance(each.source, kind) for each in dimensions)


def _taken(groups: tuple[tuple[str, ...], ...], new: Part, declared: Part, old: Part) -> Part:
    for names in groups:
        if all(getattr(new, name) == getattr(declared, name) for name in names):
            new = replace(new, **{name: getattr(old, name) for name in names})
    if new.kafka.topic == declared.kafka.topic:
        new = replace(new, kafka=replace(new.kafka, topic=old.kafka.topic))
    return new


def _with_cluster(new: JoinPlan, old: JoinPlan) -> Sink:
    sink, known = new.sink, old.sink
    if isinstance(sink, KafkaSink) and isinstance(known, KafkaSink) and sink.cluster_id is None:
        return replace(sink, cluster_id=known.cluster_id)
    return sink
