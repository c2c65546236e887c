"""`poison`: a stream with a hundredth of values that are no records, against a clean one.

One job joins both, in turns. The values are of forty kinds; values of megabytes are not among them.
"""

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Stream, delta_output, users
from tests.bench.subject import opened_and_stopped
from tests.support.poison import KINDS, PROBE_COLUMNS
from tests.support.topics import unique_name

RECORDS, DIM = 2_000_000, 1_000_000
KIND_COUNT, _EVERY = 40, 100
_LARGE = 100_000
_USERS = 1_000_000


def bad_values() -> list[bytes]:
    small = [
        kind.value
        for kind in KINDS
        if kind.verdict == "bad" and kind.value is not None and len(kind.value) < _LARGE
    ]
    return [small[at * len(small) // KIND_COUNT] for at in range(KIND_COUNT)]


def visits(items: range) -> list[bytes]:
    return [
        b'{"user_id":%d,"url":"/page/%d","score":%d.5,"active":true}'
        % (1 + i * 7919 % _USERS, i, i)
        for i in items
    ]


def poisoned_visits(items: range) -> list[bytes]:
    """The same, but each hundredth is one of the bad values, in turns."""
    values, bad = visits(items), bad_values()
    for at in range(-items.start % _EVERY, len(values), _EVERY):
        values[at] = bad[(items.start + at) // _EVERY % len(bad)]
    return values


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed of the poisoned stream against that of the clean one."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit = batch_limit(records)
    rates: dict[str, list[float]] = {"clean": [], "poisoned": []}
    stream, path = Stream(place.kafka), delta_output(unique_name("poison"), PROBE_COLUMNS)
    with (
        users(place.mariadb, dim) as table,
        place.rig(max_records_per_batch=limit) as rig,
        opened_and_stopped(place, rig, table, stream, path) as subject,
    ):
        for _ in range(sizes.runs):
            for name, values in (
                ("clean", visits),
                ("poisoned", poisoned_visits),
            ):
                stream.append(records, values)
                rates[name].append(records_per_second(subject.drain()) / 1e6)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
        letters = int(subject.job.status()["probe"]["dead_letters"])
    wanted = sizes.runs * (records // _EVERY)
    if letters != wanted:
        raise RuntimeError(f"{letters} dead letters of {wanted} bad values")
    return [
        Measure(
            f"1 % of bad values of {KIND_COUNT} kinds, against a clean stream",
            "M records/s",
            f"{records:,} records, {dim:,} rows, batches of {limit:,}",
            records >= RECORDS,
            rates["poisoned"],
            rates["clean"],
            Bar(Sense.RATIO_AT_LEAST, 0.6),
            {"dead_letters": letters},
        )
    ]
