"""`large-records`: what a record costs that has far more in it than the join reads.

The clicks carry a text that the script does not declare, so that a record has 1 kB, then 10 kB.
"""

from tests.bench.batches import records_per_second
from tests.bench.measure import Measure, Sizes, cpu_measure
from tests.bench.place import Place
from tests.bench.shop import Stream, UserTable, clicks_of, delta_output, users
from tests.bench.subject import opened_and_stopped
from tests.support.topics import unique_name

RECORDS, DIM = 1_000_000, 100_000  # of 1 kB
_BARS = {1_000: 6.0, 10_000: 60.0}  # CPU seconds of a million records, by their bytes
_FIXED = 60  # bytes of a click
_BATCH_BYTES, _REQUEST_BYTES = 256 << 20, 2 << 20


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Each size of a record; the larger ones are as many fewer."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    found = []
    with users(place.mariadb, dim) as table:
        for size, at_most in _BARS.items():
            count = records * min(_BARS) // size
            limit = min(count // 8, _BATCH_BYTES // size)
            cpu_s = _drained(place, table, (size, count), (limit, sizes.runs))
            told = f"{count:,} records of {size:,} bytes, {dim:,} rows, batches of {limit:,}"
            full = records >= RECORDS and dim >= DIM
            found.append(cpu_measure(f"{size:,} bytes each", told, cpu_s, at_most, full=full))
    return found


def _drained(
    place: Place, table: UserTable, load: tuple[int, int], runs: tuple[int, int]
) -> list[float]:
    """CPU seconds of a million records, a run each."""
    (size, count), (limit, times) = load, runs
    stream, padding = Stream(place.kafka), b'"padding":"%s",' % (b"x" * (size - _FIXED))
    click = clicks_of(table.rows)

    def padded(items: range) -> list[bytes]:
        return [b"{%s%s" % (padding, value[1:]) for value in click(items)]

    output = delta_output(unique_name("large"))
    with (
        place.rig(max_records_per_batch=limit) as rig,
        opened_and_stopped(place, rig, table, stream, output) as subject,
    ):
        for _ in range(times):
            stream.append(count, padded, at_once=_REQUEST_BYTES // size)
            rate = records_per_second(subject.drain())
            place.say(f"{size:,} bytes: {rate:,.0f} records/s, CPU {subject.cpu_s_per_million}")
        return subject.cpu_s_per_million
