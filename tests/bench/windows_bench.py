"""`windows`: clicks of each user, counted in windows of five minutes, against Spark's own.

Each round appends records that begin where a window does and runs Spark's windowed aggregation with
its state in RocksDB on them, then ours. Both write the windows that the watermark has passed into a
Delta table, once each.
"""

from collections.abc import Mapping

from deltalake import DeltaTable

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.event_shop import (
    DELAY_MS,
    SPAN_MS,
    clicks_counted,
    step_ms,
    timed_clicks,
    window_script,
)
from tests.bench.event_subject import event_subject
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream
from tests.bench.spark_side import Reference, Work
from tests.support.topics import unique_name

RECORDS, KEYS = 4_000_000, 100_000
MINUTES = 5
_WINDOW_MS = MINUTES * 60_000
_FIELDS = "user_id BIGINT, ts TIMESTAMP"


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed, and whether memory grows with what has been counted."""
    records, keys = sizes.records or RECORDS, sizes.dim or KEYS
    limit, stream, path = batch_limit(records), Stream(place.kafka), unique_name("counts")
    rates: dict[str, list[float]] = {"spark": [], "ours": []}
    with (
        place.rig(max_records_per_batch=limit) as rig,
        event_subject(
            place, rig, window_script(rig, stream.topic, path, MINUTES), stream
        ) as subject,
    ):
        subject.wait_open()
        subject.job.stop()
        for number in range(sizes.runs):
            first_ms = number * SPAN_MS - stream.sent * step_ms(records)
            starting = stream.append(records, timed_clicks(keys, step_ms(records), first_ms))
            spark = str(place.new("counts"))
            work = _work(stream, starting, spark, limit)
            rates["spark"].append(records_per_second(Reference(place, work).run()) / 1e6)
            rates["ours"].append(records_per_second(subject.timed_drain()) / 1e6)
            for found in (spark, str(rig.output(path))):
                _check(found, number * SPAN_MS, records, limit)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
    size = f"{records:,} records, {keys:,} keys, windows of {MINUTES} minutes, batches of {limit:,}"
    full = records >= RECORDS and keys >= KEYS
    speed = Measure(
        "tumbling count against Spark's with RocksDB",
        "M records/s",
        size,
        full,
        rates["ours"],
        rates["spark"],
        Bar(Sense.RATIO_AT_LEAST, 1.0),
    )
    return [speed, *subject.memory_measure(size, full=full)]


def _work(stream: Stream, starting: Mapping[int, int], path: str, limit: int) -> Work:
    windows = {"size": f"{MINUTES} minutes", "delay": f"{DELAY_MS} milliseconds"}
    sink = ("delta", {"path": path})
    return Work(stream, starting, None, sink, limit, _FIELDS, windows)


def _check(path: str, from_ms: int, records: int, limit: int) -> None:
    """A speed counts only if each click is counted: in what the last batch found complete."""
    step = step_ms(records)
    windows = ((records - limit) * step - DELAY_MS) // _WINDOW_MS
    until_ms = from_ms + windows * _WINDOW_MS
    found = clicks_counted(DeltaTable(path).to_pyarrow_table(), from_ms, until_ms)
    expected = -(-windows * _WINDOW_MS // step)  # the first click is of the first millisecond
    if found != expected or not windows:
        raise RuntimeError(f"{found} clicks of {expected} are counted in {path}")
