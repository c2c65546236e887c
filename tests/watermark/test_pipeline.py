"""Sources, valves and operators together: the use case of FLIP-326 without a broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.watermark.acceptance import covers
from watermark.model import PROCESSING_TIME, Watermark, WatermarkStatus
from watermark.reference.emission import SourceOperator
from watermark.reference.generators import WatermarkStrategy
from watermark.reference.temporal import (
    BUILD,
    PROBE,
    Change,
    JoinedRow,
    RowKind,
    TemporalJoinOperator,
    TemporalJoinSpec,
)
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import Record
from watermark.reference.windows import Stream, TumblingWindows
from watermark.valve import StatusWatermarkValve


class TwoPhases:
    """Copies a table, then streams its changes; it speaks when the copy is complete."""

    def delegate_watermark_periodic_emit(self, on_watermark_emit):
        self.copied = on_watermark_emit
        return True


class Job:
    """A probe source and parallel build sources, each behind the valve of its input."""

    def __init__(self, **readers):
        spec = TemporalJoinSpec(lambda row: row["user"], lambda row: row["user"], left_outer=True)
        self.join = OperatorHarness(lambda: TemporalJoinOperator(spec), now_ms=1_000)
        self.readers = readers or {name: TwoPhases() for name in ("build-0", "build-1")}
        none = WatermarkStrategy.no_watermarks()
        self.sources = {
            name: SourceOperator(none, reader=each) for name, each in self.readers.items()
        }
        self.sources["probe-0"] = SourceOperator(none, emit_progressive_watermarks=False)
        self.valves = {
            PROBE: StatusWatermarkValve(["probe-0"]),
            BUILD: StatusWatermarkValve(list(self.readers)),
        }

    def row(self, name, value):
        self.ship(name, self.sources[name].process_record(value, now_ms=1_000))

    def copied(self, name):
        self.readers[name].copied(1_000)
        self.ship(name, self.sources[name].drain())

    def ship(self, name, elements):
        side = PROBE if name.startswith("probe") else BUILD
        for element in elements:
            if isinstance(element, Record):
                self.join.row(element.value, element.timestamp_ms, source=side)
                continue
            if isinstance(element, WatermarkStatus):
                outputs = self.valves[side].input_status(name, element)
            else:
                outputs = self.valves[side].input_watermark(name, element, now_ms=1_000)
            for output in outputs:
                self.join.watermark(output, source=side)


@pytest.mark.parametrize("order", [("build-0", "build-1"), ("build-1", "build-0")])
@covers("B07", "B23", "B33", "B34", "B35", "B43", "B55", "B56")
def test_every_probe_row_is_joined_with_the_whole_copy_and_none_before(order):
    job = Job()
    job.row("probe-0", {"user": 1, "item": 10})
    job.row("build-0", Change(RowKind.INSERT, {"user": 1, "gender": "f"}))
    job.row("probe-0", {"user": 2, "item": 11})
    job.copied(order[0])
    job.row("probe-0", {"user": 3, "item": 12})
    assert job.join.records() == []
    job.row("build-1", Change(RowKind.INSERT, {"user": 2, "gender": "m"}))
    job.copied(order[1])
    genders = [(row.probe["item"], row.build and row.build["gender"]) for row in job.join.values()]
    assert genders == [(10, "f"), (11, "m"), (12, None)]
    job.row("build-0", Change(RowKind.UPDATE_AFTER, {"user": 1, "gender": "x"}))
    job.row("probe-0", {"user": 1, "item": 13})
    assert job.join.values()[-1] == JoinedRow({"user": 1, "item": 13}, {"user": 1, "gender": "x"})
    assert job.join.watermarks() == [PROCESSING_TIME]


class Hybrid(TwoPhases):
    """Reads one part after the other; it speaks behind the last row of the last part."""

    def __init__(self, *parts):
        self.rows = [row for part in parts for row in part]

    def read(self, job, name):
        if self.rows:
            job.row(name, self.rows.pop(0))
        if not self.rows:
            job.copied(name)


class Early:
    """The operator before FLIP-326: a probe row is joined at once with the rows that have come."""

    def __init__(self):
        self.names, self.joined = {}, {}

    def build(self, change):
        self.names[change.row["user"]] = change.row["name"]

    def probe(self, item, user):
        self.joined[item] = self.names.get(user)


USERS = st.integers(0, 4)
PARTS = st.lists(USERS, min_size=1, max_size=6)
# True reads one row of the table, False takes one of the stream
ORDERS = st.lists(st.booleans(), max_size=20)


@given(PARTS, PARTS, st.lists(USERS, max_size=8), ORDERS)
@covers("B04", "B05")
def test_behind_files_and_a_topic_each_row_finds_what_it_missed_without_waiting(
    files, topic, users, order
):
    parts = [
        [Change(RowKind.UPDATE_AFTER, {"user": user, "name": f"{part} {n}"}) for n, user in rows]
        for part, rows in (("file", enumerate(files)), ("topic", enumerate(topic)))
    ]
    table = {change.row["user"]: change.row["name"] for part in parts for change in part}
    source, early, probes = Hybrid(*parts), Early(), [*enumerate(users)]
    job = Job(build=source)
    for reads in [*order, *[False] * len(users), *[True] * len(source.rows)]:
        if reads and source.rows:
            early.build(source.rows[0])
            source.read(job, "build")
        elif not reads and probes:
            item, user = probes.pop(0)
            early.probe(item, user)
            job.row("probe-0", {"user": user, "item": item})
        assert not source.rows or job.join.records() == [], "the topic is not read to its end"
    waited = {row.probe["item"]: row.build and row.build["name"] for row in job.join.values()}
    assert waited == {item: table.get(user) for item, user in enumerate(users)}
    assert len(job.join.values()) == len(users), "each once"
    missed = {item for item in waited if early.joined[item] != waited[item]}
    assert all(waited[item] is not None for item in missed)


@covers("B04")
def test_a_join_that_does_not_wait_loses_the_users_that_come_behind_their_clicks():
    early = Early()
    early.probe(10, 1)
    early.build(Change(RowKind.INSERT, {"user": 1, "name": "Ada"}))
    early.probe(11, 1)
    assert early.joined == {10: None, 11: "Ada"}


@covers("B55", "E05", "E18", "E20", "B56")
def test_event_time_flows_through_parallel_sources_and_a_valve_into_windows():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(5)
    sources = {name: SourceOperator(strategy, interval_ms=10) for name in ("0", "1")}
    valve = StatusWatermarkValve(list(sources))
    harness = OperatorHarness(
        lambda: Stream().window_all(TumblingWindows(100)).reduce(lambda a, b: a + b)
    )
    for now_ms in range(0, 300, 10):
        for number, (name, source) in enumerate(sources.items()):
            elements = [
                *source.process_record(1, now_ms + number, now_ms=now_ms),
                *source.advance_clock(now_ms),
            ]
            for element in elements:
                if isinstance(element, Record):
                    harness.feed([element])
                else:
                    harness.feed(valve.input_watermark(name, element, now_ms=now_ms))
    for name, source in sources.items():
        for element in source.end_of_input(now_ms=300):
            harness.feed(valve.input_watermark(name, element, now_ms=300))
    assert [(each.value, each.timestamp_ms) for each in harness.records()] == [
        (20, 99),
        (20, 199),
        (20, 299),
    ]
    assert all(isinstance(each, Watermark) for each in harness.watermarks())
    assert harness.operator.late_records_dropped == 0
