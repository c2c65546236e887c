"""What the control plane asks of SQL and of the outside; `default_hooks` is the real thing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from joins.plan import JoinPlan
from service.config import Settings
from service.secrets import SecretResolver
from service.sql.planner import PlannedScript


class Planner(Protocol):
    """Turns a script into a frozen plan and takes inline secrets out of both."""

    def __call__(self, sql: str, /, *, name: str | None) -> PlannedScript:
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

    def __call__(self, job_dir: Path, settings: Settings, /, *, output: bool) -> None:
        """Delete what is still there; raises a SluiceError to be called again later."""
        ...


class Adviser(Protocol):
    """Says what whoever submits a plan that can start should know of the outside."""

    def __call__(self, plan: JoinPlan, settings: Settings, /) -> tuple[str, ...]:
        """Warnings, full sentences."""
        ...


def _no_advice(plan: JoinPlan, settings: Settings, /) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Hooks:
    """All of them."""

    plan: Planner
    dump: PlanDumper
    preflight: Preflight
    remove: Remover
    advise: Adviser = _no_advice


def default_hooks() -> Hooks:
    """SQL planner, plan codec, preflight and removal of this service."""
    from service.jobs import (
        plan_codec,
    )  # (imports here: clients of Kafka and MySQL are slow to load)
    from service.jobs.preflight import advise, preflight
    from service.jobs.remove import remove_job
    from service.sql.planner import plan_script

    return Hooks(plan_script, plan_codec.dump, preflight, remove_job, advise)
