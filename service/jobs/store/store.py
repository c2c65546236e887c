"""The durable job store: SQLAlchemy Core on SQLite (WAL, synchronous FULL) or on PostgreSQL by URL.

What a method wrote is durable when it returns. Every change of a job's state goes through
`transition` or `follow`, which keep the transition with its cause in the same transaction.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError

from service.errors import JobConflictError, JobNotFoundError, StoreError
from service.jobs.store.job import (
    DesiredState,
    Job,
    JobError,
    JobEvent,
    JobState,
    check_transition,
    check_wanted,
)
from service.jobs.store.token_store import TokenStore

_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_TIMEOUT_S = 30
_TIDY_AFTER = 100  # transactions; with a plan each they fill 3 MiB of SQLite's log
_LOG_PAGES = 10_000  # of 4 KiB; what a writer moves by itself where nobody tidies up
_EVENTS_KEPT = 10_000  # of a job, the newest
_FORGET_EVERY = 100  # events
_MIGRATING = threading.Lock()  # alembic keeps its context in a module
_METADATA = sa.MetaData()
_JOBS = sa.Table(
    "jobs",
    _METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text),
    sa.Column("state", sa.String(16)),
    sa.Column("desired_state", sa.String(16)),
    sa.Column("plan", sa.LargeBinary),
    sa.Column("sql", sa.Text),
    sa.Column("warnings", sa.JSON),
    sa.Column("reason", sa.Text),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("crashes", sa.Integer),
    sa.Column("restarts", sa.Integer),
    sa.Column("events_offset", sa.BigInteger),
    sa.Column("remove_output", sa.Boolean),
    sa.Column("created_at_ms", sa.BigInteger),
    sa.Column("updated_at_ms", sa.BigInteger),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("request_digest", sa.String(64)),
)
_EVENTS = sa.Table(
    "events",
    _METADATA,
    sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id")),
    sa.Column("at_ms", sa.BigInteger),
    sa.Column("origin", sa.String(16)),
    sa.Column("target", sa.String(16)),
    sa.Column("cause", sa.Text),
    sqlite_autoincrement=True,
)
_JOB_COLUMNS = [c for c in _JOBS.c if c.name not in ("idempotency_key", "request_digest")]
_LISTED: list[sa.ColumnElement[Any]] = [
    *(c for c in _JOB_COLUMNS if c.name not in ("plan", "sql")),
    sa.literal(b"").label("plan"),  # each may have 64 KiB and more
    sa.literal("").label("sql"),
]


@dataclass(frozen=True, slots=True)
class NewJob:
    """A submission that is about to become durable.

    Attributes:
        idempotency_key: the client's own key, None without one.
        request_digest: SHA-256 of the request, to recognise a key that is used for another one.
    """

    id: str
    name: str
    plan: bytes
    sql: str
    warnings: tuple[str, ...]
    idempotency_key: str | None
    request_digest: str


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A transition to make.

    Attributes:
        reason: becomes the job's reason; the cause when None.
        desired: what is wanted from now on; as before when None.
        error: kept with the job; None clears it.
    """

    target: JobState
    cause: str
    reason: str | None = None
    error: JobError | None = None
    desired: DesiredState | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are listed; an empty member lets all pass.

    Attributes:
        name: the whole name.
        search: part of the name or the beginning of the id, in upper or lower case.
    """

    states: tuple[JobState, ...] = ()
    desired_states: tuple[DesiredState, ...] = ()
    name: str | None = None
    search: str | None = None

    def conditions(self) -> Iterator[sa.ColumnElement[bool]]:
        """For the query's WHERE."""
        if self.states:
            yield _JOBS.c.state.in_([state.value for state in self.states])
        if self.desired_states:
            yield _JOBS.c.desired_state.in_([state.value for state in self.desired_states])
        if self.name is not None:
            yield _JOBS.c.name == self.name
        if self.search:
            text = self.search.lower()
            named = sa.func.lower(_JOBS.c.name).contains(text, autoescape=True)
            yield named | _JOBS.c.id.startswith(text, autoescape=True)


_ALL_JOBS = JobFilter()


class JobStore:
    """Jobs and their events; safe to use from several threads."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._writes = engine.execution_options(sluice_writes=True)
        self._order = threading.Lock()  # events are numbered in the order of their commits
        self._untidied = 0
        self.tokens = TokenStore(self._reading, self._writing)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open or create the store at `url` and bring its tables up to date.

        Raises:
            StoreError: it cannot be opened, or a newer Sluice has changed it.
        """
        try:
            engine = _engine(url)
            with _MIGRATING, engine.execution_options(sluice_writes=True).begin() as connection:
                _migrate(connection)
        except CommandError as exc:
            raise StoreError(
                f"job store has a revision that this program does not know: {exc}",
                hint="Run the version of Sluice that last used this data directory, or a newer.",
            ) from exc
        except (sa.exc.SQLAlchemyError, ImportError, OSError) as exc:
            raise StoreError(
                f"job store cannot be opened: {_first_line(exc)}",
                hint="Check SLUICE_DATA_DIR (its owner and free space) or SLUICE_DATABASE_URL.",
            ) from exc
        return cls(engine)

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()

    def check(self) -> None:
        """Return if the store can be written to.

        Raises:
            StoreError: it cannot.
        """
        with self._writing() as connection:
            connection.execute(sa.select(sa.literal(1)))

    def tidy(self) -> None:
        """Move what SQLite has in its log into its file, when it is much.

        Writers leave it to whoever calls this now and then: a job whose turn it were would else
        wait for a thousand pages and two syncs of the disk.
        """
        if self._untidied < _TIDY_AFTER or self._engine.dialect.name != "sqlite":
            return
        self._untidied = 0
        with _our_errors():
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()

    def add(self, new: NewJob) -> Job:
        """Keep a new job in state CREATED, wanted RUNNING.

        Raises:
            JobConflictError: its idempotency key is taken.
        """
        now_ms = _now_ms()
        row = {
            **asdict(new),
            "warnings": list(new.warnings),
            "state": JobState.CREATED.value,
            "desired_state": DesiredState.RUNNING.value,
            "reason": "The job is stored and waits for its runner.",
            "error": None,
            "crashes": 0,
            "restarts": 0,
            "events_offset": 0,
            "remove_output": False,
            "created_at_ms": now_ms,
            "updated_at_ms": now_ms,
        }
        try:
            with self._writing() as connection:
                connection.execute(sa.insert(_JOBS).values(row))
                _record(connection, new.id, None, StateUpdate(JobState.CREATED, "submitted"))
                return _get(connection, new.id)
        except sa.exc.IntegrityError as exc:
            raise JobConflictError(
                f'idempotency key "{new.idempotency_key}" is taken',
                hint="Use a new key for a new job.",
            ) from exc

    def find_by_key(self, idempotency_key: str) -> tuple[Job, str] | None:
        """The job that was submitted under this key and the digest of its request, or None."""
        with self._reading() as connection:
            row = connection.execute(
                sa.select(_JOBS.c.id, _JOBS.c.request_digest).where(
                    _JOBS.c.idempotency_key == idempotency_key
                )
            ).first()
            return None if row is None else (_get(connection, row.id), row.request_digest)

    def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            JobNotFoundError: there is none with this id.
        """
        with self._reading() as connection:
            return _get(connection, job_id)

    def page(
        self, wanted: JobFilter = _ALL_JOBS, *, before: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Jobs without plan and SQL that are `wanted`, the newest first, from after `before` on."""
        query = sa.select(*_LISTED).order_by(_JOBS.c.id.desc()).limit(limit)
        query = query.where(*wanted.conditions())
        if before is not None:
            query = query.where(_JOBS.c.id < before)
        with self._reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def all_jobs(self) -> list[Job]:
        """Every job without its plan and SQL, the oldest first, for the supervisor."""
        query = sa.select(*_LISTED).order_by(_JOBS.c.id)
        with self._reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def events(self, job_id: str | None, *, after: int = 0, limit: int = 500) -> list[JobEvent]:
        """Events of a job (None: of all), the oldest first, from the one after number `after`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        query = sa.select(_EVENTS).where(_EVENTS.c.sequence > after)
        query = query.order_by(_EVENTS.c.sequence).limit(limit)
        with self._reading() as connection:
            if job_id is not None:
                _get(connection, job_id)
                query = query.where(_EVENTS.c.job_id == job_id)
            return [_event(row) for row in connection.execute(query).mappings()]

    def job_ids(self) -> frozenset[str]:
        """The ids of all jobs."""
        with self._reading() as connection:
            return frozenset(connection.execute(sa.select(_JOBS.c.id)).scalars())

    def count_by_state(self) -> dict[JobState, int]:
        """How many jobs there are in each state that has any."""
        query = sa.select(_JOBS.c.state, sa.func.count()).group_by(_JOBS.c.state)
        with self._reading() as connection:
            return {JobState(state): number for state, number in connection.execute(query)}

    def newest_event(self) -> int:
        """The greatest sequence number that there is, 0 without events."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.max(_EVENTS.c.sequence))).scalar() or 0

    def want(
        self,
        job_id: str,
        desired: DesiredState,
        *,
        remove_output: bool = False,
        resume: bool = False,
    ) -> Job:
        """Keep what the operator wants; see `service.jobs.store.job.check_wanted` for what may be.

        Raises:
            JobNotFoundError: there is no such job.
            JobStateError: the job's state does not allow it.
        """
        with self._changing(job_id) as (connection, job):
            check_wanted(job, desired, resume=resume)
            values: dict[str, Any] = {"desired_state": desired.value}
            if desired is DesiredState.REMOVED:
                values["remove_output"] = remove_output or job.remove_output
            _update(connection, job_id, values)
            return _get(connection, job_id)

    def transition(self, job_id: str, change: StateUpdate) -> Job:
        """Change the job's state and keep the transition; the same state only updates the reason.

        Raises:
            JobNotFoundError: there is no such job.
            JobConflictError: the table of transitions does not have this one.
        """
        with self._changing(job_id) as (connection, job):
            _transition(connection, job, change)
            return _get(connection, job_id)

    def follow(self, job_id: str, changes: Sequence[StateUpdate], events_offset: int) -> Job:
        """Take over what a runner wrote to `events.jsonl` up to `events_offset`, exactly once.

        Unlawful transitions are left out.
        """
        with self._changing(job_id) as (connection, job):
            for change in changes:
                try:
                    job = _transition(connection, job, change)
                except JobConflictError:
                    continue
            _update(connection, job_id, {"events_offset": events_offset})
            return _get(connection, job_id)

    def count(self, job_id: str, *, crashes: int, restarts: int) -> None:
        """Keep how often the runner has crashed and has been restarted."""
        with self._changing(job_id) as (connection, _):
            _update(connection, job_id, {"crashes": crashes, "restarts": restarts})

    def set_reason(self, job_id: str, reason: str, error: JobError | None) -> None:
        """Keep why the job is where it is, without a transition."""
        with self._changing(job_id) as (connection, _):
            values = {"reason": reason, "error": None if error is None else asdict(error)}
            _update(connection, job_id, values)

    def delete(self, job_id: str) -> None:
        """Forget the job and its events."""
        with self._writing() as connection:
            connection.execute(sa.delete(_EVENTS).where(_EVENTS.c.job_id == job_id))
            connection.execute(sa.delete(_JOBS).where(_JOBS.c.id == job_id))

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with _our_errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with _our_errors(), self._order, self._writes.begin() as connection:
            self._untidied += 1
            yield connection

    @contextmanager
    def _changing(self, job_id: str) -> Iterator[tuple[sa.Connection, Job]]:
        with self._writing() as connection:
            yield connection, _get(connection, job_id, lock=True)


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.SQLAlchemyError as exc:
        raise StoreError(
            f"job store cannot be used: {_first_line(exc)}",
            hint="Check the free space and the owner of the data directory, or the database.",
        ) from exc


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return sa.create_engine(parsed, pool_pre_ping=True)
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(parsed.database).touch(mode=0o600)  # SQLite gives its other files the same mode
    engine = sa.create_engine(parsed, connect_args={"timeout": _BUSY_TIMEOUT_S})
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 (sqlite3's own)
    connection.isolation_level = None  # the driver's implicit BEGIN would come too late
    log = f"wal_autocheckpoint={_LOG_PAGES}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", log):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    """Writers take the lock at once: a reader that turns writer could not wait for it."""
    writes = connection.get_execution_options().get("sluice_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _first_line(exc: BaseException) -> str:
    lines = str(getattr(exc, "orig", None) or exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _get(connection: sa.Connection, job_id: str, *, lock: bool = False) -> Job:
    query = sa.select(*_JOB_COLUMNS).where(_JOBS.c.id == job_id)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise JobNotFoundError(
            f'job "{job_id}" does not exist', hint="List the jobs to see their ids."
        )
    return _job(row)


def _transition(connection: sa.Connection, job: Job, change: StateUpdate) -> Job:
    if change.target is not job.state:
        check_transition(job.state, change.target)
        _record(connection, job.id, job.state, change)
    values: dict[str, Any] = {
        "state": change.target.value,
        "reason": change.reason or change.cause,
        "error": None if change.error is None else asdict(change.error),
    }
    if change.desired is not None and job.desired_state is not DesiredState.REMOVED:
        values["desired_state"] = change.desired.value
    _update(connection, job.id, values)
    return _get(connection, job.id)


def _record(
    connection: sa.Connection, job_id: str, origin: JobState | None, change: StateUpdate
) -> None:
    done = connection.execute(
        sa.insert(_EVENTS).values(
            job_id=job_id,
            at_ms=_now_ms() if change.at_ms is None else change.at_ms,
            origin=None if origin is None else origin.value,
            target=change.target.value,
            cause=change.cause,
        )
    )
    sequence = done.inserted_primary_key
    if sequence is None or sequence[0] % _FORGET_EVERY == 0:
        _forget_old_events(connection, job_id)


def _forget_old_events(connection: sa.Connection, job_id: str) -> None:
    kept = sa.select(_EVENTS.c.sequence).where(_EVENTS.c.job_id == job_id)
    kept = kept.order_by(_EVENTS.c.sequence.desc()).offset(_EVENTS_KEPT).limit(1)
    last = connection.execute(kept).scalar()
    if last is not None:
        old = sa.and_(_EVENTS.c.job_id == job_id, _EVENTS.c.sequence <= last)
        connection.execute(sa.delete(_EVENTS).where(old))


def _update(connection: sa.Connection, job_id: str, values: Mapping[str, Any]) -> None:
    connection.execute(
        sa.update(_JOBS).where(_JOBS.c.id == job_id).values({**values, "updated_at_ms": _now_ms()})
    )


def _job(row: sa.RowMapping) -> Job:
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


def _event(row: sa.RowMapping) -> JobEvent:
    origin = row["origin"]
    return JobEvent(
        **{
            **row,
            "origin": None if origin is None else JobState(origin),
            "target": JobState(row["target"]),
        }
    )
