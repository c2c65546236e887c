"""Jobs that run to their end in this process, on the session's Spark: planned, checked and run as a
control plane and its runner do it, without processes for either.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import service.wiring.job
from joins.job.temporal_join import TemporalJoin
from service.config import Settings
from service.jobs.runner import StatusFile
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import REPLAY_DEAD_LETTERS, Asked, RequestAnswer, RequestBox
from service.jobs.supervise.hooks import default_hooks
from service.security.secrets import SecretResolver
from service.wiring.job import open_job


@dataclass(frozen=True)
class JobsHere:
    """The control plane's part: settings, and scripts that become jobs."""

    settings: Settings

    def submit(self, sql: str, name: str) -> "JobHere":
        """A job that is ready to run, its plan checked against the outside and frozen."""
        hooks = default_hooks()
        layout = JobLayout(self.settings.jobs_dir / name)
        layout.create()
        secrets = SecretResolver.of(self.settings, layout.job_dir)
        plan = hooks.preflight(hooks.plan(sql, name=name).plan, self.settings, secrets)
        hooks.close()
        layout.plan.write_bytes(plan_codec.dump(plan))
        self.settings.hand_over(layout.job_dir)
        return JobHere(self, layout)


@dataclass(frozen=True)
class JobHere:
    """One job; `run` may be called again, which is a restart."""

    jobs: JobsHere
    layout: JobLayout

    def run(self, until: Callable[[TemporalJoin], bool] = lambda _: False) -> TemporalJoin:
        """Run until the stream's end, or until `until` is true after a tick."""
        status = StatusFile(self.layout)

        def tick(join: TemporalJoin) -> None:
            status.tick(join)
            if until(join):
                join.request_stop()

        with open_job(self.layout, Settings.of_runner(self.layout.job_dir)) as opened:
            join = opened.start(tick)
            join.run()
        if join.is_finished:
            status.note("FINISHED", "all is joined")
        return join

    def answer(self, body: dict[str, Any]) -> RequestAnswer:
        """What a runner answers to a request for dead letters; the job has finished."""
        box = RequestBox(self.layout.requests)
        request = box.send(Asked(REPLAY_DEAD_LETTERS, body, by="ann"))
        self.run()
        answer = box.answer(request)
        assert answer is not None
        return answer


@contextmanager
def jobs_here(
    data_dir: Path, bootstrap: str, spark: SparkSession, **values: object
) -> Iterator[JobsHere]:
    """Jobs below `data_dir`; `values` are settings. Each run has a session of its own in `spark`:
    the names of its queries are its own.
    """
    settings = Settings.load(
        data_dir=data_dir,
        warehouse_dir=data_dir / "warehouse",
        kafka_bootstrap_servers=bootstrap,
        changelog_partitions=1,
        resident_tasks=0,  # jobs of one session would take its slots from one another
        **values,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.wiring.job, "start_session", lambda *_, **__: spark.newSession())
        yield JobsHere(settings)
