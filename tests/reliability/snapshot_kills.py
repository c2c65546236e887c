"""Experiment `snapshot-kills`: the copy of a table that is being written to is killed all the time.

Each round is a new table and a new job. While 300 transactions a second insert, update, delete and
move primary keys, its CDC process or its runner is killed when 1, 10, 50 and 90 % of the copy are
durable, when the step before the last one is being read, and once more between the last row and the
watermark: there the CDC process is halted before HIGH is taken, so the copy is complete and nothing
says so yet. Rows that are changed while it is halted reach the job by the binlog only: records of
the probe that wait for them since the beginning show whether the gate opened too early. In the end
the newest record of each key and the folded `current` must both be what `SELECT *` gives, row by
row.
"""

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reliability.copied import Rows, current_rows, differences, folded_changelog
from tests.reliability.experiment import Lab, result
from tests.reliability.processes import CDC, kill_hard, members, runner_of, send
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

RUNNER, CDC_PROCESS = "runner", "cdc"
AFTER_THE_LAST_ROW = 1.0
_POINTS = (0.01, 0.1, 0.5, 0.9, 0.999, AFTER_THE_LAST_ROW)
_SMALL = (0.1, 0.5, AFTER_THE_LAST_ROW)
_STEP_CHUNKS = 8  # of one Spark job, the unit of resuming
_HALTED_FROM = 0.93
_COLUMNS = ("user_id", "gender", "name")
_PARTITIONS = 4
_EACH_S = 120.0
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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self.made = 0
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            with self._rig.mariadb.connect(self._schema) as link, link.cursor() as cursor:
                begun = time.monotonic()
                while not self._stopping.is_set():
                    self._change(cursor, self.made)
                    self.made += 1
                    ahead = self.made / self._per_s - (time.monotonic() - begun)
                    if ahead > 0:
                        self._stopping.wait(ahead)
        except BaseException as exc:  # the main thread raises it again
            self.error = exc

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

    @contextmanager
    def running(self) -> Iterator["Writer"]:
        """Write while the body runs."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            self._thread.join()
        if self.error is not None:
            raise self.error


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
        snapshot_job_rows=_STEP_CHUNKS * (size.rows // size.chunks),
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
        victims={v: sum(k.victim == v for k in kills) for v in (RUNNER, CDC_PROCESS)},
        reached=[[kill.point, kill.victim, round(kill.at, 4)] for kill in kills],
        wrong=wrong[:20],
        ok=not early and not wrong,
    )
    return {**found, **counts}


def _run_round(lab: Lab, rig: Rig, size: Size, what: tuple[Round, tuple[float, ...]]) -> None:
    (found, points), rows = what, size.rows
    topic, path = create_topic(rig.kafka.bootstrap_servers, partitions=2), unique_name("kills")
    options = (f"'scan.incremental.snapshot.chunk.size'='{rows // size.chunks}'",)
    clicks = [click(user, user) for user in range(1, _PROBES + 1)]
    produce(rig.kafka.bootstrap_servers, topic, clicks)
    with (
        new_schema(rig.mariadb, USERS, fill_users(rows)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path, options)) as job,
    ):
        with Writer(rig, schema, rows, per_s=300).running() as writer:
            copy = Copy(rig, job, schema, size, path)
            for number, point in enumerate(points):
                victim = (RUNNER, CDC_PROCESS)[(number + found.number + lab.seed) % 2]
                _kill_at(copy, point, (victim, found))
            job.wait_for(lambda s: s["phase"] == "JOIN", "it opens", deadline_s=_EACH_S)
            found.changes = writer.made
        if found.sentinels:
            found.wrong += _first_rows_are_wrong(rig, job, path)
        found.wrong += _copy_is_wrong(rig, job, schema)
        if len(copy.lows) != 1:
            found.wrong.append(f"LOW changed: {sorted(copy.lows)}")


class Copy:
    """The copy of one job, seen through the file that makes it durable."""

    def __init__(self, rig: Rig, job: RunningJob, schema: str, size: Size, path: str) -> None:
        self.rig, self.job, self.schema, self.size, self.path = rig, job, schema, size, path
        self._file = job.directory / "checkpoint" / "sources" / "user_info.json"
        self.lows: set[str] = set()

    def state(self) -> dict[str, Any]:
        """What is durable, nothing before the first time."""
        if not self._file.exists():
            return {}
        value: dict[str, Any] = json.loads(self._file.read_text())
        self.lows.add(json.dumps([value["generation"], value["low"]["position"]]))
        return value

    def done(self) -> float:
        """The durable share of the key range; 1 when all is read."""
        state = self.state()
        if state.get("chunks_complete"):
            return AFTER_THE_LAST_ROW
        after = state.get("after")
        return int(after[0]) / self.size.rows if after else 0.0

    def wait(self, share: float) -> float:
        """Until at least `share` is durable; polls quickly, for the copy goes on meanwhile."""
        deadline = time.monotonic() + _EACH_S
        while (done := self.done()) < share:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{share} of the copy, at {done}: {self.job.status()}")
            time.sleep(0.005)
        return done

    def is_early(self) -> bool:
        """Whether anything of the probe has come out, or could."""
        pins = self.job.directory / "checkpoint" / "pins"
        opened = (self.job.directory / "checkpoint" / "phase.json").exists()
        return opened or bool(list(pins.glob("*"))) or bool(self.rig.rows(self.path))


def _kill_at(copy: Copy, point: float, how: tuple[str, Round]) -> None:
    victim, found = how
    if point == AFTER_THE_LAST_ROW:
        at, found.sentinels = AFTER_THE_LAST_ROW, _reach_the_last_row(copy)
    else:
        at = copy.wait(min(point, 1 - 2 * _STEP_CHUNKS / copy.size.chunks))
    found.early += copy.is_early()
    directory = copy.job.directory
    if victim == RUNNER:
        kill_hard(wait_until(lambda: runner_of(directory), what="the runner lives"))
    else:
        kill_hard(*wait_until(lambda: members(directory, CDC), what="the CDC process lives"))
    found.kills.append(Kill(point, victim, at))


def _reach_the_last_row(copy: Copy) -> bool:
    """The copy is read, HIGH is durable, and the CDC process, halted, has written no watermark.

    Returns:
        Whether the changes that it could not send yet were surely made before HIGH.
    """
    copy.wait(_HALTED_FROM)
    deadline = time.monotonic() + _EACH_S
    while not (halted := members(copy.job.directory, CDC)) and time.monotonic() < deadline:
        time.sleep(0.005)
    for process in halted:
        send(process, signal.SIGSTOP)
    run_sql(
        copy.rig.mariadb,
        f"DELETE FROM user_info WHERE user_id <= {_PROBES} AND user_id % 2 = 0",
        f"UPDATE user_info SET name = 'late' WHERE user_id <= {_PROBES}",
        schema=copy.schema,
    )
    before_high = not copy.state().get("high")
    wait_until(lambda: copy.state().get("high"), deadline_s=_EACH_S, what="HIGH is durable")
    return before_high


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
    expected: Rows = {row[0]: tuple(row) for row in select}
    tables = job.directory / "tables" / "user_info"
    told: list[str] = []

    def same() -> bool:
        told[:] = [*_changelog_differs(tables, expected), *_current_differs(tables, expected)]
        if told:
            time.sleep(1.0)  # each look reads both tables
        return not told

    try:
        wait_until(same, deadline_s=_EACH_S)
    except TimeoutError:
        return told
    return []


def _changelog_differs(tables: Path, expected: Rows) -> list[str]:
    found = folded_changelog(tables / "changelog", "user_id", _COLUMNS, _PARTITIONS)
    return [f"changelog: {told}" for told in differences(found, expected)]


def _current_differs(tables: Path, expected: Rows) -> list[str]:
    found = current_rows(tables / "current", "user_id", _COLUMNS)
    return [f"current: {told}" for told in differences(found, expected)]
