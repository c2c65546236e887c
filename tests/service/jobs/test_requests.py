"""Requests from the control plane's side to the runner's, through real files."""

import json
import stat

import pytest

from joins.durable.requests import Requests
from joins.plan.errors import CheckpointError, NothingToAcknowledgeError
from service.errors import BusyError, JobConflictError
from service.jobs.store import runner_files
from service.jobs.store.runner_files import Asked, RequestBox
from tests.support.beside import at_once

ASKED = Asked("acknowledge", {"cause": "topic-missing"}, by="ann")


@pytest.fixture
def box(tmp_path):
    return RequestBox(tmp_path / "requests")


def _runner(tmp_path, handler):
    return Requests(tmp_path / "requests", {"acknowledge": handler})


def test_what_is_sent_is_carried_out_once_and_answered(box, tmp_path):
    seen = []
    runner = _runner(tmp_path, lambda request: seen.append(request) or {"id": request.id})
    request_id = box.send(ASKED)
    assert box.answer(request_id) is None
    assert box.wait(request_id, timeout_s=0) is None
    runner.serve()
    runner.serve()
    answer = box.wait(request_id, timeout_s=5)
    assert answer.result == {"id": request_id}
    assert answer.error is None
    assert [(r.kind, r.body, r.by) for r in seen] == [("acknowledge", ASKED.body, "ann")]


def test_requests_are_served_in_the_order_of_the_asking(box, tmp_path):
    seen = []
    sent = [box.send(ASKED) for _ in range(20)]
    _runner(tmp_path, lambda request: seen.append(request.id) or {}).serve()
    assert len(seen) == 20
    assert [i[:13] for i in seen] == [i[:13] for i in sorted(sent)]


def test_a_refusal_has_the_runners_words(box, tmp_path):
    def refuse(_request):
        raise NothingToAcknowledgeError("no such stall", hint="Look at the status.")

    request_id = box.send(ASKED)
    _runner(tmp_path, refuse).serve()
    error = box.answer(request_id).error
    assert (error.type, error.message) == ("nothing-to-acknowledge", "no such stall")


def test_files_are_for_their_owner_only(box, tmp_path):
    request_id = box.send(Asked("acknowledge", {}, by="ann", key="k"))
    path = tmp_path / "requests" / f"{request_id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, "keys"]


def test_the_same_key_is_one_request_also_when_asked_at_once(box, tmp_path):
    asked = Asked("acknowledge", {"cause": "topic-missing"}, by="ann", key="k")
    sent = at_once(box.send, [asked] * 8)
    assert len(set(sent)) == 1
    assert len(list((tmp_path / "requests").glob("*.json"))) == 1
    with pytest.raises(JobConflictError):
        box.send(Asked("acknowledge", {"cause": "records-lost"}, by="ann", key="k"))


def test_a_key_whose_request_was_not_written_any_more_is_taken_up_again(box, tmp_path):
    asked = Asked("acknowledge", {}, by="ann", key="k")
    request_id = box.send(asked)
    (tmp_path / "requests" / f"{request_id}.json").unlink()  # a crash between key and request
    assert box.send(asked) == request_id
    assert (tmp_path / "requests" / f"{request_id}.json").exists()


def test_a_runner_that_answers_nothing_is_not_asked_without_end(box, monkeypatch):
    monkeypatch.setattr(runner_files, "MOST_UNANSWERED", 3)
    for _ in range(3):
        box.send(ASKED)
    with pytest.raises(BusyError):
        box.send(ASKED)


def test_old_answers_are_forgotten(box, tmp_path, monkeypatch):
    monkeypatch.setattr(runner_files, "_KEPT_ANSWERS", 2)
    runner = _runner(tmp_path, lambda _request: {})
    sent = []
    for _ in range(5):
        sent.append(box.send(ASKED))
        runner.serve()
    box.send(ASKED)
    assert [i for i in sent if box.sent(i)] == sent[-2:]


def test_an_answer_that_is_damaged_is_an_error(box, tmp_path):
    request_id = box.send(ASKED)
    path = tmp_path / "requests" / f"{request_id}.result.json"
    for text in ("{", "[]", json.dumps({"status": "refused"})):
        path.write_text(text)
        with pytest.raises(CheckpointError):
            box.answer(request_id)
