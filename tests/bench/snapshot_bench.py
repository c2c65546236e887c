"""`snapshot`: from a running Spark to the open gate, for a table of a million rows."""

from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import BLACKHOLE, Stream, users
from tests.bench.subject import Subject, submitted

DIM = 1_000_000
_WORKING = ("SNAPSHOT", "CATCHING_UP", "JOINING")


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Each run is a job of its own over the same table."""
    dim = sizes.dim or DIM
    opened, submitted_for = [], []
    with users(place.mariadb, dim) as schema, place.rig() as rig:
        for _ in range(sizes.runs):
            stream = Stream(place.kafka)
            with submitted(place, rig, (schema, dim), stream, BLACKHOLE) as subject:
                opened_at_ms = subject.wait_open()["opened_at_ms"]
                opened.append((opened_at_ms - spark_up_ms(subject)) / 1_000)
                created_at_ms = subject.job.events()[0]["at_ms"]
                submitted_for.append((opened_at_ms - created_at_ms) / 1_000)
            place.say(f"{opened[-1]:.1f} s, {submitted_for[-1]:.1f} s since the submission")
    return [
        Measure(
            "snapshot to open gate, Spark up",
            "s",
            f"{dim:,} rows",
            dim >= DIM,
            opened,
            bar=Bar(Sense.VALUE_AT_MOST, 30.0),
            facts={"since_submission_s": [round(s, 1) for s in submitted_for]},
        )
    ]


def spark_up_ms(subject: Subject) -> int:
    """When the runner had its Spark: the first state behind STARTING."""
    return min(int(e["at_ms"]) for e in subject.job.events() if e["to"] in _WORKING)
