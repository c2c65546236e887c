"""How long micro-batches took, by the files that Spark itself keeps of a query.

Ours and the reference are queries of Spark's, so both are measured in the same way: from the entry
of one batch in the query's commit log to that of the next. Everything that a batch costs is in it:
planning, offset log, pin, join, sink and commit log.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from joins.durable.pins import PinStore

WARM_UP = 2  # batches of a JVM that are left out


@dataclass(frozen=True, slots=True)
class BatchTime:
    """One micro-batch."""

    number: int
    records: int
    seconds: float


def newest(directory: Path) -> int:
    """The newest batch in one of Spark's logs, -1 before the first."""
    if not directory.is_dir():
        return -1
    return max((int(p.name) for p in directory.iterdir() if p.name.isdecimal()), default=-1)


def batch_times(checkpoint: Path, *, behind: int = -1) -> list[BatchTime]:
    """The batches that a query has committed since batch `behind`, but for the first two."""
    commits = checkpoint / "commits"
    first = behind + 1 + WARM_UP
    return [
        BatchTime(number, _records(checkpoint, number), _at(commits, number))
        for number in range(first, newest(commits) + 1)
    ]


def committed_at(checkpoint: Path, times: Sequence[BatchTime]) -> tuple[float, float]:
    """When the batch before these and the last of them were committed, in Unix time."""
    commits = checkpoint / "commits"
    ends = (commits / str(number) for number in (times[0].number - 1, times[-1].number))
    since, until = (end.stat().st_mtime_ns / 1e9 for end in ends)
    return since, until


def _at(commits: Path, number: int) -> float:
    ended, before = ((commits / str(n)).stat().st_mtime_ns for n in (number, number - 1))
    return (ended - before) / 1e9


def _records(checkpoint: Path, number: int) -> int:
    return _end(checkpoint / "offsets" / str(number)) - _end(
        checkpoint / "offsets" / str(number - 1)
    )


def _end(entry: Path) -> int:
    """The sum of the end offsets in one entry of an offset log."""
    last = entry.read_text().splitlines()[-1]
    return sum(end for partitions in json.loads(last).values() for end in partitions.values())


def pinned_times(pins: Path, *, behind: int = -1) -> list[BatchTime]:
    """Batches with records since batch `behind`, each from its pin to the next one's.

    For jobs of ours, whatever plans their batches. The first two are left out, and the last one:
    when that ended no pin tells.
    """
    store = PinStore(pins)
    found = [store.read(int(path.stem)) for path in sorted(pins.glob("*.json"))]
    busy = [pin for pin in found if pin is not None and pin.batch > behind and pin.records()]
    return [
        BatchTime(
            pin.batch, pin.records(), planned_at(pins, pin.batch + 1) - planned_at(pins, pin.batch)
        )
        for pin in busy[WARM_UP:-1]
    ]


def planned_at(pins: Path, batch: int) -> float:
    """When the pin of a batch was written, in Unix time."""
    return (pins / f"{batch:010d}.json").stat().st_mtime_ns / 1e9


def whole(times: Sequence[BatchTime]) -> list[BatchTime]:
    """Without a last batch that had less to do than the one before it."""
    if len(times) > 1 and times[-1].records < times[-2].records:
        return list(times[:-1])
    return list(times)


def records_per_second(times: Sequence[BatchTime]) -> float:
    """Throughput of `times` together.

    Raises:
        ValueError: there is no batch.
    """
    if not times:
        raise ValueError("no batch is left behind the first two: give more records")
    counted = whole(times)
    return sum(t.records for t in counted) / sum(t.seconds for t in counted)


def batch_limit(records: int, most: int = 500_000) -> int:
    """Records of a batch, so that two of them are left to measure where there are few."""
    return max(1, min(most, records // 4))
