"""The runs of `event-time` in which a stream switches to processing time, where its backlog ends.

Clicks are joined with their users, who get other names all the time, and counted in windows. Behind
the backlog come clicks of now, some of them too late. Faults are planted in the batch that switches
and in the next one; or the stream's last watermark is ahead of the clock, so that the switch waits
for a batch of its own. The stream has no end: it is judged when every record is counted or told.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

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
)
from tests.reliability.experiment import Lab
from tests.reliability.oracle_event_time import NOBODY, Event
from tests.reliability.oracle_switch import (
    FiredWindow,
    Renaming,
    Story,
    SwitchPin,
    audit_switch,
    known,
    switched_in,
    waited,
)
from tests.reliability.subject import os_names
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

SWITCH, AHEAD = "switch", "switch ahead of the clock"
_STEP_MS, _DISORDER_MS, _DELAY_MS = 20, 900, 1_000
_WINDOW_MS = 2_000
_BASE_MS = round(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1_000)
_AHEAD_MS = 240_000
_EARLIEST_MS, _LATEST_MS = -3_000, 4_000
_SETTLES_WITHIN_S = 300.0
_GAP_S = 4.0
STORM = 20
_USERS = "CREATE TABLE users (user_id BIGINT PRIMARY KEY, name VARCHAR(64))"
_USERS_DDL = "user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"


@dataclass(frozen=True)
class Sizes:
    """How much there is.

    Attributes:
        backlog: records that are there at submission.
        later: records in each portion behind it; a portion comes when the one before is planned.
        pause_s: between two users who get another name.
    """

    users: int
    backlog: int
    later: int
    portions: int
    records_a_batch: int
    pause_s: float

    @property
    def seam(self) -> int:
        return -(-self.backlog // self.records_a_batch) - 1


_SMALL = Sizes(25, 480, 60, 3, 240, 0.1)
_FULL = Sizes(500, 20_000, 500, 30, 2_000, 0.02)


def switches(one: Run) -> bool:
    return one.jobs in ((SWITCH,), (AHEAD,))


def small_run() -> Run:
    seam = _SMALL.seam
    faults = [f"{fault}#{seam}" for fault in ("C2=kill", "C6=kill", "C13=raise", "C8=kill")]
    return Run("switch", (SWITCH,), (*faults, f"C2=raise#{seam + 1}"))


def full_runs(kills: int) -> list[Run]:
    """Every point in the batch that switches and in the next one, in two ways; a storm.

    Ahead of the clock a batch of records stands between the backlog and the switch. A batch that
    has met C8 is committed, and does not come to C9.
    """
    found = []
    for job, name, first in ((SWITCH, "switch", _FULL.seam), (AHEAD, "ahead", _FULL.seam + 2)):
        for action, without in (("kill", ("C9", "C8")), ("raise", ("C8", "C9"))):
            faults = (
                f"{point}={action}#{batch}"
                for batch, not_this in enumerate(without, start=first)
                for point in POINTS
                if point != not_this
            )
            found.append(Run(f"{name}-{action}", (job,), tuple(faults)))
    return [*found, Run("switch-storm", (SWITCH,), (), kills)]


def one_run(lab: Lab, one: Run) -> list[Outcome]:
    """The job of `one`, judged."""
    sizes = lab.size(_SMALL, _FULL)
    given = settings_of(lab, one, sizes.records_a_batch)
    place = lab.place(unique_name("run"))
    first = [Renaming(user, _name(user, user)) for user in range(1, sizes.users + 1)]
    rows = ", ".join(f"({each.user_id}, '{each.name}')" for each in first)
    topic = create_topic(lab.kafka.bootstrap_servers, partitions=PARTITIONS)
    with (
        running_rig(place, lab.kafka, lab.mariadb, **given) as rig,
        new_schema(rig.mariadb, _USERS, f"INSERT INTO users VALUES {rows}") as schema,
        ThreadPoolExecutor(1) as aside,
    ):
        job = SwitchJob(lab, rig, one, sizes, World(schema, topic, first))
        with job.running(), job.renaming():
            storm = aside.submit(job.kill_at_random, one.kills)
            job.feed()
            storm.result()
        return [job.judged()]


def _name(number: int, user: int) -> str:
    return f"{number} of user {user}"


@dataclass
class World:
    """What the job reads, and all that was ever there.

    Attributes:
        changes: the users' names in order, the first ones of all among them.
    """

    schema: str
    topic: str
    changes: list[Renaming]
    events: list[Event] = field(default_factory=list)


@dataclass
class SwitchJob:
    """A job whose stream switches, what it is fed with and what it wrote."""

    lab: Lab
    rig: Rig
    run: Run
    sizes: Sizes
    world: World
    killed: int = 0

    def __post_init__(self) -> None:
        self._out, self._late = unique_name("out"), unique_name("late")
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._producer: BulkProducer
        self._job: RunningJob

    # What it is given
    # ------------------------------------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator[None]:
        """Submitted, with the backlog in its topic; what it left stays for the verdict."""
        with BulkProducer(self.rig.kafka.bootstrap_servers, self.world.topic) as self._producer:
            self._send(self._backlog())
            self._job = self.rig.submit(self._script())
            self._wait(lambda status: status["state"] == "JOINING", "the gate opens")
            yield

    def _send(self, times: Sequence[int | None]) -> None:
        rng, first = self.lab.random("users", len(self.world.events)), len(self.world.events)
        some = [
            Event((n % PARTITIONS, n // PARTITIONS), n, rng.randint(1, self.sizes.users + 2), at_ms)
            for n, at_ms in enumerate(times, start=first)
        ]
        self.world.events += some
        produce_events(self._producer, some)

    def _backlog(self) -> list[int | None]:
        """Out of order, but no further than the watermark waits; a few are late, or have no time.

        `AHEAD`: the last one is of a time that is still to come.
        """
        rng = self.lab.random("backlog")
        times: list[int | None] = []
        for number in range(self.sizes.backlog):
            chance, at_ms = rng.random(), _BASE_MS + number * _STEP_MS
            if chance < 0.01:
                times.append(None)
            elif chance < 0.05:
                times.append(at_ms - rng.randint(3_000, 60_000))
            else:
                times.append(at_ms + rng.randint(0, _DISORDER_MS))
        if self.run.jobs == (AHEAD,):
            times[-1] = _now_ms() + _AHEAD_MS
        return times

    def _script(self) -> str:
        rig = self.rig
        options = ("'changelog.partitions'='1'",)
        return (
            cdc_table(rig.mariadb, self.world.schema, "users", _USERS_DDL, options)
            + "CREATE TABLE clicks (id BIGINT, user_id BIGINT, ts TIMESTAMP(3), "
            f"WATERMARK FOR ts AS ts - INTERVAL '{_DELAY_MS // 1_000}' SECOND) WITH ("
            f"'connector'='kafka', 'topic'='{self.world.topic}', 'format'='json', "
            f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', "
            "'scan.startup.mode'='earliest-offset', "
            "'scan.watermark.use-processing-time'='after-backlog', "
            f"'late-records.path'='{self._late}');"
            "CREATE VIEW named AS SELECT c.*, u.name FROM clicks AS c "
            "LEFT JOIN users FOR SYSTEM_TIME AS OF c.ts AS u ON c.user_id = u.user_id;"
            "CREATE TABLE out (user_id BIGINT, start_at TIMESTAMP(3), found BIGINT, ids STRING) "
            f"WITH ('connector'='delta', 'path'='{self._out}');"
            "INSERT INTO out SELECT user_id, window_start, COUNT(*), "
            f"LISTAGG(CONCAT(CAST(id AS STRING), ':', COALESCE(name, '{NOBODY}'))) "
            "FROM TABLE(TUMBLE(TABLE named, DESCRIPTOR(ts), "
            f"INTERVAL '{_WINDOW_MS // 1_000}' SECONDS)) "
            "GROUP BY user_id, window_start, window_end;"
        )

    @contextmanager
    def renaming(self) -> Iterator[None]:
        """Users get another name, one after the other."""
        with ThreadPoolExecutor(1) as aside:
            work = aside.submit(self._rename)
            try:
                yield
            finally:
                self._ended.set()
                work.result()

    def _rename(self) -> None:
        rng, world = self.lab.random("renaming"), self.world
        with self.rig.mariadb.connect(world.schema) as link, link.cursor() as cursor:
            while not self._ended.wait(self.sizes.pause_s):
                user = rng.randint(1, self.sizes.users)
                change = Renaming(user, _name(len(world.changes) + 1, user))
                world.changes.append(change)
                link.begin()
                cursor.execute("UPDATE users SET name = %s WHERE user_id = %s", (change.name, user))
                link.commit()

    def feed(self) -> None:
        """The records behind the backlog: the first portion of `AHEAD` before the switch."""
        if self.run.jobs == (AHEAD,):
            self._wait_planned()
            self._send(self._times_of_now())
        self._wait(lambda s: (s["event_time"] or {}).get("use_processing_time"), "the switch")
        for _ in range(self.sizes.portions):
            self._wait_planned()
            self._send(self._times_of_now())

    def _wait_planned(self) -> None:
        self._wait(
            lambda _: sum(self._pins()[-1]["end_offsets"].values()) == len(self.world.events),
            f"{len(self.world.events)} records are planned",
        )

    def _wait(self, condition: Callable[[dict[str, Any]], Any], what: str) -> None:
        self._job.wait_for(condition, what, deadline_s=ENDS_WITHIN_S)

    def _times_of_now(self) -> list[int | None]:
        rng, now_ms = self.lab.random("now", len(self.world.events)), _now_ms()
        times = [now_ms + rng.randint(_EARLIEST_MS, _LATEST_MS) for _ in range(self.sizes.later)]
        return [None, *times[1:]]

    def kill_at_random(self, kills: int) -> None:
        for number in range(kills):
            self._ended.wait(self.lab.random("gap", number).expovariate(1 / _GAP_S))
            self.killed += kill_something(self.lab, self._job.directory, number)

    # What it has written
    # ------------------------------------------------------------------------------------------

    def judged(self) -> Outcome:
        """The oracle's verdict once all records are told, or do not come."""
        with suppress(TimeoutError):
            wait_until(self._is_settled, deadline_s=_SETTLES_WITHIN_S, poll_s=0.5)
        self._job.stop()
        story = self._story()
        verdict, seam = audit_switch(story), self.sizes.seam
        switched, behind = switched_in(story), self._counted_behind(story)
        there = os_names(self._job.directory / "checkpoint" / "failpoints")
        met = [fault for fault in self.run.faults if fault in there]
        cases = [*(fault in met for fault in self.run.faults), waited(story) > 0, behind > 0]
        cases += [switched is not None and (switched > seam) == (self.run.jobs == (AHEAD,))]
        cases += [self.killed > 0] if self.run.kills else []
        name, seconds = f"{self.run.name} {self.run.jobs[0]}", time.monotonic() - self._begun
        self.lab.say(f"{name}: met {met}, {verdict.faults() or 'ok'} {verdict.examples[:3]}")
        self.lab.say(
            f"{name}: switched in batch {switched} of {len(story.pins)}, {behind} records were "
            f"counted behind it, {len(story.late)} late; {self.killed} kills, in {seconds:.0f} s"
        )
        return Outcome(name, sum(cases), len(cases), waited(story), verdict, round(seconds, 1))

    def _is_settled(self) -> bool:
        told = [*coordinates(self.rig.output(self._late)), *self._dead()]
        counted = sum(row["found"] for row in self.rig.rows(self._out))
        return counted + len(told) >= len(self.world.events)

    def _dead(self) -> list[tuple[int, int]]:
        return coordinates(self._job.directory / "dead_letters")

    def _pins(self) -> list[dict[str, Any]]:
        places = sorted((self._job.directory / "checkpoint" / "pins").glob("*.json"))
        return [json.loads(place.read_bytes()) for place in places]

    def _counted_behind(self, story: Story) -> int:
        times = zip(story.pins, known(story), strict=False)
        switched = {pin.number for pin, before in times if before.has_switched}
        return sum(row.count for row in story.windows if row.batch in switched)

    def _story(self) -> Story:
        half = self.sizes.backlog // PARTITIONS
        held: dict[int, int] = {}
        return Story(
            events=self.world.events,
            backlog=dict.fromkeys(range(PARTITIONS), half),
            delay_ms=_DELAY_MS,
            size_ms=_WINDOW_MS,
            changes=self.world.changes,
            pins=[self._pin(pin, held) for pin in self._pins()],
            late=coordinates(self.rig.output(self._late)),
            dead=self._dead(),
            windows=self._windows(),
        )

    def _pin(self, pin: Mapping[str, Any], held: dict[int, int]) -> SwitchPin:
        event, version = pin["event"], pin["versions"]["users"]
        if version not in held:
            held[version] = self._changes_of(version)
        return SwitchPin(
            number=pin["batch"],
            start={int(p): at for p, at in pin["start_offsets"].items()},
            end={int(p): at for p, at in pin["end_offsets"].items()},
            watermark_ms=event["watermark"],
            processing_time=event["processing_time"],
            fired_ms=event["window_watermark"],
            clock_ms=event["clock_ms"],
            changes=held[version],
        )

    def _changes_of(self, version: int) -> int:
        """How many changes a version holds; of one partition, so it is the greatest number."""
        changelog = self._job.directory / "tables" / "users" / "changelog"
        names = DeltaTable(str(changelog), version=version).to_pyarrow_table(columns=["name"])
        told = names.column("name").drop_null().to_pylist()
        return max((int(name.partition(" ")[0]) for name in told), default=0)

    def _windows(self) -> list[FiredWindow]:
        return [
            FiredWindow(r["_batch"], r["user_id"], millis(r["start_at"]), r["found"], r["ids"])
            for r in table_rows(self.rig.output(self._out))
        ]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
