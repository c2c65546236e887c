"""`update`: how soon a running job joins under another plan, and how long its preview takes.

The preview joins the newest 100 batches again, under both plans. Then the job takes the plan while
records come. The table is not copied again: it keeps its generation.
"""

import json
import time
from typing import Any

from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.shop import Clicks, Stream, clicks_of, delta_output, join_sql, users
from tests.bench.subject import Subject, submitted
from tests.support.topics import unique_name

RECORDS, DIM = 1_000_000, 1_000_000
BATCHES = 100
_WITHIN_S = 120.0


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Seconds until the new plan has joined a batch, and seconds of the preview."""
    records, dim = sizes.records or RECORDS, sizes.dim or DIM
    limit = max(1, records // BATCHES)
    previews, changes = list[float](), list[float]()
    for _ in range(sizes.runs):
        stream = Stream(place.kafka)
        stream.append(records, clicks_of(dim))
        output = delta_output(unique_name("updated"))
        with (
            users(place.mariadb, dim) as table,
            place.rig(max_records_per_batch=limit) as rig,
            submitted(place, rig, table, stream, output) as subject,
        ):
            subject.wait_open()
            subject.wait_drained()
            sql = join_sql(rig, table, stream.topic, output).replace("u.name ", "UPPER(u.name) ")
            previews.append(_previewed(subject, sql))
            with Clicks(stream, dim):
                changes.append(_changed(subject, sql))
        place.say(f"preview {previews} s, change {changes} s")
    size = f"{BATCHES} batches of {limit:,} records, {dim:,} rows"
    full = records >= RECORDS and dim >= DIM
    return [
        Measure(
            "from consent to the first batch under the new plan",
            "s",
            size,
            full,
            changes,
            bar=Bar(Sense.VALUE_AT_MOST, 10.0),
        ),
        Measure(
            f"preview of the newest {BATCHES} batches",
            "s",
            size,
            full,
            previews,
            bar=Bar(Sense.VALUE_AT_MOST, 30.0),
        ),
    ]


def _update(subject: Subject, **body: object) -> dict[str, Any]:
    url = f"/v1/jobs/{subject.job.id}:update"
    answer = subject.rig.client.post(url, json=body, timeout=_WITHIN_S)
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()
    return value


def _previewed(subject: Subject, sql: str) -> float:
    begun = time.monotonic()
    answer = _update(subject, sql=sql, preview=True)
    took_s = time.monotonic() - begun
    (rows,) = answer["rows"]
    subject.place.say(f"preview: {json.dumps({**rows, 'examples': None})[:400]}")
    if rows["reason"] is not None or rows["batches"] < BATCHES or not rows["rows_changed"]:
        raise RuntimeError(f"the preview is not whole: {rows['reason']}, {rows['batches']} batches")
    return took_s


def _changed(subject: Subject, sql: str) -> float:
    before = _generations(subject)
    begun = time.monotonic()
    number = _update(subject, sql=sql)["plan"]
    subject.wait_for(
        lambda _: _committed_plan(subject) == number,
        f"a batch of plan {number}",
        deadline_s=_WITHIN_S,
    )
    took_s = time.monotonic() - begun
    if _generations(subject) != before:
        raise RuntimeError("the table was copied again")
    return took_s


def _committed_plan(subject: Subject) -> int:
    progress = json.loads((subject.checkpoint / "progress.json").read_bytes())
    pin = subject.job.pins.read(progress["batch"])
    return 0 if pin is None else pin.plan


def _generations(subject: Subject) -> list[int]:
    return [each["generation"] for each in subject.job.status()["dimensions"]]
