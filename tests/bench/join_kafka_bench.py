"""`join-kafka`: the same join into a topic, and how much of the time is the sink's.

The share comes from a second run of each side whose rows go nowhere: ours into `blackhole`, the
reference's into Spark's `noop`.
"""

from contextlib import ExitStack
from statistics import median

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes, cpu_measure, rounded
from tests.bench.place import Place
from tests.bench.shop import BLACKHOLE, Stream, clicks_of, kafka_output, users, users_in_delta
from tests.bench.spark_side import Reference, Work
from tests.bench.subject import opened_and_stopped

RECORDS, DIM = 4_000_000, 1_000_000


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Ours into Kafka against the reference's; the shares of the sinks are told beside."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit = batch_limit(records)
    rates, cpu = _rates(place, (records, dim, sizes.runs), limit)
    shares = {
        "our_sink_share": _share(rates["kafka"], rates["blackhole"]),
        "reference_sink_share": _share(rates["spark kafka"], rates["spark noop"]),
        "without_sink": rounded(median(rates["blackhole"])),
        "reference_without_sink": rounded(median(rates["spark noop"])),
        "cpu_s_without_sink": [rounded(each) for each in cpu["blackhole"]],
    }
    name = f"join with {dim:,} rows into Kafka"
    size = f"{records:,} records, {dim:,} rows, batches of {limit:,}"
    full = records >= RECORDS and dim >= DIM
    sides = (rates["kafka"], rates["spark kafka"])
    bar = Bar(Sense.RATIO_AT_LEAST, 4.0)
    return [
        Measure(name, "M records/s", size, full, *sides, bar, shares),
        cpu_measure(name, size, cpu["kafka"], 2.8, full=full),
    ]


def _share(whole: list[float], without: list[float]) -> float | None:
    return rounded(1 - median(whole) / median(without))


def _rates(
    place: Place, sizes: tuple[int, int, int], limit: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Millions of records a second, and CPU seconds of ours for a million, a run each."""
    records, dim, runs = sizes
    ours, theirs = (Stream(place.kafka) for _ in range(2))
    dimension, stream = users_in_delta(place, dim), Stream(place.kafka)
    sinks = {"kafka": kafka_output(place.kafka, ours.topic), "blackhole": BLACKHOLE}
    to_kafka = {
        "kafka.bootstrap.servers": place.kafka.bootstrap_servers,
        "topic": theirs.topic,
    }
    others = {"spark kafka": ("kafka", to_kafka), "spark noop": ("noop", {})}
    rates: dict[str, list[float]] = {name: [] for name in (*sinks, *others)}
    with ExitStack() as stack:
        table = stack.enter_context(users(place.mariadb, dim))
        rig = stack.enter_context(place.rig(max_records_per_batch=limit))
        jobs = {
            name: stack.enter_context(opened_and_stopped(place, rig, table, stream, sink))
            for name, sink in sinks.items()
        }
        for _ in range(runs):
            starting = stream.append(records, clicks_of(dim))
            for name, sink in others.items():
                reference = Reference(place, Work(stream, starting, dimension, sink, limit))
                rates[name].append(records_per_second(reference.run()) / 1e6)
            for name, subject in jobs.items():
                rates[name].append(records_per_second(subject.drain()) / 1e6)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
        cpu = {name: subject.cpu_s_per_million for name, subject in jobs.items()}
    return rates, cpu
