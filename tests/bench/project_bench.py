"""`project`: a job that joins nothing, against the same stream joined with a table.

Both write to Delta and take turns on the same records. The second job of the kind computes as many
columns as the join looks up, of texts as long.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.bench.batches import batch_limit, records_per_second
from tests.bench.measure import Bar, Measure, Sense, Sizes, cpu_measure
from tests.bench.place import Place
from tests.bench.shop import CLICKS, Stream, clicks_of, delta_output, users
from tests.bench.subject import Subject, opened_and_stopped
from tests.support.rig import Rig, kafka_table
from tests.support.topics import unique_name

RECORDS, DIM = 4_000_000, 1_000_000
_NAMES = ", ".join(column.split()[0] for column in CLICKS.split(", "))
_COMPUTED = (
    "CASE WHEN MOD(user_id, 2) = 1 THEN 'F' ELSE 'M' END, CONCAT('user ', CAST(user_id AS STRING))"
)


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """The speed of both kinds by that of the join."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit, stream = batch_limit(records), Stream(place.kafka)
    rates: dict[str, list[float]] = {name: [] for name in ("join", "project", "compute")}
    with ExitStack() as stack:
        table = stack.enter_context(users(place.mariadb, dim))
        rig = stack.enter_context(place.rig(max_records_per_batch=limit))
        output = delta_output(unique_name("joined"))
        jobs = {
            "join": stack.enter_context(opened_and_stopped(place, rig, table, stream, output)),
            "project": stack.enter_context(_projecting(place, rig, stream)),
            "compute": stack.enter_context(_projecting(place, rig, stream, _COMPUTED)),
        }
        for _ in range(sizes.runs):
            stream.append(records, clicks_of(dim))
            for name, job in jobs.items():
                rates[name].append(records_per_second(job.drain()) / 1e6)
            place.say(f"M records/s: { ({name: round(v[-1], 3) for name, v in rates.items()}) }")
        cpu = {name: list(job.cpu_s_per_million) for name, job in jobs.items()}
    size = f"{records:,} records, {dim:,} rows, batches of {limit:,}"
    full = records >= RECORDS and dim >= DIM
    unit, join = "M records/s", rates["join"]
    bar = Bar(Sense.RATIO_AT_LEAST, 1.0)
    return [
        Measure("columns of a stream, by the join", unit, size, full, rates["project"], join, bar),
        Measure(
            "two computed columns, by the join",
            unit,
            size,
            full,
            rates["compute"],
            join,
            facts={"cpu_s_per_million": cpu},
        ),
        cpu_measure("columns of a stream", size, cpu["project"], 2.0, full=full),
    ]


@contextmanager
def _projecting(
    place: Place, rig: Rig, stream: Stream, computed: str | None = None
) -> Iterator[Subject]:
    """A job without a table, stopped; `computed` are two more columns, of text."""
    more, values = ("", "") if computed is None else (", gender STRING, name STRING", computed)
    script = (
        kafka_table(rig.kafka, "click_event", stream.topic, CLICKS)
        + f"CREATE TABLE kept ({CLICKS}{more}) "
        f"WITH ({delta_output(unique_name('kept')).options});"
        f"INSERT INTO kept SELECT {', '.join(filter(None, (_NAMES, values)))} FROM click_event;"
    )
    with rig.job(script) as job:
        subject = Subject(place, rig, job, stream)
        subject.wait_open()
        job.stop()
        yield subject
