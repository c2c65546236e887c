"""How long micro-batches took: ours by their pins, the reference's by the logs that Spark keeps.

Both from one batch to the next, so everything that a batch costs is in it: planning, pin or offset
log, join, sink, progress or commit log.
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
    if not directory.is_dir():
        return -1
    return max((int(p.name) for p in directory.iterdir() if p.name.isdecimal()), default=-1)


def batch_times(checkpoint: Path, *, behind: int = -1) -> list[BatchTime]:
    commits = checkpoint / "commits"
    first = behind + 1 + WARM_UP
    return [
        BatchTime(number, _records(checkpoint, number), _at(commits, number))
        for number in range(first, newest(commits) + 1)
    ]


def _at(commits: Path, number: int) -> float:
    ended, before = ((commits / str(n)).stat().st_mtime_ns for n in (number, number - 1))
    return (ended - before) / 1e9


def _records(checkpoint: Path, number: int) -> int:
    return _end(checkpoint / "offsets" / str(number)) - _end(
        checkpoint / "offsets" / str(number - 1)
    )


def _end(entry: Path) -> int:
    last = entry.read_text().splitlines()[-1]
    return sum(end for partitions in json.loads(last).values() for end in partitions.values())


def newest_pinned(checkpoint: Path) -> int:
    pin = PinStore(checkpoint / "pins").newest()
    return -1 if pin is None else pin.batch


def pinned_times(checkpoint: Path, *, behind: int = -1) -> list[BatchTime]:
    """Batches of a job of ours with records since batch `behind`, but for the first two.

    Each from its pin to the next one's, or to where the job has counted it as done.
    """
    store = PinStore(checkpoint / "pins")
    pins = [store.read(int(path.stem)) for path in sorted((checkpoint / "pins").glob("*.json"))]
    busy = [pin for pin in pins if pin is not None and pin.batch > behind and pin.records()]
    return [
        BatchTime(pin.batch, pin.records(), _seconds(checkpoint, pin.batch))
        for pin in busy[WARM_UP:]
    ]


def _seconds(checkpoint: Path, batch: int) -> float:
    return _ended_at(checkpoint, batch) - _planned_at(checkpoint, batch)


def _ended_at(checkpoint: Path, batch: int) -> float:
    following = _pin_file(checkpoint, batch + 1)
    if following.exists():
        return following.stat().st_mtime_ns / 1e9
    return float(json.loads((checkpoint / "progress.json").read_bytes())["at_ms"]) / 1e3


def pinned_span(checkpoint: Path, times: Sequence[BatchTime]) -> tuple[float, float]:
    return _planned_at(checkpoint, times[0].number), _ended_at(checkpoint, times[-1].number)


def _pin_file(checkpoint: Path, batch: int) -> Path:
    return checkpoint / "pins" / f"{batch:010d}.json"


def _planned_at(checkpoint: Path, batch: int) -> float:
    return _pin_file(checkpoint, batch).stat().st_mtime_ns / 1e9


def whole(times: Sequence[BatchTime]) -> list[BatchTime]:
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


def batch_limit(records: int) -> int:
    return max(1, min(500_000, records // 4))
