"""A stream of files and then of a topic, whose runner is killed around the seam of the two.

The files have the first items. Of the topic, older records lie before the start that the
declaration names; behind the start it has the next items, half of them from the beginning on and
the rest after the first kill. Each runner pins a batch before it is killed, a random moment later.
In the end each item must have one row, under its coordinates, and no older record any. No batch may
have rows of the files and records of the topic.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from joins.durable.pins import Pin
from joins.plan.stream_topics import FILES
from tests.reliability.copied import recorded_rows
from tests.reliability.experiment import Lab
from tests.reliability.processes import kill_hard, runner_of
from tests.reliability.rounds import Round
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
_ROW_GROUPS = 4  # of a file at the least
_EACH_S = 600.0
_BATCHES_A_KILL = 10  # of the files
_LATEST_S = 0.3  # of a kill behind a pin: about a batch
_LOOK_S = 0.02


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
            items = np.arange(first, min(first + each, self.rows))
            columns = {"item_id": pa.array(items), "user_id": pa.array(items % _USERS)}
            # paths are in another order than the items
            path = directory / f"{self.rows - first:012}.parquet"
            pq.write_table(pa.table(columns), path, row_group_size=max(1, each // _ROW_GROUPS))

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

    def pinned(self, pin: Pin) -> int:
        """Rows of the files and records of the topic that are in batches up to `pin`."""
        offsets = {FILES: 0, **self.start}
        return sum(pin.end_offsets.get(p, start) - start for p, start in offsets.items())


def run_stream_round(
    lab: Lab, rig: Rig, size: tuple[int, int, int], kills: int, found: Round
) -> None:
    stream, path = ClickStream(rig, *size), unique_name("stream")
    batch, moments = stream.rows // (_BATCHES_A_KILL * kills), lab.random("stream")
    done = -1  # newest batch behind the last kill
    with rig.job(stream.statement(rig, path, batch)) as job:
        for number, point in enumerate(_points(stream, batch, kills)):
            at = _wait(stream, job, point, done)
            time.sleep(moments.uniform(0, _LATEST_S))
            kill_hard(wait_until(partial(runner_of, job.directory), what="the runner lives"))
            done = _newest_batch(job)
            found.kills.append((point, RUNNER, at))
            lab.say(f"killed at {at:,} rows")
            if number == 0:
                stream.send_rest()
        job.wait_all_joined()
        wait_until(
            lambda: recorded_rows(rig, path) >= stream.rows + stream.records,
            deadline_s=_EACH_S,
            what="all rows",
        )
        job.wait_all_joined()
        _check_rows(rig, stream, path, found)
        pins = [job.pins.read(number) for number in range(_newest_batch(job) + 1)]
        mixed = [
            p.batch for p in pins if p is not None and FILES in p.ranges() and len(p.ranges()) > 1
        ]
        found.told += [f"batches {mixed[:5]} have rows of files and records"] if mixed else []


def _newest_batch(job: RunningJob) -> int:
    pin = job.pins.newest()
    return -1 if pin is None else pin.batch


def _points(stream: ClickStream, batch: int, kills: int) -> list[int]:
    """How many rows are pinned at each kill: a fifth at the batches around the seam.

    Of the others half are in the files, and half in the topic.
    """
    near = max(1, kills // 5)
    around = [stream.rows + batch * (number - near // 2) for number in range(near)]
    files = (kills - near + 1) // 2
    before = [stream.rows * (number + 1) // (files + 1) for number in range(files)]
    topic = kills - near - files
    behind = [stream.records * (number + 1) // (topic + 1) for number in range(topic)]
    return sorted([*before, *around, *(stream.rows + records for records in behind)])


def _wait(stream: ClickStream, job: RunningJob, point: int, behind: int) -> int:
    """The rows that are pinned: at least `point`, in a batch after `behind`, or all."""
    deadline, at = time.monotonic() + _EACH_S, 0
    while time.monotonic() < deadline:
        pin = job.pins.newest()
        if pin is not None:
            at = stream.pinned(pin)
            if at == stream.rows + stream.records or (at >= point and pin.batch > behind):
                return at
        time.sleep(_LOOK_S)
    raise TimeoutError(f"{point:,} rows, at {at:,}: {job.status()}")


def _check_rows(rig: Rig, stream: ClickStream, path: str, found: Round) -> None:
    """Count each item, and judge each row, a part of the output after the other."""
    expected = stream.rows + stream.records
    seen = np.zeros(expected, np.uint8)
    dataset = DeltaTable(str(rig.output(path))).to_pyarrow_dataset()
    for batch in dataset.to_batches(columns=["item_id", "name", "_topic", "_offset"]):
        items = batch.column("item_id").to_numpy()
        is_expected = (items >= 0) & (items < expected)
        found.early += int((~is_expected).sum())
        own, counts = np.unique(items[is_expected], return_counts=True)
        seen[own] += counts.astype(np.uint8)
        found.wrong += int((~_are_right(stream, batch, items)).sum())
    found.lost += int((seen == 0).sum())
    found.duplicate += int(np.maximum(seen.astype(np.int64) - 1, 0).sum())


def _are_right(
    stream: ClickStream, batch: pa.RecordBatch, items: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    names = pa.array([*(f"user {n}" for n in range(_USERS - 1)), ""])
    topics = pa.array([stream.topic, f"history:{stream.topic}"])
    of_files = items < stream.rows
    expected = pc.take(topics, pa.array(of_files.astype(np.int64)))
    checks = (
        pc.equal(pc.fill_null(batch.column("name"), ""), pc.take(names, pa.array(items % _USERS))),
        pc.equal(batch.column("_topic"), expected),
        pa.array(~of_files | (batch.column("_offset").to_numpy() == items)),
    )
    right = [each.to_numpy(zero_copy_only=False) for each in checks]
    return np.array(np.logical_and.reduce(right), np.bool_)
