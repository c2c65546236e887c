"""`history`: rows of files before a topic against the same rows in the topic.

Of a table: from a running Spark to the open gate. Of a stream: rows a second through a join. Where
the files have all rows, the topic begins empty.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from tests.bench.batches import pinned_times, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import (
    BLACKHOLE,
    PARTITIONS,
    USERS_DDL,
    Paced,
    Stream,
    clicks_of,
    delta_output,
    join_sql,
)
from tests.bench.snapshot_bench import spark_up_ms
from tests.bench.subject import Subject, submitted
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig
from tests.support.topics import create_topic, unique_name

DIM = 5_000_000
RECORDS = 12_000_000  # of the stream: seconds of it are measured
_USERS = 100_000
_FILES = 16
_BATCHES = 24
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class KeyedUsers:
    """Users 1 to `rows` of a topic by key, or of files that its `options` name as its history."""

    servers: str
    topic: str
    rows: int
    options: tuple[str, ...] = ()

    def declared(self) -> str:
        further = "".join(f", {option}" for option in self.options)
        return (
            f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='upsert-kafka', "
            f"'topic'='{self.topic}', 'key.format'='json', 'value.format'='json', "
            f"'properties.bootstrap.servers'='{self.servers}'{further});"
        )

    def changes(self, per_second: int = 1_000) -> Paced:
        raise NotImplementedError("its rows stay as they are")


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    dim = sizes.dim or DIM
    with place.rig() as rig:
        tables = {"files": _by_files(place, rig, dim), "topic": _by_topic(place, dim)}
        opened: dict[str, list[float]] = {name: [] for name in tables}
        for run in range(sizes.runs):
            sides = list(tables.items())
            for name, table in sides if run % 2 == 0 else reversed(sides):
                opened[name].append(_opened_s(place, rig, table))
                place.say(f"{dim:,} rows by {name}: {opened[name][-1]:.1f} s")
        records = sizes.records or RECORDS
        rates = _stream_rates(place, records, sizes.runs)
    return [
        Measure(
            "stream of files, by the same rows of a topic",
            "M rows/s",
            f"{records:,} rows",
            records >= RECORDS,
            rates["files"],
            rates["topic"],
            bar=Bar(Sense.RATIO_AT_LEAST, 0.8),
        ),
        Measure(
            "rows of files to open gate, Spark up, by those of a topic",
            "s",
            f"{dim:,} rows",
            dim >= DIM,
            opened["files"],
            opened["topic"],
            bar=Bar(Sense.RATIO_AT_MOST, 0.5),
        ),
    ]


def _stream_rates(place: Place, records: int, runs: int) -> dict[str, list[float]]:
    """Millions of rows a second from the third batch on, of files and of a topic."""
    rates: dict[str, list[float]] = {"files": [], "topic": []}
    full = Stream(place.kafka)
    full.append(records, clicks_of(_USERS))
    with place.rig(max_records_per_batch=max(1, records // _BATCHES)) as rig:
        users = _by_files(place, rig, _USERS)
        directory = unique_name("clicks")
        _write_clicks(rig.output(directory), records)
        for run in range(runs):
            empty = Stream(place.kafka)
            options = (
                "'history.connector'='filesystem'",
                f"'history.path'='{directory}'",
                "'history.format'='parquet'",
            )
            sides = (("files", empty.topic, options), ("topic", full.topic, ()))
            for name, topic, own in sides if run % 2 == 0 else reversed(sides):
                output = delta_output(unique_name("joined"))
                with rig.job(join_sql(rig, users, topic, output, own)) as job:
                    subject = Subject(place, rig, job, full, users)
                    subject.wait_drained()
                    job.stop()
                    times = pinned_times(subject.checkpoint)
                    rates[name].append(records_per_second(times) / 1e6)
                place.say(f"{records:,} rows of {name}: {rates[name][-1]:.3f} M rows/s")
    return rates


def _write_clicks(directory: Path, records: int) -> None:
    """The rows that `clicks_of` makes, as `_FILES` files."""
    directory.mkdir(parents=True)
    step = -(-records // _FILES)
    for first in range(0, records, step):
        values = clicks_of(_USERS)(range(first, min(first + step, records)))
        rows = pj.read_json(pa.py_buffer(b"\n".join(values)))
        pq.write_table(rows, directory / f"{first:010}.parquet")


def _opened_s(place: Place, rig: Rig, table: KeyedUsers) -> float:
    with submitted(place, rig, table, Stream(place.kafka), BLACKHOLE) as subject:
        opened_at_ms = int(subject.wait_open()["opened_at_ms"])
        return (opened_at_ms - spark_up_ms(subject)) / 1_000


def _by_files(place: Place, rig: Rig, rows: int) -> KeyedUsers:
    name = unique_name("users")
    _write_files(rig.output(name), rows)
    topic = create_topic(place.kafka.bootstrap_servers, partitions=PARTITIONS)
    history = (
        "'history.connector'='filesystem'",
        f"'history.path'='{name}'",
        "'history.format'='parquet'",
    )
    return KeyedUsers(place.kafka.bootstrap_servers, topic, rows, history)


def _write_files(directory: Path, rows: int) -> None:
    directory.mkdir(parents=True)
    step = -(-rows // _FILES)
    for first in range(1, rows + 1, step):
        ids = range(first, min(first + step, rows + 1))
        columns = {
            "user_id": pa.array(ids, pa.int64()),
            "gender": pa.array(["F" if user % 2 else "M" for user in ids], pa.string()),
            "name": pa.array([f"user {user}" for user in ids], pa.string()),
            "changed_ms": pa.nulls(len(ids), pa.int64()),
        }
        pq.write_table(pa.table(columns), directory / f"{first:010}.parquet")


def _by_topic(place: Place, rows: int) -> KeyedUsers:
    servers = place.kafka.bootstrap_servers
    table = KeyedUsers(servers, create_topic(servers, partitions=PARTITIONS), rows)
    with BulkProducer(servers, table.topic) as producer:
        for first in range(1, rows + 1, _AT_ONCE):
            keys: dict[int, list[bytes]] = {p: [] for p in range(PARTITIONS)}
            values: dict[int, list[bytes]] = {p: [] for p in range(PARTITIONS)}
            for user in range(first, min(first + _AT_ONCE, rows + 1)):
                gender = b"F" if user % 2 else b"M"
                keys[user % PARTITIONS].append(b'{"user_id":%d}' % user)
                values[user % PARTITIONS].append(
                    b'{"user_id":%d,"gender":"%s","name":"user %d","changed_ms":null}'
                    % (user, gender, user)
                )
            producer.send(values, keys)
    return table
