"""Updates of jobs: compared, refused or stored; a runner takes a plan at a batch's border."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from joins.durable.stored import keep_stored
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
    TableStream,
    TopicSource,
)
from service.config import Settings
from service.errors import JobConflictError, UpdateRefusedError
from service.jobs.store.job import DesiredState, Job, check_wanted
from service.jobs.store.layout import JobLayout
from service.jobs.store.plan_copy import note_newest, note_plan
from service.jobs.store.plans import JobPlans
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import Submissions
from service.jobs.update.changes import (
    ChangeKind,
    PlanChange,
    Refused,
    RowEffect,
    effect_of,
    judged,
)
from service.jobs.update.fields import FieldPlace, Part, PlanDifference, differences
from service.security.secrets import SecretResolver
from service.sql.planner.planner import PlannedScript
from service.sql.text.script import SqlError

K = ChangeKind


def compare(
    old: JoinPlan, new: JoinPlan, *, earlier: Iterable[JoinPlan] = (), returns: bool = False
) -> tuple[PlanChange, ...]:
    """What differs between plan `old` of a job and `new`, which has the values that `old` resolved.

    `earlier` are the job's plans before `old`: their tables and columns are still there. `returns`
    if `new` is an older plan: nullable columns that came after it stay in the output, as NULL.
    """
    traces = _Traces.of(earlier, old)
    all_differences = differences(old, new, FieldPlace(K.UNKNOWN, "the plan", 0))
    return tuple(
        PlanChange(each.kind, each.of)
        if returns and each.kind is K.OUTPUT_REMOVED and each.part.nullable
        else _in_context(each, old, new, traces)
        for each in dict.fromkeys(all_differences)
    )


# Context
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Traces:
    """What older plans of a job have left that its newest one does not have."""

    tables: frozenset[str]
    columns: Mapping[tuple[int, str], OutputColumn]  # by INSERT and `_name_in` its output

    @classmethod
    def of(cls, earlier: Iterable[JoinPlan], old: JoinPlan) -> "_Traces":
        tables, columns = set[str](), dict[tuple[int, str], OutputColumn]()
        for plan in earlier:
            tables |= {dimension.name for dimension in plan.dimensions}
            for number, insert in enumerate(plan.inserts):
                columns |= {(number, _name_in(insert.sink, c)): c for c in insert.output}
        return cls(frozenset(tables - {d.name for d in old.dimensions}), columns)


def _name_in(sink: Sink, column: OutputColumn) -> str:
    return column.name.lower() if isinstance(sink, DeltaSink) else column.name


_GROWING = (KafkaFormat.JSON, KafkaFormat.DEBEZIUM_JSON)


def _in_context(
    difference: PlanDifference, old: JoinPlan, new: JoinPlan, traces: _Traces
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
        return _refused_as(change, K.DIMENSION_NAME) if part.name in traces.tables else change
    sink = old.inserts[difference.insert].sink
    if change.kind is K.OUTPUT_ADDED:
        known = traces.columns.get((difference.insert, _name_in(sink, part)), part)
        if known.name == part.name and known.expression.type != part.expression.type:
            return _refused_as(change, K.OUTPUT_TYPE)
        if known.name != part.name:
            return change.refused(
                f'the output has "{known.name}", and a delta table tells no columns apart by case',
                f'Name the column "{known.name}", or otherwise than it.',
            )
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
    rule = kind.rule
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
    ("history",),
    ("bounded_mode", "bounded_timestamp_ms", "bounded_offsets"),
)
_OF_TABLE = (("changelog_partitions",),)
_OF_TOPIC = (
    *_OF_TABLE,
    ("bounded_mode", "bounded_timestamp_ms", "bounded_offsets", "end_offsets"),
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
    parts: tuple[Part, ...] = (probe.source, declared.probe.source, old.probe.source)
    if all(isinstance(part, KafkaSource) for part in parts):
        probe = replace(probe, source=_taken(_OF_STREAM, *parts))
    elif all(isinstance(part, TableStream) for part in parts):
        table = _taken(_OF_TABLE, *(part.table for part in parts))
        probe = replace(probe, source=replace(parts[0], table=table))
    dimensions = tuple(
        replace(d, source=_of_table(d.source, said[d.name].source, known[d.name].source))
        if d.name in known and d.name in said
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


def _of_table(*parts: Part) -> Part:
    """The newest of three sources with what the submission has resolved; `parts` as of `_taken`."""
    new, *others = parts
    if any(type(other) is not type(new) for other in others):
        return new
    return _taken(_OF_TOPIC if isinstance(new, TopicSource) else _OF_TABLE, *parts)


def _taken(groups: tuple[tuple[str, ...], ...], new: Part, declared: Part, old: Part) -> Part:
    for names in groups:
        if all(getattr(new, name) == getattr(declared, name) for name in names):
            new = replace(new, **{name: getattr(old, name) for name in names})
    if isinstance(new, KafkaSource | TopicSource) and new.kafka.topic == declared.kafka.topic:
        new = replace(new, kafka=replace(new.kafka, topic=old.kafka.topic))
    return new


def _with_cluster(new: JoinPlan, old: JoinPlan) -> Sink:
    sink, known = new.sink, old.sink
    if isinstance(sink, KafkaSink) and isinstance(known, KafkaSink) and sink.cluster_id is None:
        return replace(sink, cluster_id=known.cluster_id)
    return sink


@dataclass(frozen=True, slots=True)
class UpdateDraft:
    """What an update changes, before it is stored."""

    plan: JoinPlan  # with the number that it gets
    changes: tuple[PlanChange, ...]  # none if the job has this plan already
    warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[PlanChange, ...]:
        return tuple(change for change in self.changes if not change.is_accepted)

    @property
    def changes_rows(self) -> bool:
        return any(effect_of(change.kind) is not RowEffect.NONE for change in self.changes)


class Updates:
    """Changes jobs; one for each control plane. Only the leading one stores an update."""

    def __init__(self, store: JobStore, settings: Settings, submissions: Submissions) -> None:
        self._store = store
        self._settings = settings
        self._submissions = submissions

    def draft(self, job_id: str, sql: str) -> UpdateDraft:
        """What `sql` would change in the job; added tables are checked at their sources.

        Raises SqlError for the script, JobNotFoundError, JobStateError for a finished job,
        UpdateRefusedError if it brings a new secret, SluiceError for a fault of an added table.
        """
        job = self._changeable(job_id)
        plans = JobPlans(self._layout(job_id))
        old = plans.newest()
        planned = self._submissions.planned(sql, job.name)
        self._check_secrets(job_id, planned)
        new = with_resolved(planned.plan, self._declared(job, old), old)
        draft = self._compared(plans, old, new)
        if draft.refused or not draft.changes:
            return replace(draft, warnings=tuple(planned.warnings))
        known = {dimension.name for dimension in old.dimensions}
        added = {d.name for d in new.dimensions} - known
        plan = self._submissions.checked_update(draft.plan, self._layout(job_id).job_dir, added)
        return replace(draft, plan=plan, warnings=tuple(planned.warnings))

    def draft_rollback(self, job_id: str, number: int | None = None) -> UpdateDraft:
        """What another plan of the job would change: plan `number`, or the one before the newest.

        Raises JobConflictError if there is no such plan; else as `draft`.
        """
        self._changeable(job_id)
        plans = JobPlans(self._layout(job_id))
        old = plans.newest()
        older = old.number - 1 if number is None else number
        if not 1 <= older <= old.number:
            known = "only plan 1" if old.number == 1 else f"plans 1 to {old.number}"
            raise JobConflictError(
                f'job "{job_id}" has {known}, and plan {older} was named',
                hint="Name an older plan of the job; sluice jobs update changes it to another one.",
            )
        return self._compared(plans, old, plans.read(older), returns=True)

    def store(self, job_id: str, draft: UpdateDraft) -> Job:
        """Make the plan of `draft` the job's; durable when this returns. Nothing without changes.

        Raises UpdateRefusedError for a refused change, JobConflictError if another update was
        faster.
        """
        if draft.refused:
            raise _refusal(draft)
        layout, number = self._layout(job_id), draft.plan.number
        if not draft.changes:
            note_newest(self._store, layout)  # an earlier call may have failed to
            return self._store.get(job_id)
        self._changeable(job_id)
        stored = layout.stored()
        if stored is not None:
            keep_stored(stored)
        plans = JobPlans(layout)
        if plans.newest_number != number - 1 or not plans.add(draft.plan):
            raise JobConflictError(
                f'job "{job_id}" was given plan {plans.newest_number} meanwhile',
                hint="Look at the difference again: sluice jobs update with --preview.",
            )
        return note_plan(self._store, job_id, draft.plan)

    def catch_up(self) -> None:
        """Bring the job store up to the plans in the jobs' directories, after a crash between."""
        for job in self._store.all_jobs():
            note_newest(self._store, self._layout(job.id))

    def _changeable(self, job_id: str) -> Job:
        job = self._store.get(job_id)
        check_wanted(job, DesiredState.RUNNING)
        return job

    def _layout(self, job_id: str) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job_id)

    def _declared(self, job: Job, old: JoinPlan) -> JoinPlan:
        """The plan of the newest script as it was before its offsets were resolved."""
        try:
            return self._submissions.planned(old.sql, job.name).plan
        except SqlError as exc:
            raise UpdateRefusedError(
                f'the script of job "{job.id}" can no longer be planned: {exc.message}',
                hint="Restore the tables and views of the catalog that it uses. If this version "
                "refuses the script, submit the new one as another job, with another output.",
            ) from exc

    def _check_secrets(self, job_id: str, planned: PlannedScript) -> None:
        secrets = SecretResolver.of(self._settings, self._layout(job_id).job_dir)
        for inline in planned.inline_secrets:
            if secrets.of_job(inline.name) != inline.value:
                raise UpdateRefusedError(
                    f'the script has a password that is not stored for job "{job_id}"',
                    hint="Store it with `sluice secrets set`, and name it: ${secret:name}.",
                )

    def _compared(
        self, plans: JobPlans, old: JoinPlan, new: JoinPlan, *, returns: bool = False
    ) -> UpdateDraft:
        changes = compare(old, new, earlier=plans.all(), returns=returns)
        return UpdateDraft(replace(new, number=old.number + 1), changes)


def _refusal(draft: UpdateDraft) -> UpdateRefusedError:
    first, *more = draft.refused
    others = f", and {len(more)} more" if more else ""
    return UpdateRefusedError(
        f"the update would change {first.of}: {first.reason}{others}", hint=first.hint or ""
    )
