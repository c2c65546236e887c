"""Experiment `transactions`: producers that commit, abort and hang, interleaved on one topic.

Each case is the history of one producer, half of it written before the jobs are there. Three jobs
read the topic: a join that streams, windows by event time that end with the topic, whose every
partition ends in an aborted transaction, and a preview. Their output must be exactly the records of
the model, in the order of their partitions, and each batch must be identical when it is replayed.
Some transactions are never ended, so that the broker aborts them; one more is open until the job
and the doctor have named its producer as the reason of waiting.

`--only read_uncommitted` plants the fault: the tables read everything, and `wrong` must say so.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from kafka import KafkaProducer

from joins.durable.pins import PinStore
from service.jobs.inspect.past import open_replayer
from tests.reliability.experiment import Lab, result
from tests.support.producer_histories import (
    ABORT,
    USERS,
    Model,
    Producer,
    Step,
    Where,
    generate,
    interleave,
)
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS as USERS_TABLE
from tests.support.shop import USERS_DDL, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, end_offsets, unique_name
from tests.support.transactions import transactions
from tests.support.wait import wait_until

_PARTITIONS = 3
_HANGING_MS = 15_000
_HOLDING_MS = 600_000
_PATIENCE_S = 300.0
_COLUMNS = "user_id BIGINT, item_id BIGINT"


@dataclass
class Findings:
    """What is not as the model says, by job.

    Attributes:
        owners: producers of which a record is not where it belongs.
    """

    counts: Counter[str] = field(default_factory=Counter)
    owners: set[int] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)

    def add(self, kind: str, told: str, owner: int | None = None) -> None:
        self.counts[kind] += 1
        self.examples.append(f"{kind}: {told}")
        if owner is not None:
            self.owners.add(owner)


@dataclass(frozen=True)
class Scene:
    """The topic, its producers, and what they are to do."""

    lab: Lab
    rig: Rig
    topic: str
    model: Model
    producers: list[Producer]
    histories: list[tuple[Step, ...]]
    level: str

    def write(self, name: str, steps: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> None:
        """Let all producers do their part of their histories."""
        pairs = zip(self.producers, self.histories, strict=True)
        going = [producer.acts(steps(history)) for producer, history in pairs]
        interleave(self.lab.random("transactions", name), going)
        self.lab.say(f"{name}: {len(self.model.owners)} records are written")

    def stream(self, name: str, columns: str) -> str:
        return (
            f"CREATE TABLE {name} ({columns}) WITH ('connector'='kafka', 'topic'='{self.topic}', "
            f"'properties.bootstrap.servers'='{self.rig.kafka.bootstrap_servers}', "
            f"'format'='json', 'scan.startup.mode'='earliest-offset'{self.level});"
        )


def run(lab: Lab) -> dict[str, Any]:
    """Write half of the histories, submit the jobs, write the rest, compare."""
    cases, steps = lab.cases(24, 200), lab.size(4, 12)
    planted = lab.options.get("only")
    level = f", 'properties.isolation.level'='{planted}'" if planted else ""
    servers = lab.kafka.bootstrap_servers
    topic = create_topic(servers, partitions=_PARTITIONS)
    model, findings = Model(), Findings()
    with ExitStack() as stack:
        plain = stack.enter_context(KafkaProducer(bootstrap_servers=servers))
        producers = []
        for number in range(cases):
            producers.append(Producer(number, topic, plain, model, _HANGING_MS))
            stack.callback(producers[-1].transactions.close)
        rng = lab.random("transactions", "histories")
        histories = [
            generate(rng, _PARTITIONS, steps, hangs=number % 6 == 0) for number in range(cases)
        ]
        settings = {"fold_interval_s": 600.0, "runners": lab.runners}
        rig = stack.enter_context(
            running_rig(lab.place("transactions"), lab.kafka, lab.mariadb, **settings)
        )
        schema = stack.enter_context(new_schema(lab.mariadb, USERS_TABLE, fill_users(USERS)))
        scene = Scene(lab, rig, topic, model, producers, histories, level)
        told = _play(scene, schema, stack, findings)
    wrong = sum(findings.counts.values())
    names = ("lost", "phantom", "duplicate", "wrong_value")
    verdict = {"ok": wrong == 0, "records": len(model.owners), "examples": findings.examples}
    verdict |= {"rows": told.pop("rows")} | {name: findings.counts[name] for name in names}
    return result(
        lab,
        "transactions",
        cases,
        cases - len(findings.owners),
        [verdict],
        wrong=wrong,
        found=dict(findings.counts),
        committed=len(model.committed),
        aborted=len(model.aborted),
        **told,
    )


def _play(scene: Scene, schema: str, stack: ExitStack, findings: Findings) -> dict[str, Any]:
    """The jobs and what they have done; `ok` where they have done what was to be seen."""
    half = max(map(len, scene.histories)) // 2
    scene.write("before", lambda history: history[:half])
    every = Step(ABORT, tuple(range(_PARTITIONS)))
    list(scene.producers[0].acts([every]))  # all partitions end in what is not read
    joined, counted = unique_name("joined"), unique_name("counted")
    stream = stack.enter_context(scene.rig.job(_join_sql(scene, schema, joined)))
    bounded = stack.enter_context(scene.rig.job(_windows_sql(scene, counted)))
    preview = stack.enter_context(scene.rig.job(_preview_sql(scene, schema)))
    stream.wait_joining()
    with transactions(scene.rig.kafka.bootstrap_servers, timeout_ms=_HOLDING_MS) as holder:
        holder.begin()
        holder.send(scene.topic, {0: [{"user_id": 1, "item_id": -1, "ts": None}]})
        scene.write("joining", lambda history: history[half:])
        named = "" if scene.level else _wait_held(scene, stream, holder.id)
        holder.abort()
    for job in (bounded, preview):
        job.wait_state("FINISHED", deadline_s=_PATIENCE_S)
    _wait_drained(scene, stream)
    scene.lab.say("all jobs are through")
    _compare_join(scene, scene.rig, joined, findings)
    _compare_windows(scene, bounded, counted, findings)
    _compare_preview(scene, preview, findings)
    replayed = sum(_replayed(scene.lab, job.directory, findings) for job in (stream, bounded))
    rows = len(scene.rig.rows(joined))
    return {"rows": rows, "replayed": replayed, "held": named, "ok": bool(named) and replayed > 0}


def _wait_held(scene: Scene, job: RunningJob, producer: str) -> str:
    """The sentence that names whose transaction holds the stream; empty if the doctor does not."""

    def held() -> str:
        found = scene.rig.get(f"/v1/jobs/{job.id}/explain-wait")
        named = [
            condition["evidence"]
            for condition in found["conditions"]
            if condition["name"] == "transactions-ended" and condition["met"] is False
        ]
        return next((evidence for evidence in named if producer in evidence), "")

    evidence = wait_until(held, deadline_s=_PATIENCE_S, what="an open transaction is named")
    scene.lab.say(evidence)
    checks = scene.rig.get(f"/v1/jobs/{job.id}/doctor")["checks"]
    (check,) = [each for each in checks if each["name"] == "open transactions"]
    return evidence if producer in check["detail"] and check["ok"] is False else ""


def _wait_drained(scene: Scene, job: RunningJob) -> None:
    """Every offset is in a committed batch: transactions that hang were aborted by the broker."""
    servers = scene.rig.kafka.bootstrap_servers

    def drained(status: Mapping[str, Any]) -> bool:
        done = (status["probe"] or {}).get("next_offsets", {})
        ends = end_offsets(servers, scene.topic)
        return {int(p): offset for p, offset in done.items()} == ends

    job.wait_for(drained, "all is joined", deadline_s=_PATIENCE_S)


# The jobs
# --------------------------------------------------------------------------------------------------


def _joined(scene: Scene, schema: str) -> str:
    return cdc_table(scene.rig.mariadb, schema, "user_info", USERS_DDL) + scene.stream(
        "clicks", f"{_COLUMNS}, proctime AS PROCTIME()"
    )


def _select(limit: str = "") -> str:
    return (
        "SELECT c.user_id, c.item_id, u.name FROM clicks AS c LEFT JOIN user_info "
        f"FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id{limit};"
    )


def _join_sql(scene: Scene, schema: str, path: str) -> str:
    return (
        _joined(scene, schema)
        + f"CREATE TABLE joined ({_COLUMNS}, name STRING) WITH ('connector'='delta', "
        f"'path'='{path}'); INSERT INTO joined {_select()}"
    )


def _preview_sql(scene: Scene, schema: str) -> str:
    return _joined(scene, schema) + _select(" LIMIT 10000")


def _windows_sql(scene: Scene, path: str) -> str:
    columns = f"{_COLUMNS}, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY"
    return (
        "SET 'execution.runtime-mode' = 'batch';"
        + scene.stream("clicks", columns)
        + "CREATE TABLE counted (user_id BIGINT, hour_at TIMESTAMP(3), clicks BIGINT, items BIGINT)"
        f" WITH ('connector'='delta', 'path'='{path}', 'row-metadata'='false');"
        "INSERT INTO counted SELECT user_id, window_start, COUNT(*), SUM(item_id) FROM TABLE("
        "TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY user_id, window_start, window_end;"
    )


# The checks
# --------------------------------------------------------------------------------------------------


def _compare_join(scene: Scene, rig: Rig, path: str, findings: Findings) -> None:
    """Each committed record once, with its user's name, in the order of its partition."""
    seen: Counter[Where] = Counter()
    model = scene.model
    for row in rig.rows(path):
        where = row["_partition"], row["_offset"]
        seen[where] += 1
        wanted = model.committed.get(where)
        if wanted is None:
            findings.add("phantom", f"join {where}", model.owners.get(where))
        elif (row["item_id"], row["name"]) != (wanted["item_id"], f"user {wanted['user_id']}"):
            findings.add("wrong_value", f"join {where}: {row}", model.owners[where])
    for where in model.committed:
        if seen[where] != 1:
            kind = "lost" if not seen[where] else "duplicate"
            findings.add(kind, f"join {where}", model.owners[where])
    for batch, partition, offsets in _orders(rig.output(path)):
        if offsets != sorted(offsets):
            findings.add("order", f"join, batch {batch}, partition {partition}: {offsets}")


def _orders(output: Path) -> Iterator[tuple[int, int, list[int]]]:
    """Of each partition the offsets as files have them, file by file and then batch by batch."""
    batches: dict[int, dict[int, list[int]]] = defaultdict(dict)
    for file in sorted(output.glob("*.parquet")):
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in pq.read_table(file).to_pylist():
            found[row["_batch"], row["_partition"]].append(row["_offset"])
        for (batch, partition), offsets in found.items():
            yield batch, partition, offsets
            batches[partition][batch] = [min(offsets), max(offsets)]
    for partition, spans in batches.items():
        yield -1, partition, [at for _, span in sorted(spans.items()) for at in span]


def _compare_windows(scene: Scene, job: RunningJob, path: str, findings: Findings) -> None:
    """The counts and sums of the records before the end."""
    bounds = {int(p): end for p, end in job.probe()["bounded_offsets"].items()}
    wanted: dict[tuple[int, str], tuple[int, int]] = {}
    for value in scene.model.before(bounds).values():
        key = value["user_id"], value["ts"][:13]
        clicks, items = wanted.get(key, (0, 0))
        wanted[key] = clicks + 1, items + value["item_id"]
    found = {
        (row["user_id"], row["hour_at"].strftime("%Y-%m-%d %H")): (row["clicks"], row["items"])
        for row in scene.rig.rows(path)
    }
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            told = f"windows {key}: {found.get(key)}, expected {wanted.get(key)}"
            findings.add("wrong_value", told)


def _compare_preview(scene: Scene, job: RunningJob, findings: Findings) -> None:
    """Its rows are in the runner's log, `+I` and an object each."""
    bounds = {int(p): end for p, end in job.probe()["bounded_offsets"].items()}
    owners = {value["item_id"]: where for where, value in _values(scene.model)}
    wanted = {value["item_id"] for value in scene.model.before(bounds).values()}
    log = (job.directory / "runner.log").read_text().split("\n")
    rows = [json.loads(line[2:]) for line in log if line.startswith("+I{")]
    found = Counter(int(row["item_id"]) for row in rows)
    for item in sorted(wanted | found.keys()):
        if found[item] != (item in wanted):
            kind = "lost" if not found[item] else "duplicate" if item in wanted else "phantom"
            findings.add(kind, f"preview {item}", scene.model.owners[owners[item]])


def _values(model: Model) -> Iterator[tuple[Where, dict[str, Any]]]:
    yield from model.committed.items()
    yield from model.aborted.items()


def _replayed(lab: Lab, directory: Path, findings: Findings) -> int:
    """How many batches were replayed; each must be identical, if there is anything of it."""
    newest = PinStore(directory / "checkpoint" / "pins").newest()
    if newest is None:
        findings.add("lost", f"{directory.name} has no batch")
        return 0
    with open_replayer(directory) as replayer:
        for batch in range(newest.batch + 1):
            found = replayer.replay(batch, diff=True)
            if found["verdict"] not in ("identical", "nothing-to-compare"):
                findings.add("replay", f"batch {batch}: {found['differences'][:3]}")
    lab.say(f"{newest.batch + 1} batches of {directory.name} are replayed")
    return newest.batch + 1
