"""The job that experiments trouble: clicks joined with users that change, in a database of its own.

What it was given is known here: how many records were produced, and all changes are in the binlog.
"""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reliability.captured import CapturedUsers, captured_users
from tests.reliability.experiment import Lab
from tests.reliability.oracle import Verdict, audit
from tests.reliability.oracle_log import TableLog
from tests.reliability.oracle_shop import shop_inputs
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, cdc_table
from tests.support.shop import USERS, USERS_DDL, enrich_by, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

PARTITIONS = 2
BAD = (b"not json", b"", b'{"user_id":1', b"[1,2]", b'{"user_id":"x","item_id":1}')
_HOT = 40
_MOST_IN_REQUEST = 20_000  # about half a megabyte for each partition


@dataclass
class Clicks:
    """Produces numbered clicks of users, some unknown and a few that cannot be read."""

    rng: random.Random
    users: int
    producer: BulkProducer
    partitions: int = PARTITIONS
    bad_share: float = 0.01
    produced: int = 0

    def send(self, count: int) -> None:
        """Append `count` records, in one request if the broker takes it."""
        until = self.produced + count
        while self.produced < until:
            values: dict[int, list[bytes]] = {p: [] for p in range(self.partitions)}
            numbers = range(self.produced, min(until, self.produced + _MOST_IN_REQUEST))
            for number in numbers:
                values[number % self.partitions].append(self._value(number))
            self.producer.send(values)
            self.produced = numbers.stop

    def _value(self, item: int) -> bytes:
        chance = self.rng.random()
        if chance < self.bad_share:
            return self.rng.choice(BAD)
        top = _HOT if chance < 0.5 else self.users + self.users // 50
        return b'{"user_id":%d,"item_id":%d}' % (1 + int(self.rng.random() * top), item)


@dataclass
class Changes:
    """Changes users: most get another name, some are deleted, new ones and deleted ones come.

    Each call is one transaction.
    """

    rng: random.Random
    users: int
    connection: Any
    made: int = 0
    gone: list[int] = field(default_factory=list)

    def one(self) -> None:
        """A transaction of one row, so that it is one record of the changelog."""
        kind = self.made % 4
        if kind == 1:
            self._delete([self._pick()])
        elif kind == 3:
            self._insert(1)
        else:
            self._rename([self._pick()])

    def many(self, count: int) -> None:
        """A transaction of about `count` rows."""
        few = max(1, count // 5)
        self.connection.begin()
        self._rename([self._pick() for _ in range(count - 2 * few)])
        self._delete([self._pick() for _ in range(few)])
        self._insert(few)
        self.connection.commit()

    def _pick(self) -> int:
        top = _HOT if self.rng.random() < 0.5 else self.users
        return 1 + int(self.rng.random() * top)

    def _run(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(statement, rows)
        self.made += len(rows)

    def _rename(self, ids: Sequence[int]) -> None:
        names = [f"name {self.made + n}" for n in range(len(ids))]
        chosen = list(dict.fromkeys(ids))
        self._upsert(chosen, names)

    def _upsert(self, ids: Sequence[int], names: Sequence[str]) -> None:
        rows = [(i, "FMX"[self.made % 3], name) for i, name in zip(ids, names, strict=False)]
        self._run(
            "INSERT INTO user_info (user_id, gender, name) VALUES (%s, %s, %s) "
            "ON DUPLICATE KEY UPDATE gender = VALUES(gender), name = VALUES(name)",
            rows,
        )

    def _delete(self, ids: Sequence[int]) -> None:
        chosen = list(dict.fromkeys(ids))
        marks = ", ".join(["%s"] * len(chosen))
        with self.connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM user_info WHERE user_id IN ({marks})", chosen)
        self.made += len(chosen)
        self.gone.extend(chosen)

    def _insert(self, count: int) -> None:
        """Half of them come back after they were deleted, half are new."""
        back = [self.gone.pop(0) for _ in range(min(len(self.gone), (count + 1) // 2))]
        fresh = [self.users + self.made + n for n in range(count - len(back))]
        ids = list(dict.fromkeys([*back, *fresh]))
        self._upsert(ids, [f"back {self.made + n}" for n in range(len(ids))])


@dataclass
class Subject:
    """A running job with what it is fed from.

    Attributes:
        captured: the users as a connector captures them; None where the job reads the database.
    """

    lab: Lab
    rig: Rig
    job: RunningJob
    schema: str
    topic: str
    path: str
    clicks: Clicks
    changes: Changes
    captured: CapturedUsers | None = None

    @property
    def directory(self) -> Path:
        return self.job.directory

    @property
    def checkpoint(self) -> Path:
        return self.job.directory / "checkpoint"

    def newest_pin(self) -> dict[str, Any]:
        names = os_names(self.checkpoint / "pins")
        pins = sorted(name for name in names if name.endswith(".json"))
        return _read(self.checkpoint / "pins" / pins[-1]) if pins else {}

    def newest_batch(self) -> int:
        return int(self.newest_pin().get("batch", -1))

    def newest_build_batch(self) -> int:
        """The newest batch of the build side that is committed, -1 before the first."""
        root = self._changelog()
        if not (root / "_delta_log").is_dir():
            return -1
        log = TableLog(root)
        commits = (log.commit(version) for version in reversed(log.versions))
        batches = ((commit.metadata or {}).get("sluice.batch") for commit in commits)
        return int(next((batch for batch in batches if batch is not None), -1))

    def _changelog(self) -> Path:
        """A directory with the changelog's log, which in a store is followed entry by entry."""
        name, store = "tables/user_info/changelog", self.lab.store
        if store is None:
            return self.directory / name
        root, place = self.directory / "seen", f"lake/_sluice/jobs/{self.job.id}/{name}/_delta_log/"
        for key in store.keys(place):
            entry = root / "_delta_log" / key.removeprefix(place)
            if entry.suffix == ".json" and "/" not in key.removeprefix(place):
                entry.parent.mkdir(parents=True, exist_ok=True)
                if not entry.exists():
                    store.client.download_file(store.bucket, key, str(entry))
        return root

    def idle(self) -> bool:
        """Whether every record that was produced is in a batch that is committed and counted."""
        pin = self.newest_pin()
        if not pin:
            return self.clicks.produced == 0
        ends = sum(pin["end_offsets"].values())
        return self.progress().get("batch") == pin["batch"] and ends == self.clicks.produced

    def tell(self) -> str:
        log = self.directory / "runner.log"
        tail = log.read_text(errors="replace")[-6000:] if log.exists() else ""
        return f"{self.job.status()}\n{tail}"

    def progress(self) -> dict[str, Any]:
        return _read(self.checkpoint / "progress.json")

    def wait_drained(self, deadline_s: float = 300.0) -> None:
        """Everything that was produced is committed, and told."""

        def drained() -> bool:
            told = self.progress().get("next_offsets", {})
            return self.idle() and sum(told.values()) == self.clicks.produced

        wait_until(drained, deadline_s=deadline_s, what="all records are committed")


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def os_names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()] if directory.is_dir() else []


def read_click(value: bytes) -> tuple[int, Any] | None:
    """User and item of a click, None if it cannot be read."""
    try:
        click = json.loads(value)
        return click["user_id"] + 0, click["item_id"]
    except (ValueError, TypeError, KeyError):
        return None


@contextmanager
def running_subject(
    lab: Lab,
    rig: Rig,
    *,
    users: int,
    partitions: int = PARTITIONS,
    chunk_rows: int = 50_000,
    options: tuple[str, ...] = (),
) -> Iterator[Subject]:
    """A job on its own tables and topics; what it left stays for the verdict.

    `options` are further ones of the table, if the job copies it.
    """
    servers, path = rig.kafka.bootstrap_servers, unique_name("out")
    topic = create_topic(servers, partitions=partitions)
    with (
        _users(lab, rig, users, chunk_rows, options) as (schema, declared, captured),
        rig.mariadb.connect(schema) as connection,
        BulkProducer(servers, topic) as producer,
    ):
        writer = f", 'sink.writer'='{lab.writer}'" if lab.store is None else ""
        job = rig.submit(enrich_by(rig, declared, topic, path, writer))
        clicks = Clicks(lab.random("clicks"), users, producer, partitions)
        changes = Changes(lab.random("changes"), users, connection)
        yield Subject(lab, rig, job, schema, topic, path, clicks, changes, captured)


@contextmanager
def _users(
    lab: Lab, rig: Rig, rows: int, chunk_rows: int, options: tuple[str, ...]
) -> Iterator[tuple[str, str, CapturedUsers | None]]:
    """The schema, the DDL of `user_info`, and the connector that captures it if there is one."""
    if lab.is_captured:
        with captured_users(lab, rig.kafka, rows, partitions=PARTITIONS) as captured:
            captured.connector.start()
            yield captured.schema, captured.declared(), captured
        return
    with new_schema(rig.mariadb, USERS, fill_users(rows)) as schema:
        chunk = f"'scan.incremental.snapshot.chunk.size'='{chunk_rows}'"
        yield (
            schema,
            cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, (chunk, *options)),
            None,
        )


def judged(subject: Subject, **given: Any) -> Verdict:
    """The oracle's verdict of the job at rest."""
    subject.job.stop()
    store = subject.lab.store
    if store is not None:  # the oracle reads files
        store.download(f"lake/{subject.path}", subject.rig.output(subject.path))
        store.download(f"lake/_sluice/jobs/{subject.job.id}", subject.job.directory)
    place = (subject.rig, subject.job, subject.schema, subject.topic, subject.path)
    if subject.captured is not None:
        given = {"source": subject.captured.topic, "changelog_partitions": PARTITIONS, **given}
    verdict = audit(shop_inputs(*place, **given))
    if not verdict.ok:
        subject.lab.say(f"{subject.job.id}: {verdict.faults()} {verdict.examples[:3]}")
    return verdict
