"""`debezium`: topics of somebody else's connector, decoded, copied, joined and followed.

How many records one core decodes; from a running Spark to the open gate over a topic that a
connector has filled; and speed and freshness of the join beside those with `mysql-cdc`, on the same
users, in turns.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.debezium_decoding import decoding
from tests.bench.freshness_bench import seen_changes
from tests.bench.measure import Bar, Measure, Sense, Sizes, quantile
from tests.bench.place import Place
from tests.bench.shop import BLACKHOLE, Stream, UserTable, clicks_of, delta_output, users
from tests.bench.snapshot_bench import spark_up_ms
from tests.bench.subject import opened_and_stopped, submitted
from tests.bench.topic_users import TopicUsers, topic_users
from tests.support.topics import unique_name

RECORDS, DIM = 4_000_000, 1_000_000
_FRESH_S = 90
_AS_GOOD = 0.95
_PER_S = 1_000


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Decoding, the copy, the join, freshness."""
    found = decoding(place, sizes)
    dim = sizes.dim or DIM
    topic = topic_users(place, dim)
    place.say(f"{dim:,} rows are in the topic")
    found.append(_opening(place, topic, sizes))
    with users(place.mariadb, dim) as database:
        tables: Mapping[str, UserTable] = {"topic": topic, "mysql-cdc": database}
        found.append(_joining(place, tables, sizes))
        found += _freshness(place, tables, sizes)
    return found


def _opening(place: Place, topic: TopicUsers, sizes: Sizes) -> Measure:
    opened, submitted_for = [], []
    with place.rig() as rig:
        for _ in range(sizes.runs):
            with submitted(place, rig, topic, Stream(place.kafka), BLACKHOLE) as subject:
                opened_at_ms = subject.wait_open()["opened_at_ms"]
                opened.append((opened_at_ms - spark_up_ms(subject)) / 1_000)
                created_at_ms = subject.job.events()[0]["at_ms"]
                submitted_for.append((opened_at_ms - created_at_ms) / 1_000)
            place.say(f"{opened[-1]:.1f} s, {submitted_for[-1]:.1f} s since the submission")
    return Measure(
        "topic of a connector to open gate, Spark up",
        "s",
        f"{topic.rows:,} rows",
        topic.rows >= DIM,
        opened,
        bar=Bar(Sense.VALUE_AT_MOST, 20.0),
        facts={"since_submission_s": [round(s, 1) for s in submitted_for]},
    )


def _joining(place: Place, tables: Mapping[str, UserTable], sizes: Sizes) -> Measure:
    records, stream = sizes.records or RECORDS, Stream(place.kafka)
    dim, limit = tables["topic"].rows, batch_limit(records)
    rates: dict[str, list[float]] = {name: [] for name in tables}
    with ExitStack() as stack:
        rig = stack.enter_context(place.rig(max_records_per_batch=limit))
        jobs = {}
        for name, table in tables.items():
            sink = delta_output(unique_name("joined"))
            job = opened_and_stopped(place, rig, table, stream, sink)
            jobs[name] = stack.enter_context(job)
        for _ in range(sizes.runs):
            stream.append(records, clicks_of(dim))
            for name, job in jobs.items():
                rates[name].append(records_per_second(job.drain()) / 1e6)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
    return Measure(
        "join with a connector's topic, against mysql-cdc",
        "M records/s",
        f"{records:,} records, {dim:,} rows, batches of {limit:,}",
        records >= RECORDS and dim >= DIM,
        rates["topic"],
        rates["mysql-cdc"],
        Bar(Sense.RATIO_AT_LEAST, _AS_GOOD),
    )


def _freshness(place: Place, tables: Mapping[str, UserTable], sizes: Sizes) -> list[Measure]:
    changes = sizes.records or _FRESH_S * _PER_S
    seconds = min(_FRESH_S, changes / _PER_S)
    parts, facts = {}, {}
    for name, table in tables.items():
        seen = seen_changes(place, table, seconds)
        parts[name] = [[ms / 1_000 for ms in part] for part in seen.stretches(sizes.runs)]
        facts[f"missed_of_{name}"] = seen.missed
    dim = tables["topic"].rows
    return [
        Measure(
            f"freshness p{share * 100:.0f} of a connector's topic, against mysql-cdc",
            "s",
            f"{seconds:.0f} s of {_PER_S:,} changes/s on {dim:,} rows, {sizes.runs} stretches",
            seconds >= _FRESH_S and dim >= DIM,
            *([quantile(part, share) for part in parts[name]] for name in ("topic", "mysql-cdc")),
            bar=Bar(Sense.RATIO_AT_MOST, round(1 / _AS_GOOD, 3)),
            facts=facts,
        )
        for share in (0.5, 0.99)
    ]
