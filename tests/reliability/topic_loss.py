"""Experiment `topic-loss`: the stream's topic loses records or becomes another one.

Each case lets something happen to the topic of a job: while it joins under load, while it holds
records before the opening, or while its runner is stopped. The job must stop with the right cause
before it commits a batch that was planned afterwards, say exactly which offsets are lost, and after
an operator's acknowledgement join everything behind the gap once. Records that were removed may
still be joined, all of them, if Spark had fetched them before: one batch may do that.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors

from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, delete_topics, end_offsets, produce, unique_name
from tests.support.wait import wait_until

FAULTS = ("trimmed", "smaller", "same", "larger")
PLACES = ("join", "load", "stopped")
SMALL_CASES = (("load", "larger"), ("join", "trimmed"), ("stopped", "larger"))
CAUSES = {"trimmed": "records-lost"}
_IDENTITY = "topic-identity-changed"
_PARTITIONS = 2
_USERS = 30_000
_CHUNK = ("'scan.incremental.snapshot.chunk.size'='500'",)
_COPIED_AT_ONCE = 1_000  # rows: the copy takes long enough to be met
_PER_BATCH = 50
_BACKLOG = 8 * _PER_BATCH
_SENT = 20 * _BACKLOG  # a job that joins fifty batches a second is seen once a second
_ATTEMPTS = 5
_AFTER = 40
_REST_S = 3.0


def listing() -> list[str]:
    return [f"{place}: {fault}" for place in PLACES for fault in FAULTS]


def planned(lab: Lab) -> list[tuple[str, str]]:
    """(place, fault) of each case; those in LOAD come first, for a job opens once."""
    kinds = [(place, fault) for place in PLACES for fault in FAULTS]
    count = lab.cases(len(SMALL_CASES), 30)
    if not lab.full and count == len(SMALL_CASES):
        return list(SMALL_CASES)
    chosen = [kinds[n % len(kinds)] for n in range(count)]
    lab.random("order").shuffle(chosen)
    return sorted(chosen, key=lambda case: case[0] != "load")


@dataclass
class Ledger:
    """What was sent and what must become of it.

    Attributes:
        places: item → incarnation of the topic, partition, offset.
        owed: items that must be joined, once.
        gone: items that must never be joined.
    """

    incarnation: int = 0
    places: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    owed: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)

    def send(self, servers: str, topic: str, count: int) -> list[int]:
        """Send `count` clicks with new item numbers; they are owed from now on."""
        first = len(self.places)
        items = list(range(first, first + count))
        sent = produce(servers, topic, [click(1 + item % _USERS, item) for item in items])
        for item, (partition, offset) in zip(items, sent, strict=True):
            self.places[item] = (self.incarnation, partition, offset)
        self.owed |= set(items)
        return items

    def forget(self, items: set[int]) -> None:
        self.owed -= items
        self.gone |= items


@dataclass
class Findings:
    """What went wrong, by kind, over all cases."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    passed: int = 0
    unharmed: int = 0
    stall_seconds: list[float] = field(default_factory=list)

    def note(self, kind: str, number: int, text: str) -> None:
        if number:
            self.counts[kind] += number
            self.examples.append(f"{kind} {number}: {text}")

    def verdict(self, records: int, rows: int) -> dict[str, Any]:
        return {
            "records": records,
            "rows": rows,
            "ok": not self.examples,
            "examples": self.examples[:20],
            **self.counts,
        }


@dataclass
class Case:
    """One job and its topic, through any number of faults."""

    lab: Lab
    rig: Rig
    job: RunningJob
    topic: str
    path: str
    ledger: Ledger
    findings: Findings
    floor: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(_PARTITIONS), 0))

    @property
    def servers(self) -> str:
        return self.lab.kafka.bootstrap_servers

    def send(self, count: int) -> list[int]:
        return self.ledger.send(self.servers, self.topic, count)

    def joined(self) -> Counter[int]:
        return Counter(row["item_id"] for row in self.rig.rows(self.path))

    def wait_until_seen(self) -> None:
        ends = {str(p): offset for p, offset in end_offsets(self.servers, self.topic).items()}
        self.job.wait_for(lambda s: s["probe"]["end_offsets"] == ends, "the ends are seen")

    def wait_joined(self) -> None:
        owed = self.ledger.owed
        wait_until(lambda: owed <= set(self.joined()), deadline_s=300, what="all owed are joined")

    def wait_stalled(self, cause: str, *, running: bool) -> bool:
        """Wait for that stall; how long it took counts if the runner ran.

        Returns:
            False if nothing is lost: all that was removed had been fetched, and is joined.
        """
        started = time.monotonic()
        status = self.job.wait_for(
            lambda s: is_stalled(s, cause) or (cause == "records-lost" and self.is_whole(s)),
            f"a stall by {cause}",
            deadline_s=60,
        )
        if not is_stalled(status, cause):
            self.findings.unharmed += 1
            return False
        if running:
            self.findings.stall_seconds.append(round(time.monotonic() - started, 2))
        assert status["error"]["hint"]
        return True

    def is_whole(self, status: dict[str, Any]) -> bool:
        done = status["state"] == "JOINING" and status["probe"]["lag_records"] == 0
        return done and self.ledger.owed <= set(self.joined())

    def acknowledge(self, cause: str) -> dict[str, Any]:
        answer = self.rig.client.post(
            f"/v1/jobs/{self.job.id}:acknowledge",
            json={"cause": cause, "reason": "the experiment did it", "by": "experiment"},
        )
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def is_stalled(status: dict[str, Any], cause: str) -> bool:
    return status["state"] == "STALLED" and (status["error"] or {}).get("type") == cause


# What happens to the topic


def trim(case: Case, share: float) -> dict[int, int]:
    """Delete records: in each partition up to `share` of the way from what is joined to the end."""
    ends, done = end_offsets(case.servers, case.topic), committed_ends(case)
    cut = {p: done[p] + round((end - done[p]) * share) for p, end in ends.items()}
    admin = KafkaAdminClient(bootstrap_servers=case.servers)
    try:
        admin.delete_records({TopicPartition(case.topic, p): o for p, o in cut.items() if o})
    finally:
        admin.close()
    return cut


def committed_ends(case: Case) -> dict[int, int]:
    """Partition → where output and gaps of this incarnation end."""
    found = dict(case.floor)
    for item in case.joined():
        incarnation, partition, offset = case.ledger.places[item]
        if incarnation == case.ledger.incarnation:
            found[partition] = max(found[partition], offset + 1)
    return found


def recreate(case: Case) -> None:
    """Delete the topic and create one of the same name."""
    delete_topics(case.servers, case.topic)

    def created() -> bool:
        try:
            create_topic(case.servers, case.topic, partitions=_PARTITIONS)
        except kafka_errors.TopicAlreadyExistsError:
            return False
        return True

    wait_until(created, what="the topic is created again")
    case.ledger.incarnation += 1


def refill(case: Case, fault: str, old_ends: dict[int, int]) -> None:
    """Records of the new topic: fewer, as many or more than the old one had."""
    more = {"smaller": -1, "same": 0, "larger": 60}[fault]
    for partition in range(_PARTITIONS):
        wanted = old_ends[partition] + more
        count = max(1, wanted // 3 if fault == "smaller" else wanted)
        send_to(case, partition, count)


def send_to(case: Case, partition: int, count: int) -> None:
    ledger, first = case.ledger, len(case.ledger.places)
    items = list(range(first, first + count))
    values = [click(1 + item % _USERS, item) for item in items]
    for item, (_, offset) in zip(
        items, produce(case.servers, case.topic, values, partition=partition), strict=True
    ):
        ledger.places[item] = (ledger.incarnation, partition, offset)
    ledger.owed |= set(items)


# One case


def play(case: Case, place: str, fault: str, share: float) -> None:
    """One fault at one place; the job goes on normally afterwards."""
    prepare(case, place)
    cause = CAUSES.get(fault, _IDENTITY)
    old = case.ledger.incarnation
    ends = end_offsets(case.servers, case.topic)
    if fault == "trimmed":
        cut = trim(case, share)
        happened_ms, floor = now_ms(), cut
    else:
        cut = ends
        recreate(case)
        happened_ms, floor = now_ms(), dict.fromkeys(range(_PARTITIONS), 0)
        refill(case, fault, ends)
    if place == "stopped":
        case.job.start()
    if not case.wait_stalled(cause, running=place != "stopped"):
        return
    case.send(_AFTER)
    wait_at_rest(case)
    before = settle(case, old, cut)
    check_stopped(case, happened_ms, cut if fault == "trimmed" else None)
    told = case.acknowledge(cause)
    nobody_saw = place == "stopped" and fault != "trimmed"
    check_gaps(case, told, before, before if nobody_saw else cut)
    case.floor = floor
    if place != "load":
        case.send(_AFTER)
        case.wait_joined()
    else:
        case.job.wait_for(lambda s: s["state"] == "SNAPSHOT", "records are held again")


def wait_at_rest(case: Case) -> None:
    found = None
    while found != (found := sum(case.joined().values())):
        time.sleep(_REST_S)


def prepare(case: Case, place: str) -> None:
    """Records that are not joined yet, with the job in its place."""
    if place == "stopped":
        case.job.stop()
    for _ in range(_ATTEMPTS):
        case.send(_SENT if place == "join" else 60)
        if place == "stopped":
            return
        case.wait_until_seen()
        if place != "join" or backlog(case) >= _BACKLOG:
            return
    raise AssertionError(f"the job joins {_SENT} records before their ends are seen")


def backlog(case: Case) -> int:
    ends = end_offsets(case.servers, case.topic)
    return sum(ends.values()) - sum(committed_ends(case).values())


def settle(case: Case, incarnation: int, cut: dict[int, int]) -> dict[int, int]:
    """What the fault has taken is owed no more; returns where the output ends in each partition."""
    joined = case.joined()
    ends = dict(case.floor)
    lost = set()
    for item, (era, partition, offset) in case.ledger.places.items():
        if era != incarnation:
            continue
        if item in joined:
            ends[partition] = max(ends[partition], offset + 1)
        elif offset < cut[partition]:
            lost.add(item)
    places = case.ledger.places
    holes = [i for i in lost if case.floor[places[i][1]] <= places[i][2] < ends[places[i][1]]]
    case.findings.note("lost", len(holes), f"items {holes[:5]} were left out before the gap")
    case.ledger.forget(lost)
    return ends


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def check_stopped(case: Case, happened_ms: int, cut: dict[int, int] | None) -> None:
    """No batch that was planned after the fault is in the output, nor a row from behind it."""
    rows = case.rig.rows(case.path)
    planned_ms = {}
    for batch in {row["_batch"] for row in rows}:
        pin = case.job.directory / "checkpoint" / "pins" / f"{batch:010d}.json"
        planned_ms[batch] = read_time(pin)
    late = {batch for batch, at_ms in planned_ms.items() if at_ms > happened_ms}
    allowed = 0 if cut is None else 1
    case.findings.note(
        "torn", max(0, len(late) - allowed), f"batches {sorted(late)} came after the fault"
    )
    behind = 0
    for item in case.joined():
        era, partition, offset = case.ledger.places[item]
        newer = era == case.ledger.incarnation and cut is None
        skipped = cut is not None and era == case.ledger.incarnation and offset >= cut[partition]
        behind += newer or skipped
    case.findings.note("early", behind, "rows from behind the gap before the acknowledgement")


def read_time(pin: Path) -> int:
    return int(json.loads(pin.read_text())["batch_timestamp_ms"])


def check_gaps(
    case: Case, told: dict[str, Any], before: dict[int, int], cut: dict[int, int]
) -> None:
    expected = [
        {"partition": p, "from": before[p], "to": cut[p]} for p in sorted(cut) if cut[p] > before[p]
    ]
    gaps = [{name: gap[name] for name in ("partition", "from", "to")} for gap in told["gaps"]]
    case.findings.note("phantom", int(gaps != expected), f"gaps {gaps}, expected {expected}")


def check_all(case: Case) -> None:
    """Every item that is owed once, none that is gone."""
    joined, ledger, note = case.joined(), case.ledger, case.findings.note
    lost = sorted(ledger.owed - set(joined))
    note("lost", len(lost), f"items {lost[:5]}")
    twice = sorted(item for item, times in joined.items() if times > 1)
    note("duplicate", len(twice), f"items {twice[:5]}")
    resurrected = sorted(ledger.gone & set(joined))
    note("phantom", len(resurrected), f"items {resurrected[:5]}")
    wrong = [r for r in case.rig.rows(case.path) if r["name"] != f"user {r['user_id']}"]
    note("wrong_value", len(wrong), str(wrong[:1]))


# Jobs


@contextmanager
def new_case(lab: Lab, rig: Rig, schema: str, findings: Findings) -> Iterator[Case]:
    """A job of its own over a topic of its own."""
    topic = create_topic(lab.kafka.bootstrap_servers, partitions=_PARTITIONS)
    path = unique_name("loss")
    with rig.job(enrich_sql(rig, schema, topic, path, _CHUNK)) as job:
        yield Case(lab, rig, job, topic, path, Ledger(), findings)


def play_all(case: Case, chosen: list[tuple[str, str]]) -> int:
    """The cases one after another; returns how many, less than all if the job cannot go on."""
    for number, (place, fault) in enumerate(chosen):
        share = case.lab.random(number, place, fault).choice((0.8, 0.9, 1.0))
        wrong = len(case.findings.examples)
        try:
            play(case, place, fault, share)
        except (AssertionError, TimeoutError) as exc:
            case.lab.say(f"{place} {fault}: {str(exc)[-3000:]}")
            case.findings.examples.append(f"{place} {fault}: {str(exc)[:300]}")
            return number + 1
        found = case.findings.examples[wrong:]
        case.findings.passed += not found
        case.lab.say(f"{place} {fault}: {found or 'right'}")
    return len(chosen)


@dataclass
class Totals:
    """Over all jobs."""

    records: int = 0
    rows: int = 0


def run(lab: Lab) -> dict[str, Any]:
    """All cases on one job, first while it is held; a job that cannot go on is replaced."""
    chosen, findings, totals = planned(lab), Findings(), Totals()
    settings = {
        "max_records_per_batch": _PER_BATCH,
        "runners": lab.runners,
        "snapshot_job_rows": _COPIED_AT_ONCE,
    }
    with (
        running_rig(lab.place("rig"), lab.kafka, lab.mariadb, **settings) as rig,
        new_schema(lab.mariadb, USERS, fill_users(_USERS)) as schema,
    ):
        rest = chosen
        while rest:
            with new_case(lab, rig, schema, findings) as case:
                rest = rest[run_job(case, rest, schema) :]
                totals.records += len(case.ledger.places)
                totals.rows += sum(case.joined().values())
    told = sorted(findings.stall_seconds)
    return result(
        lab,
        "topic-loss",
        len(chosen),
        findings.passed,
        [findings.verdict(totals.records, totals.rows)],
        silent_gaps=findings.counts["early"] + findings.counts["lost"],
        unharmed=findings.unharmed,
        stalled_within_s=told[-1] if told else None,
    )


def run_job(case: Case, chosen: list[tuple[str, str]], schema: str) -> int:
    """One job through the cases, then the look at all that it wrote; returns how many it had."""
    held = [each for each in chosen if each[0] == "load"]
    played = 0
    if held:
        with case.lab.mariadb.connect(schema) as lock, lock.cursor() as cursor:
            case.job.wait_state("SNAPSHOT")
            cursor.execute("LOCK TABLES user_info WRITE")
            played = play_all(case, held)
            cursor.execute("UNLOCK TABLES")
    if played == len(held):
        case.job.wait_joining()
        case.wait_joined()
        played += play_all(case, chosen[len(held) :])
    check_all(case)
    return played
