"""`latency`: from the send of a record to its row in the output topic, the build side idle.

The broker stamps the rows (`LogAppendTime`), the records carry the producer's clock, and all run on
one machine. The reference passes records from topic to topic: no join, no pin.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import orjson

from tests.bench.measure import Bar, Measure, Sense, Sizes, quantile
from tests.bench.place import Place
from tests.bench.shop import Clicks, Stream, kafka_output, now_ms, users
from tests.bench.spark_side import Reference, Work
from tests.bench.subject import Subject, opened_and_stopped
from tests.support.topics import consume, end_offsets
from tests.support.wait import wait_until

RECORDS, DIM = 180_000, 1_000_000
_BARS = {1_000: 0.7, 10_000: 0.8}  # by records/s
_FEWEST = min(_BARS)
_WARM_UP = 1 / 3
_STAMPED = {"message.timestamp.type": "LogAppendTime"}


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """`records` are those of all runs at the lower rate; a third of each is left out as warm-up."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    seconds = records / _FEWEST / sizes.runs / 2
    full = records >= RECORDS and dim >= DIM
    found: list[Measure] = []
    with _sides(place, dim) as sides:
        for per_s, limit in _BARS.items():
            quantiles = _quantiles(place, sides, sizes.runs, (per_s, seconds))
            size = f"{per_s:,} records/s, {dim:,} rows, {seconds:.0f} s a run"
            found += [
                Measure(
                    f"latency {name}, Kafka to Kafka",
                    "ms",
                    size,
                    full,
                    [each[at] for each in quantiles["ours"]],
                    [each[at] for each in quantiles["spark"]],
                    Bar(Sense.RATIO_AT_MOST, limit),
                )
                for at, name in enumerate(("p50", "p99"))
            ]
    return found


def _quantiles(
    place: Place, sides: dict[str, "Side"], runs: int, load: tuple[int, float]
) -> dict[str, list[tuple[float, float]]]:
    """p50 and p99 of each run of both sides, under so many records/s for so many seconds."""
    quantiles: dict[str, list[tuple[float, float]]] = {"ours": [], "spark": []}
    for _ in range(runs):
        for name in ("spark", "ours"):
            took = sides[name].run(*load)
            quantiles[name].append((quantile(took, 0.5), quantile(took, 0.99)))
        newest = {name: tuple(map(round, each[-1])) for name, each in quantiles.items()}
        place.say(f"{load[0]:,} records/s, p50 and p99 in ms: {newest}")
    return quantiles


@dataclass(frozen=True)
class Side:
    """Ours or the reference: what it reads, where its rows come out, and how to let it run."""

    servers: str
    stream: Stream
    output: Stream
    dim: int
    running: Callable[[], AbstractContextManager[None]]

    def run(self, per_s: int, seconds: float) -> list[float]:
        """The latency of each record behind the warm-up, in milliseconds."""
        rows, sent = self._rows(), self.stream.sent
        with self.running():
            with Clicks(self.stream, self.dim, per_s):
                wait_until(lambda: self._rows() > rows, deadline_s=180, what="a row")
                began_ms = now_ms()
                _pass(seconds)
            until_ms = now_ms()
            wanted = rows + self.stream.sent - sent
            wait_until(lambda: self._rows() >= wanted, what="all rows")
        return self._took(began_ms + seconds * 1_000 * _WARM_UP, until_ms)

    def _rows(self) -> int:
        return sum(end_offsets(self.servers, self.output.topic).values())

    def _took(self, from_ms: float, until_ms: float) -> list[float]:
        rows = consume(self.servers, self.output.topic, deadline_s=300)
        times = [(orjson.loads(row.value)["sent_ms"], row.timestamp) for row in rows]
        return [float(at - sent) for sent, at in times if from_ms <= sent < until_ms]


def _pass(seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until, deadline_s=seconds + 60)


@contextmanager
def _sides(place: Place, dim: int) -> Iterator[dict[str, Side]]:
    """Each with topics of its own, so that neither finds what the other has left."""
    servers = place.kafka.bootstrap_servers
    streams = {name: Stream(place.kafka) for name in ("ours", "spark")}
    outputs = {name: Stream(place.kafka, _STAMPED) for name in streams}
    sink = kafka_output(place.kafka, outputs["ours"].topic)
    with (
        users(place.mariadb, dim) as table,
        place.rig() as rig,
        opened_and_stopped(place, rig, table, streams["ours"], sink) as subject,
    ):

        def reference() -> AbstractContextManager[None]:
            options = {"kafka.bootstrap.servers": servers, "topic": outputs["spark"].topic}
            starting = dict(streams["spark"].ends)
            work = Work(streams["spark"], starting, None, ("kafka", options))
            return Reference(place, work).following()

        running = {"ours": lambda: _job_runs(subject), "spark": reference}
        yield {
            name: Side(servers, streams[name], outputs[name], dim, running[name])
            for name in streams
        }


@contextmanager
def _job_runs(subject: Subject) -> Iterator[None]:
    subject.job.start()
    subject.job.wait_joining()
    yield
    subject.wait_drained()
    subject.job.stop()
