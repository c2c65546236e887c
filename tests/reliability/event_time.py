"""Experiment `event-time`: an as-of join and windows lose, double and change nothing over kills.

Jobs over one bounded stream, whose records come out of order, some far too late: clicks joined with
the user of their own time, while users change; clicks counted in windows with allowed lateness; and
windows over that join, by a view. Faults are planted at the points of the batch protocol, at all of
them in the windows over the join; at full scale processes are killed at random besides. The records
wait for the changes, so that what waits and what is open outlives the faults. A job is FINISHED
when nothing waits; then the oracle recomputes every row from the records, the changes and the pins.
"""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.reliability import event_switch
from tests.reliability.event_runs import (
    ENDS_WITHIN_S,
    PARTITIONS,
    POINTS,
    Outcome,
    Run,
    coordinates,
    kill_something,
    millis,
    produce_events,
    settings_of,
    table_rows,
    time_text,
)
from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.oracle_event_time import (
    NOBODY,
    Change,
    CountedRow,
    Event,
    JoinedRow,
    Stream,
    Words,
    as_batches,
    audit_join,
    audit_joined_windows,
    audit_windows,
)
from tests.reliability.subject import os_names
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name

JOIN, WINDOWS, BOTH = "as-of", "windows", "windows over as-of"
_EVERY_POINT = (
    *("C2=raise", "C3=raise", "C4=raise", "C5=kill", "C6=kill"),
    *("C7=raise", "C8=raise", "C9=raise", "C13=kill"),
)
_SLOWEST_FIRST = (BOTH, JOIN, WINDOWS)
_STEP_MS, _DISORDER_MS, _DELAY_MS = 20, 900, 1_000
_WINDOW_MS, _LATENESS_MS = 10_000, 5_000
_BASE = datetime(2024, 1, 1, tzinfo=UTC)
_BASE_MS = round(_BASE.timestamp() * 1_000)
_GAP_S = 4.0
_SLICES, _BEHIND = 8, 2
_STORM = 60
_USERS = "CREATE TABLE users (user_id BIGINT PRIMARY KEY, name VARCHAR(64), updated_at DATETIME(3))"
_USERS_DDL = (
    "user_id BIGINT, name STRING, updated_at TIMESTAMP(3), PRIMARY KEY (user_id) NOT ENFORCED, "
    "WATERMARK FOR updated_at AS updated_at"
)


@dataclass(frozen=True)
class Sizes:
    """How much there is."""

    users: int
    records: int
    records_a_batch: int
    changes: int


@dataclass(frozen=True)
class World:
    """What the jobs are given: all of it is known here.

    Attributes:
        events: as they were produced, in the order of their ids.
        first: the table's rows when it is copied.
        changes: in the order in which they are made, each of another millisecond.
    """

    schema: str
    topic: str
    events: list[Event]
    first: list[Change]
    changes: list[Change]


def run(lab: Lab) -> dict[str, Any]:
    """All runs, or what `--only` names, and the verdicts.

    Raises:
        ValueError: no run has the name that `--only` gives.
    """
    chosen = chosen_runs(_runs(lab), lab.options.get("only"))
    done = in_lanes(lab.size(len(chosen), 1), partial(_done, lab), chosen)
    outcomes = [outcome for found in done for outcome in found]
    return result(
        lab,
        "event-time",
        sum(o.planned for o in outcomes),
        sum(o.met for o in outcomes if o.verdict.ok),
        [o.verdict for o in outcomes],
        runs={o.name: o.seconds for o in outcomes},
        waited=sum(o.waited for o in outcomes),
    )


def chosen_runs(planned: Sequence[Run], only: str | None) -> list[Run]:
    """All of them; or one by its name, or with one of its jobs, as `kill-1 windows`.

    Raises:
        ValueError: there is none of that name.
    """
    alone = [replace(one, jobs=(job,)) for one in planned for job in one.jobs]
    named = [*((one.name, one) for one in planned), *((_job_of(one), one) for one in alone)]
    chosen = list(planned) if only is None else [one for name, one in named if name == only]
    if not chosen:
        raise ValueError(f'no run is named "{only}": {", ".join(one.name for one in planned)}')
    return chosen


def _job_of(one: Run) -> str:
    return f"{one.name} {one.jobs[0]}"


def listing() -> list[str]:
    return [
        f"{one.name}: {', '.join(one.jobs)}: {' '.join(one.faults) or 'random kills'}"
        for one in [*_full_runs(_STORM), *event_switch.full_runs(event_switch.STORM)]
    ]


def _done(lab: Lab, one: Run) -> list[Outcome]:
    return (event_switch.one_run if event_switch.switches(one) else _one_run)(lab, one)


def _runs(lab: Lab) -> list[Run]:
    if lab.full:
        return [
            *_full_runs(lab.cases(0, _STORM)),
            *event_switch.full_runs(lab.cases(0, event_switch.STORM)),
        ]
    return [Run("every-point", (BOTH,), _in_batches(_EVERY_POINT, 1)), event_switch.small_run()]


def _full_runs(kills: int) -> list[Run]:
    """Every point with every action that is possible there, early, later and late; a storm."""
    jobs = (JOIN, WINDOWS, BOTH)
    runs = []
    for number, first in enumerate((0, 10, 20), start=1):
        for action in ("kill", "raise", "enospc"):
            faults = _in_batches([f"{point}={action}" for point in POINTS], first)
            possible = tuple(fault for fault in faults if _can_be(fault))
            runs.append(Run(f"{action}-{number}", jobs, possible))
    return [*runs, Run("storm", jobs, (), kills)]


def _in_batches(faults: Sequence[str], first: int) -> tuple[str, ...]:
    return tuple(f"{fault}#{batch}" for batch, fault in enumerate(faults, start=first))


def _can_be(fault: str) -> bool:
    return not any(fault.startswith(f"{point}=enospc") for point in ("C3", "C4", "C9"))


def _one_run(lab: Lab, one: Run) -> list[Outcome]:
    sizes = Sizes(
        users=lab.size(25, 500),
        records=lab.size(2_400, 60_000),
        records_a_batch=lab.size(240, 2_000),
        changes=lab.size(120, 3_000),
    )
    given = settings_of(lab, one, sizes.records_a_batch)
    place = lab.place(unique_name("run"))
    with (
        running_rig(place, lab.kafka, lab.mariadb, **given) as rig,
        _world(lab, rig, sizes) as world,
    ):
        jobs = [Job(lab, rig, world, name) for name in one.jobs]
        with ExitStack() as stack:
            for job in jobs:
                stack.enter_context(job.running())
            slowest = next(jobs[one.jobs.index(n)] for n in _SLOWEST_FIRST if n in one.jobs)
            slowest.wait_open()
            with ThreadPoolExecutor(1) as aside:
                storm = aside.submit(_kill_at_random, lab, jobs, one.kills)
                _change(rig, world, slowest, sizes)
                storm.result()
            return in_lanes(len(jobs), lambda job: job.judged(one), jobs)


def _kill_at_random(lab: Lab, jobs: Sequence["Job"], kills: int) -> None:
    """A part of a job that still runs, in turns, while its records and the changes come."""
    for number in range(kills):
        time.sleep(lab.random("gap", number).expovariate(1 / _GAP_S))
        jobs[number % len(jobs)].kill_something(number)
    lab.say(f"{sum(job.killed for job in jobs)} of {kills} kills met something that ran")


# What the jobs are given
# --------------------------------------------------------------------------------------------------


@contextmanager
def _world(lab: Lab, rig: Rig, sizes: Sizes) -> Iterator[World]:
    first = [Change(user, _BASE_MS, f"user {user}") for user in range(1, sizes.users + 1)]
    rows = ", ".join(f"({c.user_id}, '{c.name}', '{time_text(c.at_ms)}')" for c in first)
    topic = create_topic(rig.kafka.bootstrap_servers, partitions=PARTITIONS)
    with new_schema(rig.mariadb, _USERS, f"INSERT INTO users VALUES {rows}") as schema:
        changes = _planned_changes(lab, sizes)
        gone = {change.at_ms for change in changes if change.name is None}
        events = _events(lab, sizes, gone)
        with BulkProducer(rig.kafka.bootstrap_servers, topic) as producer:
            produce_events(producer, events)
        yield World(schema, topic, events, first, changes)


def _events(lab: Lab, sizes: Sizes, gone: set[int]) -> list[Event]:
    """Out of order, but no further than the watermark waits; a few come a minute late, or never.

    None is of the very millisecond of a deletion: whether that had come is not told by a watermark.
    """
    rng = lab.random("events")
    events = []
    for number in range(sizes.records):
        chance = rng.random()
        at_ms: int | None = _BASE_MS + number * _STEP_MS + rng.randint(0, _DISORDER_MS)
        if chance < 0.01:
            at_ms = None
        elif chance < 0.05:
            at_ms = _BASE_MS + number * _STEP_MS - rng.randint(3_000, 60_000)
        if at_ms in gone:
            at_ms += 1
        where = (number % PARTITIONS, number // PARTITIONS)
        events.append(Event(where, number, rng.randint(1, sizes.users + 2), at_ms))
    return events


def _planned_changes(lab: Lab, sizes: Sizes) -> list[Change]:
    """Users get another name, or are deleted and come back; the last change is far behind."""
    rng = lab.random("changes")
    span = sizes.records * _STEP_MS
    times = sorted(rng.sample(range(1, span // 2), sizes.changes))
    changes: list[Change] = []
    gone: set[int] = set()
    for offset in times:
        user, at_ms = rng.randint(1, sizes.users), _BASE_MS + 2 * offset
        if user not in gone and rng.random() < 0.2:
            gone.add(user)
            changes.append(Change(user, at_ms, None))
        else:
            gone.discard(user)
            changes.append(Change(user, at_ms, f"user {user} at {2 * offset}"))
    end_ms = _BASE_MS + 2 * span
    last = (Change(user, end_ms + user, f"user {user} last") for user in range(1, sizes.users + 1))
    return [*changes, *last]


def _change(rig: Rig, world: World, job: "Job", sizes: Sizes) -> None:
    """Make the changes, some batches behind the records that wait for them."""
    last_batch = -(-sizes.records // sizes.records_a_batch) - 1
    slices = min(last_batch, _SLICES)
    size = -(-len(world.changes) // slices)
    with rig.mariadb.connect(world.schema) as link, link.cursor() as cursor:
        for number in range(slices):
            job.wait_batch(min(last_batch, (number + 1) * last_batch // slices + _BEHIND))
            for change in world.changes[number * size : (number + 1) * size]:
                link.begin()
                _make(cursor, change)
                link.commit()


def _make(cursor: Any, change: Change) -> None:
    cursor.execute(
        "INSERT INTO users (user_id, name, updated_at) VALUES (%s, %s, %s) "
        "ON DUPLICATE KEY UPDATE name = VALUES(name), updated_at = VALUES(updated_at)",
        (change.user_id, change.name or "going", time_text(change.at_ms)),
    )
    if change.name is None:
        cursor.execute("DELETE FROM users WHERE user_id = %s", (change.user_id,))


# The jobs
# --------------------------------------------------------------------------------------------------


class Job:
    """One of the jobs, and what it wrote.

    Attributes:
        killed: how many of its processes have been.
    """

    def __init__(self, lab: Lab, rig: Rig, world: World, name: str) -> None:
        self._lab = lab
        self._rig = rig
        self._world = world
        self._name = name
        self._out, self._late = unique_name("out"), unique_name("late")
        self._begun = time.monotonic()
        self.killed = self._waited = 0
        self._job: RunningJob

    @contextmanager
    def running(self) -> Iterator[None]:
        self._job = self._rig.submit(self._script())
        yield

    def _script(self) -> str:
        rig, world = self._rig, self._world
        stream = (
            "CREATE TABLE clicks (id BIGINT, user_id BIGINT, ts TIMESTAMP(3), "
            f"WATERMARK FOR ts AS ts - INTERVAL '{_DELAY_MS // 1_000}' SECOND) WITH ("
            f"'connector'='kafka', 'topic'='{world.topic}', 'format'='json', "
            f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', "
            "'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', "
            f"'late-records.path'='{self._late}');"
        )
        sink = f"WITH ('connector'='delta', 'path'='{self._out}');"
        if self._name == WINDOWS:
            lateness = f"SET 'table.exec.emit.allow-lateness' = '{_LATENESS_MS} ms';"
            return lateness + stream + _counted("clicks", "CAST(id AS STRING)", sink)
        options = ("'changelog.partitions'='2'",)
        users = cdc_table(rig.mariadb, world.schema, "users", _USERS_DDL, options)
        joined = (
            "FROM clicks AS c LEFT JOIN users "
            "FOR SYSTEM_TIME AS OF c.ts AS u ON c.user_id = u.user_id;"
        )
        if self._name == JOIN:
            return (
                f"{users}{stream}CREATE TABLE out (id BIGINT, name STRING) {sink}"
                f"INSERT INTO out SELECT c.id, u.name {joined}"
            )
        view = f"CREATE VIEW named AS SELECT c.*, u.name {joined}"
        member = f"CONCAT(CAST(id AS STRING), ':', COALESCE(name, '{NOBODY}'))"
        return users + stream + view + _counted("named", member, sink)

    def wait_open(self) -> None:
        self._job.wait_joining()

    def wait_batch(self, number: int) -> None:
        pin = self._job.directory / "checkpoint" / "pins" / f"{number:010d}.json"
        what = f"batch {number} is planned"
        self._job.wait_for(lambda _: pin.exists(), what, deadline_s=ENDS_WITHIN_S)

    def kill_something(self, number: int) -> None:
        self.killed += kill_something(self._lab, self._job.directory, number)

    def judged(self, run: Run) -> Outcome:
        """The oracle's verdict once the job has ended."""
        status = self._job.wait_state("FINISHED", deadline_s=ENDS_WITHIN_S)
        verdict = self._audit()
        told = status["event_time"]
        if told["waiting_rows"] or told["window_rows"]:
            verdict.note("lost", 1, f"it is finished, and something waits: {told}")
        met = [fault for fault in run.faults if fault in self._markers()]
        seconds = round(time.monotonic() - self._begun, 1)
        name = f"{run.name} {self._name}"
        self._lab.say(f"{name}: met {met}, {verdict.faults() or 'ok'} {verdict.examples[:3]}")
        self._lab.say(f"{name}: {self._waited} records waited, in {seconds} s")
        cases = [*(fault in met for fault in run.faults), self._waited > 0]
        cases += [self.killed > 0] if run.kills else []
        return Outcome(name, sum(cases), len(cases), self._waited, verdict, seconds)

    def _markers(self) -> list[str]:
        return os_names(self._job.directory / "checkpoint" / "failpoints")

    # What it has written
    # ------------------------------------------------------------------------------------------

    def _audit(self) -> Verdict:
        stream = Stream(self._world.events, self._words(), _DELAY_MS)
        rows = table_rows(self._rig.output(self._out))
        if self._name == JOIN:
            found = [
                JoinedRow((r["_partition"], r["_offset"]), r["_batch"], r["id"], r["name"])
                for r in rows
            ]
            self._waited = sum(
                row.batch != stream.words.batches[stream.batch_of[row.where]].number
                for row in found
                if row.where in stream.batch_of
            )
            return audit_join(stream, [*self._world.first, *self._world.changes], found)
        counted = [
            CountedRow(r["user_id"], millis(r["start_at"]), r["found"], r["ids"]) for r in rows
        ]
        self._waited = sum(row.count for row in counted)
        if self._name == BOTH:
            changes = [*self._world.first, *self._world.changes]
            return audit_joined_windows(stream, changes, counted, size_ms=_WINDOW_MS)
        return audit_windows(stream, counted, size_ms=_WINDOW_MS, lateness_ms=_LATENESS_MS)

    def _words(self) -> Words:
        pins = sorted((self._job.directory / "checkpoint" / "pins").glob("*.json"))
        return Words(
            as_batches(json.loads(pin.read_bytes()) for pin in pins),
            coordinates(self._rig.output(self._late)),
            coordinates(self._job.directory / "dead_letters"),
        )


def _counted(table: str, member: str, sink: str) -> str:
    return (
        "CREATE TABLE out (user_id BIGINT, start_at TIMESTAMP(3), found BIGINT, ids STRING, "
        f"PRIMARY KEY (user_id, start_at) NOT ENFORCED) {sink}"
        f"INSERT INTO out SELECT user_id, window_start, COUNT(*), LISTAGG({member}) "
        f"FROM TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(ts), "
        f"INTERVAL '{_WINDOW_MS // 1_000}' SECONDS)) "
        "GROUP BY user_id, window_start, window_end;"
    )
