"""`staleness`: what `join.max-staleness` costs while the table is fresh.

Two jobs over one stream and one table, with and without the option, take turns.
"""

from contextlib import ExitStack
from dataclasses import replace

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes, rounded
from tests.bench.place import Place
from tests.bench.shop import BLACKHOLE, Stream, clicks_of, users
from tests.bench.subject import opened_and_stopped

RECORDS, DIM = 4_000_000, 1_000_000
_OPTION = "'join.max-staleness'='60 s'"


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Records a second with the option against those without it."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit = batch_limit(records)
    bounded: list[float] = []
    free: list[float] = []
    with ExitStack() as stack:
        table = stack.enter_context(users(place.mariadb, dim))
        rig = stack.enter_context(place.rig(max_records_per_batch=limit))
        stream = Stream(place.kafka)
        limited = replace(table, options=(_OPTION,))
        with_it, without_it = (
            stack.enter_context(opened_and_stopped(place, rig, each, stream, BLACKHOLE))
            for each in (limited, table)
        )
        pairs = [(with_it, bounded), (without_it, free)]
        for _ in range(sizes.runs):
            stream.append(records, clicks_of(dim))
            for subject, rates in pairs:
                rates.append(records_per_second(subject.drain()) / 1e6)
            place.say(f"M records/s: {bounded[-1]:.3f} with the option, {free[-1]:.3f} without")
            pairs.reverse()
        cpu_s = {
            "cpu_s_per_million": [rounded(each) for each in with_it.cpu_s_per_million],
            "cpu_s_per_million_without": [rounded(each) for each in without_it.cpu_s_per_million],
        }
    return [
        Measure(
            "join with join.max-staleness against without",
            "M records/s",
            f"{records:,} records, {dim:,} rows, batches of {limit:,}",
            records >= RECORDS and dim >= DIM,
            bounded,
            free,
            Bar(Sense.RATIO_AT_LEAST, 0.98),
            cpu_s,
        )
    ]
