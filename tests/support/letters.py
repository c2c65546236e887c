"""A job with dead letters: its tables, pins and checkpoint on disk, without a runner or Spark."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from joins.adapters.delta_log import DeltaLog, create_table
from joins.adapters.delta_sink import DeltaLetterWriter
from joins.checkpoint import Checkpoint, JobMeta
from joins.dead_letter_replay import DeadLetterReplay, LetterWriter, ReplayParts
from joins.dead_letters import DeadLetters
from joins.history import History, HistoryPlaces
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import index_spec, kernel_spec
from joins.letter_replays import LetterReplays
from joins.pins import Pin, PinStore, pin_json
from joins.probe_task import DEAD_LETTERS, OUTPUT, IndexPlace, ProbeTask, stage_delta
from joins.requests import Request
from joins.staging import TaskReport
from tests.support.probe import PLAN, USERS, clicks, probe_task

APP = "sluice:job:life"
EPOCH = 2
# Batch 7 sees users 1 and 2 as version 1 has them, batch 8 as version 2.
BATCHES = {
    7: (1, [b'{"user_id":1}', b'{"user_id":"2"}', b"\xff", b'{"user_id":3}']),
    8: (2, [b'{"user_id":1}', b"{", None, b'{"user_id":1}{"user_id":2}']),
    9: (2, [b'{"user_id":"1"}']),
}
CORRECTED = [
    {"partition": 0, "offset": 101, "value": '{"user_id":2}'},
    {"partition": 0, "offset": 102, "value": '{"user_id":1}'},
    {"partition": 0, "offset": 105, "value": '{"user_id":1}'},
]
CORRECTED_ROWS = [(7, 101, 2, "r5"), (7, 102, 1, "r5"), (8, 105, 1, "u9")]
GOOD_ROWS = [(7, 100, 1, "r5"), (7, 103, 3, None), (8, 104, 1, "u9")]


class LetterJob:
    """Batches 7 and 8 are committed; of batch 9 only the dead letters are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "output"
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.replays = LetterReplays(root / "checkpoint" / "replays")
        self.letters = DeadLetters(root / "dead_letters", self.replays)

    def make(self) -> "LetterJob":
        """Write everything; once."""
        task = replace(probe_task(self.root), epoch=EPOCH, dead_letters=self.root / "dead_letters")
        (self.root / "changelog").rename(self.root / "log")
        (self.root / "tables" / "users").mkdir(parents=True)
        (self.root / "log").rename(self.root / "tables" / "users" / "changelog")
        create_table(self.root / "dead_letters", DEAD_LETTER_SCHEMA)
        create_table(self.output, task.kernel.output_schema)
        self.checkpoint.write_meta(JobMeta("life", EPOCH, "clicks", "id", {0: 100}, {}))
        first = 100
        for batch, (version, values) in BATCHES.items():
            self._run(task, batch, version, first)
            first += len(values)
        return self

    def _run(self, task: ProbeTask, batch: int, version: int, first: int) -> None:
        values = BATCHES[batch][1]
        last = first + len(values)
        pin = Pin(batch, "clicks", {0: first}, {0: last}, {"users": version}, 1_000, EPOCH)
        PinStore(self.checkpoint.pins_directory).create(pin)
        (answer,) = stage_delta(
            iter([clicks(*values, first=first)]), task=task, pin=pin, output=self.output
        )
        report = TaskReport.from_json(answer.column(0)[0].as_py())
        dead = [file for name, file in report.files.items() if name == DEAD_LETTERS]
        rows = [file for name, file in report.files.items() if name == OUTPUT]
        DeltaLog(self.root / "dead_letters", APP).commit(batch, EPOCH, dead, pin_json(pin))
        if batch < 9:
            told = {**pin_json(pin), "counts": dict(report.counts)}
            DeltaLog(self.output, APP).commit(batch, EPOCH, rows, told)

    def _places(self) -> HistoryPlaces:
        spec = index_spec(PLAN, PLAN.joins[0], 1)
        return HistoryPlaces(
            app_id=APP,
            checkpoint=self.checkpoint,
            kernel=kernel_spec(PLAN),
            roles={"u": IndexPlace("users", self.root / "index", spec)},
            tables={"users": self.root / "tables" / "users"},
            dimensions={"users": USERS},
            dead_letters=self.root / "dead_letters",
            replays=self.checkpoint.directory / "replays",
            output=self.output,
            probe_kafka=PLAN.probe.source.kafka,
            sink=PLAN.sink,
        )

    def replay(
        self,
        *,
        epoch: int = EPOCH,
        writer: LetterWriter | None = None,
        passed: Callable[[str], None] = lambda _: None,
    ) -> DeadLetterReplay:
        schema = kernel_spec(PLAN).output_schema
        log = DeltaLog(self.output, f"{APP}:replay")
        return DeadLetterReplay(
            ReplayParts(
                letters=self.letters,
                replays=self.replays,
                history=History(self._places()),
                epoch=epoch,
                writer=writer or DeltaLetterWriter(log, schema),
                passed=passed,
            )
        )

    def rows(self) -> list[tuple[int, int, int, str | None]]:
        """(batch, offset, user, name) of all rows of the output, in that order."""
        found = DeltaTable(str(self.output)).to_pyarrow_table().to_pylist()
        rows = [(r["_batch"], r["_offset"], r["user_id"], r["name"]) for r in found]
        return sorted(rows, key=lambda row: row[:2])


def request(body: dict[str, Any], id_: str = "r1") -> Request:
    return Request(id_, "replay-dead-letters", body, 0, "operator")


def replay_until_killed(root: Path, body: dict[str, Any], step: str) -> None:
    """Carry out a request in this process, which kills itself at `step`."""

    def passed(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    LetterJob(root).replay(passed=passed).handle(request(body))
