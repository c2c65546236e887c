"""A job as the doctor's checks see it."""

from dataclasses import dataclass
from pathlib import Path

from joins.checkpoint import Checkpoint, JobMeta
from joins.plan import DeltaSink, JoinPlan
from service.config import Settings
from service.jobs.layout import JobLayout
from service.resolution import output_path


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
        """Of the commits to output and dead letters; empty before the first start."""
        if self.meta is None:
            return ""
        return f"sluice:{self.layout.job_dir.name}:{self.meta.incarnation}"

    @property
    def output(self) -> Path | None:
        """The Delta output, None for other sinks."""
        sink = self.plan.sink
        return output_path(sink, self.settings) if isinstance(sink, DeltaSink) else None

    def changelog(self, dimension: str) -> Path:
        """The changelog table of a dimension."""
        return self.layout.tables / dimension / "changelog"
