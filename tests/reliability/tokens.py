"""Experiment `tokens`: is my write in the result, and in which batch first?

Each write changes one row and takes the position of the binlog behind it, or its GTID, or `now`.
`POST …/freshness/wait` names a batch. The oracle reads the output: rows of that batch and of later
ones have met the write; for a binlog position, no row of an earlier batch has.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

_KEY = 1
_OPENS_S = 400.0
_KINDS = ("binlog", "gtid", "now")
_WITHIN_S = 60.0


@contextmanager
def clicking(servers: str, topic: str) -> Iterator[None]:
    """Clicks of the row, so that every batch shows what it has met."""
    ends = threading.Event()

    def send() -> None:
        item = 0
        while not ends.wait(0.05):
            produce(servers, topic, [click(_KEY, item)])
            item += 1

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(60)


def write(rig: Rig, schema: str, number: int) -> str:
    """Change the row; the token of the change."""
    statement = f"UPDATE user_info SET name = '{number}' WHERE user_id = {_KEY}"
    run_sql(rig.mariadb, statement, schema=schema)
    kind = _KINDS[number % len(_KINDS)]
    if kind == "now":
        return kind
    if kind == "gtid":
        return str(run_sql(rig.mariadb, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
    file, pos = run_sql(rig.mariadb, "SHOW MASTER STATUS")[0][:2]
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


def faults(rows: list[dict[str, Any]], number: int, token: str, batch: int | None) -> list[str]:
    """What the output says against the answer for one write."""
    if batch is None:
        return [f"write {number} ({token}): no batch within {_WITHIN_S} s"]
    seen = [(int(row["_batch"]), int(row["name"]) if row["name"].isdigit() else 0) for row in rows]
    late = [at for at, met in seen if at >= batch and met < number]
    early = [at for at, met in seen if at < batch and met >= number]
    found = [f"write {number} ({token}) is not in batch {at}, named {batch}" for at in late[:1]]
    if ":" in token:
        found += [f"write {number} ({token}) is in batch {at}, named {batch}" for at in early[:1]]
    return found


def run(lab: Lab) -> dict[str, Any]:
    """Writes, each waited for, one after the other."""
    count = lab.cases(30, 10_000)
    servers, path = lab.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=2)
    named: list[tuple[int, str, int | None]] = []
    with (
        running_rig(lab.place("rig"), lab.kafka, lab.mariadb, freshness_interval_s=0.2) as rig,
        new_schema(rig.mariadb, USERS, fill_users(1)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
        clicking(servers, topic),
    ):
        job.wait_state("JOINING", deadline_s=_OPENS_S)
        job.wait_output(path, 1, deadline_s=_OPENS_S)
        for number in range(1, count + 1):
            token = write(rig, schema, number)
            named.append((number, token, waited(rig, job, token)))
        last = max((batch for _, _, batch in named if batch is not None), default=0)
        wait_until(
            lambda: max((row["_batch"] for row in rig.rows(path)), default=-1) > last,
            deadline_s=60,
            what="a batch behind the last one",
        )
        rows = rig.rows(path)
    found = [faults(rows, *each) for each in named]
    passed = sum(not each for each in found)
    verdict = {
        "records": len(rows),
        "rows": len(rows),
        "ok": passed == count,
        "examples": [text for each in found for text in each][:20],
    }
    return result(lab, "tokens", count, passed, [verdict], wrong=count - passed)
