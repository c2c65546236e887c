"""What runs of `event-time` share: their plan, their records, whom they kill and what they read."""

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tests.reliability.experiment import Lab
from tests.reliability.oracle import Verdict
from tests.reliability.oracle_event_time import Event
from tests.reliability.processes import daemons_of, runner_of, send, workers_of
from tests.support.bulk import BulkProducer

PARTITIONS = 2
POINTS = ("C2", "C3", "C4", "C5", "C6", "C13", "C7", "C8", "C9")
ENDS_WITHIN_S = 900.0
_A_REQUEST = 10_000  # records: no batch is larger than a broker takes


@dataclass(frozen=True)
class Run:
    """Jobs that run at the same time, on the same records.

    Attributes:
        name: what `--only` calls it.
        faults: failpoints by batch; each job meets all of them.
        kills: random ones, in turns.
    """

    name: str
    jobs: tuple[str, ...]
    faults: tuple[str, ...]
    kills: int = 0


def settings_of(lab: Lab, one: Run, records_a_batch: int) -> dict[str, Any]:
    """Of the rig of a run."""
    return {
        "failpoints": ";".join(one.faults),
        "max_records_per_batch": records_a_batch,
        "restart_backoff_max_s": 1.0,
        "restart_limit": 10_000,
        "runners": lab.runners,
    }


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes:
        waited: records that left in another batch than that of their arrival, or in a window.
    """

    name: str
    met: int
    planned: int
    waited: int
    verdict: Verdict
    seconds: float


def produce_events(producer: BulkProducer, events: Sequence[Event]) -> None:
    """Append `events`, each to its partition; few of them become one batch."""
    for first in range(0, len(events), _A_REQUEST):
        values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        for event in events[first : first + _A_REQUEST]:
            values[event.where[0]].append(_value(event))
        producer.send(values)


def _value(event: Event) -> bytes:
    at = None if event.at_ms is None else time_text(event.at_ms)
    return json.dumps({"id": event.id, "user_id": event.user_id, "ts": at}).encode()


def time_text(at_ms: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1_000:03}"


def millis(at: datetime) -> int:
    """A time as tables have it, which is UTC."""
    return round(at.replace(tzinfo=UTC).timestamp() * 1_000)


def kill_something(lab: Lab, directory: Path, number: int) -> bool:
    """SIGKILL to the job's runner, a worker or the daemon of workers, if one lives."""
    rng = lab.random("kill", number)
    find = rng.choice((runner_of, runner_of, workers_of, daemons_of))
    found = find(directory)
    living = found if isinstance(found, list) else [found] if found else []
    if living:
        send(rng.choice(living), signal.SIGKILL)
    return bool(living)


def table_rows(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a Delta table, none where there is no table."""
    if not (path / "_delta_log").is_dir():
        return []
    found: pa.Table = DeltaTable(str(path)).to_pyarrow_table()
    return found.to_pylist()


def coordinates(path: Path) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in table_rows(path)]
