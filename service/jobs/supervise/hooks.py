"""Functions that the control plane calls in SQL and outside, and limits on concurrent calls."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from joins.plan.plan import JoinPlan
from service.config import Settings
from service.errors import BusyError
from service.security.secrets import SecretResolver
from service.sql.planner.planner import PlannedScript
from service.sql.stored import CatalogEntry


class Seats:
    """Limits concurrent work; a caller without a free seat waits, or is refused. Thread-safe.

    At most `waiting` callers wait, each of which holds a thread.
    """

    def __init__(self, what: str, *, at_once: int, waiting: int, patience_s: float) -> None:
        self._what = what
        self._at_once = at_once
        self._patience_s = patience_s
        self._admitted = threading.BoundedSemaphore(at_once + waiting)
        self._free = threading.BoundedSemaphore(at_once)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a seat. Raises BusyError if there is none."""
        with self._taken(self._admitted, 0.0), self._taken(self._free, self._patience_s):
            yield

    @contextmanager
    def _taken(self, places: threading.BoundedSemaphore, patience_s: float) -> Iterator[None]:
        if not places.acquire(timeout=patience_s):
            raise BusyError(
                f"{self._at_once} {self._what} are running and others wait",
                hint="Ask again when they have ended.",
            )
        try:
            yield
        finally:
            places.release()


class ScriptPlanner(Protocol):
    """Turns a script into a frozen plan and takes inline secrets out of both."""

    def __call__(
        self, sql: str, /, *, name: str | None, catalog: Iterable[CatalogEntry]
    ) -> PlannedScript:
        """Plan `sql` as the job `name`; raises a SluiceError that names line and column."""
        ...


class PlanDumper(Protocol):
    """Turns a plan into the bytes of `plan.json`."""

    def __call__(self, plan: JoinPlan, /) -> bytes:
        """The plan as JSON."""
        ...


class Preflight(Protocol):
    """Checks that everything a plan names can be reached and used, and changes nothing."""

    def __call__(self, plan: JoinPlan, settings: Settings, secrets: SecretResolver, /) -> JoinPlan:
        """The plan to keep, start offsets resolved; raises a SluiceError if it cannot start."""
        ...


class UpdatePreflight(Protocol):
    """Checks what an update may reach, and the tables that it adds; changes nothing."""

    def __call__(
        self, plan: JoinPlan, added: Collection[str], settings: Settings, secrets: SecretResolver, /
    ) -> JoinPlan:
        """The plan to keep; raises a SluiceError if it cannot start."""
        ...


class Remover(Protocol):
    """Deletes what a job made outside its directory, its output only when asked."""

    def __call__(self, job_dir: Path, settings: Settings, /, *, output: bool) -> tuple[str, ...]:
        """Outputs that are left and why; raises a SluiceError to be called again later."""
        ...


class Adviser(Protocol):
    """Warns about the outside of a plan that can start."""

    def __call__(
        self, plan: JoinPlan, settings: Settings, secrets: SecretResolver, /
    ) -> tuple[str, ...]:
        """Warnings, full sentences."""
        ...


def _no_advice(plan: JoinPlan, settings: Settings, secrets: SecretResolver, /) -> tuple[str, ...]:
    return ()


def _unchecked(
    plan: JoinPlan, added: Collection[str], settings: Settings, secrets: SecretResolver, /
) -> JoinPlan:
    return plan


def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions behind the control plane; `warm_up` does work that would delay a first job."""

    plan: ScriptPlanner
    dump: PlanDumper
    preflight: Preflight
    remove: Remover
    advise: Adviser = _no_advice
    warm_up: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing
    preflight_update: UpdatePreflight = _unchecked


def default_hooks() -> Hooks:
    from joins.adapters.kafka.pool import ClusterPool
    from service.jobs.store import plan_codec
    from service.jobs.submit.preflight import advise, preflight, preflight_update
    from service.jobs.supervise.remove import remove_job
    from service.sql.planner.planner import plan_script

    def warm_up() -> None:
        plan_codec.dump(plan_script(_ANY_SCRIPT, name="any").plan)

    pool = ClusterPool()
    checked = partial(preflight, pool=pool)
    return Hooks(
        plan_script,
        plan_codec.dump,
        checked,
        remove_job,
        advise,
        warm_up,
        pool.close,
        partial(preflight_update, pool=pool),
    )


_ANY_SCRIPT = """
CREATE TABLE d (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH
    ('connector'='mysql-cdc', 'hostname'='h', 'username'='u', 'password'='${secret:p}',
     'database-name'='s', 'table-name'='d');
CREATE TABLE s (k BIGINT, p AS PROCTIME())
    WITH ('connector'='kafka', 'topic'='t', 'properties.bootstrap.servers'='h:1', 'format'='json');
CREATE TABLE o (k BIGINT, v STRING) WITH ('connector'='blackhole');
INSERT INTO o SELECT s.k, d.v FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.k;
"""
