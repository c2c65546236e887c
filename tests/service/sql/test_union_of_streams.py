"""Laws of several tables as one stream: a job of all its INSERTs gives what a job of each gives.

Both are planned from SQL and joined by the kernel; the job of one INSERT knows nothing of sets.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.probe.probe import BatchContext, join_batch, kernel_spec
from joins.kernels.probe.spec import insert_told
from joins.plan.stream_topics import StreamTopics
from service.jobs.store.plan_codec import dump, load
from service.sql.planner.planner import plan
from tests.support.laws import examples

CONTEXT = BatchContext(proctime_ms=0, batch_id=3, versions=())
TOPICS = ("s", "t", "u")
TYPES = ("BIGINT", "STRING", "BOOLEAN")
SINK = "CREATE TABLE o (x STRING, y STRING) WITH ('connector' = 'delta', 'path' = 'o');"
VALUES = st.sampled_from([1, 7, "5", "x", True, None])
Row = tuple[object, ...]


@dataclass(frozen=True)
class Declared:
    """A table over some topics; its columns `k` and `v` have types of their own."""

    name: str
    topics: tuple[str, ...]
    types: tuple[str, str]
    form: str

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{n} {kind}" for n, kind in zip("kv", self.types, strict=True))
        return (
            f"CREATE TABLE {self.name} ({columns}, `of` STRING METADATA FROM 'topic' VIRTUAL) WITH "
            f"('connector' = 'kafka', 'topic' = '{';'.join(self.topics)}', 'format' = "
            f"'{self.form}', 'properties.bootstrap.servers' = 'b:1', "
            "'scan.startup.mode' = 'earliest-offset');"
        )


@dataclass(frozen=True)
class Query:
    """What one INSERT, or query of UNION ALL, selects of a table; `{}` is its column."""

    table: Declared
    value: str
    where: str

    @property
    def text(self) -> str:
        return f"SELECT {self.value}, `of` FROM {self.table.name} WHERE {self.where}"


def declared(name: str) -> st.SearchStrategy[Declared]:
    topics = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True).map(tuple)
    types = st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES))
    return st.builds(Declared, st.just(name), topics, types, st.sampled_from(["json", "csv"]))


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """Two to five queries over two or three tables."""
    tables = [draw(declared(name)) for name in draw(st.sampled_from(["ab", "abc"]))]
    values = ("CAST(k AS STRING)", "CAST(CAST(v AS INT) AS STRING)", "'x'")
    each = st.builds(
        Query, st.sampled_from(tables), st.sampled_from(values),
        st.sampled_from(["TRUE", "k IS NOT NULL", "`of` <> 's'"]),
    )  # fmt: skip
    return draw(st.lists(each, min_size=2, max_size=5))


@st.composite
def records(draw: st.DrawFn) -> list[tuple[str, int, int, bytes]]:
    """(topic, partition, offset, value), of all topics in any order; some can be read by nobody."""
    lines = st.tuples(VALUES, VALUES).map(lambda pair: json.dumps({"k": pair[0], "v": pair[1]}))
    cells = st.tuples(VALUES, VALUES).map(lambda pair: f"{pair[0]},{pair[1]}")
    value = st.one_of(lines, cells, st.just("{")).map(str.encode)
    places = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))
    drawn = draw(st.lists(st.tuples(places, value), max_size=20))
    return [(*place, offset, value) for offset, (place, value) in enumerate(drawn)]


def batch(topics: StreamTopics, sent: list[tuple[str, int, int, bytes]]) -> pa.RecordBatch:
    own = [each for each in sent if each[0] in topics.names]
    numbers = [topics.number(topic, partition) for topic, partition, *_ in own]
    return pa.record_batch(
        [
            pa.array([value for *_, value in own], pa.binary()),
            pa.array(numbers, pa.int32()),
            pa.array([offset for _, _, offset, _ in own], pa.int64()),
        ],
        names=["value", "partition", "offset"],
    )


@dataclass(frozen=True)
class Answer:
    """Of one INSERT.

    Attributes:
        letters: place and reason of each dead letter.
        counted: records.
    """

    rows: Counter[Row]
    letters: list[Row]
    counted: int


def answers(script: str, sent: list[tuple[str, int, int, bytes]]) -> Iterator[Answer]:
    """Of each INSERT of a job that is read from its stored plan."""
    job = load(dump(plan(script)))
    for number in range(len(job.inserts)):
        spec = kernel_spec(job, number)
        there = batch(job.probe.source.topics, sent)
        joined = join_batch(spec, there, {}, CONTEXT)
        letters = joined.dead_letters.select(["topic", "partition", "offset", "reason"])
        yield Answer(
            Counter(tuple(row.values()) for row in joined.rows.to_pylist()),
            [tuple(each.values()) for each in letters.to_pylist()],
            spec.counted(there).num_rows,
        )


@settings(max_examples=examples(60))
@given(queries(), records(), st.booleans())
def test_a_job_over_several_tables_gives_the_sum_of_what_a_job_over_each_gives(some, sent, is_set):
    ddl = SINK + "".join({each.table.name: each.table.ddl for each in some}.values())
    united = list(answers(ddl + inserted(some, is_set=is_set), sent))
    rows: dict[int, Counter[Row]] = {}
    dead: dict[int, set[Row]] = {}
    for table in {each.table for each in some}:
        of_table = [number for number, each in enumerate(some) if each.table == table]
        own = [some[number] for number in of_table]
        apart = list(answers(ddl + inserted(own, is_set=is_set), sent))
        rows |= dict(zip(of_table, (each.rows for each in apart), strict=True))
        dead |= dict(zip(of_table, dead_in(own, apart), strict=True))
    assert [each.rows for each in united] == [rows[number] for number in range(len(some))]
    assert dead_in(some, united) == [dead[number] for number in range(len(some))]
    read = {topic for each in some for topic in each.table.topics}
    counted = sum(each.counted for each in united)
    assert counted == sum(topic in read for topic, *_ in sent), "each record counts once"


def inserted(some: list[Query], *, is_set: bool) -> str:
    """The job of these queries."""
    texts = [each.text for each in some]
    if is_set:
        inserts = " ".join(f"INSERT INTO o {text};" for text in texts)
        return f"EXECUTE STATEMENT SET BEGIN {inserts} END;"
    return f"INSERT INTO o {' UNION ALL '.join(texts)};"


def dead_in(some: list[Query], answered: list[Answer]) -> list[set[Row]]:
    """The letters of each INSERT: those that name it, and those that name none, of its topics."""
    dead: list[set[Row]] = [set() for _ in some]
    for number, answer in enumerate(answered):
        assert len({letter[:3] for letter in answer.letters}) == len(answer.letters), "once"
        for *place, reason in answer.letters:
            for other, each in enumerate(some):
                names_none = insert_told(reason) is None and place[0] in each.table.topics
                if other == number or names_none:
                    dead[other].add(tuple(place))
    return dead


def test_topics_keep_the_order_in_which_tables_are_met():
    a, b = Declared("a", ("t", "s"), TYPES[:2], "json"), Declared("b", ("u", "t"), TYPES[1:], "csv")
    query = "INSERT INTO o SELECT 'x', `of` FROM a UNION ALL SELECT 'y', `of` FROM b;"
    job = plan(SINK + a.ddl + b.ddl + query)
    assert job.probe.source.topics.names == ("t", "s", "u")
    assert [each.probe.reads for each in job.inserts] == [(0, 1), (2, 0)]
    assert [each.probe.topic_names for each in job.inserts] == [("t", "s"), ("u", "t")]


def test_what_one_table_cannot_read_of_a_topic_of_both_is_a_letter_of_its_own_inserts():
    a = Declared("a", ("s",), ("BIGINT", "STRING"), "json")
    b = Declared("b", ("s", "t"), ("STRING", "STRING"), "csv")
    texts = [Query(table, "CAST(k AS STRING)", "TRUE").text for table in (a, a, b)]
    script = f"{SINK}{a.ddl}{b.ddl}INSERT INTO o {' UNION ALL '.join(texts)};"
    sent = [("s", 0, 0, b'{"k": 1}'), ("s", 0, 1, b"x,y"), ("t", 0, 0, b'"')]
    first, second, third = answers(script, sent)
    for number, answer in ((1, first), (2, second)):
        (letter,) = answer.letters
        assert letter[:3] == ("s", 0, 1)
        assert insert_told(letter[3]) == number
    assert [letter[:3] for letter in third.letters] == [("s", 0, 0), ("t", 0, 0)]
    assert {insert_told(letter[3]) for letter in third.letters} == {3}
    assert [each.counted for each in (first, second, third)] == [2, 0, 1]
