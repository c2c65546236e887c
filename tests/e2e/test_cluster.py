"""Three jobs on a standalone Spark cluster of three machines that share nothing but a store.

The project comes to the executors by `spark.archives`. A machine is lost with its disk while
records flow, and the store is away for a while; each record is counted once all the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from joins.adapters.delta.versions import delta_options
from joins.adapters.store_path import StorePath
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from tests.support.object_store import ObjectStore, object_store
from tests.support.rig import SMALL, Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.standalone import (
    EXECUTOR,
    NODE_DISK,
    Cluster,
    Node,
    NodeWorld,
    executor_conf,
    packed_wheel,
    running_cluster,
)
from tests.support.topics import consume_json, create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
WORKER = "joins.worker.daemon"
PARTITIONS, MACHINES, PART = 3, 3, 4_000
MINUTE_S = 60
VISITS = "item STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
COUNTS = """SET 'table.exec.emit.allow-lateness' = '1 h';
{visits}
CREATE TABLE counts (start TIMESTAMP(3), item STRING, n BIGINT,
    PRIMARY KEY (start, item) NOT ENFORCED) WITH ('connector'='delta', 'path'='{path}/counts');
INSERT INTO counts SELECT window_start, item, COUNT(*)
FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, item;
"""
RATES = (
    "CREATE TABLE rates (item VARCHAR(9) PRIMARY KEY, rate INT, since DATETIME(3))",
    "INSERT INTO rates WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 6)"
    " SELECT CONCAT('item ', i), 1, '2024-01-01 00:00:00' FROM n",
)
RATED = (
    "INSERT INTO rated SELECT v.ts, v.item, r.rate FROM visits AS v "
    "LEFT JOIN rates FOR SYSTEM_TIME AS OF v.ts AS r ON v.item = r.item;"
)
SECOND_RATE_AT = 6_000  # seconds behind the first one


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Its login is in the environment, as it is in that of each machine."""
    with object_store() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@dataclass(frozen=True)
class Place:
    """A control plane, the machines, and the store with the warehouse."""

    rig: Rig
    cluster: Cluster
    store: ObjectStore

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Of a table in the warehouse; none while it is not there."""
        root = self.store.path(f"lake/{path}")
        try:
            return loaded(root).to_pyarrow_table().to_pylist()
        except TableNotFoundError:
            return []

    def joining_node(self, job: RunningJob) -> Node:
        return next(n for n in self.cluster.nodes if (n.directory / "index" / job.id).exists())


def loaded(path: StorePath) -> DeltaTable:
    return DeltaTable(str(path), storage_options=delta_options(path))


@pytest.fixture
def cluster(
    tmp_path: Path, java: Java, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """Its machines do not see what is in `rig`, nor the project."""
    data = tmp_path / "rig"
    data.mkdir()
    monkeypatch.setenv(NODE_DISK, str(data))
    world = NodeWorld((data,), store.environment)
    with running_cluster(tmp_path / "machines", java, world, workers=MACHINES) as machines:
        yield machines


@pytest.fixture
def place(
    tmp_path: Path, cluster: Cluster, kafka: KafkaBroker, mariadb: MariaDb, store: ObjectStore
) -> Iterator[Place]:
    archive = packed_wheel(tmp_path / "rig" / "wheel")
    given = {
        "spark_master": cluster.master,
        "spark_conf": {**SMALL, **executor_conf(archive)},
        "warehouse": f"s3://{store.bucket}/lake",
        "index_dir": Path(f"{{{NODE_DISK}}}/index"),
        "runners": "shared",
    }
    with running_rig(tmp_path / "rig", kafka, mariadb, **given) as rig:
        yield Place(rig, cluster, store)


def test_machines_that_share_only_a_store_count_each_record_once_whoever_is_lost(
    place: Place, kafka: KafkaBroker, mariadb: MariaDb
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("machines")
    clicks, visits, rated = (create_topic(servers, partitions=PARTITIONS) for _ in range(3))
    flow = Flow(servers, clicks, visits, rated)
    with new_schema(mariadb, USERS, fill_users(1_000), *RATES) as schema:
        script = enrich_sql(place.rig, schema, clicks, f"{path}/enriched")
        assert_refused(place.rig, script, f"{path}/enriched")
        limited = script.replace("'format'='json'", "'format'='json', " + LIMIT)
        windows = COUNTS.format(visits=visits_table(place.rig, visits, path), path=path)
        with (
            place.rig.job(limited) as joining,
            place.rig.job(windows) as counting,
            place.rig.job(rating_script(place.rig, schema, flow)) as rating,
        ):
            jobs = Jobs(place, path, joining, counting, rating)
            joining.wait_state("JOINING", deadline_s=300)
            rating.wait_state("JOINING", deadline_s=300)
            flow.send()
            jobs.wait_for_rows(PART // 2)
            assert_workers_are_alone(place)
            flow.send()
            place.joining_node(joining).lose()
            change_rates(mariadb, schema, rate=2, second=SECOND_RATE_AT)
            jobs.wait_for(flow)
            flow.send()
            change_rates(mariadb, schema, rate=3, second=10 * SECOND_RATE_AT)
            jobs.miss_the_store()
            flow.send_late("late", second=0)
            jobs.wait_for(flow)
            jobs.check_rows(flow)
            jobs.check_rates(flow)
            wait_until(lambda: len(place.rows(f"{path}/late")) == 1, what="the late record")
            for job in jobs.all:
                assert job.status()["epoch"] == 1, "a lost machine costs tasks, not the runner"
                wait_until(partial(is_swept, place, job), what="nothing stays between batches")
    for job in jobs.all:
        assert place.store.keys(f"lake/_sluice/jobs/{job.id}") == []


@dataclass(frozen=True)
class Jobs:
    """The three jobs, whose tables are below `path`."""

    place: Place
    path: str
    joining: RunningJob
    counting: RunningJob
    rating: RunningJob

    @property
    def all(self) -> tuple[RunningJob, ...]:
        return self.joining, self.counting, self.rating

    def wait_for(self, flow: "Flow") -> None:
        self.wait_for_rows(flow.sent)
        self.counting.wait_for(
            lambda _: self.counts() == flow.complete, "the windows that ended", deadline_s=300
        )

    def miss_the_store(self) -> None:
        """It is away until all jobs tell so."""
        self.place.store.close()
        for job in self.all:
            job.wait_state("STALLED")
        self.place.store.start()

    def wait_for_rows(self, rows: int) -> None:
        path = f"{self.path}/enriched"
        self.joining.wait_for(
            lambda _: len(self.place.rows(path)) >= rows, f"{rows} rows", deadline_s=300
        )

    def counts(self) -> dict[tuple[int, str], int]:
        rows = self.place.rows(f"{self.path}/counts")
        keys = [(row["start"].hour * 60 + row["start"].minute, row["item"]) for row in rows]
        assert len(keys) == len(set(keys)), "a window has one row"
        return dict(zip(keys, (row["n"] for row in rows), strict=True))

    def check_rows(self, flow: "Flow") -> None:
        names = ("item_id", "user_id", "gender", "name")
        rows = self.place.rows(f"{self.path}/enriched")
        assert sorted(tuple(row[n] for n in names) for row in rows) == [
            expected(number) for number in range(flow.sent)
        ]

    def check_rates(self, flow: "Flow") -> None:
        """Readers of committed records see each visit once, with the rate of its time."""
        self.rating.wait_for(
            lambda _: len(flow.rated_visits()) >= len(flow.passed), "the rates", deadline_s=300
        )
        found = flow.rated_visits()
        assert Counter(found) == Counter(set(found)), "a visit was joined twice"
        late = {row for row in found if row[1] == "late"}
        every = {rated_visit(number) for number in range(flow.sent)}
        wrong = sorted(set(found) - late - every, key=str)
        assert not wrong, f"{len(wrong)} rows are wrong: {wrong[:5]}"
        assert set(flow.passed) <= set(found)


LIMIT = "'scan.max-records-per-batch'='1000'"


@dataclass
class Flow:
    """What is sent: the same number of clicks and of visits each time, in three partitions."""

    servers: str
    clicks: str
    visits: str
    rated: str
    sent: int = 0

    def send(self) -> None:
        """A part more; visits are a second apart."""
        numbers = range(self.sent, self.sent + PART)
        produce(self.servers, self.clicks, [click(n % 1_500, n) for n in numbers])
        for partition in range(PARTITIONS):
            mine = [visit(n) for n in numbers if n % PARTITIONS == partition]
            produce(self.servers, self.visits, mine, partition=partition)
        self.sent += PART

    def send_late(self, item: str, *, second: int) -> None:
        values = [{"item": item, "ts": time_of(second)}]
        produce(self.servers, self.visits, values, partition=0)

    @property
    def complete(self) -> dict[tuple[int, str], int]:
        """The windows, by their minute, that have ended for every partition, and their counts."""
        counts = Counter((n // MINUTE_S, item_of(n)) for n in range(self.sent))
        last = (self.sent - PARTITIONS) // MINUTE_S
        return {window: n for window, n in counts.items() if window[0] < last}

    @property
    def passed(self) -> list[tuple[str, str, int | None]]:
        return [rated_visit(number) for number in range(self.sent - PARTITIONS + 1)]

    def rated_visits(self) -> list[tuple[str, str, int | None]]:
        rows = consume_json(self.servers, self.rated)
        return [(row["ts"].removesuffix(".000000"), row["item"], row["rate"]) for row in rows]


def visits_table(rig: Rig, topic: str, path: str) -> str:
    options = (f"'late-records.path'='{path}/late'", "'scan.max-records-per-batch'='1500'")
    return kafka_table(rig.kafka, "visits", topic, VISITS, options)


def rating_script(rig: Rig, schema: str, flow: Flow) -> str:
    once = ("'sink.delivery-guarantee'='exactly-once'", "'sink.transactional-id-prefix'='rates'")
    rates = "item STRING, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since, "
    return (
        kafka_table(rig.kafka, "visits", flow.visits, VISITS)
        + cdc_table(rig.mariadb, schema, "rates", rates + "PRIMARY KEY (item) NOT ENFORCED")
        + kafka_table(
            rig.kafka, "rated", flow.rated, "ts TIMESTAMP(3), item STRING, rate INT", once
        )
        + RATED
    )


def change_rates(mariadb: MariaDb, schema: str, *, rate: int, second: int) -> None:
    since = f"TIMESTAMPADD(SECOND, {second}, '2024-01-01 00:00:00')"
    run_sql(mariadb, f"UPDATE rates SET rate = {rate}, since = {since}", schema=schema)


def rated_visit(number: int) -> tuple[str, str, int | None]:
    return time_of(number), item_of(number), 1 if number < SECOND_RATE_AT else 2


def visit(number: int) -> dict[str, Any]:
    return {"item": item_of(number), "ts": time_of(number)}


def item_of(number: int) -> str:
    return f"item {number % 7}"


def time_of(second: int) -> str:
    hours, rest = divmod(second, 3_600)
    return f"2024-01-01 {hours:02}:{rest // 60:02}:{rest % 60:02}"


def expected(number: int) -> tuple[int, int, str | None, str | None]:
    """The row of record `number`: users 1 to 1,000 exist."""
    user = number % 1_500
    if not 1 <= user <= 1_000:
        return number, user, None, None
    return number, user, "F" if user % 2 else "M", f"user {user}"


def assert_refused(rig: Rig, script: str, path: str) -> None:
    local = rig.post_job(script.replace(path, str(rig.settings.warehouse_dir / "out")))
    assert (local.status_code, "do not share" in local.text) == (422, True), local.text


def assert_workers_are_alone(place: Place) -> None:
    """Each machine runs what came in the archive, and sees neither ours nor the data directory."""
    for node in place.cluster.nodes:
        (executor,) = node.running(EXECUTOR)
        workers = node.running(WORKER)
        assert workers, f"{node.directory} has no Python workers"
        for process in (executor, *workers):
            assert not list(seen_by(process, place.rig.settings.data_dir).iterdir())
        assert (seen_by(executor, Path(executor.cwd())) / "sluice" / "joins").is_dir()
        assert all("sluice" in each.environ()["PYTHONPATH"].split(":") for each in workers)


def seen_by(process: psutil.Process, path: Path) -> Path:
    return Path(f"/proc/{process.pid}/root{path}")


def is_swept(place: Place, job: RunningJob) -> bool:
    return place.store.keys(f"lake/_sluice/jobs/{job.id}/exchange") == []
