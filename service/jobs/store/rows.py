"""Jobs and their events as rows of the store's tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy as sa

from service.errors import JobConflictError, JobNotFoundError, TableConflictError
from service.jobs.store.job import (
    JOB_STATES,
    DesiredState,
    Job,
    JobError,
    JobEvent,
    JobState,
    NewJob,
    StateUpdate,
    now_ms,
)

LOCK_SPACE = 0x534C4349  # "SLCI": separates Sluice's advisory locks from others
LEADER, MIGRATION, NAMES = "leader", "migration", "names"
LEADERSHIP = sa.Table(
    "leadership",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("term", sa.BigInteger),
    sa.Column("url", sa.Text),
    sa.Column("since_ms", sa.BigInteger),
    sa.Column("is_vacant", sa.Boolean),
    sa.Column("data_dir_id", sa.String(36)),
)


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    """The newest leader; `term` grows with each takeover and is 0 before the first.

    `is_vacant`: the leader has ended its runners and resigned, or there was none yet.
    """

    term: int
    url: str
    since_ms: int
    is_vacant: bool


def lock_key(name: str) -> sa.ColumnElement[int]:
    """The second half of a lock's key, by schema: a database may have several stores."""
    return sa.func.hashtext(sa.func.concat(sa.func.current_schema(), ".", name))


def record_of(row: sa.RowMapping) -> LeaderRecord:
    return LeaderRecord(row["term"], row["url"], row["since_ms"], row["is_vacant"])


_EVENTS_KEPT = 10_000  # newest events per job
_FORGET_EVERY = 101  # events; a prime, as jobs may take turns
_PLANS_AT_ONCE = 50
_UNSTORED = re.compile("[\x00\ud800-\udfff]")


class StoredText(sa.TypeDecorator[str]):
    """Text without NUL and halves of surrogate pairs, which not every database can store."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else _UNSTORED.sub("\N{REPLACEMENT CHARACTER}", value)


_METADATA = sa.MetaData()
JOBS = sa.Table(
    "jobs",
    _METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", StoredText),
    sa.Column("state", sa.String(16)),
    sa.Column("desired_state", sa.String(16)),
    sa.Column("desired_by", StoredText),
    sa.Column("plan", sa.LargeBinary),
    sa.Column("sql", sa.Text),
    sa.Column("warnings", sa.JSON),
    sa.Column("reason", StoredText),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("crashes", sa.Integer),
    sa.Column("restarts", sa.Integer),
    sa.Column("events_offset", sa.BigInteger),
    sa.Column("remove_output", sa.Boolean),
    sa.Column("created_at_ms", sa.BigInteger),
    sa.Column("updated_at_ms", sa.BigInteger),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("request_digest", sa.String(64)),
    sa.Column("shared_table", sa.Text),
)
CATALOG = sa.Table(
    "catalog",
    _METADATA,
    sa.Column("name", StoredText, primary_key=True),
    sa.Column("number", sa.BigInteger),
    sa.Column("kind", sa.String(16)),
    sa.Column("sql", sa.Text),
    sa.Column("job_id", sa.String(36)),
    sa.Column("partitions", sa.Integer),
    sa.Column("created_at_ms", sa.BigInteger),
)
ATTACHMENTS = sa.Table(
    "attachments",
    _METADATA,
    sa.Column("job_id", sa.String(36), primary_key=True),
    sa.Column("table_job_id", sa.String(36), primary_key=True),
)
SECRETS = sa.Table(
    "job_secrets",
    _METADATA,
    sa.Column("job_id", sa.String(36), primary_key=True),
    sa.Column("content", sa.LargeBinary),
)
EVENTS = sa.Table(
    "events",
    _METADATA,
    sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id")),
    sa.Column("at_ms", sa.BigInteger),
    sa.Column("origin", sa.String(16)),
    sa.Column("target", sa.String(16)),
    sa.Column("cause", StoredText),
    sqlite_autoincrement=True,
)
_NO_COLUMNS = ("attached", "secrets", "has_own_name")
_JOB_COLUMNS = [c for c in JOBS.c if c.name not in ("idempotency_key", "request_digest")]
LISTED: list[sa.ColumnElement[Any]] = [
    *(c for c in _JOB_COLUMNS if c.name not in ("plan", "sql")),
    sa.cast(sa.literal(b""), sa.LargeBinary).label("plan"),  # each may have 64 KiB and more
    sa.literal("").label("sql"),
]
SINCE = (  # the newest transition; notes have equal states
    sa.select(EVENTS.c.at_ms)
    .where(EVENTS.c.job_id == JOBS.c.id)
    .where(sa.or_(EVENTS.c.origin.is_(None), EVENTS.c.origin != EVENTS.c.target))
    .order_by(EVENTS.c.sequence.desc())
    .limit(1)
    .correlate(JOBS)
    .scalar_subquery()
    .label("since_ms")
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are listed; an empty member matches all.

    `search` is part of the name or the beginning of the id, ignoring case.
    """

    states: tuple[JobState, ...] = ()
    desired_states: tuple[DesiredState, ...] = ()
    name: str | None = None
    search: str | None = None

    def conditions(self) -> Iterator[sa.ColumnElement[bool]]:
        if self.states:
            yield JOBS.c.state.in_([state.value for state in self.states])
        if self.desired_states:
            yield JOBS.c.desired_state.in_([state.value for state in self.desired_states])
        if self.name is not None:
            yield JOBS.c.name == self.name
        if self.search:
            text = _UNSTORED.sub("\N{REPLACEMENT CHARACTER}", self.search.lower())
            named = sa.func.lower(JOBS.c.name).contains(text, autoescape=True)
            yield named | JOBS.c.id.startswith(text, autoescape=True)


@dataclass(frozen=True, slots=True)
class StoredJob:
    """The values of a stored job that a new job is compared with."""

    id: str
    name: str
    state: JobState
    desired_state: DesiredState

    def takes(self, name: str) -> bool:
        can_run = self.state is not JobState.FINISHED
        return self.name == name and can_run and self.desired_state is not DesiredState.REMOVED


class StoredJobs:
    """The jobs of the store in one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def jobs(self) -> list[StoredJob]:
        columns = (JOBS.c.id, JOBS.c.name, JOBS.c.state, JOBS.c.desired_state)
        rows = self._connection.execute(sa.select(*columns).order_by(JOBS.c.id))
        return [
            StoredJob(row.id, row.name, JobState(row.state), DesiredState(row.desired_state))
            for row in rows
        ]

    def ids(self) -> frozenset[str]:
        return frozenset(self._connection.execute(sa.select(JOBS.c.id)).scalars())

    def count_by_state(self) -> dict[JobState, int]:
        query = sa.select(JOBS.c.state, sa.func.count()).group_by(JOBS.c.state)
        return {JobState(state): number for state, number in self._connection.execute(query)}

    def of_key(self, idempotency_key: str) -> tuple[Job, str] | None:
        """The job that was submitted with this key, and the digest of that request."""
        query = sa.select(JOBS.c.id, JOBS.c.request_digest)
        query = query.where(JOBS.c.idempotency_key == idempotency_key)
        row = self._connection.execute(query).first()
        return None if row is None else (get_job(self._connection, row.id), row.request_digest)

    def plans(self, job_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for at in range(0, len(job_ids), _PLANS_AT_ONCE):
            some = job_ids[at : at + _PLANS_AT_ONCE]
            query = sa.select(JOBS.c.id, JOBS.c.plan).where(JOBS.c.id.in_(some))
            yield from ((row.id, row.plan) for row in self._connection.execute(query))


def get_job(connection: sa.Connection, job_id: str, *, lock: bool = False) -> Job:
    """The job, with `lock` locked for a change. Raises JobNotFoundError."""
    columns = _JOB_COLUMNS if lock else [*_JOB_COLUMNS, SINCE]
    query = sa.select(*columns).where(JOBS.c.id == job_id)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise JobNotFoundError(
            f'job "{job_id}" does not exist', hint="List the jobs to see their ids."
        )
    return job_of(row)


def insert_job(connection: sa.Connection, new: NewJob) -> None:
    """Store a new job in state CREATED, desired RUNNING, and its attachments.

    Raises JobConflictError if a job that can still run has its name, TableConflictError if a shared
    table has been dropped.
    """
    _take_name(connection, new)
    created_at_ms = now_ms()
    row = {
        **{name: value for name, value in asdict(new).items() if name not in _NO_COLUMNS},
        "warnings": list(new.warnings),
        "state": JobState.CREATED.value,
        "desired_state": DesiredState.RUNNING.value,
        "reason": "The job is stored and waits for its runner.",
        "error": None,
        "crashes": 0,
        "restarts": 0,
        "events_offset": 0,
        "remove_output": False,
        "created_at_ms": created_at_ms,
        "updated_at_ms": created_at_ms,
    }
    connection.execute(sa.insert(JOBS).values(row))
    record_event(connection, new.id, None, StateUpdate(JobState.CREATED, "submitted"))
    if new.secrets is not None:
        secrets = {"job_id": new.id, "content": new.secrets}
        connection.execute(sa.insert(SECRETS).values(secrets))
    for table_job_id in new.attached:
        _attach(connection, new, table_job_id)


def lock_names(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        one_at_a_time = sa.func.pg_advisory_xact_lock(LOCK_SPACE, lock_key(NAMES))
        connection.execute(sa.select(one_at_a_time))


def _take_name(connection: sa.Connection, new: NewJob) -> None:
    if not new.has_own_name:
        return
    lock_names(connection)
    taken = sa.select(JOBS.c.id).where(JOBS.c.name == new.name)
    taken = taken.where(JOBS.c.state != JobState.FINISHED.value)
    taken = taken.where(JOBS.c.desired_state != DesiredState.REMOVED.value)
    job_id = connection.execute(taken).scalar()
    if job_id is not None:
        raise JobConflictError(
            f'job {job_id} has the name "{new.name}"',
            hint=f"Remove that job with sluice jobs rm {job_id}, or choose another name.",
        )


def _attach(connection: sa.Connection, new: NewJob, table_job_id: str) -> None:
    kept = sa.select(CATALOG.c.name).where(CATALOG.c.job_id == table_job_id).with_for_update()
    if connection.execute(kept).first() is None:
        raise TableConflictError(
            f'a shared table that job "{new.name}" reads was dropped while the script was planned',
            hint="Look at the tables with sluice tables ls, and submit the script again.",
        )
    values = {"job_id": new.id, "table_job_id": table_job_id}
    connection.execute(sa.insert(ATTACHMENTS).values(values))


def move_job(connection: sa.Connection, job: Job, change: StateUpdate) -> Job:
    """Make and record the transition; raises as `JobStore.transition`."""
    if change.is_note:
        record_event(connection, job.id, job.state, replace(change, target=job.state))
        return job
    if change.target is not job.state:
        JOB_STATES.check(job.state, change.target)
        record_event(connection, job.id, job.state, change)
    values: dict[str, Any] = {
        "state": change.target.value,
        "reason": change.reason or change.cause,
        "error": None if change.error is None else asdict(change.error),
    }
    desired = change.desired
    if change.target is JobState.FAILED and job.state is not JobState.FAILED:
        desired = DesiredState.STOPPED  # at once: who sees it failed may start it again
    if desired is not None and job.desired_state is not DesiredState.REMOVED:
        values |= {"desired_state": desired.value, "desired_by": None}
    update_job(connection, job.id, values)
    return get_job(connection, job.id)


def record_event(
    connection: sa.Connection, job_id: str, origin: JobState | None, change: StateUpdate
) -> None:
    """Record a transition; the oldest of many are deleted."""
    done = connection.execute(
        sa.insert(EVENTS).values(
            job_id=job_id,
            at_ms=change.at_ms,
            origin=None if origin is None else origin.value,
            target=change.target.value,
            cause=change.cause,
        )
    )
    sequence = done.inserted_primary_key
    if sequence is None or sequence[0] % _FORGET_EVERY == 0:
        kept = sa.select(EVENTS.c.sequence).where(EVENTS.c.job_id == job_id)
        kept = kept.order_by(EVENTS.c.sequence.desc()).offset(_EVENTS_KEPT).limit(1)
        last = connection.execute(kept).scalar()
        if last is not None:
            old = sa.and_(EVENTS.c.job_id == job_id, EVENTS.c.sequence <= last)
            connection.execute(sa.delete(EVENTS).where(old))


def update_job(connection: sa.Connection, job_id: str, values: Mapping[str, Any]) -> None:
    connection.execute(
        sa.update(JOBS).where(JOBS.c.id == job_id).values({**values, "updated_at_ms": now_ms()})
    )


def job_of(row: sa.RowMapping) -> Job:
    error = row["error"]
    return Job(
        **{
            **row,
            "state": JobState(row["state"]),
            "desired_state": DesiredState(row["desired_state"]),
            "warnings": tuple(row["warnings"]),
            "error": None if error is None else JobError(**error),
        }
    )


def event_of(row: sa.RowMapping) -> JobEvent:
    origin = row["origin"]
    return JobEvent(
        **{
            **row,
            "origin": None if origin is None else JobState(origin),
            "target": JobState(row["target"]),
        }
    )
