"""Event batches on the workers, stage by stage, equal to the operators of `watermark`."""

import pickle
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.row_kinds import INSERT, UPDATE_AFTER
from joins.kernels.table_path import remove_below
from joins.plan.plan import (
    WINDOW,
    Aggregate,
    AggregateKind,
    BlackholeSink,
    DeltaSink,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MetadataField,
    OutputColumn,
    ProbeSource,
    WatermarkSpec,
    Windowing,
    WindowKind,
)
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics
from joins.plan.types import Call, Cast, Column, Constant, SqlType, TypeName
from tests.support.event_batches import CLOCK_MS, PARTITIONS, EventJob
from tests.support.laws import examples
from tests.support.object_store import object_store
from tests.support.probe import USERS
from watermark import MIN_TIMESTAMP, StatusWatermarkValve, Watermark
from watermark.model import PROCESSING_TIME
from watermark.reference.temporal import (
    BUILD,
    PROBE,
    Change,
    RowKind,
    TemporalJoinOperator,
    TemporalJoinSpec,
)
from watermark.reference.timers import OutputTag, Record, SideRecord
from watermark.reference.windows import (
    CumulativeWindows,
    SessionWindows,
    SlidingWindows,
    Stream,
    TumblingWindows,
)

BIGINT, INT = SqlType(TypeName.BIGINT), SqlType(TypeName.INT)
STRING, BOOLEAN = SqlType(TypeName.STRING), SqlType(TypeName.BOOLEAN)
TIME = SqlType(TypeName.TIMESTAMP, 3)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATE = OutputTag("late")


def col(name, kind=BIGINT):
    return Column("c", name, kind)


PROBE_COLUMNS = ProbeSource(
    alias="c",
    table="clicks",
    source=KafkaSource(KafkaOptions("localhost:9092", "clicks")),
    fields=(
        Field("user_id", BIGINT),
        Field("ts", TIME),
        Field("w", TIME),
        Field("unread", STRING),
    ),
    metadata_fields=(
        MetadataField("part", "partition", INT),
        MetadataField("place", "offset", BIGINT),
    ),
    watermark=WatermarkSpec("ts", col("w", TIME)),
)
PLAN = JoinPlan(
    name="job",
    sql="",
    probe=PROBE_COLUMNS,
    dimensions=(USERS,),
    joins=(
        DimensionJoin(
            "u",
            "users",
            JoinType.LEFT,
            (KeyPair(col("user_id"), "id"),),
            time=col("ts", TIME),
        ),
    ),
    where=None,
    output=(
        OutputColumn("part", col("part", INT)),
        OutputColumn("place", col("place")),
        OutputColumn("name", Column("u", "name", STRING)),
    ),
    sink_table="out",
    sink=BlackholeSink(),
)
COUNTS = JoinPlan(
    name="job",
    sql="",
    probe=PROBE_COLUMNS,
    dimensions=(),
    joins=(),
    where=None,
    output=(
        OutputColumn("window_time", Column(WINDOW, "window_time", TIME)),
        OutputColumn("user_id", Column(WINDOW, "user_id", BIGINT)),
        OutputColumn("n", Column(WINDOW, "n", BIGINT)),
    ),
    sink_table="out",
    sink=BlackholeSink(),
    window=Windowing(
        WindowKind.TUMBLE,
        10,
        col("ts", TIME),
        TIME,
        keys=(OutputColumn("user_id", col("user_id")),),
        aggregates=(Aggregate("n", AggregateKind.COUNT_ALL, None, BIGINT),),
    ),
)


def on_event(plan):
    watermark = replace(plan.probe.watermark, on_event=True)
    return replace(plan, probe=replace(plan.probe, watermark=watermark))


SPEC = PROBE_COLUMNS.watermark
PLACES = (MetadataField("of", "topic", STRING), *PROBE_COLUMNS.metadata_fields)
PLACED = (OutputColumn("of", col("of", STRING)), *PLAN.output)


def at(ms):
    return (EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def click(user, ms, watermark_ms=None):
    said = {} if watermark_ms is None else {"w": at(watermark_ms)}
    return {"user_id": user, "ts": None if ms is None else at(ms), **said}


def places(rows):
    return [row[:2] for row in rows]


# What is said by hand
# ----------------------------------------------------------------------------------------------


def test_records_wait_for_the_watermark_and_leave_in_order_of_arrival(tmp_path):
    job = EventJob(PLAN, tmp_path)
    first = job.run({0: [click(1, 30), click(2, 10, 5), click(9, 20)], 1: [click(3, 7, 5)]})
    assert (first.rows, first.watermarks) == ([], (MIN_TIMESTAMP, 5))
    assert (first.counts["waited"], first.counts["records"]) == (4, 4)
    second = job.run({0: [click(1, 20, 20)], 1: [click(2, 22, 25)]})
    assert second.watermarks == (5, 20)
    assert second.rows == [(0, 1, "r2"), (0, 2, None), (0, 3, "r1"), (1, 0, "r3")]
    assert (second.counts["released"], second.counts["waited"]) == (3, 1)
    third = job.run({}, upto=2**63 - 1)
    assert third.rows == [(0, 0, "r1"), (1, 1, "r2")]
    assert (third.counts["matched"], second.counts["unmatched"]) == (2, 1)


def test_a_record_at_or_behind_the_watermark_is_late_whatever_the_join_type(tmp_path):
    job = EventJob(PLAN, tmp_path)
    job.run({0: [click(1, 10, 10)], 1: [click(1, 10, 10)]})
    outcome = job.run({0: [click(1, 10), click(2, 11, 11)], 1: [click(9, 3, 11)]})
    assert places(outcome.rows) == [(0, 2)]
    assert outcome.counts["late"] == 2
    (first, second) = outcome.late
    assert (first["topic"], first["partition"], first["offset"]) == ("clicks", 0, 1)
    assert (first["event_time"], first["watermark"]) == (
        EPOCH + timedelta(milliseconds=10),
        EPOCH + timedelta(milliseconds=10),
    )
    assert first["timestamp"] == EPOCH + timedelta(milliseconds=7)
    assert (first["reason"], second["reason"]) == ("join", "join")
    assert b'"user_id": 1' in first["value"]


BAD = {
    "no_rowtime": ({"user_id": 1, "w": at(900)}, 'rowtime "ts" is NULL'),
    "far_future": (
        click(1, CLOCK_MS + 1_000 + 86_400_001, 5),
        'rowtime "ts" is 1970-01-02 00:16:41.001, more than 86400000 ms ahead of the clock',
    ),
    "far_future_watermark": (
        click(1, 5, CLOCK_MS + 1_000 + 86_400_001),
        'watermark of "ts" is 1970-01-02 00:16:41.001, more than 86400000 ms ahead of the clock',
    ),
    "no_object": (b"{", "the value is not one JSON object"),
}


@pytest.mark.parametrize("strategy", [lambda plan: plan, on_event], ids=["periodic", "on_event"])
@pytest.mark.parametrize(("value", "reason"), BAD.values(), ids=BAD)
def test_a_record_without_a_fit_time_is_a_dead_letter_and_moves_nothing(
    tmp_path, value, reason, strategy
):
    job = EventJob(strategy(PLAN), tmp_path)
    outcome = job.run({0: [value, click(2, 4, 3)], 1: [click(2, 4, 3)]})
    assert [(each["offset"], each["reason"]) for each in outcome.dead] == [(0, reason)]
    assert outcome.watermarks[1] == 3
    assert outcome.counts["dead_letters"] == 1


def test_a_rowtime_that_is_just_near_enough_is_taken(tmp_path):
    job = EventJob(PLAN, tmp_path)
    limit = CLOCK_MS + 1_000 + 86_400_000
    outcome = job.run({0: [click(1, limit, limit)], 1: [click(1, limit, limit)]})
    assert (outcome.dead, outcome.watermarks[1]) == ([], limit)


def test_a_row_that_fails_after_it_has_waited_is_a_dead_letter_of_that_batch(tmp_path):
    broken = Cast(Column("u", "name", STRING), BIGINT)
    output = (*PLAN.output, OutputColumn("number", broken))
    job = EventJob(replace(PLAN, output=output), tmp_path)
    assert job.run({0: [click(1, 10)], 1: []}).dead == []
    outcome = job.run({}, upto=10)
    assert outcome.rows == []
    (letter,) = outcome.dead
    assert (letter["partition"], letter["offset"]) == (0, 0)
    assert letter["reason"] == 'cannot cast "r1" to BIGINT'
    assert letter["value"] == b'{"user_id": 1, "ts": "1970-01-01 00:00:00.010"}'


def test_a_second_topic_is_what_a_second_partition_is_but_named_by_itself(tmp_path):
    """Rows, late records and dead letters have its name and its own partition 0."""
    topics = StreamTopics((StreamTopic("clicks"), StreamTopic("visits")))
    plan = replace(PLAN, probe=replace(PROBE_COLUMNS, metadata_fields=PLACES), output=PLACED)
    batches = [
        {0: [click(1, 10, 10)], 1: [click(1, 12, 10), click(2, 30, 10), b"none"]},
        {0: [click(1, 10), click(2, 31, 31)], 1: [click(3, 3, 33)]},
        {0: [click(1, 60, 60)], 1: [click(3, 61, 60)]},
    ]
    one = EventJob(plan, tmp_path / "one")
    two = EventJob(plan, tmp_path / "two", topics, (0, SPAN))
    names = {("clicks", 0): ("clicks", 0), ("clicks", 1): ("visits", 0)}
    for batch in batches:
        expected, outcome = one.run(batch), two.run({n * SPAN: rows for n, rows in batch.items()})
        assert outcome.rows == [(*names[row[:2]], *row[2:]) for row in expected.rows]
        assert (outcome.counts, outcome.watermarks) == (expected.counts, expected.watermarks)
        for table, other in ((outcome.late, expected.late), (outcome.dead, expected.dead)):
            renamed = [
                {**row, **dict(zip(("topic", "partition"), names[place], strict=True))}
                for row in other
                for place in ((row["topic"], row["partition"]),)
            ]
            assert table == renamed
    assert one.number == two.number == 3
    assert expected.rows, "something has left"


def test_on_event_a_watermark_holds_for_the_very_next_record(tmp_path):
    plan = replace(PLAN, joins=(replace(PLAN.joins[0], join_type=JoinType.INNER),))
    job = EventJob(on_event(plan), tmp_path)
    job.run({0: [], 1: [click(1, 50, 50)]})
    outcome = job.run({0: [click(1, 20), click(2, 10, 15), click(3, 12), click(3, 16, 30)]})
    assert places(outcome.rows) == [(0, 1), (0, 0), (0, 3)], "by the step that releases them"
    assert [each["offset"] for each in outcome.late] == [2]
    assert outcome.late[0]["watermark"] == EPOCH + timedelta(milliseconds=15)


def test_a_task_travels_to_workers(tmp_path):
    task = EventJob(PLAN, tmp_path).task
    travelled = pickle.loads(pickle.dumps(task))
    assert travelled.kernel == task.kernel
    assert travelled.places == task.places


def test_only_columns_that_are_read_behind_the_scan_are_carried(tmp_path):
    carried = [item.name for item in EventJob(PLAN, tmp_path).task.kernel.carried]
    assert "unread" not in carried
    assert "w" not in carried


JOINED_COUNTS = replace(COUNTS, joins=PLAN.joins, dimensions=(USERS,))


@pytest.mark.parametrize("plan", [PLAN, COUNTS, JOINED_COUNTS])
def test_stages_meet_in_a_store_as_they_do_in_a_directory(processes, tmp_path, monkeypatch, plan):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'of_executor'},/nowhere")
    batches = [
        {0: [click(1, 30), click(2, 10, 5), click(9, 20)], 1: [click(3, 7, 5)]},
        {0: [click(1, 20, 20)], 1: [click(2, 22, 25), click(2, 3)]},
        {0: [click(1, 60, 60)], 1: [click(3, 61, 60)]},
    ]
    with object_store() as store:
        one = EventJob(plan, tmp_path / "one")
        other = EventJob(plan, tmp_path / "other", scratch=store.path("exchange"))
        outcomes = [(one.run(batch), other.run(batch)) for batch in batches]
        assert all(expected == outcome for expected, outcome in outcomes)
        assert any(expected.rows for expected, _ in outcomes), "something has left"
        assert store.keys("exchange/"), "it went by the store"
        remove_below(other.task.places.scratch)
        assert store.keys() == []
    assert not (tmp_path / "other" / "scratch").exists()
    assert not any((tmp_path / "of_executor").glob("*")), "what a task had for itself is gone"


# Windows
# ----------------------------------------------------------------------------------------------


def test_windows_fire_and_late_records_go_to_their_table(tmp_path):
    job = EventJob(COUNTS, tmp_path)
    assert job.run({0: [click(1, 3), click(1, 4), click(2, 12, 8)], 1: [click(1, 5, 8)]}).rows == []
    outcome = job.run({0: [click(1, 9, 20)], 1: [click(3, 9, 12)]})
    nine = (EPOCH + timedelta(milliseconds=9)).replace(tzinfo=None)
    assert sorted(outcome.rows) == [(nine, 1, 4), (nine, 3, 1)]
    assert outcome.counts["fired"] == 2
    late = job.run({0: [click(7, 9, 20)], 1: []})
    assert [(each["offset"], each["reason"]) for each in late.late] == [(4, "window")]
    assert late.counts["late"] == 1


def test_a_filtered_record_is_not_late(tmp_path):
    where = Call("<", (col("user_id"), Constant("5", BIGINT)), BOOLEAN)
    job = EventJob(replace(COUNTS, where=where), tmp_path)
    job.run({0: [click(1, 30, 30)], 1: [click(1, 30, 30)]})
    outcome = job.run({0: [click(7, 3), click(1, 3)], 1: []})
    assert [each["offset"] for each in outcome.late] == [2]


def test_rows_of_windows_have_the_batch_but_no_record_as_metadata(tmp_path):
    job = EventJob(replace(COUNTS, sink=DeltaSink("out")), tmp_path)
    (row,) = job.run({0: [click(1, 3, 30)], 1: [click(1, 4, 30)]}).rows
    assert row[len(COUNTS.output) :] == (1, "")
    assert job.task.kernel.output_schema.names[-2:] == ["_batch", "_dimension_versions"]


def test_windows_that_follow_the_clock_count_every_record(tmp_path):
    window = replace(COUNTS.window, time=None)
    job = EventJob(replace(COUNTS, window=window), tmp_path)
    first = job.run({0: [{"user_id": 1}, {"user_id": 1, "ts": "no time"}], 1: [{"user_id": 1}]})
    assert (first.rows, len(first.dead)) == ([], 0), "nobody reads ts"
    second = job.run({0: [{"user_id": 1}]})
    assert [row[1:] for row in second.rows] == [(1, 3)]


def test_a_result_that_cannot_be_computed_is_a_dead_letter_without_a_record(tmp_path):
    n = Column(WINDOW, "n", BIGINT)
    zero = Call("-", (n, n), BIGINT)
    output = (OutputColumn("x", Call("/", (n, zero), BIGINT)),)
    job = EventJob(replace(COUNTS, output=output), tmp_path)
    outcome = job.run({0: [click(1, 3, 30)], 1: [click(1, 4, 30)]})
    assert outcome.rows == []
    (letter,) = outcome.dead
    assert letter["topic"] == WINDOW
    assert letter["partition"] < 0
    assert "division by zero" in letter["reason"]
    assert b'"n":2' in letter["value"].replace(b" ", b"")


def test_what_a_filter_keeps_out_is_not_computed(tmp_path):
    number = Cast(col("unread", STRING), BIGINT)
    is_small = Call("<", (col("user_id"), Constant("5", BIGINT)), BOOLEAN)
    total = Aggregate("n", AggregateKind.SUM, number, BIGINT, where=is_small)
    window = replace(COUNTS.window, keys=(), aggregates=(total,))
    output = (OutputColumn("n", Column(WINDOW, "n", BIGINT)),)
    job = EventJob(replace(COUNTS, window=window, output=output), tmp_path)
    values = [{**click(user, 3, 30), "unread": text} for user, text in ((1, "4"), (7, "x"))]
    outcome = job.run({0: values, 1: [{**click(2, 4, 30), "unread": "5"}]})
    assert (outcome.rows, outcome.dead) == ([(9,)], [])


# Laws
# ----------------------------------------------------------------------------------------------

TIMES = st.integers(-20, 60)
USERS_SEEN = st.none() | st.integers(1, 5)
RECORDS = st.tuples(USERS_SEEN, st.none() | TIMES, st.none() | TIMES)
BATCHES = st.lists(
    st.fixed_dictionaries({part: st.lists(RECORDS, max_size=6) for part in PARTITIONS}),
    min_size=1,
    max_size=5,
)


SEAM_MS = 60
LATER = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                part: st.lists(
                    st.tuples(USERS_SEEN, st.none() | st.integers(30, 100), st.none() | TIMES),
                    max_size=5,
                )
                for part in PARTITIONS
            }
        ),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=3,
)
SEAMS = st.tuples(BATCHES.map(lambda batches: batches[:3]), LATER)


class Merged:
    """Watermarks of partitions, merged; said by record, heard per batch or at once."""

    def __init__(self):
        self._valve = StatusWatermarkValve([str(part) for part in PARTITIONS])
        self._highest = defaultdict(lambda: MIN_TIMESTAMP)

    def say(self, part, watermark_ms):
        if watermark_ms is None or watermark_ms <= self._highest[part]:
            return ()
        self._highest[part] = watermark_ms
        return self._valve.input_watermark(str(part), Watermark(watermark_ms), now_ms=0)


def arrivals(batches):
    """(batch, partition, offset, user, time, watermark) in order of arrival, dead ones left out."""
    ends = defaultdict(int)
    for number, batch in enumerate(batches):
        for part in PARTITIONS:
            for user, time, watermark in batch[part]:
                if time is not None:
                    yield number, part, ends[part], user, time, watermark
                ends[part] += 1


def driven(operator, batches, emit_at_once, feed):
    """What `operator` gives for each batch, and at the end of time."""
    merged, numbers = Merged(), range(len(batches))
    steps = [(number, [e for e in arrivals(batches) if e[0] == number]) for number in numbers]
    outputs = [in_event_time(operator, merged, found, emit_at_once, feed) for _, found in steps]
    outputs.append(operator.process_watermark(Watermark(2**63 - 1), now_ms=0, **feed))
    return outputs


def in_event_time(operator, merged, arrived, emit_at_once, feed):
    """What `operator` gives for one batch, with `merged` watermarks."""
    out, pending = [], []
    for _, part, offset, user, time, watermark in arrived:
        out += operator.process_record(Record((part, offset, user), time), now_ms=0, **feed)
        if emit_at_once:
            for each in merged.say(part, watermark):
                out += operator.process_watermark(each, now_ms=0, **feed)
        else:
            pending.append((part, watermark))
    for each in [each for part, ms in pending for each in merged.say(part, ms)][-1:]:
        out += operator.process_watermark(each, now_ms=0, **feed)
    return out


def switched(operator, backlog, later, emit_at_once, feed):
    """What `operator` gives for each batch, where processing time begins behind the `backlog`.

    The records of a later batch have come since the clock of the one before.
    """
    merged, outputs, clock_ms = Merged(), [], SEAM_MS
    found = list(arrivals([*backlog, *(batch for batch, _ in later)]))
    for number in range(len(backlog)):
        arrived = [each for each in found if each[0] == number]
        if number == len(backlog) - 1 and not emit_at_once:
            arrived = [(*each[:-1], None) for each in arrived]  # it says one thing at its end
        outputs.append(in_event_time(operator, merged, arrived, emit_at_once, feed))
    outputs[-1] += operator.process_watermark(PROCESSING_TIME, now_ms=clock_ms, **feed)
    for number, (_, passes_ms) in enumerate(later, len(backlog)):
        out = []
        for _, part, offset, user, time, _ in (each for each in found if each[0] == number):
            record = Record((part, offset, user), time)
            out += operator.process_record(record, now_ms=clock_ms, **feed)
        clock_ms += passes_ms
        outputs.append([*out, *operator.advance_clock(clock_ms)])
    return outputs


def as_steps(backlog, later):
    """The same batches for an `EventJob`: values, and the clock of those in processing time."""
    clocks = [None] * (len(backlog) - 1) + [SEAM_MS]
    for _, passes_ms in later:
        clocks.append(clocks[-1] + passes_ms)
    batches = [*backlog, *(batch for batch, _ in later)]
    values = [{part: [click(*each) for each in b[part]] for part in b} for b in batches]
    return [(each, {"now_ms": clock}) for each, clock in zip(values, clocks, strict=True)]


def per_partition(found):
    """A partition's rows in order; across partitions the order is the tasks'."""
    result = defaultdict(list)
    for part, offset, *rest in found:
        result[part].append((offset, *rest))
    return dict(result)


def static_join():
    """Users 1 to 3, who never change."""
    spec = TemporalJoinSpec(lambda v: v[2], lambda row: row, left_outer=True, late_tag=LATE)
    operator = TemporalJoinOperator(spec)
    for user in (1, 2, 3):
        change = Record(Change(RowKind.INSERT, user), None)
        operator.process_record(change, now_ms=0, source=BUILD)
    operator.process_watermark(PROCESSING_TIME, now_ms=0, source=BUILD)
    return operator


@pytest.mark.parametrize("emit_at_once", [False, True], ids=["periodic", "on_event"])
@given(batches=BATCHES)
@settings(max_examples=examples(15))
def test_waiting_and_leaving_are_those_of_the_temporal_join_operator(
    tmp_path_factory, emit_at_once, batches
):
    operator = static_join()
    expected = driven(operator, batches, emit_at_once, {"source": PROBE})
    job = EventJob(on_event(PLAN) if emit_at_once else PLAN, tmp_path_factory.mktemp("job"))
    check_join(job, as_events(batches), expected)


@pytest.mark.parametrize("emit_at_once", [False, True], ids=["periodic", "on_event"])
@given(seam=SEAMS)
@settings(max_examples=examples(6))
def test_behind_a_backlog_the_join_is_that_of_the_operator_in_processing_time(
    tmp_path_factory, emit_at_once, seam
):
    expected = switched(static_join(), *seam, emit_at_once, {"source": PROBE})
    job = EventJob(on_event(PLAN) if emit_at_once else PLAN, tmp_path_factory.mktemp("job"))
    check_join(job, as_steps(*seam), expected)


def as_events(batches):
    values = [{part: [click(*each) for each in b[part]] for part in b} for b in batches]
    return [*((each, {}) for each in values), ({}, {"upto": 2**63 - 1})]


def check_dead(outcome, records):
    reasons = [each["reason"] for each in outcome.dead]
    count = sum(value["ts"] is None for values in records.values() for value in values)
    assert reasons == ['rowtime "ts" is NULL'] * count


def check_join(job, steps, expected):
    """Each batch of `job` has the rows and the late records that an operator gave for it."""
    for (records, time), wanted in zip(steps, expected, strict=True):
        outcome = job.run(records, **time)
        check_dead(outcome, records)
        rows = [
            (*row.value.probe[:2], None if row.value.build is None else f"r{row.value.build}")
            for row in wanted
            if isinstance(row, Record)
        ]
        late = [each.record.value[:2] for each in wanted if isinstance(each, SideRecord)]
        assert per_partition(outcome.rows) == per_partition(rows)
        assert [(each["partition"], each["offset"]) for each in outcome.late] == late


WINDOWS = {
    "tumble": ({"kind": WindowKind.TUMBLE}, TumblingWindows(10)),
    "hop": ({"kind": WindowKind.HOP, "slide_ms": 4}, SlidingWindows(10, 4)),
    "cumulate": ({"kind": WindowKind.CUMULATE, "slide_ms": 5}, CumulativeWindows(10, 5)),
    "session": ({"kind": WindowKind.SESSION, "size_ms": 6}, SessionWindows(6)),
}


@pytest.mark.parametrize(("shape", "assigner"), WINDOWS.values(), ids=WINDOWS)
@given(batches=BATCHES, mode=st.tuples(st.sampled_from([0, 7]), st.booleans()))
@settings(max_examples=examples(15))
def test_windows_are_those_of_the_window_operator(tmp_path_factory, shape, assigner, batches, mode):
    lateness, emit_at_once = mode
    keyed = Stream().key_by(lambda value: value[2]).window(assigner)
    counted = keyed.allowed_lateness(lateness).side_output_late_data(LATE)
    operator = counted.process(lambda context, values: [(context.key, len(values))])
    expected = driven(operator, batches, emit_at_once, {})
    window = replace(COUNTS.window, lateness_ms=lateness, **shape)
    plan = replace(COUNTS, window=window)
    job = EventJob(on_event(plan) if emit_at_once else plan, tmp_path_factory.mktemp("job"))
    check_windows(job, as_events(batches), expected)


@pytest.mark.parametrize(("shape", "assigner"), WINDOWS.values(), ids=WINDOWS)
@given(seam=SEAMS, mode=st.tuples(st.sampled_from([0, 7]), st.booleans()))
@settings(max_examples=examples(6))
def test_behind_a_backlog_windows_follow_the_clock_like_the_operator(
    tmp_path_factory, shape, assigner, seam, mode
):
    lateness, emit_at_once = mode
    keyed = Stream().key_by(lambda value: value[2]).window(assigner)
    counted = keyed.allowed_lateness(lateness).side_output_late_data(LATE)
    operator = counted.process(lambda context, values: [(context.key, len(values))])
    expected = switched(operator, *seam, emit_at_once, {})
    plan = replace(COUNTS, window=replace(COUNTS.window, lateness_ms=lateness, **shape))
    job = EventJob(on_event(plan) if emit_at_once else plan, tmp_path_factory.mktemp("job"))
    check_windows(job, as_steps(*seam), expected)


def check_windows(job, steps, expected):
    """Each batch of `job` has the results and the late records that an operator gave for it."""
    for (records, time), wanted in zip(steps, expected, strict=True):
        outcome = job.run(records, **time)
        check_dead(outcome, records)
        rows = [(each.timestamp_ms, *each.value) for each in wanted if isinstance(each, Record)]
        late = [each.record.value[:2] for each in wanted if isinstance(each, SideRecord)]
        found = [
            (round((end - EPOCH.replace(tzinfo=None)).total_seconds() * 1000), user, n)
            for (end, user, n), row_kind in zip(outcome.rows, outcome.kinds or (), strict=True)
            if row_kind in {INSERT, UPDATE_AFTER}
        ]
        assert sorted(found, key=str) == sorted(rows, key=str)
        assert sorted((each["partition"], each["offset"]) for each in outcome.late) == sorted(late)


class JoinThenCount:
    """A temporal join with windows behind it, as one operator."""

    def __init__(self, join, windows):
        self._join = join
        self._windows = windows

    def _onwards(self, elements, now_ms=0):
        for each in elements:
            if isinstance(each, Record):
                joined = Record(each.value.probe, each.timestamp_ms)
                yield from self._windows.process_record(joined, now_ms=0)
            elif isinstance(each, Watermark):
                yield from self._windows.process_watermark(each, now_ms=now_ms)
            else:
                yield each

    def process_record(self, record, *, now_ms, source):
        return list(self._onwards(self._join.process_record(record, now_ms=now_ms, source=source)))

    def process_watermark(self, watermark, *, now_ms, source):
        told = self._join.process_watermark(watermark, now_ms=now_ms, source=source)
        return list(self._onwards(told, now_ms))

    def advance_clock(self, now_ms):
        told = list(self._onwards(self._join.advance_clock(now_ms), now_ms))
        return told + list(self._windows.advance_clock(now_ms))


@pytest.mark.parametrize("emit_at_once", [False, True], ids=["periodic", "on_event"])
@given(batches=BATCHES)
@settings(max_examples=examples(15))
def test_windows_behind_a_join_get_what_it_releases(tmp_path_factory, emit_at_once, batches):
    keyed = Stream().key_by(lambda value: value[2]).window(TumblingWindows(10))
    windows = keyed.process(lambda context, values: [(context.key, len(values))])
    operator = JoinThenCount(static_join(), windows)
    expected = driven(operator, batches, emit_at_once, {"source": PROBE})
    plan = replace(COUNTS, joins=PLAN.joins, dimensions=PLAN.dimensions)
    job = EventJob(on_event(plan) if emit_at_once else plan, tmp_path_factory.mktemp("job"))
    check_windows(job, as_events(batches), expected)


@pytest.mark.parametrize("emit_at_once", [False, True], ids=["periodic", "on_event"])
@given(seam=SEAMS)
@settings(max_examples=examples(6))
def test_behind_a_backlog_what_a_join_lets_through_may_be_late_for_its_window(
    tmp_path_factory, emit_at_once, seam
):
    keyed = Stream().key_by(lambda value: value[2]).window(TumblingWindows(10))
    late = keyed.side_output_late_data(LATE)
    windows = late.process(lambda context, values: [(context.key, len(values))])
    operator = JoinThenCount(static_join(), windows)
    expected = switched(operator, *seam, emit_at_once, {"source": PROBE})
    probe = replace(PLAN.probe, watermark=replace(SPEC, after_backlog=True))
    plan = replace(COUNTS, probe=probe, joins=PLAN.joins, dimensions=PLAN.dimensions)
    job = EventJob(on_event(plan) if emit_at_once else plan, tmp_path_factory.mktemp("job"))
    check_windows(job, as_steps(*seam), expected)
