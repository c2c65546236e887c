"""A job of `crash-points` in the shapes that people write: no table, arrays, windows, UNION ALL.

One stream, four INSERTs: three queries of UNION ALL into one table (the records themselves, the
elements of their arrays, the windows that they are in), and a table of its own. What must come of
the records is computed here from the topic, with nothing of the job.
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from tests.reliability.experiment import Lab
from tests.reliability.oracle import Verdict
from tests.reliability.subject import PARTITIONS, Changes, Clicks, Subject
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, kafka_table
from tests.support.topics import consume, create_topic, unique_name

CARTS_DDL = "id BIGINT, tags ARRAY<STRING>, at TIMESTAMP(3), WATERMARK FOR at AS at"
BEGIN = dt.datetime.fromisoformat("2026-01-01 00:00:00")
_WINDOW_S = 10
_NO_TIME = "CAST(NULL AS TIMESTAMP(3))"
_PATHS = ("parts", "kept")
Row = tuple[Any, ...]


@dataclass
class Carts(Clicks):
    """Produces numbered carts with up to three tags; a few cannot be read."""

    def _value(self, item: int) -> bytes:
        if self.rng.random() < self.bad_share:
            return self.rng.choice((b"not json", b'{"id":"x"}', b'{"id":1,"tags":7}'))
        tags = [f"t{item + n}" for n in range(item % 4)]
        at = BEGIN + dt.timedelta(seconds=item)
        return json.dumps({"id": item, "tags": tags, "at": f"{at:%Y-%m-%d %H:%M:%S}"}).encode()


def shapes_sql(rig: Rig, topic: str, parts: str, kept: str, writer: str) -> str:
    columns = "id BIGINT, kind STRING, what STRING, since TIMESTAMP(3)"
    sink = f"'connector'='delta', 'sink.writer'='{writer}'"
    return (
        kafka_table(rig.kafka, "carts", topic, CARTS_DDL)
        + f"CREATE TABLE parts ({columns}) WITH ({sink}, 'path'='{parts}');"
        f"CREATE TABLE kept (id BIGINT, size INT) WITH ({sink}, 'path'='{kept}');"
        "EXECUTE STATEMENT SET BEGIN INSERT INTO parts "
        f"SELECT id, 'whole', CAST(id * 2 AS STRING), {_NO_TIME} FROM carts WHERE MOD(id, 3) <> 0 "
        f"UNION ALL SELECT id, 'tag', UPPER(tag), {_NO_TIME} FROM carts "
        "CROSS JOIN UNNEST(tags) AS t (tag) "
        "UNION ALL SELECT id, 'window', CAST(NULL AS STRING), window_start FROM TABLE(TUMBLE("
        f"TABLE carts, DESCRIPTOR(at), INTERVAL '{_WINDOW_S}' SECOND));"
        "INSERT INTO kept SELECT id, CARDINALITY(tags) FROM carts; END;"
    )


def parts_of(value: bytes) -> list[Row] | None:
    """The rows of `parts` that a record has, None if it cannot be read."""
    try:
        cart = json.loads(value)
    except ValueError:
        return None
    if not isinstance(cart["id"], int) or not isinstance(cart["tags"], list):
        return None
    item = cart["id"]
    rows: list[Row] = [(item, "whole", str(item * 2), None)] if item % 3 else []
    rows += [(item, "tag", tag.upper(), None) for tag in cart["tags"]]
    since = BEGIN + dt.timedelta(seconds=item - item % _WINDOW_S)
    return [*rows, (item, "window", None, since)]


@contextmanager
def running_shapes(lab: Lab, rig: Rig) -> Iterator[tuple[Subject, str]]:
    """The job on a topic of its own, and the path of its second table."""
    servers = rig.kafka.bootstrap_servers
    topic, parts, kept = create_topic(servers, partitions=PARTITIONS), *map(unique_name, _PATHS)
    with BulkProducer(servers, topic) as producer:
        job = rig.submit(shapes_sql(rig, topic, parts, kept, lab.writer))
        carts = Carts(lab.random("carts"), 0, producer)
        unchanged = Changes(lab.random("unchanged"), 0, None)
        yield Subject(lab, rig, job, "", topic, parts, carts, unchanged), kept


def judged_shapes(subject: Subject, kept: str) -> Verdict:
    """What the tables of the job at rest have, beside what the topic's records say."""
    subject.job.stop()
    records = consume(subject.rig.kafka.bootstrap_servers, subject.topic)
    verdict = Verdict(records=len(records))
    expected: dict[str, Counter[Row]] = {subject.path: Counter(), kept: Counter()}
    bad: Counter[tuple[int, int]] = Counter()
    for record in records:
        rows, place = parts_of(record.value), (record.partition, record.offset)
        if rows is None:
            bad[place] += 1
            continue
        expected[subject.path].update((*place, *row) for row in rows)
        cart = json.loads(record.value)
        expected[kept][(*place, cart["id"], len(cart["tags"]))] += 1
    for path, rows_of in expected.items():
        columns = ("id", "kind", "what", "since") if path == subject.path else ("id", "size")
        actual = _rows(subject.rig, path, columns)
        verdict.rows += actual.total()
        compare(verdict, path, rows_of, actual)
    _compare_letters(verdict, subject, bad)
    return verdict


def _rows(rig: Rig, path: str, columns: tuple[str, ...]) -> Counter[Row]:
    names = ("_partition", "_offset", *columns)
    return Counter(tuple(row[name] for name in names) for row in rig.rows(path))


def compare(verdict: Verdict, path: str, expected: Counter[Row], actual: Counter[Row]) -> None:
    """Note rows that a table lacks, has too often, or should not have."""
    missing, more = expected - actual, actual - expected
    if missing:
        verdict.note("lost", missing.total(), f"{path} lacks {list(missing)[:5]}")
    doubled = {row: n for row, n in more.items() if row in expected}
    if doubled:
        verdict.note("duplicate", sum(doubled.values()), f"{path} has twice {list(doubled)[:5]}")
    strange = [row for row in more if row not in expected]
    if strange:
        verdict.note("phantom", len(strange), f"{path} has {strange[:5]}")


def compare_output(
    verdict: Verdict, subject: Subject, expected: Counter[Row], bad: Counter[tuple[int, int]]
) -> None:
    """Note how output and dead letters differ: `expected` rows, and places of `bad` records."""
    found = _rows(subject.rig, subject.path, ("_batch", "item_id", "name"))
    verdict.rows = found.total()
    compare(verdict, "the output", expected, found)
    _compare_letters(verdict, subject, bad)


def _compare_letters(verdict: Verdict, subject: Subject, bad: Counter[tuple[int, int]]) -> None:
    letters = DeltaTable(str(subject.directory / "dead_letters")).to_pyarrow_table().to_pylist()
    dead = Counter((each["partition"], each["offset"]) for each in letters)
    verdict.dead = dead.total()
    wrong = (bad - dead) + (dead - bad)
    if wrong:
        verdict.note("dead_letter_mismatch", wrong.total(), f"dead letters: {list(wrong)[:5]}")
