"""A stream of files and then of a topic, whose runner is killed around the seam of the two.

The files have the first items. Of the topic, older records lie before the start that the
declaration names; behind the start it has the next items, half of them from the beginning on and
the rest after the first kill. In the end each item must have one row, under its coordinates, and no
older record any. No batch may have rows of the files and records of the topic.
"""

import time
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joins.plan.stream_topics import FILES
from tests.reliability.processes import kill_hard, runner_of
from tests.reliability.rounds import SEAM, Round
from tests.support.bulk import BulkProducer
from tests.support.file_feeds import write_json_lines
from tests.support.rig import Rig, RunningJob
from tests.support.topics import create_topic, end_offsets, unique_name
from tests.support.wait import wait_until

RUNNER = "runner"
_PARTITIONS = 2
_OLDER = 50
_USERS = 7  # the last one has no row
_AT_ONCE = 2_000
_EACH_S = 600.0


class ClickStream:
    """The files and the topic of one stream."""

    def __init__(self, rig: Rig, rows: int, files: int, records: int) -> None:
        self.rows, self.records = rows, records
        self.servers = rig.kafka.bootstrap_servers
        self.topic = create_topic(self.servers, partitions=_PARTITIONS)
        self.directory = unique_name("clicks")
        self.users = unique_name("users")
        self._write_files(rig.output(self.directory), files)
        rig.output(self.users).mkdir(parents=True)
        users = ({"id": n, "name": f"user {n}"} for n in range(_USERS - 1))
        write_json_lines(rig.output(self.users) / "all.json", users)
        self.send(range(-_OLDER, 0))
        self.start = end_offsets(self.servers, self.topic)
        self.send(range(rows, rows + records // 2))

    def _write_files(self, directory: Path, files: int) -> None:
        directory.mkdir(parents=True)
        each = -(-self.rows // files)
        for first in range(0, self.rows, each):
            items = range(first, min(first + each, self.rows))
            users = [item % _USERS for item in items]
            columns = {"item_id": pa.array(items, pa.int64()), "user_id": pa.array(users)}
            # paths are in another order than the items
            path = directory / f"{self.rows - first:012}.parquet"
            pq.write_table(pa.table(columns), path, row_group_size=700)

    def send(self, items: range) -> None:
        with BulkProducer(self.servers, self.topic) as producer:
            for first in range(items.start, items.stop, _AT_ONCE):
                parts: dict[int, list[bytes | None]] = {p: [] for p in range(_PARTITIONS)}
                for item in range(first, min(first + _AT_ONCE, items.stop)):
                    value = b'{"user_id":%d,"item_id":%d}' % (item % _USERS, item)
                    parts[item % _PARTITIONS].append(value)
                producer.send(parts)

    def send_rest(self) -> None:
        self.send(range(self.rows + self.records // 2, self.rows + self.records))

    def statement(self, rig: Rig, path: str, batch: int) -> str:
        start = ";".join(f"partition:{p},offset:{o}" for p, o in sorted(self.start.items()))
        return (
            "CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            f"'connector'='filesystem', 'path'='{self.users}', 'format'='json');"
            "CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, p AS PROCTIME()) WITH ("
            f"'connector'='kafka', 'topic'='{self.topic}', 'format'='json', "
            f"'properties.bootstrap.servers'='{self.servers}', "
            f"'history.connector'='filesystem', 'history.path'='{self.directory}', "
            "'history.format'='parquet', 'history.order-column'='item_id', "
            "'scan.startup.mode'='specific-offsets', "
            f"'scan.startup.specific-offsets'='{start}', "
            f"'scan.max-records-per-batch'='{batch}');"
            "CREATE TABLE named (item_id BIGINT, name STRING) "
            f"WITH ('connector'='delta', 'path'='{path}');"
            "INSERT INTO named SELECT c.item_id, u.name FROM clicks AS c "
            "LEFT JOIN users FOR SYSTEM_TIME AS OF c.p AS u ON c.user_id = u.id;"
        )

    def done(self, job: RunningJob) -> float:
        """Share of the way by the newest pin: `SEAM` when the files' last row is pinned."""
        pin = job.pins.newest()
        if pin is None:
            return 0.0
        files = pin.end_offsets.get(FILES, 0)
        read = sum(pin.end_offsets.get(p, start) - start for p, start in self.start.items())
        return SEAM * files / self.rows + (1 - SEAM) * min(1.0, read / (self.records // 2))


def run_stream_round(
    rig: Rig, size: tuple[int, int, int], points: tuple[float, ...], found: Round
) -> None:
    stream, path = ClickStream(rig, *size), unique_name("stream")
    batch = max(1, stream.rows // 20)
    with rig.job(stream.statement(rig, path, batch)) as job:
        for number, point in enumerate(points):
            at = _wait(stream, job, point)
            kill_hard(wait_until(partial(runner_of, job.directory), what="the runner lives"))
            found.kills.append((point, RUNNER, at))
            if number == 0:
                stream.send_rest()
        job.wait_output(path, stream.rows + stream.records, deadline_s=_EACH_S)
        job.wait_all_joined()
        _check_rows(rig, stream, path, found)
        newest = job.pins.newest()
        pins = [] if newest is None else [job.pins.read(n) for n in range(newest.batch + 1)]
        mixed = [
            p.batch for p in pins if p is not None and FILES in p.ranges() and len(p.ranges()) > 1
        ]
        found.told += [f"batches {mixed[:5]} have rows of files and records"] if mixed else []


def _wait(stream: ClickStream, job: RunningJob, share: float) -> float:
    deadline = time.monotonic() + _EACH_S
    while (done := stream.done(job)) < share:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{share} of the way, at {done}: {job.status()}")
        time.sleep(0.005)
    return done


def _check_rows(rig: Rig, stream: ClickStream, path: str, found: Round) -> None:
    rows = rig.rows(path)
    counted = Counter(row["item_id"] for row in rows)
    expected = range(stream.rows + stream.records)
    found.lost += len(set(expected) - counted.keys())
    found.duplicate += sum(count - 1 for count in counted.values())
    found.early += sum(item not in expected for item in counted)
    found.wrong += sum(not _is_right(stream, row) for row in rows)


def _is_right(stream: ClickStream, row: dict[str, object]) -> bool:
    item = row["item_id"]
    assert isinstance(item, int)
    user = item % _USERS
    name = None if user == _USERS - 1 else f"user {user}"
    of_files = item < stream.rows
    topic = f"history:{stream.topic}" if of_files else stream.topic
    at_item = not of_files or row["_offset"] == item
    return row["name"] == name and row["_topic"] == topic and at_item
