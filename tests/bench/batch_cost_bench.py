"""`batch-cost`: what a batch of 10,000 records costs must not depend on the size of the table.

Two jobs, one with a small and one with a large table, take turns. The index of each has a hundred
live segments: its merging is switched off in these runners, for otherwise there are never so many.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from joins.kernels.index.dimension_index import read_manifest
from tests.bench.batches import BatchTime
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream, clicks_of, delta_output, users
from tests.bench.subject import Subject, submitted
from tests.support.rig import Rig
from tests.support.topics import unique_name
from tests.support.wait import wait_until

RECORDS, DIM, SMALL = 200_000, 5_000_000, 10_000
SEGMENTS = 100
_BATCH = 10_000
_RUNNER = (sys.executable, "-m", "tests.bench.unmerged_runner")


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The median batch of each run, the large table against the small one."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    small = min(SMALL, max(1, dim // 10))
    limit = min(_BATCH, records // 5)
    times: dict[int, list[float]] = {small: [], dim: []}
    with ExitStack() as stack:
        given = {"runner_command": _RUNNER, "max_records_per_batch": limit}
        rig = stack.enter_context(place.rig(**given))
        jobs = {
            rows: stack.enter_context(_with_segments(place, rig, rows)) for rows in (small, dim)
        }
        segments = {rows: live_segments(job) for rows, job in jobs.items()}
        for _ in range(sizes.runs):
            for rows, job in jobs.items():
                job.stream.append(records, clicks_of(rows))
                times[rows].append(_median_ms(job.drain()))
            place.say(f"ms a batch: { ({size: round(v[-1]) for size, v in times.items()}) }")
    return [
        Measure(
            f"batch of {limit:,} records, {dim:,} rows against {small:,}",
            "ms",
            f"{records // limit} batches of {limit:,}, {min(segments.values())} live segments",
            dim >= DIM and limit == _BATCH and min(segments.values()) >= SEGMENTS,
            times[dim],
            times[small],
            Bar(Sense.RATIO_AT_MOST, 1.2),
            {"live_segments": {str(rows): count for rows, count in segments.items()}},
        )
    ]


def _median_ms(times: list[BatchTime]) -> float:
    return median(time.seconds for time in times) * 1_000


@contextmanager
def _with_segments(place: Place, rig: Rig, dim: int) -> Iterator[Subject]:
    """A stopped job whose index has a hundred live segments."""
    stream = Stream(place.kafka)
    with (
        users(place.mariadb, dim) as table,
        submitted(place, rig, table, stream, delta_output(unique_name("cost"))) as subject,
    ):
        subject.wait_open()
        with table.changes(500):
            wait_until(
                lambda: live_segments(subject) > SEGMENTS, deadline_s=900, what="the segments"
            )
        subject.wait_for(
            lambda s: s["dimensions"][0]["lag_records"] == 0, "it is committed", deadline_s=120
        )
        place.say(f"{dim:,} rows, {live_segments(subject)} live segments")
        subject.job.stop()
        yield subject


def live_segments(subject: Subject) -> int:
    """How many segments the newest version of the index has, 0 before the first."""
    root = subject.job.directory / "index" / "user_info"
    found: list[Any] = []
    for home in root.glob("*/"):
        versions = [int(path.stem[1:]) for path in home.glob("v*.json")]
        if versions:
            found.append(len(read_manifest(home, max(versions)).segments))
    return max(found, default=0)
