"""Why nothing comes out: one case a cause, over the job as the API shows it."""

import pytest

from service.jobs.inspect.event_waiting import event_time_conditions, shown_time
from service.jobs.inspect.waiting import explain_wait
from service.schemas.jobs import JobDetail
from tests.support.event_time import event_time, generator, released, windows

MIN = -(2**63)
RUNNER = {
    "pid": 7,
    "alive": True,
    "adopted": False,
    "started_at_ms": 0,
    "status_age_ms": 120,
    "crashes": 0,
    "restarts": 0,
}
GONE = {**RUNNER, "pid": None, "alive": False, "started_at_ms": None}
SOON = {**GONE, "restart_at_ms": 1_700_000_000_000}
UNAVAILABLE = {
    "type": "source-unavailable",
    "message": "database does not answer",
    "hint": "Start the database.",
}


def channel(name, *, done):
    time = {"timestamp_ms": MIN, "use_processing_time": done}
    return {"channel": name, "status": "ACTIVE", "watermark": time}


def copy(rows, total, *, read=False):
    return {
        "rows_done": rows,
        "rows_total": total,
        "rows_total_is_estimate": not read,
        "chunks_done": 1,
        "chunks_total": 2,
        "is_copied": read,
    }


def table(name="users", *, snapshot=None, done=False, **more):
    at = {"epoch": 0, "file": 3, "pos": 400, "row": -1}
    return {
        "name": name,
        "generation": 1,
        "low": at,
        "snapshot": snapshot or copy(4_000, 10_000, read=done),
        "changelog_version": 5,
        "evidence": "in_band_watermark" if done else None,
        "channels": [channel(f"{name}/0", done=done)],
        **more,
    }


def probe(**more):
    return {
        "topic": "clicks",
        "start_offsets": {"0": 5},
        "next_offsets": {"0": 5},
        "end_offsets": {"0": 12},
        "held_records": 7,
        "lag_records": 7,
        **more,
    }


def joining(**more):
    done = {"next_offsets": {"0": 12}, "held_records": 0, "lag_records": 0}
    return probe(**{**done, "batch": 3, "joined_records": 9, **more})


def job(**changes):
    shown = {
        "id": "01234567-89ab-7def-8123-456789abcdef",
        "name": "one",
        "state": "SNAPSHOT",
        "desired_state": "RUNNING",
        "phase": "LOAD",
        "reason": "",
        "error": None,
        "created_at_ms": 0,
        "updated_at_ms": 0,
        "sql": "",
        "warnings": [],
        "runner": RUNNER,
        "dimensions": [table()],
        "probe": probe(),
        **changes,
    }
    return JobDetail.model_validate(shown).model_dump(mode="json", by_alias=True)


def opened(**changes):
    return job(
        **{
            "state": "JOINING",
            "phase": "JOIN",
            "held_at_open": 7,
            "dimensions": [table(done=True)],
            "probe": joining(),
            **changes,
        }
    )


HIGH = {"epoch": 0, "file": 3, "pos": 900, "row": -1}
EMITTED = {
    "watermark": {"timestamp_ms": MIN, "use_processing_time": True},
    "generation": 1,
    "offsets": {"0": 44},
}
STALL = {"part": "source users", **UNAVAILABLE, "choices": []}
LOST = {
    "part": "probe",
    "type": "records-lost",
    "message": "5 records of partition 0 are gone",
    "hint": "Acknowledge it.",
    "choices": ["continue"],
}
# what is changed → the condition that is told, and what the sentence says
WAITS = {
    "snapshot_n_of_m": (
        job(),
        "snapshot-complete",
        'Waiting for table "users": 4,000 of about 10,000 snapshot rows are committed, 1 of 2 '
        'parts of the copy are read; at most 7 records of "clicks" are held meanwhile.',
    ),
    "two_tables_are_copied": (
        job(dimensions=[table(), table("items", snapshot=copy(0, None))]),
        "snapshot-complete",
        'for table "items": 0 snapshot rows',
    ),
    "many_tables_are_copied": (
        job(dimensions=[table(f"t{n}") for n in range(5)]),
        "snapshot-complete",
        "; and 2 more",
    ),
    "high_is_not_reached": (
        job(
            dimensions=[
                table(snapshot=copy(9, 9, read=True), high=HIGH, position=HIGH | {"pos": 500})
            ]
        ),
        "build-committed",
        "has not reached HIGH 3/900 (it is at 3/500)",
    ),
    "high_is_being_taken": (
        job(dimensions=[table(snapshot=copy(9, 9, read=True))]),
        "build-committed",
        "has not reached HIGH, which is being taken",
    ),
    "build_is_not_committed": (
        job(dimensions=[table(snapshot=copy(9, 9, read=True), emitted=EMITTED, lag_records=1_200)]),
        "build-committed",
        "is written, its commit is not made; 1,200 records of its changelog are not committed",
    ),
    "gate_closed_on_a_channel": (
        job(
            dimensions=[
                table(done=True)
                | {"channels": [channel("users/0", done=True), channel("users/1", done=False)]}
            ]
        ),
        "channel-in-processing-time",
        'Channel "users/1" is ACTIVE, its watermark is MIN and not in processing time',
    ),
    "index_is_being_built": (
        job(state="CATCHING_UP", dimensions=[table(done=True)]),
        "lookups-ready",
        "the index of the opening version is being built",
    ),
    "source_unreachable": (
        job(state="STALLED", error=UNAVAILABLE, stalls=[STALL]),
        "source-reached",
        'The source of table "users" is stalled (source-unavailable): database does not answer',
    ),
    "stalled_with_cause": (
        opened(state="STALLED", stalls=[LOST], error={**UNAVAILABLE, "type": "records-lost"}),
        "not-stalled",
        "The stream is stalled: 5 records of partition 0 are gone",
    ),
    "stalled_and_only_the_error_is_known": (
        job(state="STALLED", error={**UNAVAILABLE, "type": "kafka"}),
        "not-stalled",
        "The job is stalled: database does not answer",
    ),
    "probe_topic_empty": (
        opened(probe=joining(end_offsets={"0": 5}, batch=None, joined_records=0)),
        "records-available",
        'Topic "clicks" has no record after its start offsets',
    ),
    "every_record_is_joined": (
        opened(),
        "records-available",
        'Every record of topic "clicks" is joined; new ones are joined as they come.',
    ),
    "records_wait_for_a_table_in_event_time": (
        opened(event_time=event_time()),
        "rows-released",
        '12,000 records wait for the watermark of table "rates", partition 0, which is 40 s '
        "behind; the partition is not idle, quiet since 2023-11-14 22:14:10 UTC.",
    ),
    "a_partition_has_not_given_a_watermark": (
        opened(event_time=event_time(channels=[generator("probe/1", None)])),
        "channel-has-watermark",
        "Partition 1 of the stream is not idle and has no watermark yet: no record has given one.",
    ),
    "no_window_has_ended": (
        opened(event_time=windows()),
        "windows-fired",
        "No window has fired yet: the next window is due at 2023-11-14 22:14:00 UTC, the "
        "watermark is 2023-11-14 22:13:20 UTC; open windows wait for the watermark of the "
        "stream, partition 0, which is 40 s behind.",
    ),
    "all_records_are_late": (
        opened(event_time=released(), probe=joining(lag_records=7, joined_records=0)),
        "records-in-time",
        "7 records were late so far, and no other has come.",
    ),
    "no_row_was_due": (
        opened(
            event_time=event_time(waits_for=None), probe=joining(lag_records=7, joined_records=0)
        ),
        "rows-written",
        "Batches up to 3 are committed, no row was due.",
    ),
    "records_are_read_and_their_windows_fire": (
        opened(event_time=windows(fired_rows=44)),
        "records-available",
        'Every record of topic "clicks" is read; new ones are read as they come.',
    ),
    "first_batch_is_not_committed": (
        opened(probe=joining(lag_records=7, batch=None, joined_records=0)),
        "rows-written",
        "No batch is committed yet",
    ),
    "all_records_are_dead_letters": (
        opened(probe=joining(lag_records=7, joined_records=0, dead_letters=31)),
        "rows-written",
        'All 31 records of topic "clicks" so far are dead letters',
    ),
    "all_dead_letters_are_settled": (
        opened(
            probe=joining(lag_records=7, joined_records=0, dead_letters=31, open_dead_letters=0)
        ),
        "rows-written",
        "each is settled",
    ),
    "no_record_has_a_row": (
        opened(probe=joining(lag_records=7, joined_records=0)),
        "rows-written",
        "no record met a row or the filter",
    ),
    "paused": (
        job(state="PAUSED", desired_state="PAUSED", runner=GONE),
        "wanted-running",
        'The job is paused by request; at most 7 records of "clicks" are held meanwhile.',
    ),
    "pausing": (
        opened(desired_state="PAUSED"),
        "wanted-running",
        "is being paused: its runner ends after the batch",
    ),
    "stopped": (
        opened(state="STOPPED", desired_state="STOPPED", runner=GONE),
        "wanted-running",
        "The job is stopped by request.",
    ),
    "failed": (
        job(state="FAILED", desired_state="STOPPED", runner=GONE, error=UNAVAILABLE),
        "wanted-running",
        "The job has failed: database does not answer",
    ),
    "being_removed": (
        job(state="STOPPED", desired_state="REMOVED", runner=GONE),
        "wanted-running",
        "The job is being removed",
    ),
    "removal_fails": (
        job(
            state="STOPPED",
            desired_state="REMOVED",
            runner=GONE,
            reason="removal failed: broker does not answer",
            error=UNAVAILABLE,
        ),
        "wanted-running",
        "removal failed: broker does not answer",
    ),
    "created": (
        job(state="CREATED", runner=GONE, phase=None, dimensions=[], probe=None),
        "runner-alive",
        "The runner has not been started yet.",
    ),
    "starting": (
        job(state="STARTING", phase=None, dimensions=[], probe=None),
        "runner-reports",
        "The runner starts Spark and looks at its sources.",
    ),
    "restarting_with_back_off": (
        job(
            state="STALLED",
            runner={**SOON, "crashes": 3},
            error={"type": "runner-crashed", "message": "exit code 137", "hint": "See its log."},
        ),
        "runner-alive",
        "The runner has crashed 3 times in a row (exit code 137); it is started again at "
        "2023-11-14 22:13:20 UTC",
    ),
    "waits_for_its_source": (
        job(state="STALLED", runner=SOON, error=UNAVAILABLE),
        "runner-alive",
        "The runner has given up for now (database does not answer); it is started again at",
    ),
    "runner_is_silent": (
        job(
            state="STALLED",
            error={"type": "runner-unresponsive", "message": "runner 7 lives", "hint": "Wait."},
        ),
        "runner-reports",
        "Runner 7 lives",
    ),
}


@pytest.mark.parametrize(("shown", "name", "told"), WAITS.values(), ids=WAITS)
def test_the_sentence_names_the_first_unmet_condition(shown, name, told):
    found = explain_wait(shown)
    assert found.waiting
    assert told in found.sentence
    assert found.sentence.endswith(".")
    unmet = [condition for condition in found.conditions if condition.met is False]
    assert unmet[0].name == name
    assert unmet[0].evidence


HINTS = {
    "paused": "Go on with sluice jobs resume.",
    "source_unreachable": "Start the database.",
    "restarting_with_back_off": "See its log.",
    "all_records_are_dead_letters": "Look at their reasons with sluice dlq ls.",
    "snapshot_n_of_m": None,
    "records_wait_for_a_table_in_event_time": "Set 'scan.watermark.idle-timeout' on its table if "
    "it may stay without records.",
    "all_records_are_late": "Let the table's watermark stay further behind its records, or allow "
    "lateness; 'late-records.path' keeps what is late.",
}


@pytest.mark.parametrize(("case", "hint"), HINTS.items(), ids=HINTS)
def test_the_hint_is_that_of_the_condition(case, hint):
    assert explain_wait(WAITS[case][0]).hint == hint


def test_a_table_that_stands_still_is_told_while_the_stream_is_joined():
    shown = opened(
        state="STALLED", error=UNAVAILABLE, stalls=[STALL], probe=joining(lag_records=45)
    )
    found = explain_wait(shown)
    assert not found.waiting
    assert found.sentence.startswith("Nothing waits: batch 3 is committed, at most 45 records")
    assert "records are joined with the rows that are there" in found.sentence
    assert found.hint == "Start the database."


def test_nobody_knows_what_is_left_of_a_topic_whose_end_is_not_known():
    for unknown in (joining(lag_records=None), joining(end_offsets={})):
        ((_, met, evidence),) = told(opened(probe=unknown), "records-available")
        assert met is None
        assert "the end offsets of topic" in evidence


def test_records_that_the_job_generates_are_named_by_their_table():
    probe = joining(topic="sluice.1.probe", generated="clicks", end_offsets={"0": 0})
    found = explain_wait(opened(probe=probe | {"start_offsets": {"0": 0}, "lag_records": 0}))
    assert found.sentence.startswith('Stream "clicks" has generated no record yet')


def test_without_a_table_records_are_processed_not_joined():
    alone = opened(probe=joining(lag_records=45), dimensions=[])
    assert explain_wait(alone).sentence.endswith("at most 45 records are not processed yet.")
    finished = explain_wait(alone | {"state": "FINISHED"})
    assert finished.sentence.endswith("all up to the end of its stream is processed.")


def test_nothing_waits_while_records_are_joined():
    found = explain_wait(opened(probe=joining(lag_records=45)))
    assert not found.waiting
    assert (
        found.sentence
        == "Nothing waits: batch 3 is committed, at most 45 records are not joined yet."
    )
    assert all(condition.met is not False for condition in found.conditions)
    generated = opened(probe=joining(lag_records=45, held_is_upper_bound=False))
    assert explain_wait(generated).sentence.endswith("committed, 45 records are not joined yet.")


def test_an_open_transaction_is_what_the_stream_waits_for():
    """Its sentence is the runner's."""
    held = {
        "partition": 3,
        "offset": 41,
        "producer_id": 7,
        "transactional_id": "orders-1",
        "behind": 12,
        "since_ms": 1_000,
        "age_ms": 40_000,
        "text": 'topic "clicks" partition 3 is held at offset 41 by a transaction of producer 7',
        "hint": "It ends when its producer commits or aborts it.",
    }
    found = explain_wait(opened(probe=joining(open_transactions=[held])))
    assert (found.waiting, found.hint) == (True, held["hint"])
    assert found.sentence == f"T{held['text'][1:]}."
    waits = [c for c in found.conditions if c.met is False]
    assert [(c.name, c.about) for c in waits] == [
        ("transactions-ended", "clicks/3"),
        ("records-available", "clicks"),
    ]


def told(shown, name):
    return [(c.about, c.met, c.evidence) for c in explain_wait(shown).conditions if c.name == name]


def test_an_idle_partition_is_not_waited_for_and_one_that_came_back_is_told_as_it_is():
    back = generator("probe/2", 1_700_000_000_000, aligned=False)
    found = event_time(channels=[*event_time()["channels"], back])
    channels = told(opened(event_time=found), "channel-has-watermark")
    assert [met for _, met, _ in channels] == [True] * 4
    assert channels[1][2] == "partition 1 of the stream is idle: the others do not wait for it"
    assert "it counts again once it has caught up" in channels[3][2]


def test_a_partition_that_has_ended_is_not_waited_for():
    ended = generator("probe/0", 2**63 - 1, status="ENDED", aligned=False)
    (channel,) = told(opened(event_time=event_time(channels=[ended])), "channel-has-watermark")
    said = "partition 0 of the stream is at its end: the others do not wait for it"
    assert channel == ("probe/0", True, said)


def test_a_partition_in_processing_time_is_not_waited_for():
    switched = generator("probe/0", None, use_processing_time=True, backlog_end=7)
    (channel,) = told(opened(event_time=event_time(channels=[switched])), "channel-has-watermark")
    said = "partition 0 of the stream is in processing time: it does not hold the watermark back"
    assert channel == ("probe/0", True, said)


def test_a_partition_without_a_watermark_holds_nothing_up_while_nothing_waits():
    quiet = released(channels=[generator("probe/1", None)])
    ((_, met, _),) = told(opened(event_time=quiet), "channel-has-watermark")
    assert met is None


def test_whoever_waits_is_told_when_the_partition_becomes_idle_by_itself():
    channel = generator("rates/0", 1_700_000_000_000, idle_timeout_ms=2_500)
    shown = opened(event_time=event_time(channels=[channel]))
    assert explain_wait(shown).hint == (
        "It is idle 2.5 s after its newest record, then it no longer holds the watermark back."
    )


def test_late_records_and_windows_that_fire_keep_nothing_up():
    flowing = opened(event_time=windows(late_records=7, fired_rows=9), probe=joining(lag_records=1))
    assert not explain_wait(flowing).waiting
    assert told(flowing, "records-in-time") == [(None, True, "7 records were late so far")]
    assert told(flowing, "rows-released") == [(None, True, "no record waits for a watermark")]


def test_event_time_says_nothing_before_the_gate_opens_and_nothing_of_other_jobs():
    for shown in (job(event_time=event_time()), opened()):
        names = {condition.name for condition in explain_wait(shown).conditions}
        assert names.isdisjoint({"channel-has-watermark", "rows-released", "records-in-time"})


TIMES = {
    "none_yet": (None, "not known yet"),
    "the_first": (MIN, "MIN"),
    "the_end": (2**63 - 1, "MAX (the stream has ended)"),
    "before_1970": (-1, "1969-12-31 23:59:59.999 UTC"),
    "whole_seconds": (1_700_000_040_000, "2023-11-14 22:14:00 UTC"),
    "no_calendar_has_it": (10**17, "100000000000000000 ms"),
}


@pytest.mark.parametrize(("at_ms", "shown"), TIMES.values(), ids=TIMES)
def test_times_are_shown_in_utc(at_ms, shown):
    assert shown_time(at_ms) == shown


def test_a_finished_job_waits_for_nothing():
    shown = opened(state="FINISHED", desired_state="STOPPED", runner=GONE)
    assert explain_wait(shown).sentence.startswith("The job has finished")
    assert not explain_wait(shown).waiting


def test_a_new_copy_of_a_table_holds_nothing_up_once_the_gate_is_open():
    again = table(snapshot=copy(10, 10_000)) | {"generation": 2}
    found = explain_wait(opened(dimensions=[again], probe=joining(lag_records=1)))
    assert not found.waiting
    snapshot = next(c for c in found.conditions if c.name == "snapshot-complete")
    assert snapshot.met
    assert "10 of about 10,000" in snapshot.evidence


def test_a_gate_names_the_channels_that_it_waits_for():
    found = explain_wait(job(dimensions=[table(), table("items", done=True)]))
    gate = next(condition for condition in found.conditions if condition.name == "gate-open")
    assert gate.evidence == "1 of 2 partitions are not complete: users/0"


def test_what_is_behind_an_unmet_condition_is_not_guessed():
    shown = job(state="CREATED", runner=GONE, phase=None)
    met = {c.name: c.met for c in explain_wait(shown).conditions}
    assert met["runner-reports"] is None
    assert met["source-reached"] is None
    assert met["lookups-ready"] is None
    assert met["rows-written"] is None


def test_records_that_wait_for_a_row_are_told_with_their_bound():
    late = {"wait_ms": 5_000, "tables": ["users"], "matched": 0, "expired": 0}
    time = {"waiting_rows": 2, "oldest_waiting_ms": 1_000, "late_rows": late}
    (condition,) = event_time_conditions({"phase": "JOIN", "event_time": time})
    assert (condition.name, condition.met) == ("rows-released", True)
    assert condition.evidence == (
        '2 records wait for a row of "users", 5 s at most, the oldest since 1970-01-01 00:00:01 UTC'
    )
    quiet = {**time, "waiting_rows": 0}
    (condition,) = event_time_conditions({"phase": "JOIN", "event_time": quiet})
    assert condition.evidence == 'no record waits for a row of "users"'
