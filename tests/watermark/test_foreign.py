"""When somebody else's snapshot is complete, case by case."""

from dataclasses import replace

import pytest

from tests.watermark.foreign_model import is_older
from watermark.foreign import ForeignSnapshot, SnapshotRules
from watermark.foreign_journal import Complete, SnapshotJournal
from watermark.foreign_records import Mark, Notice, NoticeKind, RecordRun
from watermark.model import Evidence, Quiet

SOURCE = 90_000
PARTITIONS = range(2)
PLAIN = SnapshotRules(settle_ms=10_000)
COMPACTED = SnapshotRules(settle_ms=10_000, is_compacted=True)
OPENS_SKIPPED = SnapshotRules(opens_when_skipped=True)
STARTED = Notice(NoticeKind.STARTED, 89_000)


def run(mark, partition=0, at=100_000, source=SOURCE, position=0):
    return ("take", RecordRun(mark, frozenset([partition]), at, at, source, source, position))


def heard(kind, at=101_000, rows=None):
    return ("notify", [Notice(kind, at, rows)])


FIRST, ROW, LAST = run(Mark.FIRST), run(Mark.ROW, 1), run(Mark.LAST)
CHUNKED = [
    run(Mark.ROW, 1, source=SOURCE + 9, position=7),
    run(Mark.FIRST, 0, 100_001, SOURCE, 7),
    run(Mark.LAST, 0, 100_002, SOURCE + 5, 7),
]
STREAMED = [run(Mark.STREAMED, p, 102_000, 102_000) for p in PARTITIONS]
SCANNED = heard(NoticeKind.SCANNED, rows=2)
SCANNED_LATER = heard(NoticeKind.SCANNED, 199_500, 2)
ENDS = ("take_ends", {0: 5, 1: 7})
APPLIED = ("applied", {0: 5, 1: 7})
LATER = 11_000

WAITS = {
    "rows_of_several_times_are_not_counted_without_their_position": (
        PLAIN,
        [FIRST, run(Mark.ROW, 1, source=SOURCE + 9), LAST, ("take_row_count", 2), SCANNED],
        "10 s of the settle time are left",
    ),
    "rows_of_several_positions_are_not_counted_even_at_one_time": (
        PLAIN,
        [run(Mark.FIRST, position=7), run(Mark.LAST, position=8), ("take_row_count", 2), SCANNED],
        "10 s of the settle time are left",
    ),
    "nothing_is_there": (PLAIN, [], "no snapshot row of the table is here"),
    "rows_without_an_end": (
        PLAIN,
        [FIRST, ("take_row_count", 1)],
        "1 snapshot rows, and no sign of its",
    ),
    "a_row_may_be_on_its_way": (PLAIN, [FIRST, ROW, LAST], "10 s of the settle time are left"),
    "the_count_is_not_reached": (
        PLAIN,
        [FIRST, SCANNED, ("take_row_count", 1)],
        "1 of 2 snapshot rows",
    ),
    "the_count_may_be_one_by_chance": (
        PLAIN,
        [FIRST, ROW, SCANNED, ("take_row_count", 2)],
        "10 s of the settle time are left",
    ),
    "the_count_is_not_reached_behind_the_last_row": (
        PLAIN,
        [FIRST, LAST, *STREAMED, SCANNED, ("take_row_count", 1)],
        "1 of 2 snapshot rows",
    ),
    "more_rows_than_were_scanned": (
        PLAIN,
        [FIRST, SCANNED, ("take_row_count", 3)],
        "3 of 2 snapshot",
    ),
    "changes_without_a_snapshot": (PLAIN, STREAMED, "has copied no rows of the table"),
    "a_skipped_snapshot": (PLAIN, [heard(NoticeKind.SKIPPED)], "has copied no rows of the table"),
    "a_snapshot_that_was_skipped_in_its_midst": (
        PLAIN,
        [("notify", [STARTED]), FIRST, ROW, heard(NoticeKind.SKIPPED), *STREAMED],
        "has skipped the rest of its snapshot",
    ),
    "a_snapshot_that_was_skipped_before_its_first_row": (
        OPENS_SKIPPED,
        [("notify", [STARTED]), heard(NoticeKind.SKIPPED)],
        "has skipped the rest of its snapshot",
    ),
    "an_aborted_snapshot": (PLAIN, [FIRST, LAST, heard(NoticeKind.ABORTED)], "has given up its"),
    "a_table_that_was_not_read": (
        PLAIN,
        [FIRST, heard(NoticeKind.SCAN_FAILED)],
        "could not read the table",
    ),
    "one_partition_is_not_streamed": (PLAIN, [FIRST, ROW, STREAMED[0]], "no sign of its end"),
    "an_offset_of_an_earlier_life": (
        PLAIN,
        [FIRST, ROW, ("take_commit", SOURCE - 1_000)],
        "no sign of its end",
    ),
    "records_were_removed": (
        PLAIN,
        [("begins", {0: 0, 1: 9}), FIRST, ROW, LAST],
        "the oldest records of partition 1 were removed",
    ),
    "a_scan_of_an_earlier_snapshot": (
        PLAIN,
        [FIRST, ROW, heard(NoticeKind.SCANNED, SOURCE - 1, 2), ("take_row_count", 2)],
        "2 snapshot rows, and no sign of its end",
    ),
    "the_ends_are_not_reached": (
        PLAIN,
        [FIRST, ROW, LAST, SCANNED, ("take_row_count", 2), ENDS, ("applied", {0: 5, 1: 4})],
        "3 records up to the ends",
    ),
}

OPENS = {
    "the_last_row_and_the_time": (
        PLAIN,
        [FIRST, ROW, LAST, ("ask", 0), ("ask", LATER), ENDS, APPLIED],
        (Evidence.LAST_SNAPSHOT_ROW, Quiet.SETTLE_TIME),
    ),
    "the_last_row_and_changes_in_the_other_partition": (
        PLAIN,
        [FIRST, ROW, LAST, STREAMED[1], ENDS, APPLIED],
        (Evidence.LAST_SNAPSHOT_ROW, Quiet.PARTITIONS_ENDED),
    ),
    "the_scan_and_its_rows": (
        PLAIN,
        [FIRST, ROW, LAST, ("take_row_count", 2), SCANNED, ENDS, APPLIED],
        (Evidence.LAST_SNAPSHOT_ROW, Quiet.ROWS_COUNTED),
    ),
    "rows_that_several_threads_read_at_one_position": (
        PLAIN,
        [*CHUNKED, ("take_row_count", 2), SCANNED, ENDS, APPLIED],
        (Evidence.LAST_SNAPSHOT_ROW, Quiet.ROWS_COUNTED),
    ),
    "an_empty_table": (
        PLAIN,
        [heard(NoticeKind.SCANNED, rows=0), ENDS, APPLIED],
        (Evidence.TABLE_SCAN_COMPLETED, Quiet.ROWS_COUNTED),
    ),
    "changes_in_each_partition": (
        PLAIN,
        [FIRST, ROW, *STREAMED, ENDS, APPLIED],
        (Evidence.FIRST_STREAMED_CHANGE, Quiet.PARTITIONS_ENDED),
    ),
    "the_connectors_offset": (
        PLAIN,
        [FIRST, ROW, ("take_commit", SOURCE), ENDS, APPLIED],
        (Evidence.CONNECTOR_OFFSETS, Quiet.CONNECTOR_OFFSETS),
    ),
    "fewer_rows_in_a_compacted_topic": (
        COMPACTED,
        [FIRST, ("take_row_count", 1), SCANNED, *STREAMED, ENDS, APPLIED],
        (Evidence.TABLE_SCAN_COMPLETED, Quiet.PARTITIONS_ENDED),
    ),
    "removed_records_that_were_no_rows": (
        PLAIN,
        [("begins", {0: 0, 1: 9}), FIRST, ROW, LAST, ("take_row_count", 2), SCANNED, ENDS, APPLIED],
        (Evidence.LAST_SNAPSHOT_ROW, Quiet.ROWS_COUNTED),
    ),
    "a_skipped_snapshot_if_the_job_says_so": (
        OPENS_SKIPPED,
        [heard(NoticeKind.SKIPPED), ENDS, APPLIED],
        (Evidence.SNAPSHOT_SKIPPED, Quiet.NO_SNAPSHOT),
    ),
    "a_topic_that_is_no_connectors": (
        SnapshotRules(ends=((0, 5), (1, 7))),
        [APPLIED],
        (Evidence.END_OFFSETS, Quiet.NO_SNAPSHOT),
    ),
    "a_topic_that_ends_whatever_its_connector_says": (
        SnapshotRules(ends=((0, 5), (1, 7)), has_end=True),
        [FIRST, ROW, APPLIED],
        (Evidence.BOUNDED_INPUT_ENDED, Quiet.NO_SNAPSHOT),
    ),
    "the_operators_word": (
        PLAIN,
        [FIRST, heard(NoticeKind.ABORTED), ("override", "it is all there"), ENDS, APPLIED],
        (Evidence.OPERATOR_OVERRIDE, Quiet.OPERATOR_OVERRIDE),
    ),
}


def told(rules, script):
    """A snapshot that has met all of the script."""
    begins = next((value for name, value in script if name == "begins"), {})
    snapshot = ForeignSnapshot(PARTITIONS, rules, SnapshotJournal.first(1, begins))
    for name, value in script:
        if name in ("applied", "begins"):
            continue  # `applied_in` gives the one with the question
        if name == "take_ends":
            snapshot.ask(0, {})  # ends count only if they were asked for
        if name == "ask":
            snapshot.ask(value, {})
        else:
            getattr(snapshot, name)(value)
    return snapshot


def applied_in(script):
    return next((value for name, value in script if name == "applied"), {})


@pytest.mark.parametrize(("rules", "script", "text"), WAITS.values(), ids=WAITS)
def test_a_table_waits_for(rules, script, text):
    answer = told(rules, script).ask(0, applied_in(script))
    assert not isinstance(answer, Complete)
    assert text in answer.text


@pytest.mark.parametrize(("rules", "script", "reason"), OPENS.values(), ids=OPENS)
def test_a_table_is_complete_by(rules, script, reason):
    answer = told(rules, script).ask(LATER, applied_in(script))
    assert isinstance(answer, Complete), answer
    assert (answer.evidence, answer.quiet) == reason


@pytest.mark.parametrize(("rules", "script", "reason"), OPENS.values(), ids=OPENS)
def test_it_stays_complete_over_a_restart(rules, script, reason):
    snapshot = told(rules, script)
    before = snapshot.ask(LATER, applied_in(script))
    kept = SnapshotJournal.of_json(snapshot.journal.as_json())
    assert kept == snapshot.journal
    restored = ForeignSnapshot(PARTITIONS, rules, kept)
    restored.notify([Notice(NoticeKind.ABORTED, 103_000)])
    assert restored.ask(LATER, {}) == before
    assert reason


COMPLETE = OPENS["the_scan_and_its_rows"][1]
AGAIN = {
    "its_first_row": (run(Mark.FIRST, 0, 200_000, 199_000), 200_000),
    "a_row_behind_a_change": (run(Mark.ROW, 0, 200_000, 199_000), 200_000),
    "a_row_behind_a_start": (run(Mark.ROW, 0, 200_000, 199_000), 199_000),
    "a_scan": (heard(NoticeKind.SCANNED, 199_500, 0), 199_000),
}


@pytest.mark.parametrize("case", AGAIN, ids=AGAIN)
def test_a_later_snapshot_is_a_new_generation(case):
    script, expected = AGAIN[case]
    before = [*COMPLETE]
    if case == "a_row_behind_a_change":
        before += STREAMED
    if case in ("a_row_behind_a_start", "a_scan"):
        before += [("notify", [Notice(NoticeKind.STARTED, 199_000)])]
    snapshot = told(PLAIN, before)
    assert isinstance(snapshot.ask(0, APPLIED[1]), Complete)
    new = getattr(snapshot, script[0])(script[1])
    assert (new.at_ms, new.must_read_again) == (expected, False)
    snapshot.begin_generation(new)
    assert snapshot.generation == 2
    assert not isinstance(snapshot.ask(0, {}), Complete)
    assert is_older(snapshot.journal, Mark.STREAMED, expected - 1)
    assert not is_older(snapshot.journal, Mark.STREAMED, expected)


NO_NEWS = {
    "its_rows_once_more": [FIRST, ROW, LAST],
    "changes": STREAMED,
    "rows_that_were_read_at_the_same_position": [
        run(Mark.FIRST, 0, 200_000, 199_000, 7),
        run(Mark.LAST, 0, 200_000, 199_000, 7),
    ],
    "a_start_of_others": [("notify", [Notice(NoticeKind.STARTED, 300_000)])],
}


@pytest.mark.parametrize("script", NO_NEWS.values(), ids=NO_NEWS)
def test_what_comes_again_begins_no_generation(script):
    placed = [*CHUNKED, ("take_row_count", 2), SCANNED, ENDS, APPLIED]
    is_placed = script[0][1].log_position if script[0][0] == "take" else 0
    snapshot = told(PLAIN, [*(placed if is_placed else COMPLETE), ("notify", [STARTED])])
    snapshot.ask(0, APPLIED[1])
    assert [getattr(snapshot, name)(value) for name, value in script] == [None] * len(script)


def test_rows_that_were_read_too_soon_are_read_again():
    """An aborted snapshot and a new one: of its rows one was there before its first one."""
    snapshot = told(PLAIN, [FIRST, ROW, run(Mark.ROW, 1, 200_001, 199_000)])
    new = snapshot.take(run(Mark.FIRST, 0, 200_000, 199_000)[1])
    assert new is not None
    assert new.must_read_again


def test_a_later_snapshot_begins_with_its_first_row_that_came_not_with_the_one_marked_so():
    """The snapshot before was given up; in the later one several threads read chunks."""
    given_up = [run(Mark.FIRST, 0, position=7), run(Mark.ROW, 1, position=7)]
    snapshot = told(PLAIN, given_up)
    assert snapshot.take(run(Mark.ROW, 1, 200_000, 199_009, 9)[1]) is None
    new = snapshot.take(run(Mark.FIRST, 0, 200_005, 199_000, 9)[1])
    assert (new.at_ms, new.must_read_again) == (200_000, True)
    snapshot.begin_generation(new)
    behind = [(Mark.ROW, 200_000), (Mark.FIRST, 200_005), (Mark.LAST, 200_006)]
    assert [snapshot.take(run(mark, 0, at, 199_000, 9)[1]) for mark, at in behind] == [None] * 3
    assert not is_older(snapshot.journal, Mark.ROW, 199_999, 9)
    assert is_older(snapshot.journal, Mark.ROW, 199_999, 7)


def test_threads_of_a_snapshot_in_the_midst_of_a_stream_have_positions_of_their_own():
    """As MariaDB's connector: a blocking snapshot in chunks has two, in turns."""
    snapshot = told(PLAIN, [*CHUNKED, *STREAMED])
    new = snapshot.take(run(Mark.ROW, 0, 200_000, 199_000, 8)[1])
    assert new is not None
    snapshot.begin_generation(new)
    marks = [Mark.ROW, Mark.ROW, Mark.FIRST, Mark.ROW, Mark.ROW, Mark.LAST]
    runs = [run(mark, n % 2, 200_000 + n, 199_000, 8 + n % 2) for n, mark in enumerate(marks)]
    assert [snapshot.take(value) for _, value in runs] == [None] * 6
    assert snapshot.generation == 2


def test_a_table_waits_for_a_later_snapshot_of_which_only_a_notification_tells():
    """Compaction has left one row of the snapshot before, which was given up."""
    rules = SnapshotRules(is_compacted=True)
    snapshot = told(rules, [("notify", [Notice(NoticeKind.STARTED, 199_000)]), SCANNED_LATER])
    for name, value in [FIRST, ("take_commit", SOURCE + 200_000)]:
        getattr(snapshot, name)(value)
    assert "a later snapshot was read" in snapshot.ask(0, {}).text


def test_rows_of_an_incremental_snapshot_are_read_again_with_the_snapshot_that_they_are_behind():
    snapshot = told(SnapshotRules(is_compacted=True), [*STREAMED, ("take_unmarked", 200_000)])
    snapshot.notify([Notice(NoticeKind.STARTED, 199_000)])
    new = snapshot.notify([Notice(NoticeKind.SCANNED, 199_500, 2)])
    assert (new.at_ms, new.must_read_again) == (199_000, True)


def test_a_truncated_table_is_complete_without_its_rows():
    snapshot = told(PLAIN, [FIRST])
    at = (150_000,) * 4
    truncate = RecordRun(Mark.TRUNCATE, frozenset([0]), *at, place=(0, 7))
    new = snapshot.take(truncate)
    assert new.truncated_at == (0, 7)
    snapshot.begin_generation(new)
    assert snapshot.take(truncate) is None
    assert snapshot.take(replace(truncate, place=(1, 3))) is None
    assert snapshot.take(replace(truncate, place=(0, 9))).truncated_at == (0, 9)
    snapshot.ask(0, {})
    snapshot.take_ends({0: 0, 1: 0})
    assert snapshot.ask(0, {}).evidence is Evidence.TABLE_TRUNCATED


def test_without_replacing_a_later_snapshot_must_end_first():
    rules = SnapshotRules(replaces=False, counts=False)
    snapshot = told(rules, [*STREAMED, run(Mark.FIRST, 0, 200_000, 199_000)])
    assert not isinstance(snapshot.ask(0, {}), Complete)
    for partition in PARTITIONS:
        snapshot.take(run(Mark.STREAMED, partition, 201_000, 201_000)[1])
    snapshot.ask(0, {})
    snapshot.take_ends({0: 0, 1: 0})
    assert isinstance(snapshot.ask(0, {}), Complete)
    assert snapshot.generation == 1
