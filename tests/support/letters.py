"""Jobs with dead letters: tables, pins and checkpoint on disk, without a runner or Spark."""

import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from joins.adapters.delta.log import DeltaLog, create_table
from joins.durable.checkpoint import Checkpoint, JobMeta, output_app_id, replay_app_id
from joins.durable.letter_replays import LetterReplays
from joins.durable.pins import Pin, PinStore, pin_json
from joins.durable.requests import Request
from joins.kernels.probe.files import SharedTable
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.lookback.dead_letter_replay import DeadLetterReplay, ReplayParts
from joins.lookback.dead_letters import DeadLetters
from joins.lookback.history import History, HistoryPlaces
from joins.lookback.letter_rows import LetterInsert, LetterWriter
from joins.plan.plan import DeltaSink, Field, FurtherInsert, JoinPlan, OutputColumn
from joins.plan.types import Cast, Column, SqlType, TypeName
from joins.sinks.delta import DeltaLetterWriter
from joins.worker.probe_task import DEAD_LETTERS, OUTPUT, IndexPlace, ProbeTask, stage_delta
from joins.worker.staging import TaskReport
from tests.support.probe import BIGINT, PLAN, STRING, USERS, clicks, probe_task

APP = "sluice:job:life"
EPOCH = 2
# Batch 7 sees users 1 and 2 as version 1 has them, batch 8 as version 2.
BATCHES = {
    7: (1, [b'{"user_id":1}', b'{"user_id":"x"}', b"\xff", b'{"user_id":3}']),
    8: (2, [b'{"user_id":1}', b"{", None, b'{"user_id":1}{"user_id":2}']),
    9: (2, [b'{"user_id":"y"}']),
}
CORRECTED = [
    {"partition": 0, "offset": 101, "value": '{"user_id":2}'},
    {"partition": 0, "offset": 102, "value": '{"user_id":1}'},
    {"partition": 0, "offset": 105, "value": '{"user_id":1}'},
]
CORRECTED_ROWS = [(7, 101, 2, "r5"), (7, 102, 1, "r5"), (8, 105, 1, "u9")]
GOOD_ROWS = [(7, 100, 1, "r5"), (7, 103, 3, None), (8, 104, 1, "u9")]


# Three INSERTs over the same stream: two into one table, and one whose cast may fail.
USER, NOTE = Column("c", "user_id", BIGINT), Column("c", "note", STRING)
SET_PLAN = replace(
    PLAN,
    probe=replace(PLAN.probe, fields=(Field("user_id", BIGINT), Field("note", STRING))),
    more_inserts=(
        FurtherInsert(
            alias="c",
            computed_fields=(),
            joins=PLAN.joins,
            where=None,
            output=(
                OutputColumn("size", Cast(NOTE, SqlType(TypeName.INT))),
                OutputColumn("name", Column("u", "name", STRING)),
            ),
            sink_table="sized",
            sink=DeltaSink("sized"),
        ),
        FurtherInsert(
            alias="c",
            computed_fields=(),
            joins=PLAN.joins,
            where=None,
            output=(OutputColumn("user_id", USER), OutputColumn("name", NOTE)),
            sink_table="enriched",
            sink=DeltaSink("enriched"),
        ),
    ),
)
SET_BATCHES = {
    7: (1, [b'{"user_id":1,"note":"7"}', b'{"user_id":"x"}', b'{"user_id":2,"note":"x"}']),
    8: (2, [b"{", b'{"user_id":1,"note":"y"}']),
    9: (2, [b'{"user_id":1,"note":"z"}']),
}
SET_CORRECTED = [
    {"partition": 0, "offset": 101, "value": '{"user_id":2,"note":"5"}'},
    {"partition": 0, "offset": 102, "value": '{"user_id":2,"note":"6"}'},
    {"partition": 0, "offset": 104, "value": '{"user_id":1,"note":"8"}'},
]


class LetterJob:
    """Batches 7 and 8 are committed; of batch 9 only the dead letters are."""

    def __init__(
        self,
        root: Path,
        plan: JoinPlan = PLAN,
        batches: Mapping[int, tuple[int, Sequence[bytes | None]]] = BATCHES,
        records: Callable[..., pa.RecordBatch] = clicks,
    ) -> None:
        self.root = root
        self.plan = plan
        self.batches = batches
        self._records = records
        tables = {"enriched": root / "output"}
        self.outputs = [tables.get(p.sink_table, root / p.sink_table) for p in plan.inserts]
        self.output = self.outputs[0]
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
        for number, output in enumerate(self.outputs):
            create_table(output, kernel_spec(self.plan, number).output_schema)
        self.checkpoint.write_meta(JobMeta("life", EPOCH, "clicks", "id", {0: 100}, {}))
        first = 100
        for batch, (version, values) in self.batches.items():
            self._run(task, batch, version, first)
            first += len(values)
        return self

    def copied_to(self, root: Path) -> "LetterJob":
        """The same at another place: to copy is quicker than to make."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return LetterJob(root, self.plan, self.batches, self._records)

    def _run(self, task: ProbeTask, batch: int, version: int, first: int) -> None:
        values = self.batches[batch][1]
        last = first + len(values)
        pin = Pin(batch, "clicks", {0: first}, {0: last}, {"users": version}, 1_000, EPOCH)
        PinStore(self.checkpoint.pins_directory).create(pin)
        reports = []
        for number, output in enumerate(self.outputs):
            mine = replace(task, kernel=kernel_spec(self.plan, number))
            records = iter([self._records(*values, first=first)])
            (answer,) = stage_delta(records, task=mine, pin=pin, output=SharedTable(output))
            reports.append(TaskReport.from_json(answer.column(0)[0].as_py()))
        dead = [r.files[DEAD_LETTERS] for r in reports if DEAD_LETTERS in r.files]
        DeltaLog(self.root / "dead_letters", APP).commit(batch, EPOCH, dead, pin_json(pin))
        for number, report in enumerate(reports) if batch < 9 else ():
            rows = [report.files[OUTPUT]] if OUTPUT in report.files else []
            told = {**pin_json(pin), "counts": dict(report.counts)}
            self.log(number).commit(batch, EPOCH, rows, told)

    def log(self, number: int = 0) -> DeltaLog:
        return DeltaLog(self.outputs[number], output_app_id(APP, number))

    def _places(self, number: int) -> HistoryPlaces:
        spec = index_spec(self.plan, self.plan.joins[0], 1)
        return HistoryPlaces(
            app_id=APP,
            checkpoint=self.checkpoint,
            kernel=kernel_spec(self.plan, number).by_itself(),
            roles={"u": IndexPlace("users", self.root / "index", spec)},
            tables={"users": self.root / "tables" / "users"},
            dimensions={"users": USERS},
            dead_letters=self.root / "dead_letters",
            replays=self.checkpoint.directory / "replays",
            output=self.outputs[number],
            probe_kafka=PLAN.probe.source.kafka,
            sink=PLAN.sink,
            insert=number,
        )

    def insert(self, number: int, writer: LetterWriter | None = None) -> LetterInsert:
        """An INSERT, from 0, as replays see it."""
        schema = kernel_spec(self.plan, number).output_schema
        log = DeltaLog(self.outputs[number], replay_app_id(output_app_id(APP, number)))
        history = History(self._places(number))
        return LetterInsert(history, writer or DeltaLetterWriter(log, schema))

    def replay(
        self,
        *,
        epoch: int = EPOCH,
        writer: LetterWriter | None = None,
        writers: Mapping[int, LetterWriter] | None = None,
        passed: Callable[[str], None] = lambda _: None,
    ) -> DeadLetterReplay:
        """`writer` is of the first INSERT, `writers` are by INSERT, from 0."""
        given = {0: writer, **(writers or {})}
        inserts = [self.insert(n, given.get(n)) for n in range(len(self.outputs))]
        parts = ReplayParts(self.letters, self.replays, inserts, epoch, passed)
        return DeadLetterReplay(parts)

    def rows(self, number: int = 0) -> list[tuple[int, int, int, str | None]]:
        found = DeltaTable(str(self.outputs[number])).to_pyarrow_table().to_pylist()
        rows = [(r["_batch"], r["_offset"], *list(r.values())[:2]) for r in found]
        return sorted(rows, key=lambda row: (row[:2], str(row[3])))


def request(body: dict[str, Any], id_: str = "r1") -> Request:
    return Request(id_, "replay-dead-letters", body, 0, "operator")


def letter_set(root: Path) -> LetterJob:
    return LetterJob(root, SET_PLAN, SET_BATCHES)


def replay_until_killed(job: LetterJob, body: dict[str, Any], step: str, at: int = 1) -> None:
    """Carry out a request in this process, which kills itself when `step` is passed `at` times."""
    left = [at]

    def passed(name: str) -> None:
        left[0] -= name == step
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    job.replay(passed=passed).handle(request(body))
