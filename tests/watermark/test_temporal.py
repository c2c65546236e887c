import pytest

from tests.watermark.acceptance import covers
from watermark.errors import UnknownChannelError
from watermark.model import MIN_TIMESTAMP, PROCESSING_TIME, Watermark
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
from watermark.reference.timers import OutputTag, Record

LATE = OutputTag("late")


class Join(OperatorHarness):
    """Probe rows are (key, name), build rows (key, value)."""

    def __init__(self, *, left=True, late_tag=None):
        spec = TemporalJoinSpec(
            probe_key=lambda row: row[0],
            build_key=lambda row: row[0],
            left_outer=left,
            late_tag=late_tag,
        )
        super().__init__(lambda: TemporalJoinOperator(spec), now_ms=1_000)

    def probe(self, key, name, time=None):
        return pairs(self.row((key, name), time, source=PROBE))

    def build(self, key, value, time=None, kind=RowKind.INSERT):
        return self.row(Change(kind, (key, value)), time, source=BUILD)

    def until(self, time):
        self.watermark(time, source=BUILD)
        return pairs(self.watermark(time, source=PROBE))

    def both_in_processing_time(self):
        caused = self.processing_time(source=PROBE)
        return pairs(caused + self.processing_time(source=BUILD))


def pairs(elements):
    return [
        (each.value.probe[1], each.value.build and each.value.build[1])
        for each in elements
        if isinstance(each, Record)
    ]


@covers("B07", "B33", "B34", "B35")
def test_no_probe_row_is_joined_before_the_build_side_is_complete():
    join = Join()
    join.processing_time(source=PROBE)
    assert join.probe(1, "early") == []
    join.build(1, "old")
    join.build(1, "new", kind=RowKind.UPDATE_AFTER)
    assert join.probe(2, "early too") == []
    assert join.operator.waiting == 2
    # The snapshot is complete.
    caused = join.processing_time(source=BUILD)
    assert pairs(caused) == [("early", "new"), ("early too", None)]
    assert caused[-1] == PROCESSING_TIME
    assert join.operator.waiting == 0


@covers("B07", "B35", "B55")
def test_in_processing_time_rows_join_directly_with_the_latest_version():
    join = Join()
    join.build(1, "a")
    assert join.both_in_processing_time() == []
    assert join.probe(1, "x", 5) == [("x", "a")]
    join.build(1, "b", 500, kind=RowKind.UPDATE_AFTER)
    join.build(1, "b", 500, kind=RowKind.UPDATE_BEFORE)
    assert join.probe(1, "y", 4) == [("y", "b")]
    join.build(1, "b", kind=RowKind.DELETE)
    assert join.probe(1, "z") == [("z", None)]
    # No timers, one row a key, nothing for deleted keys.
    assert join.operator.versions == 0
    assert not join.operator.timers.has_due()


@covers("B35")
def test_going_to_processing_time_keeps_only_the_latest_version():
    join = Join()
    for time, value in ((10, "a"), (20, "b"), (30, "c")):
        join.build(1, value, time)
    join.build(2, "gone", 10)
    join.build(2, "gone", 20, kind=RowKind.DELETE)
    assert join.operator.versions == 5
    join.both_in_processing_time()
    assert join.operator.versions == 1


@covers("B34", "B08")
def test_in_event_time_a_row_sees_the_version_of_its_time():
    join = Join()
    join.build(1, "a", 10)
    join.build(1, "b", 20)
    for name, time in (("before", 9), ("at", 10), ("between", 19), ("at the next", 20)):
        join.probe(1, name, time)
    assert join.until(8) == []
    assert join.until(20) == [
        ("before", None),
        ("at", "a"),
        ("between", "a"),
        ("at the next", "b"),
    ]
    assert [each.timestamp_ms for each in join.records()] == [9, 10, 19, 20]


@covers("B34")
def test_rows_that_become_due_together_come_out_in_the_order_of_arrival():
    join = Join()
    for name, time in (("first", 9), ("second", 3), ("later", 30), ("third", 5)):
        join.probe(1, name, time)
    assert [name for name, _ in join.until(10)] == ["first", "second", "third"]
    assert [name for name, _ in join.until(30)] == ["later"]


@covers("B19", "B34")
def test_late_probe_rows_go_to_the_side_output_and_late_build_rows_count():
    join = Join(late_tag=LATE)
    join.build(1, "a", 10)
    join.until(50)
    assert join.probe(1, "late", 50) == []
    assert [each.value for each in join.side(LATE)] == [(1, "late")]
    join.build(1, "late but valid", 40)
    join.probe(1, "in time", 51)
    assert join.until(60) == [("in time", "late but valid")]


def test_late_probe_rows_are_counted_and_dropped_without_a_side_output():
    join = Join()
    join.until(50)
    join.probe(1, "late", 49)
    assert join.output[-1] == Watermark(50)
    assert join.operator.late_records_dropped == 1


BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
INSERT, DELETE = RowKind.INSERT, RowKind.DELETE
AT_ONE_TIME = {
    "deleted_and_inserted": ([(DELETE, "a"), (INSERT, "b")], "b"),
    "inserted_and_deleted": ([(INSERT, "b"), (DELETE, "b")], None),
    "updated": ([(INSERT, "b"), (BEFORE, "b"), (AFTER, "c")], "c"),
    "updated_and_deleted": ([(BEFORE, "a"), (AFTER, "b"), (DELETE, "b")], None),
    "deleted_inserted_and_deleted": ([(DELETE, "a"), (INSERT, "b"), (DELETE, "b")], None),
}


@pytest.mark.parametrize(("changes", "row"), AT_ONE_TIME.values(), ids=AT_ONE_TIME)
def test_of_the_changes_at_one_time_the_last_one_counts(changes, row):
    join = Join()
    join.build(1, "a", 10)
    for kind, value in changes:
        join.build(1, value, 20, kind=kind)
    join.probe(1, "x", 19)
    join.probe(1, "y", 20)
    assert join.until(30) == [("x", "a"), ("y", row)]


def test_without_event_time_the_last_change_counts():
    join = Join()
    join.build(1, "a")
    join.build(1, "a", kind=RowKind.DELETE)
    join.build(1, "again")
    join.probe(1, "x")
    assert join.both_in_processing_time() == [("x", "again")]


def test_versions_that_nobody_can_see_are_forgotten_but_the_last_valid_one_stays():
    join = Join()
    for time in range(10, 60, 10):
        join.build(1, f"v{time}", time)
    join.probe(1, "waits", 25)
    join.watermark(45, source=BUILD)
    join.watermark(24, source=PROBE)
    join.build(1, "v60", 60)
    assert join.operator.versions == 5
    assert join.until(45) == [("waits", "v20")]
    join.build(1, "v70", 70)
    assert join.operator.versions == 4
    join.probe(1, "next", 46)
    assert join.until(46) == [("next", "v40")]


@pytest.mark.parametrize(("left", "expected"), [(True, [("x", None)]), (False, [])])
def test_null_keys_and_missing_rows_never_match(left, expected):
    for key in (None, 7):
        join = Join(left=left)
        join.build(None, "null")
        join.both_in_processing_time()
        assert join.probe(key, "x") == expected


@covers("B34")
def test_event_time_holds_while_one_side_is_in_event_time():
    join = Join()
    join.build(1, "a", 10)
    join.processing_time(source=BUILD)
    assert join.probe(1, "x", 10) == []
    assert join.watermark(9, source=PROBE) == [Watermark(9)]
    assert pairs(join.watermark(10, source=PROBE)) == [("x", "a")]
    assert join.probe(1, "waits") == []
    assert pairs(join.processing_time(source=PROBE)) == [("waits", "a")]


def test_a_restart_anywhere_changes_nothing():
    def run(cut):
        join = Join(late_tag=LATE)
        steps = [
            lambda: join.build(1, "a", 10),
            lambda: join.probe(1, "x", 12),
            lambda: join.probe(1, "no time"),
            lambda: join.build(1, "b", 20),
            lambda: join.until(15),
            lambda: join.probe(1, "late", 3),
            lambda: join.probe(1, "y", 22),
            lambda: join.both_in_processing_time(),
            lambda: join.probe(1, "z"),
        ]
        for number, step in enumerate(steps):
            if number == cut:
                join.restart()
            step()
        return join.output

    assert all(run(cut) == run(None) for cut in range(9))
    assert JoinedRow((1, "z"), (1, "b")) in [
        each.value for each in run(None) if isinstance(each, Record)
    ]


def test_inputs_have_names():
    with pytest.raises(UnknownChannelError, match='no input "left"') as raised:
        Join().row((1, "x"), MIN_TIMESTAMP, source="left")
    assert "probe, build" in raised.value.hint
