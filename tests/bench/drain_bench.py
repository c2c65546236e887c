"""`drain`: records that were held while the table was copied, at full speed from the opening on.

Each run is a job of its own, with the whole backlog there before it is submitted. The table changes
all the time in the one, never in the other. The build side must go on committing meanwhile.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from tests.bench.batches import batch_limit, pinned_times, records_per_second
from tests.bench.commits import changelog_commits
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream, UserTable, clicks_of, delta_output, now_ms, users
from tests.bench.subject import Subject, submitted
from tests.support.rig import Rig
from tests.support.topics import unique_name

RECORDS, DIM = 4_000_000, 1_000_000
_PER_S = 1_000


@dataclass(frozen=True)
class Drained:
    """One backlog.

    Attributes:
        rate: M records/s.
        commits: of the build side meanwhile.
        longest_gap_s: between two of them, or from the opening to the first.
    """

    rate: float
    commits: int
    longest_gap_s: float


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed while the table changes against the speed while it does not; the longest gap."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit = batch_limit(records)
    stream = Stream(place.kafka)
    stream.append(records, clicks_of(dim))
    runs: dict[bool, list[Drained]] = {False: [], True: []}
    with (
        users(place.mariadb, dim) as table,
        place.rig(max_records_per_batch=limit) as rig,
    ):
        for _ in range(sizes.runs):
            for changing in (False, True):
                with _held(place, rig, table, stream) as subject:
                    runs[changing].append(_drained(subject, changing=changing))
                place.say(f"changing: {changing}, {runs[changing][-1]}")
    size = f"{records:,} records held, {dim:,} rows, {_PER_S:,} changes/s"
    full = records >= RECORDS and dim >= DIM
    return [
        Measure(
            "drain while the table changes, against itself without",
            "M records/s",
            size,
            full,
            [run.rate for run in runs[True]],
            [run.rate for run in runs[False]],
            Bar(Sense.RATIO_AT_LEAST, 0.9),
            {"build_commits": [run.commits for run in runs[True]]},
        ),
        Measure(
            "longest gap between two commits of the build side",
            "s",
            size,
            full,
            [run.longest_gap_s for run in runs[True]],
            bar=Bar(Sense.VALUE_AT_MOST, 2.0),
        ),
    ]


@contextmanager
def _held(place: Place, rig: Rig, table: UserTable, stream: Stream) -> Iterator[Subject]:
    with submitted(place, rig, table, stream, delta_output(unique_name("drained"))) as subject:
        yield subject


def _drained(subject: Subject, *, changing: bool) -> Drained:
    with subject.changes(_PER_S) if changing else nullcontext():
        opened = subject.wait_open()
        assert opened["held_at_open"] == subject.stream.sent, opened
        subject.wait_drained()
        ended_ms = now_ms()
    subject.job.stop()
    began_ms = opened["opened_at_ms"]
    commits = [commit.at_ms for commit in changelog_commits(subject)]
    times = [at for at in commits if began_ms <= at <= ended_ms]
    edges = [began_ms, *times, ended_ms]
    gap = max(later - before for before, later in itertools.pairwise(edges))
    rate = records_per_second(pinned_times(subject.checkpoint)) / 1e6
    return Drained(rate, len(times), gap / 1_000)
