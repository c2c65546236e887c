"""`late-rows`: a join whose unmatched records wait, against the same join without the option.

Of the records 70 % have a row, 15 % get one while they wait, 15 % leave at the bound. Both jobs
drain the same topic, one after the other. Rows come while a job drains: those of a block of records
when the next block is read. A speed counts only if each record has left once, with the right name.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from tests.bench.batches import batch_limit, pinned_times, records_per_second
from tests.bench.event_subject import EventSubject, Memory
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import CLICKS, DatabaseUsers, Stream, delta_output, join_sql, users
from tests.support.rig import Rig
from tests.support.sql import run_sql
from tests.support.topics import unique_name

RECORDS, DIM = 10_000_000, 1_000_000
WAIT_MS = 10_000
BLOCKS = 20
_WAIT = f"'join.late-rows.wait'='{WAIT_MS} ms'"
_PER_KEY = 10  # records that wait for one row
_LOOK_S = 0.2
_NEVER = 10**9


@dataclass(frozen=True)
class LateClicks:
    """Clicks by their item's number, and the users that come late."""

    dim: int
    records: int

    @property
    def block(self) -> int:
        return -(-self.records // BLOCKS)

    @property
    def late_in_block(self) -> int:
        return max(1, self.block * 3 // 20 // _PER_KEY)

    def users_of(self, items: np.ndarray) -> np.ndarray:
        late = self.dim + 1 + items // self.block * self.late_in_block
        late += items * 7919 % self.late_in_block
        chance = items % 20
        there = 1 + items * 7919 % self.dim
        return np.where(chance < 14, there, np.where(chance < 17, late, _NEVER + items))

    def values(self, items: range) -> list[bytes]:
        numbers = self.users_of(np.arange(items.start, items.stop)).tolist()
        return [
            b'{"user_id":%d,"item_id":%d,"sent_ms":%d}' % (user, item, item)
            for user, item in zip(numbers, items, strict=True)
        ]

    def insertion(self, block: int) -> str:
        first = self.dim + 1 + block * self.late_in_block
        return (
            "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M'), CONCAT('user ', seq), NULL "
            f"FROM seq_{first}_to_{first + self.late_in_block - 1}"
        )


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed and the memory of both."""
    clicks = LateClicks(sizes.dim or DIM, sizes.records or RECORDS)
    limit, stream = batch_limit(clicks.records), Stream(place.kafka)
    waiting, plain = list[float](), list[float]()
    halves = list[tuple[float, float]]()
    stream.append(clicks.records, clicks.values)
    with place.rig(max_records_per_batch=limit) as rig:
        for _ in range(sizes.runs):
            for options, rates in (((), plain), ((_WAIT,), waiting)):
                with _opened(place, rig, stream, clicks, options) as (subject, path):
                    rates.append(_drained(subject, clicks, halves if options else []))
                    _check(rig, path, clicks, waits=bool(options))
                place.say(f"records/s: waiting {waiting}, plain {plain}")
    size = f"{clicks.records:,} records, {clicks.dim:,} keys, batches of {limit:,}"
    full = clicks.records >= RECORDS and clicks.dim >= DIM
    speed = Measure(
        "join whose unmatched records wait, against the join without",
        "records/s",
        size,
        full,
        waiting,
        plain,
        Bar(Sense.RATIO_AT_LEAST, 0.9),
    )
    second, first = ([each[at] for each in halves] for at in (1, 0))
    memory = Measure(
        "memory of runner and workers, second half of a drain against the first",
        "MiB",
        size,
        full,
        second,
        first,
        Bar(Sense.RATIO_AT_MOST, 1.3),
    )
    return [speed, *([memory] if halves else [])]


@contextmanager
def _opened(
    place: Place, rig: Rig, stream: Stream, clicks: LateClicks, options: tuple[str, ...]
) -> Iterator[tuple[EventSubject, str]]:
    """A job that has copied the table, and joined no record: it is stopped at the gate."""
    path = unique_name("late_rows")
    with users(place.mariadb, clicks.dim) as table:
        table = DatabaseUsers(table.mariadb, table.schema, table.rows, options)
        sql = join_sql(rig, table, stream.topic, delta_output(path, CLICKS))
        with rig.job(sql) as job:
            yield EventSubject(place, rig, job, stream, table), path


def _drained(subject: EventSubject, clicks: LateClicks, halves: list[tuple[float, float]]) -> float:
    with _inserting(subject, clicks), Memory(subject.job.directory) as memory:
        subject.wait_open()
        subject.wait_drained()
        subject.wait_for(_is_empty, "no record waits", deadline_s=600)
    subject.job.stop()
    times = pinned_times(subject.checkpoint)
    seen = memory.halves(0.0)
    if seen is not None:
        halves.append(seen)
    for each in times:
        subject.place.say(f"batch {each.number}: {each.records:,} in {each.seconds:.2f} s")
    return records_per_second(times)


def _is_empty(status: dict) -> bool:  # type: ignore[type-arg]
    time = status["event_time"]
    return time is None or time["waiting_rows"] == 0


@contextmanager
def _inserting(subject: EventSubject, clicks: LateClicks) -> Iterator[None]:
    """Insert the users of each block when the stream has been read a block further."""
    ending = threading.Event()
    table = subject.table
    assert isinstance(table, DatabaseUsers)

    def insert() -> None:
        block = 0
        while block < BLOCKS:
            done = subject.joined_to()
            while block < BLOCKS and done >= min((block + 2) * clicks.block, clicks.records):
                run_sql(table.mariadb, clicks.insertion(block), schema=table.schema)
                block += 1
            if ending.wait(_LOOK_S):
                return

    thread = threading.Thread(target=insert, name="late users", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _check(rig: Rig, path: str, clicks: LateClicks, *, waits: bool) -> None:
    """Each record has one row; without a name only users that were not there in time."""
    rows = rig.table(path)
    if rows.num_rows != clicks.records or len(pc.unique(rows["item_id"])) != clicks.records:
        raise RuntimeError(f"{rows.num_rows} rows of {clicks.records} records")
    items = rows["item_id"].to_numpy()
    nulls = np.asarray(rows["name"].is_null())
    chance = items % 20
    wrong = int((nulls & (chance < 14)).sum() + (~nulls & (chance >= 17)).sum())
    late = int((nulls & (chance >= 14) & (chance < 17)).sum())
    if wrong or (waits and late > clicks.records // 50):
        raise RuntimeError(f"{wrong} wrong rows, {late} records of late users without their row")
