"""Work behind a job's batches: what fails or hangs is told, and keeps no other from its turn."""

import threading
import time
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.job.upkeep import UpkeepAttempts, UpkeepFault
from joins.plan.errors import SinkError
from tests.support.laws import examples
from tests.support.wait import wait_until

KINDS = (
    *("fold users", "fold items", "trim", "prune", "plan of the upkeep", "lease users"),
    *("upkeep users", "upkeep users current", "upkeep state 0", "upkeep output 0"),
    "upkeep dead letters",
)
OUTCOMES = ("succeeds", "refused", "no room", "a bug", "hangs")


class Work:
    """One kind of work."""

    def __init__(self) -> None:
        self.outcome = "succeeds"
        self.begun = self.ended = 0
        self.go = threading.Event()

    def __call__(self) -> None:
        self.begun += 1
        if self.outcome == "hangs":
            self.go.wait(60)
        if self.outcome == "refused":
            raise SinkError("the table refuses", hint="Repair it.")
        if self.outcome == "no room":
            raise OSError(28, "No space left on device")
        if self.outcome == "a bug":
            raise RuntimeError
        self.ended += 1


@settings(max_examples=examples(60))
@given(rounds=st.lists(st.lists(st.sampled_from(OUTCOMES), min_size=11, max_size=11), max_size=3))
def test_every_kind_that_does_not_succeed_is_told_and_keeps_no_other(rounds):
    stopping = threading.Event()
    attempts = UpkeepAttempts(stopping, patience_s=0.02, slow_s=0.0)
    work = {kind: Work() for kind in KINDS}
    failures = dict.fromkeys(KINDS, 0)
    for outcomes in rounds:
        hanging = {kind for kind in KINDS if attempts.is_running(kind)}
        begun = {kind: each.begun for kind, each in work.items()}
        for kind, outcome in zip(KINDS, outcomes, strict=True):
            if kind not in hanging:
                work[kind].outcome = outcome
            attempts.run(kind, work[kind])
        wait_until(lambda work=work: _settled(attempts, work), what="only hanging work runs")
        for kind, each in work.items():
            assert each.begun == begun[kind] + (kind not in hanging), "once, and not beside itself"
            failed = each.outcome in ("refused", "no room", "a bug")
            if kind not in hanging and each.outcome != "hangs":
                failures[kind] = failures[kind] + 1 if failed else 0
        found = {each.part: each for each in attempts.conditions()}
        for kind, each in work.items():
            is_told = each.outcome != "succeeds"
            assert (kind in found) is is_told, (kind, each.outcome)
            if is_told and each.outcome != "hangs":
                assert found[kind].failures == failures[kind]
                assert f"({kind}) has" in found[kind].text
                assert found[kind].hint
    for each in work.values():
        each.outcome = "succeeds"
        each.go.set()
    attempts.join(60)
    for kind in KINDS:
        attempts.run(kind, work[kind])
    attempts.join(60)
    assert attempts.conditions() == ()


def _settled(attempts: UpkeepAttempts, work: dict[str, Work]) -> bool:
    running = {kind for kind in work if attempts.is_running(kind)}
    return running == {kind for kind, each in work.items() if each.outcome == "hangs"}


def test_a_fault_tells_how_long_it_lasts_once_that_is_a_minute():
    now_ms = time.time_ns() // 1_000_000
    young = UpkeepFault("deleting old pins", now_ms, failures=1, error="kafka is away")
    begin = "background work (deleting old pins) has"
    assert young.text == f"{begin} failed once: kafka is away"
    old = replace(young, since_ms=now_ms - 180_000, failures=4)
    assert old.text == f"{begin} failed 4 times in 3 min: kafka is away"
    slow = replace(old, error=None)
    assert slow.text == f"{begin} not ended for 3 min"


def test_work_that_may_not_run_beside_another_waits_for_its_next_turn():
    attempts, fold, upkeep = UpkeepAttempts(threading.Event(), patience_s=0.02), Work(), Work()
    fold.outcome = "hangs"
    attempts.run("fold users", fold)
    attempts.run("upkeep users current", upkeep, not_beside=["fold users"])
    assert upkeep.begun == 0
    fold.go.set()
    attempts.join(60)
    attempts.run("upkeep users current", upkeep, not_beside=["fold users"])
    attempts.join(60)
    assert upkeep.ended == 1


def test_a_stopped_job_begins_nothing_and_tells_nothing():
    stopping, work = threading.Event(), Work()
    attempts = UpkeepAttempts(stopping)
    stopping.set()
    attempts.run("trim", work)
    assert (work.begun, attempts.conditions()) == (0, ())


def test_work_that_gets_no_thread_is_told_and_tried_again(monkeypatch):
    attempts, work, start = UpkeepAttempts(threading.Event()), Work(), threading.Thread.start

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    attempts.run("trim", work)
    (fault,) = attempts.conditions()
    assert (fault.part, fault.failures, work.begun) == ("trim", 1, 0)
    assert "can't start new thread" in fault.text
    monkeypatch.setattr(threading.Thread, "start", start)
    attempts.run("trim", work)
    wait_until(lambda: work.ended == 1 and not attempts.conditions(), what="it has run")
