"""Requests of the control plane: each is carried out once, in order, and none ends the job."""

import errno
import json
import threading

import pytest

from joins.durable import requests
from joins.durable.checkpoint import read_json
from joins.durable.requests import Request, Requests
from joins.plan.errors import FencedError, NothingToAcknowledgeError
from tests.support.wait import wait_until


def ask(directory, request_id, kind="note", **body):
    directory.mkdir(exist_ok=True)
    value = {"kind": kind, "body": body, "at_ms": 5, "by": "me"}
    (directory / f"{request_id}.json").write_text(json.dumps(value))


def answer(directory, request_id):
    found = read_json(directory / f"{request_id}.result.json")
    assert found is not None
    del found["format_version"]
    return found


class Notes:
    def __init__(self):
        self.seen: list[Request] = []

    def __call__(self, request):
        self.seen.append(request)
        return {"count": len(self.seen)}


def test_requests_are_carried_out_once_in_the_order_of_their_names(tmp_path):
    notes = Notes()
    requests = Requests(tmp_path / "requests", {"note": notes})
    requests.serve()
    for request_id in ("02", "10", "01"):
        ask(tmp_path / "requests", request_id, word=request_id)
    (tmp_path / "requests" / ".03.json.tmp").write_text("half")
    requests.serve()
    requests.serve()
    assert [(r.id, r.body["word"], r.by) for r in notes.seen] == [
        ("01", "01", "me"),
        ("02", "02", "me"),
        ("10", "10", "me"),
    ]
    assert answer(tmp_path / "requests", "10") == {"status": "done", "result": {"count": 3}}
    assert requests.open() == []


def test_what_is_unanswered_after_a_restart_is_taken_up(tmp_path):
    ask(tmp_path, "1")
    ask(tmp_path, "2")
    Requests(tmp_path, {"note": Notes()}).serve()
    ask(tmp_path, "3")
    notes = Notes()
    Requests(tmp_path, {"note": notes}).serve()
    assert [r.id for r in notes.seen] == ["3"]


def refuse(_request):
    raise NothingToAcknowledgeError("nothing waits", hint="Look at the status.")


def test_a_refusal_has_type_message_and_hint(tmp_path):
    ask(tmp_path, "1", "acknowledge")
    Requests(tmp_path, {"acknowledge": refuse}).serve()
    assert answer(tmp_path, "1") == {
        "status": "refused",
        "error": {
            "type": "nothing-to-acknowledge",
            "message": "nothing waits",
            "hint": "Look at the status.",
        },
    }


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"body":{}}', '{"kind":"other"}'])
def test_what_cannot_be_understood_is_refused(tmp_path, text):
    (tmp_path / "1.json").write_text(text)
    Requests(tmp_path, {"note": Notes()}).serve()
    assert answer(tmp_path, "1")["status"] == "refused"


def test_a_handler_that_breaks_is_answered_and_does_not_come_back(tmp_path):
    ask(tmp_path, "1")
    requests = Requests(tmp_path, {"note": lambda request: request.body["absent"]})
    requests.serve()
    assert "KeyError" in answer(tmp_path, "1")["error"]["message"]
    assert requests.open() == []


def test_a_full_disk_leaves_the_request_for_later(tmp_path):
    def full(_request):
        raise OSError(28, "no space left on device")

    ask(tmp_path, "1")
    Requests(tmp_path, {"note": full}).serve()
    assert Requests(tmp_path, {"note": Notes()}).open() == ["1"]


def test_an_answer_that_finds_no_room_is_given_later_and_ends_no_job(tmp_path, monkeypatch):
    ask(tmp_path, "1")
    (tmp_path / "2.json").write_text("no request")
    served = Requests(tmp_path, {"note": Notes()})

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(requests, "write_json_atomically", full)
        served.serve()
        assert served.open() == ["1", "2"]
    served.serve()
    assert (answer(tmp_path, "1")["status"], answer(tmp_path, "2")["status"]) == ("done", "refused")


def test_a_fenced_runner_ends_and_answers_nothing(tmp_path):
    def fenced(_request):
        raise FencedError("newer", hint="End.")

    ask(tmp_path, "1")
    requests = Requests(tmp_path, {"note": fenced})
    with pytest.raises(FencedError):
        requests.serve()
    assert requests.open() == ["1"]


def test_a_slow_request_keeps_neither_the_main_loop_nor_requests_that_are_not_slow(tmp_path):
    go = threading.Event()
    notes, slow = Notes(), Notes()
    handlers = {"slow": lambda r: {**slow(r), "waited": go.wait(20)}, "note": notes}
    for request_id, kind in (("1", "slow"), ("2", "note"), ("3", "slow"), ("4", "note")):
        ask(tmp_path, request_id, kind)
    requests = Requests(tmp_path, handlers, slow=("slow",))
    requests.serve()
    requests.serve()
    assert [each.id for each in notes.seen] == ["2", "4"]
    assert requests.open() == ["1", "3"], "one slow request at a time, in their order"
    go.set()
    requests.finish(timeout_s=10)
    wait_until(lambda: requests.open() == ["3"], what="the slow one is answered")
    requests.serve()
    requests.finish(timeout_s=10)
    assert answer(tmp_path, "1")["result"] == {"count": 1, "waited": True}
    assert [each.id for each in slow.seen] == ["1", "3"]


def test_a_slow_request_that_meets_a_newer_runner_ends_the_job(tmp_path):
    def fenced(_request):
        raise FencedError("newer", hint="End.")

    ask(tmp_path, "1", "slow")
    requests = Requests(tmp_path, {"slow": fenced}, slow=("slow",))
    requests.serve()
    requests.finish(timeout_s=10)
    with pytest.raises(FencedError):
        requests.serve()
