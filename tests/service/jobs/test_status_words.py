"""A job's state for people: one word, one sentence and one remedy for each case."""

import re

import pytest

from service.jobs.inspect.status_words import place_of, status_words
from service.jobs.store.job import STATE_WORDS, JobState
from tests.service.jobs.test_waiting import (
    GONE,
    LOST,
    STALL,
    UNAVAILABLE,
    WAITS,
    copy,
    job,
    joining,
    opened,
    table,
)

VOCABULARY = re.compile(
    r"Starting|Copying( \(\d{1,2} %\))?|Catching up|Running|Waiting for .+|Holding \(stale\)"
    r"|Stalled|Stopping|Stopped|Paused|Finished|Failed|Removing"
)
OF_FLIP = re.compile(r"\b(valve|gate|watermark|channel|MIN|HIGH|processing time|generation)\b")
ID = "01234567-89ab-7def-8123-456789abcdef"
HOLDING = {
    "state": "HOLDING",
    "since_ms": 5_000,
    "tables": [{"table": "users", "bound_ms": 5_000, "time_ms": 0}],
    "released_until_ms": None,
    "text": 'records wait: table "users" is 12 s old, at most 5 s are allowed',
}
TRANSACTION = {
    "partition": 3,
    "offset": 41,
    "behind": 12,
    "since_ms": 1_000,
    "age_ms": 40_000,
    "text": 'topic "clicks" partition 3 is held at offset 41 by a transaction of producer 7',
    "hint": "It ends when its producer commits or aborts it.",
}
FULL = {"type": "disk-full", "message": "the disk of data is full", "hint": "Make room."}
FOREIGN = table(waits_for="no event proves that Debezium's snapshot is complete")
# job → word, tone, action, part of the sentence, part of the remedy
CASES = {
    "created": (WAITS["created"][0], "Starting", "busy", None, "has not been started yet", None),
    "starting": (WAITS["starting"][0], "Starting", "busy", None, "checks its sources", None),
    "copying": (
        job(dimensions=[table(snapshot=copy(890, 1_000))]),
        "Copying (89 %)",
        "busy",
        None,
        'Table "users": 890 of about 1,000 rows are copied. At most 7 records of "clicks" wait.',
        None,
    ),
    "copied_beyond_the_estimate": (
        job(dimensions=[table(snapshot=copy(1_000, 1_000))]),
        "Copying (99 %)",
        "busy",
        None,
        "1,000 of about 1,000 rows",
        None,
    ),
    "size_unknown": (
        job(dimensions=[table(snapshot=copy(3, None))]),
        "Copying",
        "busy",
        None,
        "3 rows are copied",
        None,
    ),
    "catching_up": (
        WAITS["build_is_not_committed"][0] | {"state": "CATCHING_UP"},
        "Catching up",
        "busy",
        None,
        "changes made meanwhile are being applied, 1,200 are left",
        None,
    ),
    "index_is_built": (
        WAITS["index_is_being_built"][0],
        "Catching up",
        "busy",
        None,
        "lookup indexes are being built",
        None,
    ),
    "foreign_copy": (
        job(dimensions=[FOREIGN]),
        'Waiting for table "users"',
        "warn",
        None,
        "no event proves",
        None,
    ),
    "running": (opened(), "Running", "good", None, "new ones are joined as they come", None),
    "running_behind": (
        opened(probe=joining(lag_records=45)),
        "Running",
        "good",
        None,
        "at most 45 are not joined yet",
        None,
    ),
    "first_batch": (
        opened(probe=joining(lag_records=45, batch=None)),
        "Running",
        "good",
        None,
        "The first records are being joined; at most 45 are not joined yet.",
        None,
    ),
    "empty_topic": (
        WAITS["probe_topic_empty"][0],
        "Running",
        "good",
        None,
        "no record after its start offsets",
        "Check that the producer writes",
    ),
    "copied_again": (
        opened(dimensions=[table()], probe=joining(lag_records=45)),
        "Running",
        "good",
        None,
        'Table "users" is copied again. Meanwhile records are joined',
        None,
    ),
    "several_copied_again": (
        opened(dimensions=[table(), table("rates")]),
        "Running",
        "good",
        None,
        'Tables "users", "rates" are copied again. Meanwhile records are joined',
        None,
    ),
    "many_copied_again": (
        opened(dimensions=[table(f"t{n}") for n in range(4)]),
        "Running",
        "good",
        None,
        'Tables "t0", "t1", "t2" and 1 more are copied again.',
        None,
    ),
    "only_dead_letters": (
        WAITS["all_records_are_dead_letters"][0],
        "Running",
        "warn",
        "dead-letters",
        'All 31 records of topic "clicks" so far are dead letters',
        f"sluice dlq ls {ID}",
    ),
    "only_settled_dead_letters": (
        WAITS["all_dead_letters_are_settled"][0],
        "Running",
        "good",
        None,
        "All 31 records so far were dead letters, and each is settled",
        None,
    ),
    "holding": (
        opened(holding=HOLDING),
        "Holding (stale)",
        "warn",
        None,
        "12 s old",
        f'Check what "users" is copied from; records go on by themselves when it answers. To let '
        f"them pass before: sluice acknowledge {ID} stale",
    ),
    "only_dead_letters_and_nothing_waits": (
        opened(probe=joining(joined_records=0, dead_letters=31, lag_records=0)),
        "Running",
        "warn",
        "dead-letters",
        'All 31 records of topic "clicks" so far are dead letters.',
        f"sluice dlq ls {ID}",
    ),
    "dead_letters_beside_rows": (
        opened(probe=joining(dead_letters=2, lag_records=0)),
        "Running",
        "good",
        "dead-letters",
        "2 dead letters need a replay or a discard.",
        f"sluice dlq ls {ID}",
    ),
    "transaction": (
        opened(probe=joining(open_transactions=[TRANSACTION])),
        "Waiting for a transaction",
        "warn",
        None,
        "offset 41",
        "commits or aborts",
    ),
    "event_time_as_usual": (
        WAITS["records_wait_for_a_table_in_event_time"][0],
        "Running",
        "good",
        None,
        '12,000 records wait for later records of table "rates", partition 0, which is 40 s behind',
        None,
    ),
    "silent_partition": (
        WAITS["a_partition_has_not_given_a_watermark"][0],
        "Waiting for the stream",
        "warn",
        None,
        "has no record with a time yet",
        "scan.watermark.idle-timeout",
    ),
    "full_disk": (
        opened(warnings=[FULL]),
        "Waiting for disk space",
        "warn",
        None,
        "The disk of data is full.",
        "Make room.",
    ),
    "stalled_source": (
        opened(state="STALLED", error=UNAVAILABLE, stalls=[STALL], probe=joining(lag_records=4)),
        "Stalled",
        "warn",
        None,
        'Table "users": database does not answer. Meanwhile records are joined with the rows',
        "Start the database.",
    ),
    "decision": (
        opened(state="STALLED", error=UNAVAILABLE, stalls=[LOST, STALL]),
        "Stalled",
        "warn",
        "decide",
        "5 records of partition 0 are gone; and 1 more fault.",
        "Acknowledge it.",
    ),
    "crashed": (
        WAITS["restarting_with_back_off"][0],
        "Stalled",
        "warn",
        None,
        "crashed 3 times in a row",
        "See its log.",
    ),
    "stopping_while_stalled": (
        opened(state="STALLED", desired_state="STOPPED", error=UNAVAILABLE, stalls=[STALL]),
        "Stopping",
        "busy",
        None,
        "after its current batch",
        None,
    ),
    "stopped": (WAITS["stopped"][0], "Stopped", "rest", "start", "by request", f"resume {ID}"),
    "paused": (WAITS["paused"][0], "Paused", "rest", "resume", "by request", f"resume {ID}"),
    "resumed": (
        job(state="PAUSED", runner=GONE),
        "Starting",
        "busy",
        None,
        "has not been started yet",
        None,
    ),
    "failed": (
        WAITS["failed"][0],
        "Failed",
        "bad",
        "start",
        "Database does not answer.",
        "Start the database.",
    ),
    "finished": (
        opened(state="FINISHED", desired_state="STOPPED", runner=GONE),
        "Finished",
        "rest",
        None,
        "is joined: ",
        None,
    ),
    "removal_fails": (
        WAITS["removal_fails"][0],
        "Removing",
        "warn",
        None,
        "broker does not answer",
        "Start the database.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_state_has_a_word_a_sentence_and_a_remedy(case):
    shown, word, tone, action, text, remedy = CASES[case]
    found = status_words(shown)
    assert (found.word, found.tone, found.action) == (word, tone, action)
    assert text in found.sentence
    assert (found.remedy is None) if remedy is None else (remedy in found.remedy)


@pytest.mark.parametrize("case", [*CASES, *WAITS])
def test_words_are_of_the_vocabulary_and_sentences_without_terms_of_flip(case):
    found = status_words(CASES[case][0] if case in CASES else WAITS[case][0])
    assert VOCABULARY.fullmatch(found.word)
    assert OF_FLIP.search(found.sentence) is None
    assert re.fullmatch(r"[^a-z].*[^.]\.", found.sentence)
    assert found.remedy is None or found.remedy not in found.sentence


def test_a_failed_job_is_continued_after_its_remedy_and_is_told_so_once():
    job = WAITS["failed"][0]
    first = job["error"]["hint"]
    assert status_words(job).remedy == f"{first} Then continue it: sluice jobs resume {job['id']}"
    named = f"Restore it, then run sluice jobs resume {job['id']}."
    for said in (named, "Submit the job again, into another output."):
        assert status_words({**job, "error": {**job["error"], "hint": said}}).remedy == said


def test_a_state_that_is_not_a_transition_has_its_own_beginning():
    assert status_words(opened(holding=HOLDING)).since_ms == 5_000
    assert status_words(opened()).since_ms is None


def test_each_stored_state_has_a_word_for_its_transitions():
    assert set(STATE_WORDS) == set(JobState)
    assert all(VOCABULARY.fullmatch(word) or word == "Created" for word in STATE_WORDS.values())


PLACES = {
    "source": ("source users", "source-unavailable", "table"),
    "source_with_a_type_of_the_stream": ("source users", "topic-missing", "table"),
    "build": ("build users", "join", "changelog"),
    "changelog_cluster": ("changelog", "source-unavailable", "changelog"),
    "kafka": ("kafka", "source-unavailable", "stream"),
    "new_topics": ("topics", "source", "stream"),
    "guard_of_the_stream": ("stream", "records-lost", "stream"),
    "guard_of_the_output": ("stream", "output-topic-changed", "output"),
    "output": ("probe", "sink", "output"),
    "constraint": ("probe", "constraint-violated", "output"),
    "batches": ("probe", "index-build", "batches"),
    "batches_by_something_outside": ("probe", "source-unavailable", None),
    "opening": ("opening", "join", None),
    "failed_by_its_output": ("", "sink", "output"),
    "failed": ("", "checkpoint", None),
}


@pytest.mark.parametrize(("part", "fault", "place"), PLACES.values(), ids=PLACES)
def test_a_fault_has_a_place_only_if_its_part_or_type_says_so(part, fault, place):
    assert place_of(part, fault) == place


def test_a_long_delay_is_shown_in_plain_numbers():
    job = WAITS["records_wait_for_a_table_in_event_time"][0]
    time = job["event_time"]
    far = {**time, "waits_for": {**time["waits_for"], "behind_ms": 1_234_567_000}}
    assert "which is 1234567 s behind" in status_words({**job, "event_time": far}).sentence
