"""Experiment `poison` (E11): a stream with 1 % of values that are no records, of every kind.

Each one must be in the dead letters with its reason and coordinates, each good one joined to its
own coordinates, no batch tried twice; and after a replay with corrected values exactly the missing
rows are there, a second replay adds none. A clean stream of the same length is run before, for the
ratio of their throughputs.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.reliability.experiment import Lab, result
from tests.reliability.oracle import AuditInputs, JoinSpec, Verdict, audit, read_world
from tests.reliability.oracle_history import Database
from tests.reliability.oracle_log import TableLog
from tests.reliability.oracle_pins import read_words
from tests.support.bulk import BulkProducer
from tests.support.poison import KINDS, PROBE_COLUMNS, REASONS, ROWS, Kind
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import USERS, USERS_DDL, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until

_USERS = 5_000
_PARTITIONS = 4
_CHUNK_BYTES = 600_000
_LARGE = 1 << 20
_REPLAYED_AT_ONCE = 2_000
_FIELDS = ("user_id", "url", "score", "active")
_JOIN = JoinSpec(
    probe_key="user_id",
    columns={
        **{name: ("probe", name) for name in _FIELDS},
        "gender": ("table", "gender"),
        "name": ("table", "name"),
    },
    types={"url": "STRING", "score": "DOUBLE", "active": "BOOLEAN"},
)
Where = tuple[int, int]


@dataclass
class Stream:
    """A topic and what is in it.

    Attributes:
        kinds: coordinates → kind, of the odd values.
    """

    topic: str
    records: int = 0
    kinds: dict[Where, Kind] = field(default_factory=dict)

    @property
    def known(self) -> dict[Where, Mapping[str, Any] | None]:
        return {w: ROWS[k.name] if k.verdict == "good" else None for w, k in self.kinds.items()}

    @property
    def bad(self) -> list[Where]:
        return sorted(where for where, kind in self.kinds.items() if kind.verdict == "bad")


def odd_kinds(rng: random.Random, records: int, *, large: bool) -> Iterator[Kind]:
    """Which kinds a stream has: a hundredth bad ones, half as many odd good ones.

    Values of megabytes come once a kind, if at all.
    """
    small = {
        verdict: [k for k in KINDS if k.verdict == verdict and len(k.value or b"") < _LARGE]
        for verdict in ("bad", "good")
    }
    for verdict, count in (("bad", records // 100), ("good", records // 200)):
        for number in range(count):
            yield small[verdict][number % len(small[verdict])]
    if large:
        big = [k for k in KINDS if len(k.value or b"") >= _LARGE]
        yield from rng.sample(big, len(big))


def fill(lab: Lab, stream: Stream, records: int, *, poisoned: bool) -> None:
    """Append `records` plain values, and between them odd ones if `poisoned`."""
    rng = lab.random("poison", poisoned)
    odd = list(odd_kinds(rng, records, large=lab.full)) if poisoned else []
    rng.shuffle(odd)
    every = records // (len(odd) + 1)
    with BulkProducer(lab.kafka.bootstrap_servers, stream.topic) as producer:
        pending = _Pending(lab, stream, producer)
        for number in range(records):
            if odd and number % every == every - 1:
                pending.add(odd.pop())
            pending.add(_plain(rng, number))
        pending.send()


def _plain(rng: random.Random, number: int) -> bytes:
    user = 1 + int(rng.random() * _USERS * 1.02)
    return b'{"user_id":%d,"url":"/page/%d","score":%d.5,"active":true}' % (user, number, number)


@dataclass
class _Pending:
    """Values on their way; partitions take turns."""

    lab: Lab
    stream: Stream
    producer: BulkProducer
    values: dict[int, list[bytes]] = field(default_factory=dict)
    odd: list[tuple[int, int, Kind]] = field(default_factory=list)
    size: int = 0

    def add(self, item: bytes | Kind) -> None:
        partition = self.stream.records % _PARTITIONS
        self.stream.records += 1
        if not isinstance(item, Kind):
            self._append(partition, item)
        elif item.value is None or len(item.value) >= _LARGE:
            self.send()
            servers = self.lab.kafka.bootstrap_servers
            self.stream.kinds |= _sent_alone(servers, self.stream.topic, partition, item)
        else:
            place = len(self.values.setdefault(partition, []))
            self.odd.append((partition, place, item))
            self._append(partition, item.value)
        if self.size > _CHUNK_BYTES:
            self.send()

    def _append(self, partition: int, value: bytes) -> None:
        self.values.setdefault(partition, []).append(value)
        self.size += len(value)

    def send(self) -> None:
        if self.size or self.values:
            first = self.producer.send(self.values)
            for partition, place, kind in self.odd:
                self.stream.kinds[partition, first[partition] + place] = kind
        self.values, self.odd, self.size = {}, [], 0


def _sent_alone(servers: str, topic: str, partition: int, kind: Kind) -> dict[Where, Kind]:
    if kind.value is None or len(kind.value) < _LARGE:
        return {produce(servers, topic, [kind.value], partition=partition, keys=[b"key"])[0]: kind}
    with BulkProducer(servers, topic) as producer:
        return {(partition, producer.send({partition: [kind.value]})[partition]): kind}


# The job
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A job that joins one stream."""

    lab: Lab
    rig: Rig
    job: RunningJob
    schema: str
    stream: Stream
    path: str

    def inputs(self) -> AuditInputs:
        database = self.rig.mariadb
        return AuditInputs(
            bootstrap_servers=self.rig.kafka.bootstrap_servers,
            topic=self.stream.topic,
            source=Database(
                database.host,
                database.port,
                "root",
                database.root_password,
                self.schema,
                "user_info",
            ),
            primary_key="user_id",
            job_directory=self.job.directory,
            dimension="user_info",
            output=self.rig.output(self.path),
            dead_letters=self.job.directory / "dead_letters",
            join=_JOIN,
            known=self.stream.known,
        )

    def wait_drained(self) -> None:
        """Every record is in a committed batch that the runner has counted."""
        progress = self.job.directory / "checkpoint" / "progress.json"

        def drained() -> bool:
            if not progress.exists():
                return False
            told = json.loads(progress.read_bytes())["next_offsets"]
            return sum(told.values()) == self.stream.records

        wait_until(drained, deadline_s=600, what="all records are committed")

    def records_per_second(self) -> float:
        """From the first batch's time to the last commit of the output."""
        words = read_words(self.job.directory, self.rig.output(self.path))
        log = TableLog(self.rig.output(self.path)).root / "_delta_log"
        last = max(commit.version for several in words.commits.values() for commit in several)
        entry = (log / f"{last:020d}.json").read_text().splitlines()
        done_ms = next(json.loads(x)["commitInfo"]["timestamp"] for x in entry if "commitInfo" in x)
        began_ms = min(pin.at_ms for pin in words.pins.values())
        return self.stream.records / max(0.001, (done_ms - began_ms) / 1000)

    def retries(self) -> int:
        """Signs that something ran twice: other epochs, stalls, files that no commit names."""
        words = read_words(self.job.directory, self.rig.output(self.path))
        epochs = {pin.epoch for pin in words.pins.values()} - {1}
        stalls = [event for event in self.job.events() if event["to"] == "STALLED"]
        return len(epochs) + len(stalls) + len(_orphans(self.rig.output(self.path)))


def _orphans(root: Path) -> set[str]:
    log = TableLog(root)
    return {path.name for path in root.glob("*.parquet")} - log.files_at(log.newest)


def _sql(rig: Rig, schema: str, topic: str, path: str) -> str:
    return (
        cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
        + kafka_table(rig.kafka, "visits", topic, f"{PROBE_COLUMNS}, proctime AS PROCTIME()")
        + f"CREATE TABLE enriched ({PROBE_COLUMNS}, gender STRING, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT v.user_id, v.url, v.score, v.active, u.gender, u.name "
        "FROM visits AS v LEFT JOIN user_info FOR SYSTEM_TIME AS OF v.proctime AS u "
        "ON v.user_id = u.user_id;"
    )


@contextmanager
def drained_run(lab: Lab, rig: Rig, records: int, *, poisoned: bool) -> Iterator[Run]:
    """A job that has joined a stream of `records`, which was there before it."""
    servers = lab.kafka.bootstrap_servers
    topic = create_topic(
        servers, partitions=_PARTITIONS, config={"max.message.bytes": str(16 << 20)}
    )
    wait_until(
        lambda: len(end_offsets(servers, topic)) == _PARTITIONS, what="the topic has leaders"
    )
    stream = Stream(topic)
    fill(lab, stream, records, poisoned=poisoned)
    lab.say(f"{stream.records} records, {len(stream.bad)} of them bad")
    with new_schema(rig.mariadb, USERS, fill_users(_USERS)) as schema:
        path = unique_name("poison")
        with rig.job(_sql(rig, schema, topic, path)) as job:
            run = Run(lab, rig, job, schema, stream, path)
            run.wait_drained()
            yield run


# The checks
# --------------------------------------------------------------------------------------------------


def wrong_reasons(run: Run) -> list[str]:
    """Dead letters whose reason is not the one of their kind."""
    log = TableLog(run.job.directory / "dead_letters")
    wrong = []
    for file in log.files_at(log.newest):
        table = log.read(file, ["partition", "offset", "reason"])
        assert table is not None
        for row in table.to_pylist():
            kind = run.stream.kinds.get((row["partition"], row["offset"]))
            if kind is None or REASONS.get(kind.name, "\0") not in row["reason"]:
                wrong.append(f"{kind and kind.name}: {row['reason'][:80]}")
    return wrong


def replay(run: Run, bad: Sequence[Where]) -> int:
    """Replay the dead letters with values that can be read; how many had their rows before."""
    already = 0
    for start in range(0, len(bad), _REPLAYED_AT_ONCE):
        records = [
            {"partition": p, "offset": o, "value": corrected(p, o).decode()}
            for p, o in bad[start : start + _REPLAYED_AT_ONCE]
        ]
        found = _asked(run, {"records": records})
        already += int(found["already_replayed"])
        run.lab.say(f"replay {found['replay']}: {found['rows']} rows, {already} were there")
    return already


def _asked(run: Run, body: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a request for a replay, which may take longer than its answer."""
    client = run.rig.client
    answer = client.post(f"/v1/jobs/{run.job.id}/dead-letters:replay", json=body)
    answer.raise_for_status()
    if answer.status_code != httpx.codes.ACCEPTED:
        return dict(answer.json())

    def done() -> dict[str, Any]:
        view = client.get(answer.headers["location"]).raise_for_status().json()
        assert view["status"] != "refused", view
        return dict(view["result"] or {})

    return wait_until(done, deadline_s=300, what="the replay is done")


def corrected(partition: int, offset: int) -> bytes:
    user = 1 + (partition * 1_000_003 + offset) % _USERS
    return b'{"user_id":%d,"url":"/fixed","score":null,"active":false}' % user


def _replayed(run: Run, before: AuditInputs) -> tuple[Verdict, bool]:
    """The verdict after two replays, and whether the second one added nothing."""
    bad = run.stream.bad
    replay(run, bad)
    wanted = run.stream.records

    def rows() -> int:
        log = TableLog(run.rig.output(run.path))
        files = [log.read(file, ["_offset"]) for file in log.files_at(log.newest)]
        return sum(table.num_rows for table in files if table is not None)

    wait_until(lambda: rows() == wanted, deadline_s=300, what="the missing rows are there")
    already = replay(run, bad)
    fixed = {where: corrected(*where) for where in bad}
    after = AuditInputs(**{**vars(before), "corrected": fixed})
    return audit(after, read_world(after)), already == len(bad) and rows() == wanted


def run(lab: Lab) -> dict[str, Any]:
    """The clean stream, the poisoned one, and the replay."""
    records = lab.cases(20_000, 1_000_000)
    with running_rig(lab.place("poison"), lab.kafka, lab.mariadb, fold_interval_s=600.0) as rig:
        clean_rate = None
        if lab.full:
            with drained_run(lab, rig, records, poisoned=False) as clean:
                clean_rate = clean.records_per_second()
                lab.say(f"clean: {clean_rate:.0f} records/s")
        with drained_run(lab, rig, records, poisoned=True) as poisoned:
            rate = poisoned.records_per_second()
            lab.say(f"poisoned: {rate:.0f} records/s")
            inputs = poisoned.inputs()
            first = audit(inputs)
            lab.say(f"before the replay: {first.faults() or 'ok'}")
            reasons, retries = wrong_reasons(poisoned), poisoned.retries()
            second, once = _replayed(poisoned, inputs)
            lab.say(f"after the replay: {second.faults() or 'ok'}")
    passed = len(poisoned.stream.bad) - len(reasons) if first.ok and second.ok else 0
    return result(
        lab,
        "poison",
        len(poisoned.stream.bad),
        passed,
        [first, second],
        kinds=len({kind.name for kind in poisoned.stream.kinds.values()}),
        wrong_reasons=reasons[:10],
        batch_retries=retries,
        replayed_once=once,
        records_per_second=round(rate),
        clean_records_per_second=None if clean_rate is None else round(clean_rate),
        ratio=None if clean_rate is None else round(rate / clean_rate, 3),
        ok=retries == 0 and once,
    )
