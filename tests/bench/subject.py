"""The candidate: a job on a real control plane, stopped while its stream fills, then drained."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.batches import BatchTime, newest_pinned, pinned_span, pinned_times
from tests.bench.cpu import CpuSeconds
from tests.bench.place import Place
from tests.bench.shop import Output, Paced, Stream, UserTable, join_sql
from tests.support.rig import Rig, RunningJob

OPENS_WITHIN_S = 1_800.0
_DRAINS_WITHIN_S = 1_800.0
_ASK_S = 0.5


@dataclass
class Subject:
    """A job and what it is fed from.

    Attributes:
        table: the users, None of a script that joins others.
    """

    place: Place
    rig: Rig
    job: RunningJob
    stream: Stream
    table: UserTable | None = None
    cpu_s_per_million: list[float] = field(default_factory=list)
    """Of each drain: what all processes of the job have used for a million records."""

    @property
    def checkpoint(self) -> Path:
        return self.job.directory / "checkpoint"

    def joined_to(self) -> int:
        """How many records of the stream are committed, or dead letters."""
        path = self.checkpoint / "progress.json"
        if not path.exists():
            return 0
        return sum(json.loads(path.read_bytes())["next_offsets"].values())

    def wait_for(
        self, condition: Callable[[dict[str, Any]], Any], what: str, *, deadline_s: float
    ) -> dict[str, Any]:
        """The first status that meets `condition`, asked for seldom: that costs time of a core.

        Raises:
            AssertionError: the job has failed.
            TimeoutError: it has not got there.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            status = self.job.status()
            assert status["state"] != "FAILED", status["error"]
            if condition(status):
                return status
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {deadline_s} s, {status}")
            time.sleep(_ASK_S)

    def wait_open(self) -> dict[str, Any]:
        return self.wait_for(
            lambda s: s["state"] == "JOINING", "the gate opens", deadline_s=OPENS_WITHIN_S
        )

    def wait_folded(self) -> None:
        """The first fold is over, which takes seconds of both cores, once; as `wait_for`."""

        def is_folded(status: dict[str, Any]) -> bool:
            dimension = status["dimensions"][0]
            folded = dimension["fold_version"]
            return folded is not None and folded >= dimension["changelog_version"]

        self.wait_for(is_folded, "the table is folded", deadline_s=OPENS_WITHIN_S)

    def wait_drained(self) -> None:
        self.wait_for(self._is_drained, "everything is joined", deadline_s=_DRAINS_WITHIN_S)

    def _is_drained(self, _: dict[str, Any]) -> bool:
        return self.joined_to() >= self.stream.sent

    def drain(self, *, changes_per_s: int = 0) -> list[BatchTime]:
        """Start the stopped job on what is in the stream, and stop it again."""
        before = newest_pinned(self.checkpoint)
        meanwhile = self.changes(changes_per_s) if changes_per_s else nullcontext()
        with meanwhile, CpuSeconds(self.job.runner) as cpu:
            self.job.start()
            self.wait_drained()
        self.job.stop()
        self._check()
        times = pinned_times(self.checkpoint, behind=before)
        if times:
            since, until = pinned_span(self.checkpoint, times)
            used = cpu.between(since, until) / sum(each.records for each in times)
            self.cpu_s_per_million.append(used * 1e6)
        return times

    def _check(self) -> None:
        """A speed counts only if each record has become a row or a dead letter."""
        probe = self.job.status()["probe"]
        found = probe["joined_records"] + probe["dead_letters"]
        if found != self.stream.sent:
            raise RuntimeError(f"{found} rows and dead letters of {self.stream.sent} records")

    def changes(self, per_second: int = 1_000) -> Paced:
        assert self.table is not None
        return self.table.changes(per_second)


@contextmanager
def submitted(
    place: Place, rig: Rig, table: UserTable, stream: Stream, output: Output
) -> Iterator[Subject]:
    with rig.job(join_sql(rig, table, stream.topic, output)) as job:
        yield Subject(place, rig, job, stream, table)


@contextmanager
def opened_and_stopped(
    place: Place, rig: Rig, table: UserTable, stream: Stream, output: Output
) -> Iterator[Subject]:
    """A job that has copied and folded its table, and is stopped: the next start joins at once."""
    with submitted(place, rig, table, stream, output) as subject:
        subject.wait_open()
        subject.wait_folded()
        place.say(f"{table.rows:,} rows are copied and folded, the gate is open")
        subject.job.stop()
        yield subject
