"""Experiment `replay` (E17): old batches, joined again after many later commits and maintenance.

A job joins many small batches while its table changes. Then the table changes on, commit after
commit, is folded and maintained, and the old batches are replayed: beside the living runner, by
REST, as a process, and when the job is stopped. Each must give the rows that it has committed. Only
their pins are leased: what came before them is compacted and removed meanwhile, and a batch of that
time must be refused, unless it gives its rows, too. Controls change an output row, remove one and
alter a pin: each must be reported.
"""

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from kafka import KafkaProducer

from joins.plan.errors import PinnedVersionExpiredError, UnknownBatchError
from service.jobs.inspect.past import open_replayer
from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

_BAD = (b"{", b"null", b'{"user_id":"x"}', b"\xff", b'{"user_id":1}{"user_id":2}')
_KINDS = {"missing": "lost", "extra": "phantom", "changed": "wrong_value"}
_SOUND = ("identical", "nothing-to-compare")
_PATIENCE_S = 600.0
_CHANGE_EVERY_S = 0.05


@dataclass
class Subject:
    """The job, and the load on both its sides."""

    lab: Lab
    rig: Rig
    job: RunningJob
    schema: str
    topic: str
    path: str
    users: int
    random: random.Random
    sent: int = 0
    changed: int = 0
    tally: Counter[str] = field(default_factory=Counter)

    @property
    def changelog(self) -> Path:
        return self.job.directory / "tables" / "user_info" / "changelog"

    def newest_batch(self) -> int:
        pins = (self.job.directory / "checkpoint" / "pins").glob("*.json")
        return max((int(path.stem) for path in pins), default=-1)

    def send(self, producer: KafkaProducer, count: int) -> None:
        """Clicks of known and unknown users, and a bad record now and then."""
        for _ in range(count):
            value = self.random.choice(_BAD)
            if self.random.random() > 0.05:
                user = self.random.randrange(1, self.users * 11 // 10)
                value = json.dumps({"user_id": user, "item_id": self.sent}).encode()
            producer.send(self.topic, value=value, partition=self.random.randrange(2))
            self.sent += 1
        producer.flush()

    def change(self, cursor: Any) -> None:
        """One transaction: a user is renamed, leaves or comes back."""
        user = self.random.randrange(1, self.users)
        kind = self.random.choice(("rename", "rename", "rename", "leave", "come"))
        self.changed += 1
        if kind == "leave":
            cursor.execute("DELETE FROM user_info WHERE user_id = %s", (user,))
        else:
            row = (user, "F", f"name {self.changed}")
            cursor.execute("REPLACE INTO user_info VALUES (%s, %s, %s)", row)

    def commits(self) -> Iterator[list[dict[str, Any]]]:
        for text in _entries(self.changelog / "_delta_log"):
            yield [json.loads(line) for line in text.split("\n") if line]

    def version(self) -> int:
        return max(int(p.stem) for p in (self.changelog / "_delta_log").glob("*[0-9].json"))


def run(lab: Lab) -> dict[str, Any]:
    """The experiment."""
    cases, later = lab.cases(10, 200), lab.size(30, 1000)
    topic = create_topic(lab.kafka.bootstrap_servers, partitions=2)
    path, users = unique_name("replay"), lab.size(500, 5000)
    settings = {
        "replay_batches": cases,
        "fold_interval_s": lab.size(2.0, 5.0),
        "maintenance_interval_s": lab.size(2.0, 10.0),
    }
    with (
        running_rig(lab.place("sluice"), lab.kafka, lab.mariadb, **settings) as rig,
        new_schema(lab.mariadb, USERS, fill_users(users)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        subject = Subject(lab, rig, job, schema, topic, path, users, lab.random("replay"))
        join_batches(subject, lab.size(10, 150))
        old = join_batches(subject, cases)
        change_on(subject, later)
        return replay_all(subject, old, later)


def join_batches(subject: Subject, count: int) -> list[int]:
    """`count` batches with rows, each some changes of the table later; their numbers."""
    first = subject.newest_batch() + 1
    producer = KafkaProducer(bootstrap_servers=subject.rig.kafka.bootstrap_servers, acks="all")
    try:
        with subject.rig.mariadb.connect(subject.schema) as link, link.cursor() as cursor:
            while subject.newest_batch() + 1 < first + count:
                before = subject.newest_batch()
                for _ in range(3):
                    subject.change(cursor)
                subject.send(producer, subject.random.randrange(5, 60))
                wait_until(
                    lambda seen=before: subject.newest_batch() > seen,
                    deadline_s=_PATIENCE_S,
                    what="the next batch",
                )
    finally:
        producer.close()
    subject.job.wait_for(lambda s: s["probe"]["lag_records"] == 0, "all batches are committed")
    newest = subject.newest_batch()
    subject.lab.say(f"{newest + 1} batches of {subject.sent} records")
    return list(range(newest + 1 - count, newest + 1))


def change_on(subject: Subject, commits: int) -> None:
    """Change the table until the changelog has so many more commits, is folded and compacted."""
    target, pause = subject.version() + commits, threading.Event()
    deadline = time.monotonic() + _PATIENCE_S
    with subject.rig.mariadb.connect(subject.schema) as link, link.cursor() as cursor:
        while subject.version() < target or not is_disturbed(upkeep_of(subject)):
            if subject.version() >= target and time.monotonic() > deadline:
                break  # the verdict says it
            subject.change(cursor)
            pause.wait(_CHANGE_EVERY_S)
    subject.lab.say(f"changelog is at version {subject.version()}")


def is_disturbed(upkeep: Mapping[str, int]) -> bool:
    return upkeep["folds"] > 0 and upkeep["compactions"] > 0


def replay_all(subject: Subject, old: list[int], later: int) -> dict[str, Any]:
    """Replay each old batch once, some of them in more than one way, then the controls."""
    lab, job = subject.lab, subject.job
    upkeep = upkeep_of(subject)
    chosen = subject.random.sample(old, min(lab.size(1, 3), len(old)))
    identical = {batch for batch, ok in in_process(subject, old[: len(old) * 3 // 4]) if ok}
    ways = {
        "rest": [batch for batch in chosen if rest(job, batch)["verdict"] in _SOUND],
        "process": [
            batch for batch in chosen if process(job.directory, batch)["verdict"] in _SOUND
        ],
    }
    job.stop()
    identical |= {batch for batch, ok in in_process(subject, old[len(old) * 3 // 4 :]) if ok}
    lab.say(f"{len(identical)} of {len(old)} batches are identical, {upkeep}")
    controls = run_controls(subject, chosen[0])
    controls["never_wrong_when_expired"] = is_refused_or_identical(subject, 0)
    kept = {name: len(found) for name, found in ways.items()}
    ok = all(controls.values()) and all(count == len(chosen) for count in kept.values())
    verdict = {**{kind: subject.tally[kind] for kind in _KINDS.values()}}
    verdict |= {name: subject.tally[name] for name in ("rows", "nothing")}
    verdict |= {"records": subject.sent}
    return result(
        lab,
        "replay",
        len(old),
        len(identical),
        [{**verdict, "ok": len(identical) == len(old)}],
        later_commits=later,
        **upkeep,
        dead=subject.tally["dead"],
        other_ways=kept,
        controls=controls,
        ok=ok and is_disturbed(upkeep),
    )


def upkeep_of(subject: Subject) -> dict[str, int]:
    """What happened to the tables since: a replay that nothing could disturb proves little."""
    current = subject.job.directory / "tables" / "user_info" / "current" / "_delta_log"
    folds = sum("sluice.changelog_version" in text for text in _entries(current))
    rewritten = sum(map(is_compaction, subject.commits()))
    indexes = list((subject.job.directory / "index").glob("*/*/v*.json"))
    return {"folds": folds, "compactions": rewritten, "kept_indexes": len(indexes)}


def _entries(log: Path) -> Iterator[str]:
    for path in sorted(path for path in log.glob("*.json") if path.stem.isdigit()):
        with suppress(FileNotFoundError):
            yield path.read_text()


def is_compaction(entry: list[dict[str, Any]]) -> bool:
    moved = [a[kind] for a in entry for kind in ("add", "remove") if kind in a]
    return bool(moved) and not any(action.get("dataChange", True) for action in moved)


def in_process(subject: Subject, batches: list[int]) -> Iterator[tuple[int, bool]]:
    """Each batch and whether nothing in it differs."""
    with open_replayer(subject.job.directory) as replayer:
        for batch in batches:
            found = replayer.replay(batch, diff=True)
            subject.tally["rows"] += found["rows"]
            subject.tally["dead"] += found["expected_dead_letters"]
            subject.tally.update(_KINDS[d["kind"]] for d in found["differences"])
            ok = found["verdict"] in _SOUND
            subject.tally["nothing"] += found["verdict"] == "nothing-to-compare"
            if not ok:
                subject.lab.say(f"batch {batch} differs: {json.dumps(found)[:2000]}")
            yield batch, ok


def rest(job: RunningJob, batch: int) -> dict[str, Any]:
    answer = job.rig.client.post(f"/v1/jobs/{job.id}/batches/{batch}:replay", timeout=300)
    answer.raise_for_status()
    return dict(answer.json())


def process(job_dir: Path, batch: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "service.jobs.inspect", "--job-dir", str(job_dir)]
    done = subprocess.run(
        [*command, "replay", "--batch", str(batch)], capture_output=True, check=True, text=True
    )
    return dict(json.loads(done.stdout)["result"])


# Controls
# --------------------------------------------------------------------------------------------------


def run_controls(subject: Subject, batch: int) -> dict[str, bool]:
    return {
        "changed_row": reports(subject, batch, lambda: edited(subject, batch, _renamed)),
        "removed_row": reports(subject, batch, lambda: edited(subject, batch, _shorter)),
        "altered_pin": reports(subject, batch, lambda: repinned(subject, batch)),
        "undone": all(ok for _, ok in in_process(subject, [batch])),
    }


def reports(subject: Subject, batch: int, spoil: Callable[[], Callable[[], None]]) -> bool:
    """Whether a replay sees what `spoil` has done."""
    undo = spoil()
    try:
        with open_replayer(subject.job.directory) as replayer:
            found = replayer.replay(batch, diff=True)
    finally:
        undo()
    return not found["identical"] and bool(found["differences"])


def is_refused_or_identical(subject: Subject, batch: int) -> bool:
    """A batch that nothing leases any more."""
    try:
        return all(ok for _, ok in in_process(subject, [batch]))
    except (PinnedVersionExpiredError, UnknownBatchError) as exc:
        subject.lab.say(f"batch {batch}: {exc.message}")
        return True


def edited(
    subject: Subject, batch: int, change: Callable[[pa.Table], pa.Table]
) -> Callable[[], None]:
    """Change the first output file of the batch in place; returns how to undo it."""
    output = subject.rig.output(subject.path)
    file = sorted(output.glob(f"part-*-{batch:010d}-*.parquet"))[0]
    kept = file.read_bytes()
    pq.write_table(change(pq.read_table(file)), file)
    return lambda: _put_back(file, kept)


def repinned(subject: Subject, batch: int) -> Callable[[], None]:
    """Make the pin name a later version; returns how to undo it."""
    file = subject.job.directory / "checkpoint" / "pins" / f"{batch:010d}.json"
    kept = file.read_bytes()
    pin = json.loads(kept)
    pin["versions"] = {name: version + 1 for name, version in pin["versions"].items()}
    file.write_text(json.dumps(pin))
    return lambda: _put_back(file, kept)


def _put_back(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _renamed(table: pa.Table) -> pa.Table:
    names = ["somebody else", *table["name"].to_pylist()[1:]]
    at = table.schema.get_field_index("name")
    return table.set_column(at, table.schema.field(at), pa.array(names, pa.string()))


def _shorter(table: pa.Table) -> pa.Table:
    return table.slice(1)
