"""Experiment `tokens`: is my write in the result, and in which batch first?

Writers change a row each, one write after the other, and take the position of the binlog behind it,
or its GTID, or `now`. `POST …/freshness/wait` names a batch. The oracle reads the output: rows of
that batch and of later ones have met the write; for a binlog position, no row of an earlier batch
has.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.reliability.experiment import Lab, in_lanes, result
from tests.support.beside import beside
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

_OPENS_S = 400.0
_KINDS = ("binlog", "gtid", "now")
_WITHIN_S = 60.0


@dataclass(frozen=True)
class Write:
    """The `number`-th write of a row, its token, and the batch that was named."""

    key: int
    number: int
    token: str
    batch: int | None


@contextmanager
def clicking(servers: str, topic: str, keys: range, every_s: float) -> Iterator[None]:
    """Clicks of each row, so that every batch shows what it has met."""
    values = [b'{"user_id":%d,"item_id":0}' % key for key in keys]
    halves = {partition: values[partition::2] for partition in range(2)}

    def send(ends: Event) -> None:
        with BulkProducer(servers, topic) as producer:
            while not ends.wait(every_s):
                producer.send(halves)

    with beside(send):
        yield


_writing = Lock()


def write(rig: Rig, schema: str, key: int, number: int) -> str:
    """Change the row; the token of the change, without another one before it."""
    statement = f"UPDATE user_info SET name = '{number}' WHERE user_id = {key}"
    kind = _KINDS[number % len(_KINDS)]
    with _writing:
        if kind == "now":
            run_sql(rig.mariadb, statement, schema=schema)
            return kind
        if kind == "gtid":
            asked = "SELECT @@GLOBAL.gtid_binlog_pos"
            return str(run_sql(rig.mariadb, statement, asked, schema=schema)[0][0])
        file, pos = run_sql(rig.mariadb, statement, "SHOW MASTER STATUS", schema=schema)[0][:2]
        return f"{file}:{pos}"


def waited(rig: Rig, job: RunningJob, token: str) -> int | None:
    """The batch that is named."""
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        body = {"table": "user_info", "position": token, "timeout_s": 10}
        answer = rig.client.post(f"/v1/jobs/{job.id}/freshness/wait", json=body)
        answer.raise_for_status()
        found = answer.json()
        if found["batch"] is not None:
            return int(found["batch"])
        token = found["token"]
    return None


class Seen:
    """By batch: the newest write of one row that it or an earlier one has met, and the oldest."""

    def __init__(self, rows: pa.Table, key: int) -> None:
        own = rows.filter(pc.equal(rows["user_id"], key)).sort_by("_batch")
        names = pc.if_else(pc.utf8_is_digit(own["name"]), own["name"], "0")
        met = names.cast(pa.int64()).to_numpy()
        self._batches = own["_batch"].to_numpy()
        self._newest = np.maximum.accumulate(met)
        self._oldest = np.minimum.accumulate(met[::-1])[::-1]

    def faults(self, write: Write) -> list[str]:
        """What the output says against the answer."""
        said = f"write {write.number} of {write.key} ({write.token})"
        if write.batch is None:
            return [f"{said}: no batch within {_WITHIN_S} s"]
        at = int(np.searchsorted(self._batches, write.batch))
        found = []
        if at < len(self._oldest) and self._oldest[at] < write.number:
            found.append(f"{said} is not in a batch from {write.batch} on, which was named")
        if ":" in write.token and at and self._newest[at - 1] >= write.number:
            found.append(f"{said} is in a batch before {write.batch}, which was named")
        return found


def run(lab: Lab) -> dict[str, Any]:
    """Writes, each waited for; the writers wait beside each other."""
    count, lanes = lab.cases(30, 10_000), lab.size(2, 8)
    keys = range(1, lanes + 1)
    each = -(-count // lanes)
    servers, path = lab.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=2)
    with (
        running_rig(lab.place("rig"), lab.kafka, lab.mariadb, freshness_interval_s=0.2) as rig,
        new_schema(rig.mariadb, USERS, fill_users(lanes)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
        clicking(servers, topic, keys, lab.size(0.2, 0.05)),
    ):
        job.wait_state("JOINING", deadline_s=_OPENS_S)
        job.wait_output(path, 1, deadline_s=_OPENS_S)

        def work(key: int) -> list[Write]:
            found = []
            for number in range(1, each + 1):
                token = write(rig, schema, key, number)
                found.append(Write(key, number, token, waited(rig, job, token)))
                if key == 1 and number % 100 == 0:
                    lab.say(f"{number * lanes:,} writes")
            return found

        writes = [one for lane in in_lanes(lanes, work, keys) for one in lane]
        last = max((one.batch for one in writes if one.batch is not None), default=0)

        def newest() -> int:
            pin = job.pins.newest()
            return -1 if pin is None else pin.batch

        wait_until(lambda: newest() > last + 1, deadline_s=60, what="batches behind the last one")
        rows = rig.table(path)
    seen = {key: Seen(rows, key) for key in keys}
    found = [seen[one.key].faults(one) for one in writes]
    passed = sum(not each for each in found)
    verdict = {
        "records": len(rows),
        "rows": len(rows),
        "ok": passed == len(writes),
        "examples": [text for each in found for text in each][:20],
    }
    return result(lab, "tokens", len(writes), passed, [verdict], wrong=len(writes) - passed)
