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


class Remover(Protocol):
    """Deletes what a job made outside its directory, its output only when asked."""

    def __call__(self, job_dir: Path, settings: Settings, /, *, output: bool) -> tuple[str, ...]:
        """Outputs that are left and why; raises a SluiceError to be called again later."""


Preflight = Callable[[JoinPlan, Settings, SecretResolver], JoinPlan]
"""Checks that all that a plan names can be used; returns the plan with its start offsets."""
UpdatePreflight = Callable[[JoinPlan, Collection[str], Settings, SecretResolver], JoinPlan]
"""As `Preflight`, for an update that adds these tables."""
Adviser = Callable[[JoinPlan, Settings, SecretResolver], tuple[str, ...]]
"""Warns about the outside of a plan that can start, in full sentences."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions behind the control plane; `warm_up` does work that would delay a first job."""

    plan: ScriptPlanner
    dump: Callable[[JoinPlan], bytes]
    preflight: Preflight
    remove: Remover
    advise: Adviser = lambda plan, settings, secrets: ()
    warm_up: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None
    preflight_update: UpdatePreflight = lambda plan, added, settings, secrets: plan


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
