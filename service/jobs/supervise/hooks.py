"""What the control plane asks of SQL and of the outside; `default_hooks` is the real thing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from joins.plan.plan import JoinPlan
from service.config import Settings
from service.security.secrets import SecretResolver
from service.sql.planner.planner import PlannedScript
from service.sql.stored import CatalogEntry


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


class Remover(Protocol):
    """Deletes what a job made outside its directory, its output only when asked."""

    def __call__(self, job_dir: Path, settings: Settings, /, *, output: bool) -> tuple[str, ...]:
        """What of the output is left and why; raises a SluiceError to be called again later."""
        ...


class Adviser(Protocol):
    """Says what a user should know of the outside of a plan that can start."""

    def __call__(
        self, plan: JoinPlan, settings: Settings, secrets: SecretResolver, /
    ) -> tuple[str, ...]:
        """Warnings, full sentences."""
        ...


def _no_advice(plan: JoinPlan, settings: Settings, secrets: SecretResolver, /) -> tuple[str, ...]:
    return ()


def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Hooks:
    """All of them.

    Attributes:
        warm_up: what the first job would else wait for longer than the next ones.
        close: gives back what is kept from one preflight to the next.
    """

    plan: ScriptPlanner
    dump: PlanDumper
    preflight: Preflight
    remove: Remover
    advise: Adviser = _no_advice
    warm_up: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing


def default_hooks() -> Hooks:
    """SQL planner, plan codec, preflight and removal of this service."""
    from joins.adapters.kafka.pool import ClusterPool
    from service.jobs.store import plan_codec
    from service.jobs.submit.preflight import advise, preflight
    from service.jobs.supervise.remove import remove_job
    from service.sql.planner.planner import plan_script

    def warm_up() -> None:
        plan_codec.dump(plan_script(_ANY_SCRIPT, name="any").plan)

    pool = ClusterPool()
    checked = partial(preflight, pool=pool)
    return Hooks(plan_script, plan_codec.dump, checked, remove_job, advise, warm_up, pool.close)


_ANY_SCRIPT = """
CREATE TABLE d (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH
    ('connector'='mysql-cdc', 'hostname'='h', 'username'='u', 'password'='${secret:p}',
     'database-name'='s', 'table-name'='d');
CREATE TABLE s (k BIGINT, p AS PROCTIME())
    WITH ('connector'='kafka', 'topic'='t', 'properties.bootstrap.servers'='h:1', 'format'='json');
CREATE TABLE o (k BIGINT, v STRING) WITH ('connector'='blackhole');
INSERT INTO o SELECT s.k, d.v FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.k;
"""
