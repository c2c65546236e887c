"""`changes`: how many changes of a table the side of the table takes, a second and of a core.

The job is stopped while the table changes, twenty rows a transaction. It is started on what is in
the binlog, and nothing is joined meanwhile.
"""

from tests.bench.commits import changelog_commits
from tests.bench.cpu import CpuSeconds
from tests.bench.measure import Measure, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream, delta_output, users
from tests.bench.subject import Subject, opened_and_stopped
from tests.support.topics import unique_name

CHANGES, DIM = 500_000, 1_000_000
_WITHIN_S = 900.0


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Changes a second of time, and of CPU of all processes of the job, once they have begun."""
    changes, dim = sizes.records or CHANGES, sizes.dim or DIM
    speeds, by_core = [], []
    with (
        users(place.mariadb, dim) as table,
        place.rig() as rig,
        opened_and_stopped(
            place, rig, table, Stream(place.kafka), delta_output(unique_name("changed"))
        ) as subject,
    ):
        for _ in range(sizes.runs):
            speed, of_core = _taken(subject, changes)
            place.say(f"{changes:,} changes: {speed:,.0f}/s, {of_core:,.0f} of a CPU second")
            speeds.append(speed)
            by_core.append(of_core)
    size = f"{changes:,} changes of {dim:,} rows, 20 a transaction"
    full = changes >= CHANGES and dim >= DIM
    return [
        Measure("changes of a CPU second of the job", "changes", size, full, by_core),
        Measure("changes caught up with", "changes/s", size, full, speeds),
    ]


def _taken(subject: Subject, changes: int) -> tuple[float, float]:
    """Changes a second, and of a CPU second, between the first commit of them and the last."""
    before = changelog_commits(subject)[-1].version
    subject.changes().make(changes)
    with CpuSeconds(subject.job.runner) as cpu:
        subject.job.start()
        subject.wait_for(
            lambda _: (
                sum(each.rows for each in changelog_commits(subject, behind=before)) >= changes
            ),
            "all are committed",
            deadline_s=_WITHIN_S,
        )
    subject.job.stop()
    first, *later = [each for each in changelog_commits(subject, behind=before) if each.rows]
    rows = sum(each.rows for each in later)
    since, until = first.at_ms / 1_000, later[-1].at_ms / 1_000
    return rows / (until - since), rows / cpu.between(since, until)
