"""`freshness`: from a change in the database to the first batch that sees it.

The writer stamps each change with its clock before it commits it. A change is seen by the first
batch whose pinned version holds it, from the time of its pin. Fold and compaction go on.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import PinStore
from tests.bench.measure import Bar, Measure, Sense, Sizes, quantile
from tests.bench.place import Place
from tests.bench.shop import Clicks, Stream, UserTable, delta_output, now_ms, users
from tests.bench.subject import Subject, submitted
from tests.support.topics import unique_name

CHANGES, DIMS = 90_000, (1_000_000, 5_000_000)
_PER_S = 1_000
_WARM_UP_S, _TAIL_S = 5.0, 15.0
_BUSY = {"maintenance_interval_s": 30.0}  # folds as often as they are; compactions ten times


@dataclass(frozen=True)
class Seen:
    """Milliseconds from each change to the batch that saw it, by when it was made.

    Attributes:
        missed: changes that no batch saw.
    """

    made_ms: np.ndarray
    took_ms: np.ndarray
    missed: int

    def stretches(self, count: int) -> Iterator[list[float]]:
        """The run in so many parts of the same length."""
        if not len(self.made_ms):
            raise ValueError("no change was seen: give more records")
        edges = np.linspace(self.made_ms.min(), self.made_ms.max() + 1, count + 1)
        for first, last in itertools.pairwise(edges):
            inside = (self.made_ms >= first) & (self.made_ms < last)
            yield self.took_ms[inside].tolist()


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """p99 for each size of the table; the larger one also against the smaller one."""
    changes = sizes.records or CHANGES
    dims = DIMS if sizes.dim is None else (sizes.dim,)
    found: list[Measure] = []
    for dim in dims:
        seconds = changes / _PER_S
        with users(place.mariadb, dim) as table:
            seen = seen_changes(place, table, seconds)
        parts = [[ms / 1_000 for ms in part] for part in seen.stretches(sizes.runs)]
        size = f"{seconds:.0f} s of {_PER_S:,} changes/s on {dim:,} rows, {sizes.runs} stretches"
        p99 = [quantile(part, 0.99) for part in parts]
        facts = {
            "p50_s": round(median(quantile(part, 0.5) for part in parts), 3),
            "changes_seen": len(seen.took_ms),
            "changes_missed": seen.missed,
        }
        full = changes >= CHANGES and dim in DIMS
        bar = Bar(Sense.VALUE_AT_MOST, 0.4) if dim == dims[0] else None
        found.append(Measure(f"freshness p99, {dim:,} rows", "s", size, full, p99, (), bar, facts))
    if len(dims) > 1:
        few, many = found
        ratio = Bar(Sense.RATIO_AT_MOST, 1.3)
        name = f"freshness p99, {dims[1]:,} rows against {dims[0]:,}"
        found[1] = Measure(
            name, "s", many.size, many.full, many.values, few.values, ratio, many.facts
        )
    return found


def seen_changes(place: Place, table: UserTable, seconds: float) -> Seen:
    """What batches see of the changes of a table, by a job of its own."""
    with _running(place, table) as subject:
        with Clicks(subject.stream, table.rows, _PER_S) as clicks:
            _wait(subject, _WARM_UP_S)
            with subject.changes(_PER_S) as changes:
                _wait(subject, _WARM_UP_S)
                from_ms = now_ms()
                _wait(subject, seconds)
                until_ms = now_ms()
            _wait(subject, _TAIL_S, until_caught_up=True)
        subject.wait_drained()
        place.say(f"{table.rows:,} rows: {changes.made} changes, {clicks.made} clicks")
        subject.job.stop()
        return _measured(subject, from_ms, until_ms)


@contextmanager
def _running(place: Place, table: UserTable) -> Iterator[Subject]:
    stream, sink = Stream(place.kafka), delta_output(unique_name("fresh"))
    with (
        place.rig(**_BUSY) as rig,
        submitted(place, rig, table, stream, sink) as subject,
    ):
        subject.wait_open()
        yield subject


def _wait(subject: Subject, seconds: float, *, until_caught_up: bool = False) -> None:
    """So long, unless the build side has caught up before; the job must not fail meanwhile."""
    until = now_ms() + seconds * 1_000

    def over(status: dict[str, Any]) -> bool:
        if now_ms() >= until:
            return True
        return until_caught_up and status["dimensions"][0]["lag_records"] == 0

    subject.wait_for(over, f"{seconds} s are over", deadline_s=seconds + 60)


def _measured(subject: Subject, from_ms: int, until_ms: int) -> Seen:
    """What the changelog and the pins say of the changes in that time."""
    pinned, at_ms = _pins(subject.job.directory / "checkpoint" / "pins")
    log = DeltaLog(subject.job.directory / "tables" / "user_info" / "changelog", "bench")
    made, took, missed = [], [], 0
    for version in range(log.versions.oldest_entry(), log.version() + 1):
        rows = log.files.read_commit(version, ["changed_ms"])
        if rows.num_rows == 0:
            continue
        changed = rows.column("changed_ms").drop_null().to_numpy()
        changed = changed[(changed >= from_ms) & (changed < until_ms)]
        first = int(np.searchsorted(pinned, version))
        if first == len(pinned):
            missed += len(changed)
        else:
            made.append(changed)
            took.append(at_ms[first] - changed)
    empty = [np.array([], dtype=np.float64)]
    return Seen(np.concatenate(made or empty), np.concatenate(took or empty), missed)


def _pins(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """The pinned versions in the order of the batches, and when each pin was written."""
    store = PinStore(directory)
    paths = sorted(directory.glob("*.json"))
    pins = [(store.read(int(path.stem)), path.stat().st_mtime_ns / 1e6) for path in paths]
    versions = [pin.versions["user_info"] for pin, _ in pins if pin is not None]
    return np.array(versions), np.array([at for _, at in pins])
