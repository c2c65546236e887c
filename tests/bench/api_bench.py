"""`api`: what the control plane answers, and how fast, while a job joins 1,000 records/s.

100 requests a second are sent at fixed times, whether earlier ones are answered or not; a time
counts from the moment when its request was due. One in fifty creates a job, with all checks of
Kafka and the database; the others read. Created jobs stay, so that the lists grow.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import psutil

from service.embedded.process import free_port
from tests.bench.measure import Bar, Measure, Sense, Sizes, quantile
from tests.bench.place import CORES, Place
from tests.bench.plane_process import plane_process
from tests.bench.shop import BLACKHOLE, Clicks, Stream, join_sql, users
from tests.bench.subject import Subject
from tests.support.rig import Rig, RunningJob, rig_settings

RECORDS, DIM = 180_000, 100_000
PER_S, _CREATED_EVERY, _WORKERS = 100, 50, 25
_RECORDS_PER_S = 1_000
_NAME = "api-bench"
_CREATION = Bar(Sense.VALUE_AT_MOST, 100.0)
_READS = Bar(Sense.VALUE_AT_MOST, 50.0)
_RESIDENT = Bar(Sense.VALUE_AT_MOST, 250.0)


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: a body makes it a POST.

    Attributes:
        kind: what its time is counted under.
    """

    kind: str
    path: str
    body: bytes | None = None


@dataclass
class Load:
    """Requests at fixed times, from many connections.

    Attributes:
        asks: the n-th request.
        took_ms: times by kind of request.
    """

    port: int
    asks: Callable[[int], Ask]
    per_s: int = PER_S
    workers: int = _WORKERS
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    _errors: list[BaseException] = field(default_factory=list)

    def run(self, requests: int) -> None:
        """Send so many requests and wait for their answers.

        Raises:
            RuntimeError: an answer was no success.
        """
        begin = time.monotonic() + 0.1
        threads = [
            threading.Thread(target=self._work, args=(begin, range(first, requests, self.workers)))
            for first in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, begin: float, numbers: Sequence[int]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            for number in numbers:
                due = begin + number / self.per_s
                time.sleep(max(0.0, due - time.monotonic()))
                ask = self.asks(number)
                _answered(connection, ask)
                took_ms = (time.monotonic() - due) * 1_000
                self.took_ms.setdefault(ask.kind, []).append(took_ms)
        except BaseException as error:
            self._errors.append(error)
        finally:
            connection.close()


def _answered(connection: http.client.HTTPConnection, ask: Ask) -> None:
    method = "GET" if ask.body is None else "POST"
    headers = {"Content-Type": "application/json"} if ask.body else {}
    connection.request(method, ask.path, ask.body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status not in (200, 201):
        raise RuntimeError(f"{method} {ask.path}: {answer.status} {text[:300]!r}")


def asks_of(job_id: str, sql: str) -> Callable[[int], Ask]:
    """Reads of the job and of the list, and now and then a new job."""
    job = f"/v1/jobs/{job_id}"
    reads = (job, f"{job}/watermarks", f"{job}/events?limit=20", "/v1/jobs?limit=50")
    names = count()

    def ask(number: int) -> Ask:
        if number % _CREATED_EVERY == 0:
            body = json.dumps({"sql": sql, "name": f"created-{next(names)}"}).encode()
            return Ask("create", "/v1/jobs", body)
        return Ask("read", reads[number % len(reads)])

    return ask


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """`records` are those of all runs together, 1,000 a second."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    requests = records * PER_S // _RECORDS_PER_S // sizes.runs
    create, read, resident = [], [], []
    with _joining(place, dim) as (subject, plane), Clicks(subject.stream, dim, _RECORDS_PER_S):
        asks = asks_of(subject.job.id, _created_sql(subject))
        port = subject.rig.settings.port
        Load(port, asks).run(PER_S)
        for _ in range(sizes.runs):
            load = Load(port, asks)
            load.run(requests)
            create.append(quantile(load.took_ms["create"], 0.99))
            read.append(quantile(load.took_ms["read"], 0.99))
            resident.append(plane.memory_info().rss / 1e6)
            place.say(f"ms and MB: {_told(load)}, resident {resident[-1]:.0f}")
        status = subject.job.status()
        if status["state"] != "JOINING":
            raise RuntimeError(f"the job was {status['state']}: {status['reason']}")
        jobs = len(subject.rig.get("/v1/jobs?limit=500")["items"])
    size = f"{PER_S} requests/s, {_RECORDS_PER_S:,} records/s, {requests // PER_S} s a run"
    full = records >= RECORDS and dim >= DIM
    facts = {"jobs": jobs}
    return [
        Measure("reads, p99", "ms", size, full, read, bar=_READS, facts=facts),
        Measure("creation of a job, p99", "ms", size, full, create, bar=_CREATION, facts=facts),
        Measure("control plane, resident", "MB", size, full, resident, bar=_RESIDENT, facts=facts),
    ]


def _told(load: Load) -> str:
    parts = []
    for kind, took in sorted(load.took_ms.items()):
        shares = " ".join(f"{quantile(took, share):.0f}" for share in (0.5, 0.9, 0.99, 1.0))
        parts.append(f"{kind} p50 p90 p99 max {shares}")
    return ", ".join(parts)


def _created_sql(subject: Subject) -> str:
    assert subject.table is not None
    return join_sql(subject.rig, subject.table, subject.stream.topic, BLACKHOLE)


@contextmanager
def _joining(place: Place, dim: int) -> Iterator[tuple[Subject, psutil.Process]]:
    """A control plane in a process of its own, and a job on it whose gate is open."""
    stream = Stream(place.kafka)
    with users(place.mariadb, dim) as table, _plane(place) as (rig, process):
        answer = rig.post_job(join_sql(rig, table, stream.topic, BLACKHOLE), _NAME)
        answer.raise_for_status()
        job = RunningJob(rig, answer.json()["id"])
        subject = Subject(place, rig, job, stream, table)
        subject.wait_open()
        place.say("the gate is open")
        yield subject, process


@contextmanager
def _plane(place: Place) -> Iterator[tuple[Rig, psutil.Process]]:
    given = {
        "port": free_port(),
        "spark_driver_memory": place.driver_memory,
        "spark_master": f"local[{CORES},4]",
        "spark_conf": {},
        "fold_interval_s": 30.0,
        "runner_hang_report_s": 3_600.0,  # what stands for a runner never says a word
    }
    settings = rig_settings(place.new("rig"), place.kafka, **given)
    handed = settings.model_dump(mode="json", include={*given, "data_dir", "warehouse_dir"})
    handed["kafka_bootstrap_servers"] = settings.kafka_bootstrap_servers
    variables = {
        f"SLUICE_{name.upper()}": json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in handed.items()
    }
    with plane_process(_NAME, settings.port, variables) as (client, process):
        yield Rig(settings, client, place.kafka, place.mariadb), process
