"""`latency`: from the send of a record to its row in the output topic, the build side idle.

The broker stamps the rows (`LogAppendTime`), the records carry the producer's clock, and all run on
one machine. The reference passes records from topic to topic: no join, no pin. It does so in
micro-batches, and again in real-time mode. Two more parts have none: the table changes 1,000
times a second, and a Delta table is the output, where a row is there once the entry of its commit
is in the log.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
import pyarrow.parquet as pq

from joins.adapters.delta.log import DeltaLog, added_files
from tests.bench.measure import Bar, Measure, Sense, Sizes, quantile
from tests.bench.place import Place
from tests.bench.shop import Clicks, Output, Stream, delta_output, kafka_output, now_ms, users
from tests.bench.spark_side import Reference, Work
from tests.bench.subject import Subject, opened_and_stopped
from tests.support.topics import consume, end_offsets
from tests.support.wait import wait_until

RECORDS, DIM = 180_000, 1_000_000
_BARS = {1_000: 0.7, 10_000: 0.8}  # by records/s
_ALONE = {  # ms at p50 and p99, of what has no reference
    "Kafka to Kafka, 1,000 changes/s": (35, 120),
    "Kafka to Delta": (120, 300),
}
_FEWEST = min(_BARS)
_WARM_UP = 1 / 3
_STAMPED = {"message.timestamp.type": "LogAppendTime"}
Arrival = tuple[int, float]
"""When a record was sent and when its row was there, in epoch milliseconds."""


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """`records` are those of all runs at the lower rate; a third of each is left out as warm-up."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    seconds = records / _FEWEST / sizes.runs / 2
    full = records >= RECORDS and dim >= DIM
    measures: list[Measure] = []

    def add(
        kind: str,
        per_s: int,
        quantiles: dict[str, list[tuple[float, float]]],
        limits: Sequence[Bar],
    ) -> None:
        size = f"{per_s:,} records/s, {dim:,} rows, {seconds:.0f} s a run"
        for at, name in enumerate(("p50", "p99")):
            columns = ([each[at] for each in quantiles.get(side, ())] for side in ("ours", "spark"))
            title = f"latency {name}, {kind}"
            measures.append(Measure(title, "ms", size, full, *columns, limits[at]))

    with _sides(place, dim) as sides:
        for per_s, limit in _BARS.items():
            three = {name: sides[name] for name in ("spark", "real time", "ours")}
            quantiles = _quantiles(place, three, sizes.runs, (per_s, seconds))
            add("Kafka to Kafka", per_s, quantiles, [Bar(Sense.RATIO_AT_MOST, limit)] * 2)
            of_real_time = {"ours": quantiles["ours"], "spark": quantiles["real time"]}
            ahead = [Bar(Sense.RATIO_AT_MOST, 1.0)] * 2
            add("Kafka to Kafka, against real-time mode", per_s, of_real_time, ahead)
        for kind, limits in _ALONE.items():
            quantiles = _quantiles(place, {"ours": sides[kind]}, sizes.runs, (_FEWEST, seconds))
            add(kind, _FEWEST, quantiles, [Bar(Sense.VALUE_AT_MOST, each) for each in limits])
    return measures


def _quantiles(
    place: Place, sides: dict[str, "Side"], runs: int, load: tuple[int, float]
) -> dict[str, list[tuple[float, float]]]:
    """p50 and p99 of each run of the sides, under so many records/s for so many seconds."""
    quantiles: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            took = side.run(*load)
            quantiles[name].append((quantile(took, 0.5), quantile(took, 0.99)))
        newest = {name: tuple(map(round, each[-1])) for name, each in quantiles.items()}
        place.say(f"{load[0]:,} records/s, p50 and p99 in ms: {newest}")
    return quantiles


@dataclass(frozen=True)
class Side:
    """Ours or the reference: what it reads, what has arrived, and how to let it run."""

    stream: Stream
    dim: int
    running: Callable[[], AbstractContextManager[None]]
    rows: Callable[[], int]
    arrivals: Callable[[], Sequence[Arrival]]
    meanwhile: Callable[[], AbstractContextManager[object]] = nullcontext

    def run(self, per_s: int, seconds: float) -> list[float]:
        """The latency of each record behind the warm-up, in milliseconds."""
        rows, sent = self.rows(), self.stream.sent
        with self.running():
            with self.meanwhile(), Clicks(self.stream, self.dim, per_s):
                wait_until(lambda: self.rows() > rows, deadline_s=180, what="a row")
                began_ms = now_ms()
                _pass(seconds)
            until_ms = now_ms()
            due = rows + self.stream.sent - sent
            wait_until(lambda: self.rows() >= due, what="all rows")
        from_ms = began_ms + seconds * 1_000 * _WARM_UP
        return [at - sent for sent, at in self.arrivals() if from_ms <= sent < until_ms]


def _pass(seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until, deadline_s=seconds + 60)


@dataclass(frozen=True)
class _Topic:
    """An output topic, whose broker stamps its rows."""

    servers: str
    name: str

    def rows(self) -> int:
        return sum(end_offsets(self.servers, self.name).values())

    def arrivals(self) -> list[Arrival]:
        rows = consume(self.servers, self.name, deadline_s=300)
        return [(orjson.loads(row.value)["sent_ms"], row.timestamp) for row in rows]


def _in_table(path: Path) -> list[Arrival]:
    """A row is there when the entry of its commit is."""
    versions = DeltaLog(path, "bench").versions
    arrivals: list[Arrival] = []
    for version in range(versions.oldest_entry(), versions.version() + 1):
        at_ms = (path / "_delta_log" / f"{version:020d}.json").stat().st_mtime_ns / 1e6
        for added in added_files(versions.commit_entry(version)):
            sent = pq.read_table(path / added["path"], columns=["sent_ms"])
            arrivals += [(each, at_ms) for each in sent.column(0).to_pylist()]
    return arrivals


@contextmanager
def _sides(place: Place, dim: int) -> Iterator[dict[str, Side]]:
    """Ours and the reference each have own topics: neither finds what the other has left."""
    servers = place.kafka.bootstrap_servers
    ours, theirs, at_once, of_table = (Stream(place.kafka) for _ in range(4))
    topics = [_Topic(servers, Stream(place.kafka, _STAMPED).topic) for _ in range(3)]
    with ExitStack() as stack:
        table, rig = (
            stack.enter_context(users(place.mariadb, dim)),
            stack.enter_context(place.rig()),
        )
        path = rig.output("clicks")

        def job(stream: Stream, output: Output) -> Subject:
            return stack.enter_context(opened_and_stopped(place, rig, table, stream, output))

        def reference(stream: Stream, to: _Topic, *, real_time: bool) -> Side:
            sink = "kafka", {"kafka.bootstrap.servers": servers, "topic": to.name}

            def running() -> AbstractContextManager[None]:
                work = Work(stream, dict(stream.ends), None, sink, real_time=real_time)
                return Reference(place, work).following()

            return Side(stream, dim, running, to.rows, to.arrivals)

        to_topic = job(ours, kafka_output(place.kafka, topics[0].name))
        to_table = job(of_table, delta_output(str(path)))
        into, changing = topics[0], "Kafka to Kafka, 1,000 changes/s"
        running = partial(_job_runs, to_topic)
        yield {
            "ours": Side(ours, dim, running, into.rows, into.arrivals),
            "spark": reference(theirs, topics[1], real_time=False),
            "real time": reference(at_once, topics[2], real_time=True),
            changing: Side(ours, dim, running, into.rows, into.arrivals, to_topic.changes),
            "Kafka to Delta": Side(
                of_table,
                dim,
                partial(_job_runs, to_table),
                to_table.joined_to,
                partial(_in_table, path),
            ),
        }


@contextmanager
def _job_runs(subject: Subject) -> Iterator[None]:
    subject.job.start()
    subject.job.wait_joining()
    yield
    subject.wait_drained()
    subject.job.stop()
