"""`many`: what small jobs cost that have little to do, when runners share a driver and when not.

Each job joins a topic, into which somebody writes twice a second, with a small table of its own.
`--records` is the number of jobs that share; each of a few with drivers of their own is the
reference.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psutil

from tests.bench.cpu import CpuSeconds
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream, delta_output, join_sql, users
from tests.support.rig import Rig, RunningJob
from tests.support.topics import produce, unique_name

JOBS, ALONE, DIM = 20, 2, 1_000
_OPENS_WITHIN_S = 900.0
_REST_S = 60.0
_WRITE_EVERY_S = 0.5
_MOST_MIB = 4_096.0


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """MiB and cores of all processes of the jobs, each by a job for the reference."""
    count, dim = sizes.records or JOBS, sizes.dim or DIM
    alone = min(ALONE, count)
    own_mib, own_cores = _cost(place, alone, dim, "own")
    mib, cores = _cost(place, count, dim, "shared")
    size, full = f"{count} jobs", count >= JOBS
    most = Bar(Sense.VALUE_AT_MOST, _MOST_MIB)
    facts = {"mib_of_a_job_alone": round(own_mib / alone), "mib_of_a_job": round(mib / count)}
    return [
        Measure(
            "memory (PSS) of jobs that share a driver", "MiB", size, full, [mib], (), most, facts
        ),
        Measure(
            "cores of a job that has little to do",
            "",
            size,
            full,
            [cores / count],
            [own_cores / alone],
            Bar(Sense.RATIO_AT_MOST, 1.0),
        ),
    ]


def _cost(place: Place, count: int, dim: int, runners: str) -> tuple[float, float]:
    """MiB at the end of a minute of little work, and cores over it."""
    with (
        users(place.mariadb, dim) as table,
        place.rig(runners=runners) as rig,
        ExitStack() as stack,
    ):
        streams = [Stream(place.kafka) for _ in range(count)]
        jobs = []
        for stream in streams:
            sql = join_sql(rig, table, stream.topic, delta_output(unique_name("many")))
            jobs.append(stack.enter_context(rig.job(sql)))
            _wait_open(jobs[-1])
            place.say(f"{runners}: job {len(jobs)} has opened")
        with _watched(jobs) as cpu:
            began = time.time()
            _write_a_little(rig, streams)
            ended = time.time()
            cores = sum(each.between(began, ended) for each in cpu) / (ended - began)
        mib = sum(_pss_mib(process) for process in _processes(jobs))
    place.say(f"{count} jobs, {runners}: {mib:.0f} MiB, {cores:.2f} cores")
    return mib, cores


def _write_a_little(rig: Rig, streams: list[Stream]) -> None:
    deadline = time.monotonic() + _REST_S
    number = 0
    while time.monotonic() < deadline:
        for stream in streams:
            value = {"user_id": number % DIM, "item_id": number, "ts": None}
            produce(rig.kafka.bootstrap_servers, stream.topic, [value])
        number += 1
        time.sleep(_WRITE_EVERY_S)


@contextmanager
def _watched(jobs: list[RunningJob]) -> Iterator[list[CpuSeconds]]:
    with ExitStack() as stack:
        roots = [partial(_itself, root) for root in _roots(jobs)]
        yield [stack.enter_context(CpuSeconds(root)) for root in roots]


def _itself(process: psutil.Process) -> psutil.Process:
    return process


def _roots(jobs: list[RunningJob]) -> set[psutil.Process]:
    """What all processes of the jobs descend from: runners, or the host that has forked them."""
    runners = [job.runner() for job in jobs]
    alive = [runner for runner in runners if runner is not None]
    parents = {runner.parent() for runner in alive}
    hosts = {p for p in parents if p is not None and "service.jobs.host" in p.cmdline()}
    return hosts or set(alive)


def _processes(jobs: list[RunningJob]) -> Iterator[psutil.Process]:
    for root in _roots(jobs):
        yield root
        yield from root.children(recursive=True)


def _pss_mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def _wait_open(job: RunningJob) -> None:
    job.wait_for(
        lambda status: status["state"] == "JOINING", "it opens", deadline_s=_OPENS_WITHIN_S
    )
