"""`shared`: many jobs on one table: what they cost database and disk, and how soon they open.

First one job copies the table by itself, which is the reference. Then a shared table is created,
and jobs that read it are submitted one after the other, each when the one before has opened.
`--records` is the number of jobs here, `--dim` the rows of the table.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import DatabaseUsers, Stream, delta_output, join_sql, users
from tests.support.rig import Rig, RunningJob
from tests.support.sql import run_sql
from tests.support.topics import unique_name
from tests.support.wait import wait_until

JOBS, DIM = 10, 1_000_000
_OPENS_WITHIN_S = 1_800.0
_SECRET = "SLUICE_SECRET_BENCH"
_DUMPS = "SELECT COUNT(*) FROM information_schema.processlist WHERE COMMAND = 'Binlog Dump'"


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Connections to the binlog; seconds to the open gate; bytes of all jobs together."""
    count, dim = sizes.records or JOBS, sizes.dim or DIM
    os.environ[_SECRET] = place.mariadb.cdc_password
    with users(place.mariadb, dim) as table, place.rig(spark_driver_memory="1g") as rig:
        with _alone(rig, table, Stream(place.kafka)) as (job, own_s):
            own_bytes = _bytes(job.directory)
        place.say(f"a job with its own copy: {own_s:.1f} s, {own_bytes:,} bytes")
        before = _dumps(rig)
        with _shared(rig, table) as (kept, copy_s), ExitStack() as stack:
            place.say(f"the shared table: {copy_s:.1f} s")
            took: list[float] = []
            jobs: list[RunningJob] = []
            for _ in range(count):
                output = delta_output(unique_name("shared"))
                sql = join_sql(rig, table, Stream(place.kafka).topic, output)
                sql = sql.removeprefix(table.declared())
                began = time.monotonic()
                jobs.append(stack.enter_context(rig.job(sql)))
                _wait_open(jobs[-1])
                took.append(time.monotonic() - began)
                place.say(f"job {len(jobs)} opens after {took[-1]:.1f} s")
            connections = _dumps(rig) - before
            table_bytes = _bytes(kept.directory)
            all_bytes = table_bytes + sum(_bytes(job.directory) for job in jobs)
    size = f"{count} jobs, {dim:,} rows"
    full = count >= JOBS and dim >= DIM
    facts = {"copy_s": round(copy_s, 1), "table_bytes": table_bytes}
    one, soon = Bar(Sense.VALUE_AT_MOST, 1.0), Bar(Sense.VALUE_AT_MOST, 10.0)
    little, later = Bar(Sense.RATIO_AT_MOST, 1.3), "open gate of the 2nd and later jobs"
    disk = [float(all_bytes)], [float(own_bytes)]
    return [
        Measure("binlog connections", "", size, full, [float(connections)], (), one, facts),
        Measure(later, "s", size, full, took[1:] or took, [own_s], soon),
        Measure("disk of all jobs", "bytes", size, full, *disk, little),
    ]


@contextmanager
def _alone(rig: Rig, table: DatabaseUsers, stream: Stream) -> Iterator[tuple[RunningJob, float]]:
    """A job with a copy of its own, and how long it took to open."""
    sql = join_sql(rig, table, stream.topic, delta_output(unique_name("own")))
    began = time.monotonic()
    with rig.job(sql) as job:
        _wait_open(job)
        took_s = time.monotonic() - began
        _wait_folded(job)
        yield job, took_s


@contextmanager
def _shared(rig: Rig, table: DatabaseUsers) -> Iterator[tuple[RunningJob, float]]:
    """The job that keeps the shared table, and how long its copy took."""
    sql = table.declared().replace("CREATE TABLE", "CREATE SHARED TABLE")
    name = _SECRET.removeprefix("SLUICE_SECRET_").lower()
    sql = sql.replace(f"'{table.mariadb.cdc_password}'", f"'${{secret:{name}}}'")
    began = time.monotonic()
    rig.client.post("/v1/tables", json={"sql": sql}).raise_for_status()
    job = RunningJob(rig, rig.get("/v1/tables/user_info")["job_id"])
    try:
        _wait_open(job)
        took_s = time.monotonic() - began
        _wait_folded(job)
        yield job, took_s
    finally:
        rig.client.delete("/v1/tables/user_info").raise_for_status()
        wait_until(lambda: not job.directory.exists(), what="the shared table is removed")


def _wait_open(job: RunningJob) -> None:
    job.wait_for(
        lambda status: status["state"] == "JOINING", "it opens", deadline_s=_OPENS_WITHIN_S
    )


def _wait_folded(job: RunningJob) -> None:
    job.wait_for(
        lambda status: status["dimensions"][0]["fold_version"] is not None,
        "the table is folded",
        deadline_s=_OPENS_WITHIN_S,
    )


def _dumps(rig: Rig) -> int:
    ((count,),) = run_sql(rig.mariadb, _DUMPS)
    return int(count)


def _bytes(directory: Path) -> int:
    """Of all files there but Spark's scratch; one that goes meanwhile counts nothing."""
    total = 0
    for path in directory.rglob("*"):
        try:
            is_kept = "scratch" not in path.relative_to(directory).parts and path.is_file()
            total += path.stat().st_size if is_kept else 0
        except FileNotFoundError:
            continue
    return total
