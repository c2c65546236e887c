"""A job as the doctor's checks see it."""

from dataclasses import dataclass
from pathlib import Path

from joins.durable.checkpoint import Checkpoint, JobMeta, job_app_id, output_app_id
from joins.kernels.table_path import TablePath
from joins.plan.plan import DeltaSink, JoinPlan
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.security.resolution import output_path


@dataclass(frozen=True, slots=True)
class DeltaOutput:
    """A Delta output.

    Attributes:
        name: for people.
        app_id: of the commits to it.
        plan: that of its INSERT.
    """

    name: str
    path: TablePath
    app_id: str
    plan: JoinPlan


@dataclass(frozen=True, slots=True)
class Patient:
    """What is read once.

    Attributes:
        plan: its secrets are resolved.
        meta: None before the first start.
        running: a runner lives, so files may change between two looks.
    """

    layout: JobLayout
    settings: Settings
    plan: JoinPlan
    checkpoint: Checkpoint
    meta: JobMeta | None
    running: bool

    @property
    def app_id(self) -> str:
        if self.meta is None:
            return ""
        return job_app_id(self.layout.job_dir.name, self.meta.incarnation)

    @property
    def outputs(self) -> tuple[DeltaOutput, ...]:
        inserts = self.plan.inserts
        return tuple(
            DeltaOutput(
                "output" if len(inserts) == 1 else f"output of INSERT {number + 1}",
                output_path(insert.sink, self.settings),
                output_app_id(self.app_id, number),
                insert,
            )
            for number, insert in enumerate(inserts)
            if isinstance(insert.sink, DeltaSink)
        )

    @property
    def output_directories(self) -> dict[str, Path]:
        """The directories of Delta outputs and late records that are not in an object store."""
        places: dict[str, TablePath] = {output.name: output.path for output in self.outputs}
        late = self.plan.probe.late_records
        if late is not None:
            places["late records"] = output_path(late, self.settings)
        return {name: path for name, path in places.items() if isinstance(path, Path)}

    def changelog(self, dimension: str) -> TablePath:
        declared = next(each for each in self.plan.dimensions if each.name == dimension)
        return self.layout.table(declared) / "changelog"
