"""The numbered plans of a job: files that are created once and never change; the newest holds.

`plan.json` is plan 1, from the submission; `plans/<number>.json` is each later one, without gaps.
"""

from collections.abc import Iterator

from joins.durable.checkpoint import Checkpoint, create_once
from joins.durable.pins import PinStore
from joins.plan.errors import CheckpointError
from joins.plan.plan import Dimension, JoinPlan
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout


class JobPlans:
    """The plans of one job; any process may read them, the control plane adds one."""

    def __init__(self, layout: JobLayout) -> None:
        self._layout = layout

    @property
    def newest_number(self) -> int:
        directory = self._layout.plans
        names = [path.stem for path in directory.glob("*.json")] if directory.is_dir() else []
        return max((int(name) for name in names if name.isdecimal()), default=1)

    def has_newer(self, number: int) -> bool:
        return self._layout.plan_of(number + 1).exists()

    def read(self, number: int) -> JoinPlan:
        """Raises CheckpointError without its file, or if that has another number."""
        path = self._layout.plan_of(number)
        try:
            plan = plan_codec.load(path.read_bytes())
        except FileNotFoundError as exc:
            hint = "Name the directory of a job; `sluice jobs ls` lists the jobs."
            if number > 1:
                hint = "Restore the file: batches of the job were joined by this plan."
            name = path.relative_to(self._layout.job_dir)
            message = f'directory "{self._layout.job_dir}" has no {name}'
            raise CheckpointError(message, hint=hint) from exc
        if plan.number != number:
            raise CheckpointError(
                f'file "{path}" has plan {plan.number}, expected {number}',
                hint="Restore the file: it was changed from outside.",
            )
        return plan

    def newest(self) -> JoinPlan:
        """Raises as `read`."""
        return self.read(self.newest_number)

    def all(self) -> Iterator[JoinPlan]:
        """The oldest first; raises as `read`."""
        return map(self.read, range(1, self.newest_number + 1))

    def dimensions(self) -> tuple[Dimension, ...]:
        """The tables of all plans by name, each as its newest plan has it; raises as `read`."""
        return tuple({d.name: d for plan in self.all() for d in plan.dimensions}.values())

    def add(self, plan: JoinPlan) -> bool:
        """Make `plan`, whose number is the next one, the job's plan; durable when this returns.

        False if another plan was faster. After an OSError it may be the job's plan.
        """
        assert self._layout.plan_of(plan.number - 1).exists(), "plans are numbered without gaps"
        path = self._layout.plan_of(plan.number)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return create_once(path, plan_codec.dump(plan))

    def to_run(self) -> JoinPlan:
        """The plan of the next start: the newest, or an older one that has an unfinished batch.

        A batch that is pinned and perhaps not committed runs again under the plan of its pin.
        Raises CheckpointError if a file is missing or damaged.
        """
        number, checkpoint = self.newest_number, Checkpoint(self._layout.checkpoint)
        pin = PinStore(checkpoint.pins_directory).newest()
        if pin is None or pin.plan == number:
            return self.read(number)
        progress = checkpoint.read_progress()
        done = None if progress is None else progress.get("batch")
        is_committed = done is not None and done >= pin.batch
        return self.read(number if is_committed else pin.plan)
