"""`late-rows`: a join whose unmatched records wait, against the same join without the option.

Of the records 70 % have a row, 15 % get one while they wait, 15 % leave at the bound. Both jobs
drain the same topic, one after the other. Rows come while a job drains: those of a block of records
when the next block is read. A speed counts only if each record has left once, with the right name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tests.bench.batches import batch_limit, pinned_span, pinned_times, records_per_second
from tests.bench.cpu import CpuSeconds
from tests.bench.event_subject import EventSubject, Memory, memory_of_halves
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import CLICKS, DatabaseUsers, Stream, delta_output, join_sql, users
from tests.support.beside import beside
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

    def users_of(self, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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


@dataclass
class Drains:
    """What the drains of one job have shown: records/s, CPU s a million, MiB of each half."""

    rates: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    # of the records of late users: the share that has met its row
    matched: list[float] = field(default_factory=list)


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed, the CPU time and the memory of both."""
    clicks = LateClicks(sizes.dim or DIM, sizes.records or RECORDS)
    limit, stream = batch_limit(clicks.records), Stream(place.kafka)
    plain, waiting = Drains(), Drains()
    stream.append(clicks.records, clicks.values)
    with place.rig(max_records_per_batch=limit) as rig:
        for _ in range(sizes.runs):
            for options, drains in (((), plain), ((_WAIT,), waiting)):
                with _opened(place, rig, stream, clicks, options) as (subject, path):
                    _drain(subject, clicks, drains)
                    drains.matched.append(_checked(rig, path, clicks))
                place.say(f"waiting {waiting}, plain {plain}")
    size = f"{clicks.records:,} records, {clicks.dim:,} keys, batches of {limit:,}"
    full = clicks.records >= RECORDS and clicks.dim >= DIM
    speed = Measure(
        "join whose unmatched records wait, against the join without",
        "records/s",
        size,
        full,
        waiting.rates,
        plain.rates,
        Bar(Sense.RATIO_AT_LEAST, 0.9),
        {"share_of_late_users_matched": [round(share, 3) for share in waiting.matched]},
    )
    cpu = Measure(
        "CPU of a million records, against the join without",
        "s",
        size,
        full,
        waiting.cpu_s,
        plain.cpu_s,
    )
    if not waiting.memory:
        return [speed, cpu]
    first, second = (list(column) for column in zip(*waiting.memory, strict=True))
    return [speed, cpu, memory_of_halves(size, full=full, first=first, second=second)]


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


def _drain(subject: EventSubject, clicks: LateClicks, drains: Drains) -> None:
    with (
        _inserting(subject, clicks),
        Memory(subject.job.directory) as memory,
        CpuSeconds(subject.job.runner) as cpu,
    ):
        subject.wait_open()
        subject.wait_drained()
        subject.wait_for(_is_empty, "no record waits", deadline_s=600)
    subject.job.stop()
    times = pinned_times(subject.checkpoint)
    used = cpu.between(*pinned_span(subject.checkpoint, times))
    drains.cpu_s.append(used * 1e6 / sum(each.records for each in times))
    drains.rates.append(records_per_second(times))
    seen = memory.halves(0.0)
    if seen is not None:
        drains.memory.append(seen)


def _is_empty(status: dict[str, Any]) -> bool:
    time = status["event_time"]
    return time is None or time["waiting_rows"] == 0


@contextmanager
def _inserting(subject: EventSubject, clicks: LateClicks) -> Iterator[None]:
    """Insert the users of each block when the stream has been read a block further."""
    table = subject.table
    assert isinstance(table, DatabaseUsers)

    def insert(ending: Event) -> None:
        block = 0
        while block < BLOCKS:
            done = subject.joined_to()
            while block < BLOCKS and done >= min((block + 2) * clicks.block, clicks.records):
                run_sql(table.mariadb, clicks.insertion(block), schema=table.schema)
                block += 1
            if ending.wait(_LOOK_S):
                return

    with beside(insert):
        yield


def _checked(rig: Rig, path: str, clicks: LateClicks) -> float:
    """Each record has one row, and a name only if its user was there: the share of `Drains`."""
    rows = rig.table(path)
    if rows.num_rows != clicks.records or len(pc.unique(rows["item_id"])) != clicks.records:
        raise RuntimeError(f"{rows.num_rows} rows of {clicks.records} records")
    items = rows["item_id"].to_numpy()
    nulls = np.asarray(rows["name"].is_null())
    chance = items % 20
    wrong = int((nulls & (chance < 14)).sum() + (~nulls & (chance >= 17)).sum())
    if wrong:
        raise RuntimeError(f"{wrong} wrong rows")
    late = (chance >= 14) & (chance < 17)
    return float((~nulls & late).sum() / late.sum())
