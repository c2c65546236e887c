"""`snapshot`: from a running Spark to the open gate, beside PyMySQL's plain read of the same table.

Each run is a job of its own; the second measure is the same copy in small chunks, by that in large
ones.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import replace

from pymysql.cursors import SSCursor

from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import BLACKHOLE, DatabaseUsers, Stream, users
from tests.bench.subject import Subject, submitted
from tests.support.rig import Rig

DIM = 1_000_000
CHUNKED_DIM = 200_000
LARGE, SMALL = 50_000, 1_000
_WORKING = ("SNAPSHOT", "CATCHING_UP", "JOINING")


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    with place.rig() as rig:
        return [_whole(place, rig, sizes), _in_small_chunks(place, rig, sizes)]


def _whole(place: Place, rig: Rig, sizes: Sizes) -> Measure:
    dim = sizes.dim or DIM
    opened, submitted_for, plain = [], [], []
    with users(place.mariadb, dim) as table:
        for _ in range(sizes.runs):
            plain.append(_read_plainly(table))
            with _copied(place, rig, table, LARGE) as subject:
                opened_at_ms = subject.wait_open()["opened_at_ms"]
                opened.append((opened_at_ms - spark_up_ms(subject)) / 1_000)
                created_at_ms = subject.job.events()[0]["at_ms"]
                submitted_for.append((opened_at_ms - created_at_ms) / 1_000)
            place.say(
                f"{opened[-1]:.1f} s, {submitted_for[-1]:.1f} s since the submission; "
                f"PyMySQL reads in {plain[-1]:.1f} s"
            )
    return Measure(
        "snapshot to open gate, Spark up",
        "s",
        f"{dim:,} rows",
        dim >= DIM,
        opened,
        plain,
        bar=Bar(Sense.RATIO_AT_MOST, 1.7),
        facts={"since_submission_s": [round(s, 1) for s in submitted_for]},
    )


def _in_small_chunks(place: Place, rig: Rig, sizes: Sizes) -> Measure:
    dim = min(sizes.dim or CHUNKED_DIM, CHUNKED_DIM)
    took: dict[int, list[float]] = {SMALL: [], LARGE: []}
    with users(place.mariadb, dim) as table:
        for _ in range(sizes.runs):
            for chunk_rows, seconds in took.items():
                with _copied(place, rig, table, chunk_rows) as subject:
                    opened_at_ms = subject.wait_open()["opened_at_ms"]
                    seconds.append((opened_at_ms - spark_up_ms(subject)) / 1_000)
                place.say(f"in chunks of {chunk_rows:,} rows {seconds[-1]:.1f} s")
    return Measure(
        f"in chunks of {SMALL:,} rows, by chunks of {LARGE:,}",
        "s",
        f"{dim:,} rows",
        dim >= CHUNKED_DIM,
        took[SMALL],
        took[LARGE],
        bar=Bar(Sense.RATIO_AT_MOST, 1.3),
    )


def _copied(
    place: Place, rig: Rig, table: DatabaseUsers, chunk_rows: int
) -> AbstractContextManager[Subject]:
    chunks = f"'scan.incremental.snapshot.chunk.size'='{chunk_rows}'"
    chunked = replace(table, options=(chunks,))
    return submitted(place, rig, chunked, Stream(place.kafka), BLACKHOLE)


def _read_plainly(table: DatabaseUsers) -> float:
    """Seconds in which PyMySQL alone reads the columns that the job does, row by row."""
    columns = "user_id, gender, name, changed_ms"
    with table.mariadb.connect(table.schema, cursorclass=SSCursor) as link, link.cursor() as cursor:
        begun = time.monotonic()
        cursor.execute(f"SELECT {columns} FROM user_info")
        rows = sum(1 for _ in cursor)
        seconds = time.monotonic() - begun
    if rows != table.rows:
        raise RuntimeError(f"{rows} rows of {table.rows}")
    return seconds


def spark_up_ms(subject: Subject) -> int:
    return min(int(e["at_ms"]) for e in subject.job.events() if e["to"] in _WORKING)
