"""Runs are known by their number; what is told is told in order, and goes on after a restart."""

from types import SimpleNamespace

import pytest

from service.client import Sluice
from service.errors import ExportError
from service.export.follow import Follower, FollowPosition, RunCounter
from service.schemas.progress import Transition
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes")

JOB = "01a203e7-de57-7f29-a747-22bb11fd8ebd"
LIFE = (
    # state, run, begins, over
    ("CREATED", 0, False, False),
    ("STARTING", 0, True, False),
    ("SNAPSHOT", 0, False, False),
    ("STALLED", 0, False, False),
    ("STARTING", 0, False, False),
    ("JOINING", 0, False, False),
    ("PAUSED", 0, False, False),
    ("STARTING", 0, False, False),
    ("FAILED", 0, False, False),
    ("STOPPED", 0, False, True),
    ("STARTING", 1, True, False),
    ("STOPPED", 1, False, False),
    ("STARTING", 2, True, False),
    ("FINISHED", 2, False, False),
)


def transitions(states):
    origins = [None, *states[:-1]]
    return [
        Transition.model_validate(
            {"sequence": n, "at_ms": 1_000 * n, "from": a, "to": b, "cause": "", "job_id": JOB}
        )
        for n, (a, b) in enumerate(zip(origins, states, strict=True), start=1)
    ]


def test_a_run_lasts_from_a_start_to_the_end_that_follows():
    counter = RunCounter()
    steps = [counter.take(JOB, t) for t in transitions([state for state, *_ in LIFE])]
    assert [(s.transition.target, s.run.number, s.begins, s.over) for s in steps] == list(LIFE)
    assert [s.since_ms for s in steps[:3]] == [None, 1_000, 2_000]
    assert len({s.run.id for s in steps}) == 3


BEFORE_ITS_START = {
    # states, then for each: begins, begun
    "paused_before_it": (
        ["CREATED", "PAUSED", "STARTING", "JOINING"],
        [(False, False), (False, False), (True, True), (False, True)],
    ),
    "stopped_before_it": (
        ["CREATED", "STOPPED", "STARTING", "STOPPED", "STARTING"],
        [(False, False), (False, False), (True, True), (False, True), (True, True)],
    ),
    "paused_and_stopped_before_it": (
        ["CREATED", "PAUSED", "STOPPED"],
        [(False, False), (False, False), (False, False)],
    ),
    "paused_later": (
        ["CREATED", "STARTING", "PAUSED", "STARTING"],
        [(False, False), (True, True), (False, True), (False, True)],
    ),
}


@pytest.mark.parametrize(("states", "expected"), BEFORE_ITS_START.values(), ids=BEFORE_ITS_START)
def test_a_run_begins_with_its_first_start_whatever_was_before_it(states, expected):
    counter = RunCounter()
    steps = [counter.take(JOB, t) for t in transitions(states)]
    assert [(step.begins, step.begun) for step in steps] == expected


def test_of_a_job_whose_past_is_gone_the_run_is_taken_to_have_begun():
    (*_, last) = transitions(["CREATED", "STARTING", "JOINING", "STOPPED"])
    assert RunCounter().take(JOB, last).begun


def test_a_transition_that_is_taken_again_is_the_same_step():
    counter = RunCounter()
    for transition in transitions([state for state, *_ in LIFE]):
        assert counter.take(JOB, transition) == counter.take(JOB, transition)


def test_a_run_has_the_same_id_for_whoever_comes_later():
    life = transitions([state for state, *_ in LIFE])
    whole, later = RunCounter(), RunCounter()
    expected = [whole.take(JOB, t) for t in life]
    later.take_all(JOB, life[:-1])
    assert later.take(JOB, life[-1]) == expected[-1]


class Listener:
    """Keeps what it is told; refuses for a while if it shall."""

    def __init__(self, refusals=0, *, passing=True):
        self.heard, self.refusals, self.passing, self.looks = [], refusals, passing, 0

    def tell(self, step):
        if self.refusals:
            self.refusals -= 1
            raise ExportError("nobody there", hint="Wait.", passing=self.passing)
        self.heard.append((step.transition.sequence, step.run.number))

    def look(self, _run_of):
        self.looks += 1


@pytest.fixture(scope="module")
def lived(secret, tmp_path_factory):
    """A control plane with a job that was stopped and started again."""
    with (
        control_plane(tmp_path_factory.mktemp("plane")) as plane,
        Documents(plane.url) as client,
        Sluice(plane.url) as sluice,
    ):
        plane_job = client.submit(script(), "lived")["id"]
        for ask, state in ((None, "JOINING"), (client.stop, "STOPPED"), (client.start, "JOINING")):
            if ask is not None:
                ask(plane_job)
            wait_until(lambda s=state: client.job(plane_job)["state"] == s, deadline_s=60)
        yield sluice


def test_after_a_restart_it_goes_on_behind_what_it_has_told(lived, tmp_path):
    file = tmp_path / "cursor"
    first = Listener()
    Follower(lived, first, FollowPosition(file)).catch_up()
    middle = first.heard[len(first.heard) // 2][0]
    file.write_text(f"{middle}\n")
    second = Listener()
    follower = Follower(lived, second, FollowPosition(file))
    follower.catch_up()
    assert second.heard == [told for told in first.heard if told[0] > middle]
    assert {run for _, run in first.heard} == {0, 1}
    assert follower.catch_up() == 0
    assert (second.looks, int(file.read_text())) == (2, first.heard[-1][0])


EVERY_S = 0.5  # (no pause before another attempt is as short)


def run_until_all_is_told(follower, monkeypatch):
    """Let it run up to its first pause in which it waits for nothing; the pauses before that."""
    pauses = []

    def sleep(seconds):
        if seconds == EVERY_S:
            raise InterruptedError
        pauses.append(seconds)

    monkeypatch.setattr("service.export.follow.time", SimpleNamespace(sleep=sleep))
    with pytest.raises(InterruptedError):
        follower.run(every_s=EVERY_S)
    return pauses


def test_a_receiver_that_is_away_is_told_later_and_in_order(lived, monkeypatch):
    patient, prompt = Listener(refusals=7), Listener()
    pauses = run_until_all_is_told(Follower(lived, patient, FollowPosition(None)), monkeypatch)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    run_until_all_is_told(Follower(lived, prompt, FollowPosition(None)), monkeypatch)
    assert patient.heard == prompt.heard


def test_a_receiver_that_takes_something_is_asked_again_soon(lived, monkeypatch):
    class Flapping(Listener):
        def tell(self, step):
            super().tell(step)
            self.refusals = 1

    pauses = run_until_all_is_told(Follower(lived, Flapping(), FollowPosition(None)), monkeypatch)
    assert set(pauses) == {1}


def test_catching_up_once_does_not_wait_and_goes_on_where_it_was(lived, monkeypatch, tmp_path):
    def sleep(_seconds):
        raise AssertionError("it waits")

    monkeypatch.setattr("service.export.follow.time", SimpleNamespace(sleep=sleep))
    listener, prompt = Listener(refusals=2), Listener()
    follower = Follower(lived, listener, FollowPosition(tmp_path / "cursor"))
    for _ in range(2):
        with pytest.raises(ExportError, match="nobody there"):
            follower.catch_up()
    follower.catch_up()
    Follower(lived, prompt, FollowPosition(None)).catch_up()
    assert listener.heard == prompt.heard


def test_what_never_works_is_said(lived):
    listener = Listener(refusals=1, passing=False)
    with pytest.raises(ExportError, match="nobody there"):
        Follower(lived, listener, FollowPosition(None)).catch_up()


@pytest.mark.parametrize("content", ["", "x", "1 2"])
def test_another_file_is_no_cursor(tmp_path, content):
    (tmp_path / "cursor").write_text(content)
    with pytest.raises(ExportError, match="holds no cursor"):
        FollowPosition(tmp_path / "cursor")


def test_a_cursor_that_cannot_be_kept_is_said(tmp_path):
    with pytest.raises(ExportError, match="cannot be kept"):
        FollowPosition(tmp_path / "absent" / "cursor").move(1)
