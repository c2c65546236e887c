"""Experiment `snapshot-kills`: the copy of a table that is being written to is killed all the time.

Each round is a new table and a new job. While 300 transactions a second insert, update, delete and
move primary keys, its CDC process or its runner is killed when 1, 10, 50 and 90 % of the copy are
durable, when the step before the last one is being read, and once more between the last row and the
watermark: there the CDC process is halted before HIGH is taken, so the copy is complete and nothing
says so yet. Rows that are changed while it is halted reach the job by the binlog only: records of
the probe that wait for them since the beginning show whether the gate opened too early. With
`--source debezium` a real connector copies into its topic: killed are Connect, whose next snapshot
begins anew, the process that reads the topic, and the runner; between the last row and its proof
that process is halted. In the end the newest record of each key and the folded `current` must both
be what `SELECT *` gives, row by row.
"""

import json
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import psutil
import pyarrow as pa

from tests.reliability.captured import CapturedUsers, captured_users
from tests.reliability.copied import tables_differ
from tests.reliability.experiment import Lab, result
from tests.reliability.processes import CDC, FEED, kill_hard, members, runner_of, send
from tests.support.beside import beside
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS, USERS_DDL, click, enrich_by, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

RUNNER, CDC_PROCESS, FEED_PROCESS, CONNECT = "runner", "cdc", "feed", "connect"
AFTER_THE_LAST_ROW = 1.0
_POINTS = (0.01, 0.1, 0.5, 0.9, 0.999, AFTER_THE_LAST_ROW)
_SMALL = (0.1, 0.5, AFTER_THE_LAST_ROW)
_STEP_CHUNKS = 8  # of one Spark job, the unit of resuming
_HALTED_FROM = 0.93
_SCHEMA = pa.schema([("user_id", pa.int64()), ("gender", pa.string()), ("name", pa.string())])
_COLUMNS = tuple(_SCHEMA.names)
_PARTITIONS = 4
_EACH_S = 600.0
_PROBES = 50


@dataclass(frozen=True)
class Kill:
    """One kill, and how much of the key range was durable then."""

    point: float
    victim: str
    at: float


@dataclass(frozen=True)
class Size:
    """Of a table, and about how many chunks it is copied in."""

    rows: int
    chunks: int


@dataclass
class Round:
    """What one table and job have been through."""

    number: int
    kills: list[Kill] = field(default_factory=list)
    early: int = 0
    wrong: list[str] = field(default_factory=list)
    changes: int = 0
    sentinels: bool = False


class Writer:
    """Transactions at a steady pace: a quarter deletes, a quarter moves of primary keys."""

    def __init__(self, rig: Rig, schema: str, rows: int, per_s: int) -> None:
        self._rig, self._schema, self._rows, self._per_s = rig, schema, rows, per_s
        self.made = 0

    def run(self, stopping: Event) -> None:
        """Write until then."""
        with self._rig.mariadb.connect(self._schema) as link, link.cursor() as cursor:
            begun = time.monotonic()
            while not stopping.is_set():
                self._change(cursor, self.made)
                self.made += 1
                stopping.wait(max(0.0, self.made / self._per_s - (time.monotonic() - begun)))

    def _change(self, cursor: Any, number: int) -> None:
        one = 1 + _PROBES + number * 7919 % (self._rows - _PROBES)
        kind = number % 4
        if kind == 0:
            cursor.execute("DELETE FROM user_info WHERE user_id = %s", (one,))
        elif kind == 1:
            cursor.execute(
                "UPDATE IGNORE user_info SET user_id = %s WHERE user_id = %s",
                (1 + _PROBES + one * 31 % (self._rows - _PROBES), one),
            )
        elif kind == 2:
            cursor.execute(
                "UPDATE user_info SET name = %s WHERE user_id = %s", (f"changed {number}", one)
            )
        else:
            cursor.execute("REPLACE INTO user_info VALUES (%s, 'N', %s)", (one, f"new {number}"))


def run(lab: Lab) -> dict[str, Any]:
    """Rounds until there were enough kills."""
    cases = lab.cases(3, 60)
    size = Size(*lab.size((20_000, 160), (200_000, 600)))
    points = _POINTS if lab.full else _SMALL
    rounds: list[Round] = []
    left = cases
    with running_rig(
        lab.place("rig"),
        lab.kafka,
        lab.mariadb,
        restart_backoff_max_s=1.0,
        restart_limit=10_000,
        changelog_partitions=_PARTITIONS,
        fold_share=0.0,  # `current` is compared when all has come to rest
        snapshot_job_rows=_STEP_CHUNKS * (size.rows // size.chunks),
        runners=lab.runners,
    ) as rig:
        while left > 0:
            found = Round(len(rounds))
            rounds.append(found)
            _run_round(lab, rig, size, (found, points[-left:] if left < len(points) else points))
            left -= max(1, len(found.kills))
            lab.say(
                f"round {len(rounds)}: {len(found.kills)} kills, {found.changes} changes,"
                f" early {found.early}, wrong {found.wrong}"
            )
    return _summary(lab, rounds)


def _summary(lab: Lab, rounds: list[Round]) -> dict[str, Any]:
    kills = [kill for one in rounds for kill in one.kills]
    good = [kill for one in rounds if not one.wrong and not one.early for kill in one.kills]
    early = sum(one.early for one in rounds)
    wrong = [told for one in rounds for told in one.wrong]
    counts = {"lost": 0, "duplicate": 0, "wrong_version": 0, "early": early}
    found = result(
        lab,
        "snapshot-kills",
        len(kills),
        len(good),
        [],
        rounds=len(rounds),
        rounds_with_sentinels=sum(one.sentinels for one in rounds),
        changes=sum(one.changes for one in rounds),
        victims=Counter(kill.victim for kill in kills),
        reached=[[kill.point, kill.victim, round(kill.at, 4)] for kill in kills],
        wrong=wrong[:20],
        ok=not early and not wrong,
    )
    return {**found, **counts}


def _run_round(lab: Lab, rig: Rig, size: Size, what: tuple[Round, tuple[float, ...]]) -> None:
    found, points = what
    topic, path = create_topic(rig.kafka.bootstrap_servers, partitions=2), unique_name("kills")
    clicks = [click(user, user) for user in range(1, _PROBES + 1)]
    produce(rig.kafka.bootstrap_servers, topic, clicks)
    with (
        _table(lab, rig, size) as (schema, declared, captured),
        rig.job(enrich_by(rig, declared, topic, path)) as job,
    ):
        place = Place(rig, job, schema, size, path)
        copy = DatabaseCopy(place) if captured is None else TopicCopy(place, captured)
        writer = Writer(rig, schema, size.rows, per_s=300)
        with beside(writer.run):
            copy.begin()
            for number, point in enumerate(points):
                victim = copy.victims[(number + found.number + lab.seed) % len(copy.victims)]
                _kill_at(copy, point, (victim, found))
            job.wait_for(lambda s: s["phase"] == "JOIN", "it opens", deadline_s=_EACH_S)
            found.changes = writer.made
        if found.sentinels:
            found.wrong += _first_rows_are_wrong(rig, job, path)
        found.wrong += [*_copy_is_wrong(rig, job, schema), *copy.faults()]


@contextmanager
def _table(lab: Lab, rig: Rig, size: Size) -> Iterator[tuple[str, str, CapturedUsers | None]]:
    """The schema, the DDL of `user_info`, and its connector, not started, if there is one."""
    if lab.is_captured:
        speed = lab.size(4_000, 20_000)
        with captured_users(
            lab, rig.kafka, size.rows, partitions=_PARTITIONS, rows_per_s=speed
        ) as captured:
            yield captured.schema, captured.declared(), captured
        return
    chunk = f"'scan.incremental.snapshot.chunk.size'='{size.rows // size.chunks}'"
    with new_schema(rig.mariadb, USERS, fill_users(size.rows)) as schema:
        yield schema, cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, (chunk,)), None


@dataclass(frozen=True)
class Place:
    """Where a copy is made: from the schema, by the job, whose output is at the path."""

    rig: Rig
    job: RunningJob
    schema: str
    size: Size
    path: str

    @property
    def source_file(self) -> Path:
        return self.job.directory / "checkpoint" / "sources" / "user_info.json"

    def is_open(self) -> bool:
        pins = self.job.directory / "checkpoint" / "pins"
        opened = (self.job.directory / "checkpoint" / "phase.json").exists()
        return opened or bool(list(pins.glob("*"))) or bool(self.rig.rows(self.path))

    def change_first_rows(self) -> None:
        run_sql(
            self.rig.mariadb,
            f"DELETE FROM user_info WHERE user_id <= {_PROBES} AND user_id % 2 = 0",
            f"UPDATE user_info SET name = 'late' WHERE user_id <= {_PROBES}",
            schema=self.schema,
        )

    def kill_runner(self) -> None:
        kill_hard(wait_until(lambda: runner_of(self.job.directory), what="the runner lives"))

    def kill_members(self, module: str) -> None:
        directory = self.job.directory
        kill_hard(*wait_until(lambda: members(directory, module), what=f"{module} lives"))

    def halt(self, module: str) -> list[psutil.Process]:
        """SIGSTOP to the job's processes of that module, once there are some."""
        deadline = time.monotonic() + _EACH_S
        while not (found := members(self.job.directory, module)) and time.monotonic() < deadline:
            time.sleep(0.005)
        for process in found:
            send(process, signal.SIGSTOP)
        return found


def _kill_at(copy: "Copy", point: float, how: tuple[str, Round]) -> None:
    victim, found = how
    if point == AFTER_THE_LAST_ROW:
        at, found.sentinels = AFTER_THE_LAST_ROW, copy.reach_the_last_row()
    else:
        at = copy.wait(min(point, copy.latest), victim)
    found.early += copy.place.is_open()
    copy.kill(victim)
    found.kills.append(Kill(point, victim, at))


class Copy(ABC):
    """The copy of one job, seen from outside.

    Attributes:
        victims: what can be killed.
        latest: the greatest share that it is killed at, before the last row.
    """

    victims: ClassVar[tuple[str, ...]]

    def __init__(self, place: Place, latest: float = 0.9) -> None:
        self.place, self.latest = place, latest

    def begin(self) -> None:  # noqa: B027 (most begin with the job)
        """Begin to copy."""

    def wait(self, share: float, victim: str) -> float:
        """Until at least `share` is done; polls quickly, for the copy goes on meanwhile."""
        deadline = time.monotonic() + _EACH_S
        while (done := self._done(victim)) < share:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{share} of the copy, at {done}: {self.place.job.status()}")
            time.sleep(0.005)
        return done

    @abstractmethod
    def _done(self, victim: str) -> float:
        """The share that is read, as far as it is durable for `victim`; 1 when all is."""

    @abstractmethod
    def reach_the_last_row(self) -> bool:
        """All rows are read, and nothing says so yet to the job.

        Returns:
            Whether the changes that were made meanwhile must be in the copy.
        """

    @abstractmethod
    def kill(self, victim: str) -> None:
        """SIGKILL."""

    def faults(self) -> list[str]:
        """What was wrong on the way."""
        return []


class DatabaseCopy(Copy):
    """By `mysql-cdc`, seen through the file that makes it durable."""

    victims = (RUNNER, CDC_PROCESS)

    def __init__(self, place: Place) -> None:
        super().__init__(place, 1 - 2 * _STEP_CHUNKS / place.size.chunks)
        self._lows: set[str] = set()

    def state(self) -> dict[str, Any]:
        """What is durable, nothing before the first time."""
        if not self.place.source_file.exists():
            return {}
        value: dict[str, Any] = json.loads(self.place.source_file.read_text())
        self._lows.add(json.dumps([value["generation"], value["low"]["position"]]))
        return value

    def _done(self, victim: str) -> float:
        state = self.state()
        if state.get("chunks_complete"):
            return AFTER_THE_LAST_ROW
        after = state.get("after")
        return int(after[0]) / self.place.size.rows if after else 0.0

    def reach_the_last_row(self) -> bool:
        """HIGH is durable, and the CDC process, halted, has written no watermark.

        Returns:
            Whether the changes that it could not send yet were surely made before HIGH.
        """
        self.wait(_HALTED_FROM, CDC_PROCESS)
        self.place.halt(CDC)
        self.place.change_first_rows()
        before_high = not self.state().get("high")
        wait_until(lambda: self.state().get("high"), deadline_s=_EACH_S, what="HIGH is durable")
        return before_high

    def kill(self, victim: str) -> None:
        if victim == RUNNER:
            self.place.kill_runner()
        else:
            self.place.kill_members(CDC)

    def faults(self) -> list[str]:
        return [] if len(self._lows) == 1 else [f"LOW changed: {sorted(self._lows)}"]


class TopicCopy(Copy):
    """By a connector into its topic, which the job reads."""

    victims = (CONNECT, FEED_PROCESS, RUNNER)

    def __init__(self, place: Place, captured: CapturedUsers) -> None:
        super().__init__(place)
        self._captured = captured
        self._halted: list[psutil.Process] = []

    def begin(self) -> None:
        self._captured.start(self.place.job.directory)

    def _done(self, victim: str) -> float:
        copied = self._captured.copied()
        if victim != CONNECT:
            copied = min(copied, self._captured.read_by(self.place.job.directory))
        return copied / self._captured.rows

    def reach_the_last_row(self) -> bool:
        """The snapshot and changes behind it are in the topic, and the job's process is halted."""
        self.wait(_HALTED_FROM / 2, FEED_PROCESS)
        self._halted = self.place.halt(FEED)
        self._captured.connector.await_snapshot()
        self.place.change_first_rows()
        wait_until(lambda: self._late() >= _PROBES // 2, deadline_s=_EACH_S, what="the changes")
        return True

    def _late(self) -> int:
        records = self._captured.connector.records("user_info")
        return sum(b'"name":"late"' in (record.value or b"") for record in records)

    def kill(self, victim: str) -> None:
        """SIGKILL; Connect is started again, for nobody else does."""
        if victim == RUNNER:
            self.place.kill_runner()
        elif victim == FEED_PROCESS:
            self.place.kill_members(FEED)
        else:
            self._captured.kill()
        for process in self._halted:
            send(process, signal.SIGCONT)
        if victim == CONNECT:
            self._captured.go_on()


def _first_rows_are_wrong(rig: Rig, job: RunningJob, path: str) -> list[str]:
    """The held records must have met the changes that only the binlog told before HIGH."""
    rows = {r["item_id"]: r["name"] for r in job.wait_output(path, _PROBES)}
    expected = {n: "late" if n % 2 else None for n in range(1, _PROBES + 1)}
    if rows == expected and len(rig.rows(path)) == _PROBES:
        return []
    return [
        f"held records: {[(n, rows.get(n)) for n in expected if rows.get(n) != expected[n]][:5]}"
    ]


def _copy_is_wrong(rig: Rig, job: RunningJob, schema: str) -> list[str]:
    """Both folds against the table, once everything has arrived."""
    select = run_sql(rig.mariadb, "SELECT user_id, gender, name FROM user_info", schema=schema)
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in sorted(select)]
    expected = pa.Table.from_pylist(rows, _SCHEMA)
    tables = job.directory / "tables" / "user_info"
    return tables_differ(tables, expected, partitions=_PARTITIONS, within_s=_EACH_S)
