"""`asof`: the version of a record's own time against the newest one, ours against ours.

Two jobs over the same stream and the same table, whose keys have three versions each: one joins as
of the record's time, the other as of now. Both have copied the table and read the same changes
before the first record comes. Each round appends the records; then one drains them, then the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake import DeltaTable

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.event_shop import (
    VERSIONS,
    add_versions,
    join_script,
    step_ms,
    timed_clicks,
    versioned_users,
    wrong_rows,
)
from tests.bench.event_subject import EventSubject, event_subject
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream
from tests.support.rig import Rig
from tests.support.topics import unique_name

RECORDS, DIM = 4_000_000, 1_000_000
_LOOKED_AT = 200_000


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed, and whether memory grows with what has been joined."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit, stream = batch_limit(records), Stream(place.kafka)
    span, path = sizes.runs * records * step_ms(records), unique_name("as_of")
    rates: dict[str, list[float]] = {"as of": [], "newest": []}
    with (
        versioned_users(place.mariadb, dim, span) as schema,
        place.rig(max_records_per_batch=limit) as rig,
        _job(place, rig, (schema, stream, path), as_of=True) as as_of,
        _job(place, rig, (schema, stream, unique_name("newest")), as_of=False) as newest,
    ):
        _add_versions(place, (as_of, newest), schema, (dim, span))
        for _ in range(sizes.runs):
            stream.append(records, timed_clicks(dim, step_ms(records)))
            rates["newest"].append(records_per_second(newest.timed_drain()) / 1e6)
            rates["as of"].append(records_per_second(as_of.timed_drain()) / 1e6)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
        _check(str(rig.output(path)), dim, span)
    size = f"{records:,} records, {dim:,} keys with {VERSIONS} versions, batches of {limit:,}"
    full = records >= RECORDS and dim >= DIM
    speed = Measure(
        "as-of join against the join with the newest rows",
        "M records/s",
        size,
        full,
        rates["as of"],
        rates["newest"],
        Bar(Sense.RATIO_AT_LEAST, 0.7),
    )
    return [speed, *as_of.memory_measure(size, full=full)]


@contextmanager
def _job(
    place: Place, rig: Rig, places: tuple[str, Stream, str], *, as_of: bool
) -> Iterator[EventSubject]:
    """A job that has copied the first versions."""
    schema, stream, path = places
    script = join_script(rig, (schema, stream.topic, path), as_of=as_of)
    with event_subject(place, rig, script, stream) as subject:
        subject.wait_open()
        yield subject


def _add_versions(
    place: Place, subjects: tuple[EventSubject, ...], schema: str, sizes: tuple[int, int]
) -> None:
    changes = add_versions(place.mariadb, schema, *sizes)
    for subject in subjects:
        subject.wait_changed(changes)
        subject.wait_folded()
        subject.job.stop()
    place.say(f"{sizes[0]:,} keys with {VERSIONS} versions are there, in both jobs")


def _check(path: str, dim: int, span_ms: int) -> None:
    """A speed counts only if the rows are right."""
    rows = DeltaTable(path).to_pyarrow_dataset().head(_LOOKED_AT)
    wrong = wrong_rows(rows, dim, span_ms)
    if wrong:
        raise RuntimeError(f"{wrong} of {rows.num_rows} rows have not the version of their time")
