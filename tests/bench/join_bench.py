"""`join`: a stream that waits is joined with a table and written to Delta, as fast as it goes.

Each round appends the records, runs the reference on them, then ours; then ours on three times as
many, and again while the table changes, so that a fold falls into it. All of them run alone, in a
JVM of their own.
"""

import pyarrow as pa
from deltalake import DeltaTable

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes, cpu_measure
from tests.bench.place import Place
from tests.bench.shop import Stream, clicks_of, delta_output, users, users_in_delta
from tests.bench.spark_side import Reference, Work
from tests.bench.subject import opened_and_stopped
from tests.support.topics import unique_name

RECORDS, DIMS = 4_000_000, (1_000_000, 5_000_000)
LARGE = 3_000_000  # rows from which on the bar is the one for 5 M
_BROADCAST_MEMORY = "8g"  # of Spark's own join with so many
_CHANGES_PER_S = 1_000
_LONGER = 3
_AT_LEAST = Sense.RATIO_AT_LEAST


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Each size of the table, and how much slower ours is with the largest."""
    records = sizes.records or RECORDS
    dims = DIMS if sizes.dim is None else (sizes.dim,)
    found: list[Measure] = []
    for dim in dims:
        found += measure_one(place, (records, dim, sizes.runs))
    if len(dims) > 1:
        small, large = (next(m for m in found if f"with {dim:,} rows" in m.name) for dim in dims)
        found.append(
            Measure(
                "5 M rows against 1 M rows, ours",
                "M records/s",
                f"{records:,} records",
                records >= RECORDS,
                large.values,
                small.values,
                Bar(_AT_LEAST, 0.85),
            )
        )
    return found


def measure_one(
    place: Place, sizes: tuple[int, int, int], *, changes_per_s: int = _CHANGES_PER_S
) -> list[Measure]:
    """One size of the table: against the reference, and against itself while it changes."""
    records, dim, runs = sizes
    limit = batch_limit(records)
    rates: dict[str, list[float]] = {
        name: [] for name in ("spark", "quiet", "cpu", "long", "changing")
    }
    dimension, stream = users_in_delta(place, dim), Stream(place.kafka)
    with (
        users(place.mariadb, dim) as table,
        place.rig(max_records_per_batch=limit) as rig,
        opened_and_stopped(
            place, rig, table, stream, delta_output(unique_name("joined"))
        ) as subject,
    ):
        for _ in range(runs):
            starting = stream.append(records, clicks_of(dim))
            sink = ("delta", {"path": str(place.new("joined"))})
            memory = _BROADCAST_MEMORY if dim >= LARGE else None
            work = Work(stream, starting, dimension, sink, limit, memory=memory)
            reference = Reference(place, work)
            rates["spark"].append(records_per_second(reference.run()) / 1e6)
            _check(sink[1]["path"], records)
            rates["quiet"].append(records_per_second(subject.drain()) / 1e6)
            rates["cpu"].append(subject.cpu_s_per_million[-1])
            if changes_per_s:
                stream.append(_LONGER * records, clicks_of(dim))
                rates["long"].append(records_per_second(subject.drain()) / 1e6)
                stream.append(_LONGER * records, clicks_of(dim))
                drained = subject.drain(changes_per_s=changes_per_s)
                rates["changing"].append(records_per_second(drained) / 1e6)
            place.say(
                f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items() if v}) }"
            )
    return _judged(rates, records, dim, limit)


def _check(path: str, records: int) -> None:
    rows = sum(pa.table(DeltaTable(path).get_add_actions(flatten=True))["num_records"].to_pylist())
    if rows != records:
        raise RuntimeError(f"the reference has {rows} rows of {records} records")


def _judged(rates: dict[str, list[float]], records: int, dim: int, limit: int) -> list[Measure]:
    size = f"{records:,} records, {dim:,} rows, batches of {limit:,}"
    full = records >= RECORDS and dim in DIMS
    bar = Bar(_AT_LEAST, 10.0 if dim >= LARGE else 5.5)
    unit = "M records/s"
    sides = (rates["quiet"], rates["spark"])
    found = [
        Measure(f"join with {dim:,} rows", unit, size, full, *sides, bar),
        cpu_measure(f"join with {dim:,} rows", size, rates["cpu"], 2.0, full=full),
    ]
    if rates["changing"]:
        found.append(
            Measure(
                f"the same while {_CHANGES_PER_S:,} changes/s arrive, against itself without",
                unit,
                size,
                full,
                rates["changing"],
                rates["long"],
                Bar(_AT_LEAST, 0.9),
            )
        )
    return found
