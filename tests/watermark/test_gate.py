import pytest

from tests.watermark.acceptance import covers
from watermark.errors import InvalidParameterError, InvalidTransitionError, LostRecordsError
from watermark.gate import (
    HeldOffsets,
    HeldPartition,
    LossRisk,
    LossWarning,
    Phase,
    PhaseEvent,
    ProbeGate,
    Retention,
    advance,
)
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    PROCESSING_TIME,
    Watermark,
    WatermarkStatus,
)
from watermark.valve import StatusWatermarkValve

DONE, BUSY = PROCESSING_TIME, Watermark(5)
IDLE = WatermarkStatus.IDLE
OPENS = {
    "no_table_has_spoken": ([], False),
    "one_of_two_tables_is_done": ([("items", DONE)], False),
    "both_tables_are_done": ([("items", DONE), ("users", DONE)], True),
    "the_other_way_round": ([("users", DONE), ("items", DONE)], True),
    "event_time_alone_never_opens": ([("items", BUSY), ("users", BUSY)], False),
    "a_bounded_table_counts_when_it_has_ended": ([("items", END_OF_TIME), ("users", DONE)], True),
    "both_have_ended": ([("items", END_OF_TIME), ("users", END_OF_TIME)], True),
    "nearly_the_end_is_not_the_end": (
        [("items", Watermark(MAX_TIMESTAMP - 1)), ("users", DONE)],
        False,
    ),
    "idleness_never_opens": ([("items", IDLE), ("users", IDLE)], False),
    "an_idle_table_keeps_it_closed": ([("items", IDLE), ("users", DONE)], False),
    "an_idle_table_beside_an_ended_one_keeps_it_closed": (
        [("items", IDLE), ("users", END_OF_TIME)],
        False,
    ),
    "an_idle_table_opens_it_when_it_is_done": (
        [("items", IDLE), ("users", DONE), ("items", DONE)],
        True,
    ),
}


def run(received, channels=("items", "users")):
    valve, gate = StatusWatermarkValve(channels), ProbeGate()
    opened = []
    for channel, what in received:
        if isinstance(what, WatermarkStatus):
            outputs = valve.input_status(channel, what)
        else:
            outputs = valve.input_watermark(channel, what, now_ms=1_000)
        opened += [gate.on_watermark(each) for each in outputs if isinstance(each, Watermark)]
    return gate, opened


@pytest.mark.parametrize(("received", "is_open"), OPENS.values(), ids=OPENS)
@covers("B33", "B47")
def test_the_gate_opens_when_every_table_is_complete(received, is_open):
    gate, opened = run(received)
    assert gate.is_open is is_open
    assert opened.count(True) == is_open


def test_a_gate_without_tables_stays_closed():
    gate, opened = run([], channels=())
    assert (gate.is_open, opened) == (False, [])


@covers("B22", "B43")
def test_opening_is_final():
    gate = ProbeGate()
    assert gate.on_watermark(PROCESSING_TIME) is True
    assert gate.on_watermark(PROCESSING_TIME) is False
    assert gate.on_watermark(Watermark(5)) is False
    assert gate.is_open


def test_held_records_are_counted_by_offsets():
    held = HeldOffsets.of(
        start={0: 10, 1: 0, 2: 7}, end={0: 25, 1: 5}, retention_begin={0: 3, 1: 0}
    )
    assert [each.held_records for each in held.partitions] == [15, 5, 0]
    assert (held.held_records, held.lost_records) == (20, 0)
    held.check("clicks")


def test_records_that_retention_has_removed_are_lost():
    held = HeldOffsets.of(start={0: 10, 1: 4}, end={0: 25, 1: 5}, retention_begin={0: 13, 1: 4})
    assert (held.held_records, held.lost_records) == (13, 3)
    with pytest.raises(LostRecordsError) as raised:
        held.check("clicks")
    for part in ('topic "clicks" partition 0', "offset 13", "3 are gone"):
        assert part in raised.value.message
    assert raised.value.hint.endswith(".")


WARNED = {
    "nothing_known": ({}, Retention(), []),
    "young_enough": ({"oldest_at_ms": 300}, Retention(max_age_ms=1_000), []),
    "old": ({"oldest_at_ms": 200}, Retention(max_age_ms=1_000), [(LossRisk.AGE, 0.8)]),
    "large": (
        {"log_bytes": 90, "retention_begin": 10},
        Retention(max_bytes=100),
        [(LossRisk.SIZE, 0.9)],
    ),
    "large_by_what_is_not_held": ({"log_bytes": 99}, Retention(max_bytes=100), []),
    "begin_has_come_close": (
        {"first_retention_begin": 0, "retention_begin": 9},
        Retention(),
        [(LossRisk.OFFSETS, 0.9)],
    ),
    "begin_at_the_start_since_submission": (
        {"first_retention_begin": 10, "retention_begin": 10},
        Retention(),
        [],
    ),
    "nothing_held": ({"end": 10, "log_bytes": 99}, Retention(max_bytes=100), []),
}


@pytest.mark.parametrize(("observed", "retention", "expected"), WARNED.values(), ids=WARNED)
def test_loss_is_warned_of_before_it_happens(observed, retention, expected):
    fields = {"partition": 3, "start": 10, "end": 20, "retention_begin": 0, **observed}
    held = HeldOffsets((HeldPartition(**fields),))
    assert held.warnings(retention, now_ms=1_000) == tuple(
        LossWarning(3, risk, used) for risk, used in expected
    )


@pytest.mark.parametrize(
    "offsets",
    [
        {"start": {0: -1}, "end": {}, "retention_begin": {}},
        {"start": {0: 1}, "end": {0: -2}, "retention_begin": {}},
        {"start": {}, "end": {0: 5}, "retention_begin": {}},
    ],
)
def test_offsets_are_resolved_numbers_of_known_partitions(offsets):
    with pytest.raises(InvalidParameterError, match="partition 0"):
        HeldOffsets.of(**offsets)


STEPS = {
    "opens": (Phase.LOAD, PhaseEvent.GATE_OPENED, Phase.JOIN),
    "restart_in_load": (Phase.LOAD, PhaseEvent.RESTORED, Phase.LOAD),
    "restart_in_join": (Phase.JOIN, PhaseEvent.RESTORED, Phase.JOIN),
}


@pytest.mark.parametrize(("phase", "event", "following"), STEPS.values(), ids=STEPS)
def test_phases_follow_the_table(phase, event, following):
    assert advance(phase, event) is following


def test_the_step_to_join_happens_once():
    with pytest.raises(InvalidTransitionError, match='state "JOIN"') as raised:
        advance(Phase.JOIN, PhaseEvent.GATE_OPENED)
    assert raised.value.hint.endswith(".")
