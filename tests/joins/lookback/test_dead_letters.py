"""Dead letters: listed with all that is known of them, and replayed exactly once."""

import json
import multiprocessing
import random
import signal
import threading

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.log import DeltaLog, create_table
from joins.durable.letter_replays import LetterReplays
from joins.durable.pins import PinStore
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.probe.probe import DEAD_LETTERS
from joins.lookback import dead_letter_replay
from joins.lookback.dead_letters import DeadLetter, DeadLetters
from joins.plan.errors import (
    FencedError,
    QuestionError,
    RequestError,
    SinkError,
    UnknownLetterError,
)
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics
from tests.support.letters import (
    APP,
    CORRECTED,
    CORRECTED_ROWS,
    GOOD_ROWS,
    LetterJob,
    replay_until_killed,
    request,
)

ALL_ROWS = sorted(GOOD_ROWS + CORRECTED_ROWS)
STEPS = ("chosen", "joined", "staged", "committed", "noted")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return LetterJob(tmp_path_factory.mktemp("made")).make()


@pytest.fixture
def job(made, tmp_path):
    return made.copied_to(tmp_path)


def places(letters):
    return [(letter.batch, letter.offset) for letter in letters]


# Looking


def test_letters_come_in_the_order_of_batch_and_offset_with_reason_and_bytes(job):
    page = job.letters.page()
    assert places(page.letters) == [(7, 101), (7, 102), (8, 105), (8, 106), (8, 107), (9, 108)]
    assert page.next_after is None
    shown = [letter.as_json() for letter in page.letters]
    assert shown[0] == {
        "batch": 7,
        "topic": "clicks",
        "partition": 0,
        "offset": 101,
        "reason": 'field "user_id": expected number, found string',
        "timestamp_ms": 0,
        "replayed_by": None,
        "replayed_inserts": [],
        "discarded_by": None,
        "discarded_because": None,
        "bytes": 15,
        "truncated": False,
        "value": '{"user_id":"x"}',
        "value_base64": None,
    }
    assert (shown[1]["value"], shown[1]["value_base64"]) == (None, "/w==")
    assert (shown[3]["value"], shown[3]["value_base64"], shown[3]["bytes"]) == (None, None, None)
    assert json.loads(json.dumps(shown)) == shown


def test_a_record_that_failed_in_two_inserts_is_one_letter_with_both_reasons(tmp_path):
    create_table(tmp_path / "dead", DEAD_LETTERS)
    log = DeltaLog(tmp_path / "dead", APP)
    place = {"topic": "clicks", "partition": 0}
    files = []
    for number, offsets in ((2, (5, 6)), (1, (5,))):
        rows = [{**place, "offset": at, "reason": f'INSERT {number} INTO "o": x'} for at in offsets]
        with ParquetStage(log.path, DEAD_LETTERS, FileOrigin(1, 0, 0, number)) as stage:
            stage.write(pa.RecordBatch.from_pylist(rows, schema=DEAD_LETTERS))
            files.append(stage.finish())
    log.commit(0, 1, files, {})
    letters = DeadLetters(log.path, LetterReplays(tmp_path / "replays"))
    found = letters.page(limit=1)
    assert found.letters[0].reason == 'INSERT 1 INTO "o": x; INSERT 2 INTO "o": x'
    assert places(letters.page(after=found.next_after).letters) == [(0, 6)]


def test_records_at_one_place_of_two_topics_are_two_letters(tmp_path):
    create_table(tmp_path / "dead", DEAD_LETTERS)
    log = DeltaLog(tmp_path / "dead", APP)
    places_ = [("visits", 1, 5), ("clicks", 1, 5), ("visits", 0, 7)]
    rows = [
        {"topic": topic, "partition": partition, "offset": offset, "reason": f"of {topic}"}
        for topic, partition, offset in places_
    ]
    with ParquetStage(log.path, DEAD_LETTERS, FileOrigin(1, 0, 0, 1)) as stage:
        stage.write(pa.RecordBatch.from_pylist(rows, schema=DEAD_LETTERS))
        log.commit(0, 1, [stage.finish()], {})
    topics = StreamTopics((StreamTopic("clicks"), StreamTopic("visits")))
    letters = DeadLetters(log.path, LetterReplays(tmp_path / "replays"), lambda: topics)
    listed = letters.page().letters
    where = ["clicks/1/5", "visits/0/7", "visits/1/5"]
    assert [letters.place(letter) for letter in listed] == where
    shown = [letter.as_json() for letter in listed]
    assert [f"{s['topic']}/{s['partition']}/{s['offset']}" for s in shown] == where
    number = letters.number("visits", 1)
    assert (number, letters.find(number, 5).reason) == (SPAN + 1, "of visits")
    for topic in (None, "another"):
        with pytest.raises(QuestionError, match="expected one of clicks, visits"):
            letters.number(topic, 1)
    with pytest.raises(UnknownLetterError, match='topic "visits" partition 0 has no dead letter'):
        letters.find(SPAN, 5)


def test_pages_follow_one_another_without_gap_or_repeat(job):
    found, after = [], None
    while True:
        page = job.letters.page(after=after, limit=2)
        found += page.letters
        if page.next_after is None:
            break
        after = page.next_after
    assert found == list(job.letters.page().letters)


def test_a_letter_is_found_by_its_offset(job):
    assert job.letters.find(0, 105).reason.startswith("the value is not one JSON object")
    assert job.letters.find(0, 105, batch=8).batch == 8
    for partition, offset, batch in ((0, 100, None), (1, 105, None), (0, 105, 7), (0, 105, 99)):
        with pytest.raises(UnknownLetterError):
            job.letters.find(partition, offset, batch)


SHOWN = {
    "short_text": (b"abc", 4, "abc", None, False),
    "cut_text": (b"abcdef", 4, "abcd", None, True),
    "cut_within_a_character": ("aä€".encode(), 5, "aä", None, True),
    "bytes": (b"\xff\xfe\x00", 2, None, "//4=", True),
    "bad_byte_before_the_cut": (b"a\xffbcdef", 4, None, "Yf9iYw==", True),
    "half_a_character_that_is_all": (b"a\xc3", 4, None, "YcM=", False),
}


@pytest.mark.parametrize(
    ("value", "limit", "text", "encoded", "truncated"), SHOWN.values(), ids=SHOWN
)
def test_a_value_is_text_where_it_is_utf_8(value, limit, text, encoded, truncated):
    letter = DeadLetter(7, "clicks", 0, 1, "r", value, None)
    shown = letter.as_json(shown_bytes=limit)
    assert (shown["value"], shown["value_base64"]) == (text, encoded)
    assert (shown["bytes"], shown["truncated"]) == (len(value), truncated)


def test_a_job_without_a_table_has_no_letters(tmp_path):
    assert LetterJob(tmp_path).letters.page().letters == ()


# Replaying


def test_corrected_letters_get_the_rows_of_their_own_batch_once(job):
    replay = job.replay()
    result = replay.handle(request({"records": CORRECTED}))
    assert result == {
        "replay": 1,
        "records": 3,
        "rows": 3,
        "still_bad": [],
        "already_replayed": 0,
        "remaining": 0,
    }
    assert job.rows() == ALL_ROWS
    assert [letter.replayed_by for letter in job.letters.page().letters] == [1, 1, 1] + [None] * 3
    assert places(job.letters.page(pending=True).letters) == [(8, 106), (8, 107), (9, 108)]
    again = replay.handle(request({"records": CORRECTED}, "r2"))
    assert (again["replay"], again["records"], again["already_replayed"]) == (None, 0, 3)
    assert job.rows() == ALL_ROWS


def test_only_the_commit_of_the_rows_takes_the_turn_of_batches(job):
    """However long letters take to be chosen, joined and staged, batches go on beside."""
    turn, held = threading.Lock(), {}

    def passed(step):
        held[step] = turn.locked()
        if not held[step]:
            with turn:  # a batch
                pass

    job.replay(passed=passed).handle(request({"records": CORRECTED}), turn=turn)
    assert held == {step: step == "staged" for step in STEPS}
    assert not turn.locked()
    assert job.rows() == ALL_ROWS


@pytest.mark.parametrize("step", STEPS)
def test_a_replay_that_fails_gives_its_turn_back(job, step):
    turn = threading.Lock()

    def passed(name):
        if name == step:
            raise OSError(28, "no space left on device")

    with pytest.raises(OSError, match="no space"):
        job.replay(passed=passed).handle(request({"records": CORRECTED}), turn=turn)
    assert not turn.locked()


def test_the_same_request_gives_the_same_result(job):
    first = job.replay().handle(request({"records": CORRECTED}))
    assert job.replay().handle(request({"records": CORRECTED})) == first
    assert job.rows() == ALL_ROWS


def test_letters_that_are_still_bad_stay_and_may_be_corrected_again(job):
    replay = job.replay()
    result = replay.handle(request({"all": True}))
    assert (result["records"], result["rows"]) == (5, 0)
    assert [(b["batch"], b["offset"]) for b in result["still_bad"]] == [
        (7, 101),
        (7, 102),
        (8, 105),
        (8, 106),
        (8, 107),
    ]
    assert result["still_bad"][3]["reason"] == "the value is null"
    wrong = [{"partition": 0, "offset": 101, "value_base64": "/w=="}]
    assert replay.handle(request({"records": wrong}, "r2"))["still_bad"][0]["reason"] == (
        "the value is not UTF-8"
    )
    assert replay.handle(request({"records": CORRECTED}, "r3"))["replay"] == 3
    assert job.rows() == ALL_ROWS


def test_all_means_those_that_have_no_rows_yet(job):
    replay = job.replay()
    one = [{**CORRECTED[0], "batch": 7}]
    assert replay.handle(request({"records": one}))["rows"] == 1
    rest = replay.handle(request({"all": True}, "r2"))
    assert (rest["records"], rest["rows"]) == (4, 0)
    assert job.rows() == sorted([*GOOD_ROWS, CORRECTED_ROWS[0]])


def test_letters_are_chosen_by_a_part_of_their_reason(job):
    found = job.letters.page(matching="the value is null").letters
    assert places(found)
    assert all("the value is null" in letter.reason for letter in found)
    assert job.letters.page(matching="no such reason").letters == ()
    replay, some = job.replay(), {"all": True, "matching": "the value is null"}
    result = replay.handle(request({**some, "discard": "test data"}))
    assert (result["records"], result["remaining"]) == (len(found), 0)
    left = job.letters.page(pending=True).letters
    assert left
    assert not any("the value is null" in letter.reason for letter in left)
    assert replay.handle(request(some, "r2"))["records"] == 0


@pytest.mark.parametrize("matching", [7, ["x"]])
def test_a_filter_that_is_no_text_is_refused(job, matching):
    with pytest.raises(RequestError, match="expected a part of the reason"):
        job.replay().handle(request({"all": True, "matching": matching}))


def test_one_replay_has_a_limit_and_tells_what_remains(job, monkeypatch):
    monkeypatch.setattr(dead_letter_replay, "MOST_LETTERS", 3)
    result = job.replay().handle(request({"all": True}))
    assert (result["records"], len(result["still_bad"]), result["remaining"]) == (3, 3, 3 + 2)


def test_what_remains_are_those_that_are_still_bad(job):
    replay = job.replay()
    for number, body in enumerate(({"all": True}, {"records": [{**CORRECTED[0], "value": "{"}]})):
        result = replay.handle(request(body, f"r{number}"))
        assert result["remaining"] == len(result["still_bad"]) > 0


DISCARDED = [{"partition": 0, "offset": 105}, {"partition": 0, "offset": 106, "batch": 8}]


def test_discarded_letters_stay_in_the_list_with_the_reason_and_are_not_tried_again(job):
    replay = job.replay()
    body = {"records": DISCARDED, "discard": "test data of a producer"}
    expected = {"discard": 1, "records": 2, "already_settled": 0, "remaining": 0}
    assert replay.handle(request(body)) == expected
    assert replay.handle(request(body)) == expected
    again = replay.handle(request(body, "r2"))
    assert (again["discard"], again["records"], again["already_settled"]) == (None, 0, 2)
    shown = job.letters.find(0, 105).as_json()
    assert (shown["discarded_by"], shown["discarded_because"]) == ("operator", body["discard"])
    assert shown["replayed_by"] is None
    assert {(8, 105), (8, 106)}.isdisjoint(places(job.letters.page(pending=True).letters))
    assert len(job.letters.page().letters) == 6
    named = replay.handle(request({"records": CORRECTED}, "r3"))
    assert (named["records"], named["rows"], named["already_replayed"]) == (2, 2, 1)
    rest = replay.handle(request({"all": True, "discard": "seen"}, "r4"))
    assert (rest["records"], rest["remaining"]) == (1, 0)
    assert replay.handle(request({"all": True}, "r5"))["replay"] is None
    assert job.rows() == sorted([*GOOD_ROWS, *CORRECTED_ROWS[:2]])


def test_a_discard_that_was_interrupted_is_finished(job):
    class CutOffError(Exception): ...

    def passed(_):
        raise CutOffError

    body = {"all": True, "discard": "seen"}
    with pytest.raises(CutOffError):
        job.replay(passed=passed).handle(request(body))
    assert job.replay().handle(request({"all": True}, "r2"))["replay"] is None
    assert job.replay().handle(request(body))["discard"] == 1
    assert job.rows() == sorted(GOOD_ROWS)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_replayed_and_discarded_each_letter_is_settled_once(job, seed):
    draw = random.Random(seed)
    settled, known = {}, {letter["offset"]: letter for letter in CORRECTED}
    for number in range(6):
        some = draw.sample(CORRECTED, draw.randint(1, 3))
        discards = draw.random() < 0.5
        body = {"records": some, **({"discard": "why"} if discards else {})}
        result = job.replay().handle(request(body, f"r{number}"))
        new = {each["offset"] for each in some} - settled.keys()
        assert result["records"] == len(new)
        settled |= dict.fromkeys(new, discards)
        pending = {offset for _, offset in places(job.letters.page(pending=True).letters)}
        assert pending & known.keys() == known.keys() - settled.keys()
    rows = [row for row in CORRECTED_ROWS if settled.get(row[1]) is False]
    assert job.rows() == sorted([*GOOD_ROWS, *rows])


@pytest.mark.parametrize("step", STEPS)
def test_a_runner_killed_at_any_step_repeats_and_loses_nothing(job, step):
    context = multiprocessing.get_context("spawn")
    arguments = (job, {"records": CORRECTED}, step)
    child = context.Process(target=replay_until_killed, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert job.rows() == (ALL_ROWS if step in ("committed", "noted") else sorted(GOOD_ROWS))
    result = job.replay().handle(request({"records": CORRECTED}))
    assert (result["replay"], result["records"], result["rows"]) == (1, 3, 3)
    assert job.rows() == ALL_ROWS
    assert job.replays.numbers() == [1]


@pytest.mark.parametrize("step", STEPS)
def test_another_request_first_finishes_the_interrupted_one(job, step):
    class CutOffError(Exception): ...

    def passed(name):
        if name == step:
            raise CutOffError

    with pytest.raises(CutOffError):
        job.replay(passed=passed).handle(request({"records": CORRECTED}))
    other = job.replay().handle(request({"records": CORRECTED}, "r2"))
    assert (other["replay"], other["already_replayed"]) == (None, 3)
    assert job.rows() == ALL_ROWS


def test_a_disk_without_room_leaves_the_replay_to_be_finished(job):
    def passed(name):
        if name == "joined":
            raise OSError(28, "no space left on device")

    with pytest.raises(OSError, match="no space"):
        job.replay(passed=passed).handle(request({"records": CORRECTED}))
    staged = [path for path in job.output.glob("*.parquet") if "-9000000001-" in path.name]
    assert staged == []
    assert job.replay().handle(request({"records": CORRECTED}))["rows"] == 3
    assert job.rows() == ALL_ROWS


def test_a_refused_commit_abandons_the_replay_and_the_next_one_goes_on(job):
    class Refusing:
        def committed(self, number):
            return None

        def write(self, parts, number, epoch, outcome):
            list(parts)
            raise SinkError("the table is full", hint="Make room.")

    with pytest.raises(SinkError):
        job.replay(writer=Refusing()).handle(request({"records": CORRECTED}))
    assert job.replays.outcome(1) == {"abandoned": "the table is full. Make room."}
    assert job.replay().handle(request({"records": CORRECTED}))["replay"] == 2
    assert job.rows() == ALL_ROWS


def test_a_fenced_runner_writes_nothing_and_the_new_one_finishes(job):
    old = job.replay()
    DeltaLog(job.output, f"{APP}:replay").commit_epoch(3)
    with pytest.raises(FencedError):
        old.handle(request({"records": CORRECTED}))
    assert job.rows() == sorted(GOOD_ROWS)
    assert job.replay(epoch=3).handle(request({"records": CORRECTED}))["replay"] == 1
    assert job.rows() == ALL_ROWS


def test_batches_and_replays_may_be_committed_side_by_side(job):
    def passed(name):
        if name == "joined":
            DeltaLog(job.output, APP).commit(9, 2, (), {"batch": 9})

    job.replay(passed=passed).handle(request({"records": CORRECTED}))
    assert job.rows() == ALL_ROWS
    assert DeltaLog(job.output, APP).batches.last_batch() == 9


def test_letters_of_a_batch_without_output_must_wait(job):
    with pytest.raises(RequestError, match="batch 9"):
        job.replay().handle(request({"records": [{"partition": 0, "offset": 108}]}))
    DeltaLog(job.output, APP).commit(9, 2, (), {"batch": 9})
    good = [{"partition": 0, "offset": 108, "value": '{"user_id":1}'}]
    assert job.replay().handle(request({"records": good}))["rows"] == 1


def test_letters_of_a_batch_whose_commit_is_not_in_the_log_any_more_are_settled(job):
    DeltaTable(str(job.output)).create_checkpoint()
    for version in range(2):
        (job.output / "_delta_log" / f"{version:020}.json").unlink()
    replay = job.replay()
    assert replay.handle(request({"records": CORRECTED[:1]}))["rows"] == 1
    assert replay.handle(request({"all": True, "discard": "old"}, "r2"))["records"] == 4
    assert places(job.letters.page(pending=True).letters) == [(9, 108)]


def test_letters_whose_version_is_gone_stay_with_that_reason(job):
    for file in (job.root / "tables" / "users" / "changelog").glob("*.parquet"):
        file.unlink()
    for file in (job.root / "index").rglob("*"):
        if file.is_file():
            file.unlink()
    result = job.replay().handle(request({"records": CORRECTED}))
    assert (result["rows"], len(result["still_bad"])) == (0, 3)
    assert 'version 1 of dimension "users"' in result["still_bad"][0]["reason"]
    assert job.rows() == sorted(GOOD_ROWS)


def test_letters_of_a_batch_whose_index_is_gone_are_joined_with_its_version(job):
    for file in (job.root / "index").rglob("*"):
        if file.is_file():
            file.unlink()
    PinStore(job.checkpoint.pins_directory).prune(keep=1)  # the output's commit has the pin
    assert job.replay().handle(request({"records": CORRECTED}))["rows"] == 3
    assert job.rows() == ALL_ROWS


def test_a_letter_of_a_batch_with_event_time_says_what_to_do_instead(job):
    path = job.checkpoint.pins_directory / "0000000007.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "event": {"watermark": 5}}))
    result = job.replay().handle(request({"records": CORRECTED}))
    assert [(b["batch"], b["offset"]) for b in result["still_bad"]] == [(7, 101), (7, 102)]
    assert "send the record to the topic again" in result["still_bad"][0]["reason"]
    assert job.rows() == sorted([*GOOD_ROWS, CORRECTED_ROWS[2]])


REFUSED = {
    "nothing": {},
    "no_records": {"records": []},
    "not_a_list": {"records": {"partition": 0, "offset": 101}},
    "not_objects": {"records": [101]},
    "no_offset": {"records": [{"partition": 0}]},
    "negative": {"records": [{"partition": 0, "offset": -1}]},
    "boolean": {"records": [{"partition": False, "offset": 101}]},
    "two_values": {"records": [{**CORRECTED[0], "value_base64": "e30="}]},
    "no_reason": {"all": True, "discard": " "},
    "a_reason_that_is_none": {"all": True, "discard": 1},
    "bad_base64": {"records": [{"partition": 0, "offset": 101, "value_base64": "?"}]},
    "twice": {"records": [CORRECTED[0], CORRECTED[0]]},
    "too_many": {"records": [CORRECTED[0]] * 10_001},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_requests_that_make_no_sense_are_refused(job, body):
    with pytest.raises(RequestError):
        job.replay().handle(request(body))
    assert job.replays.numbers() == []


def test_an_unknown_letter_is_named(job):
    with pytest.raises(UnknownLetterError, match="offset 100"):
        job.replay().handle(request({"records": [{"partition": 0, "offset": 100}]}))
