"""Dead letters of a statement set: each is replayed for the INSERTs that have no rows of it."""

import io
import json
import multiprocessing
import signal
from dataclasses import replace

import pytest

from joins.adapters.delta.log import DeltaLog
from joins.durable.checkpoint import replay_app_id, write_json_atomically
from joins.durable.letter_replays import ChosenLetter, LetterReplay, LetterReplays, Replayed
from joins.durable.pins import PinStore
from joins.kernels.probe.probe import kernel_spec
from joins.lookback.dead_letter_replay import DeadLetterReplay, ReplayParts
from joins.lookback.history import History, OutputPreview
from joins.lookback.letter_rows import LetterInsert
from joins.plan.errors import FencedError, RequestError, SinkError
from joins.sinks.console import ConsoleLetterWriter
from tests.support.letters import (
    EPOCH,
    SET_CORRECTED,
    SET_PLAN,
    letter_set,
    replay_until_killed,
    request,
)

# Of INSERT 1 (user and name) and of INSERT 3 (user and note) in one table, then of INSERT 2.
GOOD = [(7, 100, 1, "7"), (7, 100, 1, "r5"), (7, 102, 2, "r5"), (7, 102, 2, "x")]
GOOD += [(8, 104, 1, "u9"), (8, 104, 1, "y")]
SIZED = [(7, 100, 7, "r5")]
CORRECTED = sorted([*GOOD, (7, 101, 2, "5"), (7, 101, 2, "r5")])
CORRECTED_SIZES = [*SIZED, (7, 101, 5, "r5"), (7, 102, 6, "r5"), (8, 104, 8, "u9")]
NAMES_TWO = 'INSERT 2 INTO "sized": '
STEPS = ("joined", "staged", "committed", "insert_noted")
CUTS = [("chosen", 1), *((step, at) for at in (1, 2, 3) for step in STEPS), ("noted", 1)]


class CutOffError(Exception): ...


class Refusing:
    """An output that takes nothing."""

    def committed(self, number):
        return None

    def write(self, parts, number, epoch, outcome):
        list(parts)
        raise SinkError("the topic is gone", hint="Create it.")


def cut_off(step, at):
    left = [at]

    def passed(name):
        left[0] -= name == step
        if left[0] == 0:
            raise CutOffError

    return passed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return letter_set(tmp_path_factory.mktemp("made")).make()


@pytest.fixture
def job(made, tmp_path):
    return made.copied_to(tmp_path)


def replay(job, records=None, id_="r1", **parts):
    body = {"all": True} if records is None else {"records": records}
    return job.replay(**parts).handle(request(body, id_))


def corrected(at, note):
    value = json.dumps({"user_id": 2, "note": note})
    return {"partition": 0, "offset": at, "value": value}


def test_the_batches_left_what_these_tests_begin_with(job):
    assert (job.rows(), job.rows(1)) == (GOOD, SIZED)
    reasons = [letter.reason for letter in job.letters.page().letters]
    assert [reason.startswith(NAMES_TWO) for reason in reasons] == [
        *(False, True, False, True, True)
    ]


def test_a_letter_gets_rows_in_the_outputs_that_have_none_of_it(job):
    result = replay(job, SET_CORRECTED)
    assert (result["replay"], result["records"], result["rows"]) == (1, 3, 5)
    assert result["still_bad"] == []
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)
    shown = [letter.as_json() for letter in job.letters.page().letters]
    assert [letter["replayed_by"] for letter in shown] == [1, 1, None, 1, None]
    assert [letter["replayed_inserts"] for letter in shown] == [[1, 2, 3], [2], [], [2], []]
    again = replay(job, SET_CORRECTED, "r2")
    assert (again["replay"], again["already_replayed"]) == (None, 3)
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_where_it_fails_again_it_stays_for_that_insert_alone(job):
    first = replay(job, [corrected(101, "many")])
    (bad,) = first["still_bad"]
    assert (first["rows"], bad["offset"], bad["inserts"]) == (2, 101, [2])
    assert bad["reason"].startswith(NAMES_TWO)
    assert job.rows(1) == SIZED
    (pending, *_) = job.letters.page(pending=True).letters
    assert (pending.offset, pending.replayed_by, dict(pending.rows_by)) == (101, None, {1: 1, 3: 1})
    second = replay(job, SET_CORRECTED, "r2")
    assert (second["records"], second["rows"]) == (3, 3)
    assert job.letters.find(0, 101).as_json()["replayed_by"] == 2
    assert job.rows() == sorted([*GOOD, (7, 101, 2, "many"), (7, 101, 2, "r5")])
    assert job.rows(1) == CORRECTED_SIZES


def test_a_record_that_cannot_be_parsed_is_told_once_for_all_inserts(job):
    result = replay(job)
    assert (result["records"], result["rows"]) == (4, 0)
    told = [(bad["offset"], bad["inserts"]) for bad in result["still_bad"]]
    assert told == [(101, [1, 2, 3]), (102, [2]), (103, [1, 2, 3]), (104, [2])]
    reasons = [bad["reason"] for bad in result["still_bad"]]
    assert reasons[0] == 'field "user_id": expected number, found string'
    assert (job.rows(), job.rows(1)) == (GOOD, SIZED)


@pytest.mark.parametrize(("step", "at"), CUTS, ids=[f"{step}_{at}" for step, at in CUTS])
def test_wherever_it_is_cut_off_each_output_has_each_row_once(job, step, at):
    with pytest.raises(CutOffError):
        replay(job, SET_CORRECTED, passed=cut_off(step, at))
    other = replay(job, SET_CORRECTED, "r2")
    assert (other["replay"], other["already_replayed"]) == (None, 3)
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)
    assert replay(job, SET_CORRECTED)["rows"] == 5, "the first request has its own answer"


def test_a_runner_killed_between_two_outputs_repeats_and_loses_nothing(job):
    context = multiprocessing.get_context("spawn")
    arguments = (job, {"records": SET_CORRECTED}, "committed", 2)
    child = context.Process(target=replay_until_killed, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert job.rows(1) == CORRECTED_SIZES
    assert len(job.rows()) == len(GOOD) + 1, "the third INSERT has its row not yet"
    result = replay(job, SET_CORRECTED)
    assert (result["replay"], result["records"], result["rows"]) == (1, 3, 5)
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_what_is_sent_is_not_sent_again_for_the_sake_of_another_output(job):
    printed = io.StringIO()
    writer = ConsoleLetterWriter(printed, "", kernel_spec(SET_PLAN).output)
    with pytest.raises(CutOffError):
        replay(job, SET_CORRECTED, writer=writer, passed=cut_off("staged", 2))
    replay(job, SET_CORRECTED, writer=writer)
    assert printed.getvalue().splitlines() == ["+I[2, r5, clicks, 0, 101, 7, users=1]"]


def test_an_output_that_refuses_keeps_the_letters_from_no_other(job):
    result = replay(job, SET_CORRECTED, writers={1: Refusing()})
    assert result["rows"] == 2
    assert [(bad["offset"], bad["inserts"]) for bad in result["still_bad"]] == [
        (101, [2]),
        (102, [2]),
        (104, [2]),
    ]
    told = NAMES_TWO + "the topic is gone. Create it."
    assert {bad["reason"] for bad in result["still_bad"]} == {told}
    assert (job.rows(), job.rows(1)) == (CORRECTED, SIZED)
    assert replay(job, SET_CORRECTED, "r2")["rows"] == 3
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_a_replay_that_every_output_refuses_is_abandoned(job):
    with pytest.raises(SinkError, match="topic is gone"):
        replay(job, SET_CORRECTED, writers={n: Refusing() for n in range(3)})
    assert "abandoned" in job.replays.outcome(1)
    assert replay(job, SET_CORRECTED)["replay"] == 2
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_a_replay_that_cannot_be_finished_keeps_no_other_from_its_letters(job):
    with pytest.raises(CutOffError):
        replay(job, SET_CORRECTED, passed=cut_off("chosen", 1))
    (job.checkpoint.pins_directory / "0000000007.json").write_text("damaged")
    assert replay(job, [SET_CORRECTED[2]], "r2")["rows"] == 1
    assert "0000000007.json" in job.replays.outcome(1)["abandoned"]
    assert job.rows(1) == [*SIZED, (8, 104, 8, "u9")]


@pytest.mark.parametrize("value", [{"user_id": 2, "note": "5"}, 7, "\ud800"], ids=repr)
def test_a_corrected_value_that_is_no_text_is_refused(job, value):
    with pytest.raises(RequestError, match="corrected value cannot be read"):
        replay(job, [{"partition": 0, "offset": 101, "value": value}])


def test_a_fenced_runner_leaves_the_rest_to_the_new_one(job):
    DeltaLog(job.outputs[1], replay_app_id(job.log(1).app_id)).commit_epoch(3)
    with pytest.raises(FencedError):
        replay(job, SET_CORRECTED)
    assert job.rows(1) == SIZED
    assert replay(job, SET_CORRECTED, epoch=3)["replay"] == 1
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_letters_wait_until_all_outputs_have_their_batch(job):
    for number in range(3):
        with pytest.raises(RequestError, match="batch 9"):
            replay(job, [corrected(105, "1")])
        job.log(number).commit(9, 2, (), {"batch": 9})
    assert replay(job, [corrected(105, "1")])["rows"] == 1
    assert job.rows(1) == [*SIZED, (9, 105, 1, None)]


def test_the_pin_of_a_batch_is_found_in_any_output(job):
    PinStore(job.checkpoint.pins_directory).prune(keep=1)
    write_json_atomically(job.checkpoint.directory / "progress.json", {"batch": 8})
    first, *others = (job.insert(number) for number in range(3))
    no_table = History(replace(first.history.places, output=None))
    inserts = [LetterInsert(no_table, first.writer), *others]
    parts = ReplayParts(job.letters, job.replays, inserts, EPOCH)
    assert DeadLetterReplay(parts).handle(request({"records": SET_CORRECTED}))["rows"] == 5
    assert (job.rows(), job.rows(1)) == (CORRECTED, CORRECTED_SIZES)


def test_a_preview_of_an_insert_shows_its_own_replays(job):
    replay(job, SET_CORRECTED)
    for number, name in ((0, "r5"), (2, "5")):
        schema = kernel_spec(SET_PLAN, number).output_schema
        newest, *_ = OutputPreview(job.log(number), schema, has_own_table=False).newest(100)
        assert (newest.batch, newest.replay) == (None, 1)
        assert newest.rows.column("name").to_pylist() == [name]
        found = OutputPreview(job.log(number), schema, has_own_table=False).newest(100)
        assert [written.replay for written in found] == [1, None, None]


def test_files_of_older_versions_are_of_jobs_with_one_insert(tmp_path):
    replays = LetterReplays(tmp_path)
    letters = (ChosenLetter(7, 0, 1), ChosenLetter(7, 0, 2))
    replays.create(LetterReplay(1, "r1", "operator", letters))
    path = tmp_path / "000001.json"
    value = json.loads(path.read_bytes())
    for letter in value["letters"]:
        del letter["inserts"]
    path.write_text(json.dumps(value))
    bad = {"batch": 7, "partition": 0, "offset": 2, "reason": "x"}
    replays.finish(1, {"replay": 1, "rows": 1, "still_bad": [bad]})
    assert replays.replayed() == {
        (7, 0, 1): Replayed({1: 1}, frozenset()),
        (7, 0, 2): Replayed({}, frozenset({1})),
    }
