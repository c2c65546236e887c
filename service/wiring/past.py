"""Locations of a job's history, and the replay of its dead letters."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from joins.durable.letter_replays import REPLAYS, LetterReplays
from joins.durable.probe_lives import known_topics
from joins.durable.requests import Request, TurnHandler
from joins.kernels.table_path import TablePath
from joins.lookback.dead_letter_replay import DeadLetterReplay, ReplayParts
from joins.lookback.dead_letters import DeadLetters
from joins.lookback.history import History, HistoryPlaces, PastEvent
from joins.lookback.letter_rows import LetterInsert, Part
from joins.plan.plan import DeltaSink, JoinPlan
from service.config import Settings
from service.connectors.plans import resolve_secrets
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import not_replayable
from service.jobs.supervise.runner_process import RunnerLog
from service.security.resolution import output_path, probe_kafka
from service.security.secrets import SecretResolver
from service.wiring.context import JobContext, stream_files
from service.wiring.sinks import InsertSink, event_places


def history_places(job: JobContext, number: int) -> HistoryPlaces:
    """Where the files and tables of INSERT `number`, from 0, are. Raises NotAllowedError."""
    plan = job.plan
    sink = plan.inserts[number].sink
    return HistoryPlaces(
        app_id=job.app_id,
        checkpoint=job.checkpoint,
        kernel=job.kernel(number).by_itself(),
        roles=job.index_places(plan.dimensions, number),
        tables={d.name: job.layout.table(d) for d in plan.dimensions},
        dimensions={d.name: d for d in plan.dimensions},
        dead_letters=job.layout.dead_letters,
        replays=job.checkpoint.directory / REPLAYS,
        output=output_path(sink, job.settings) if isinstance(sink, DeltaSink) else None,
        probe_kafka=probe_kafka(plan, job.settings, job.meta.probe_topic),
        sink=sink,
        insert=number,
        has_own_table=has_own_table(plan, number, job.settings),
        event=PastEvent(plan, event_places(job)) if plan.needs_event_batches else None,
        stream_files=stream_files(plan, job.settings),
        plan=plan.number,
    )


def _places_of_any_plan(job: JobContext, number: int) -> HistoryPlaces:
    secrets = SecretResolver.of(job.settings, job.layout.job_dir)

    def places_of(plan: int) -> HistoryPlaces:
        older = resolve_secrets(JobPlans(job.layout).read(plan), secrets)
        return history_places(replace(job, plan=older), number)

    return replace(history_places(job, number), places_of=places_of)


def has_own_table(plan: JoinPlan, number: int, settings: Settings) -> bool:
    paths = [
        _resolved(output_path(insert.sink, settings))
        if isinstance(insert.sink, DeltaSink)
        else None
        for insert in plan.inserts
    ]
    return paths[number] is None or paths.count(paths[number]) == 1


def _resolved(path: TablePath) -> TablePath:
    return path.resolve() if isinstance(path, Path) else path


def letter_replay(job: JobContext, spark: SparkSession, log: RunnerLog) -> TurnHandler:
    replayable = not job.plan.needs_event_batches
    replays = LetterReplays.of(job.checkpoint)
    parts = ReplayParts(
        letters=DeadLetters(
            job.layout.dead_letters, replays, partial(known_topics, job.checkpoint)
        ),
        replays=replays,
        inserts=[
            LetterInsert(
                History(_places_of_any_plan(job, n)),
                InsertSink(job, n).letter_writer(spark, log)
                if replayable
                else _NoLetterWriter(job.plan),
            )
            for n in range(len(job.plan.inserts))
        ],
        epoch=job.meta.epoch,
    )
    handle = DeadLetterReplay(parts).handle
    return handle if replayable else partial(_discarded, job.plan, handle)


def _discarded(
    plan: JoinPlan,
    handle: TurnHandler,
    request: Request,
    *,
    turn: AbstractContextManager[object],
) -> Mapping[str, Any]:
    if "discard" not in request.body:
        raise not_replayable(plan)
    return handle(request, turn=turn)


@dataclass(frozen=True, slots=True)
class _NoLetterWriter:
    """Refuses to write letters of a job with event time or windows."""

    plan: JoinPlan

    def committed(self, number: int) -> NoReturn:
        raise not_replayable(self.plan)

    def write(
        self,
        parts: Iterator[Part],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> NoReturn:
        raise not_replayable(self.plan)
