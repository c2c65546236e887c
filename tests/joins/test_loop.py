"""A loop and its turns: what is told of a step, and what a stop waits for."""

import itertools
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from joins.durable.failpoints import Failpoints
from joins.loop import BatchTurns, Loop, LoopGuards, LoopSettings
from joins.plan.errors import StoppingError
from tests.support.wait import wait_until


class Numbers:
    """Steps that note their numbers; one of them does something else first."""

    def __init__(self, special: Callable[[int], object] = lambda _: None) -> None:
        self.done: list[int] = []
        self.waits: list[int] = []
        self.recovered = self.closed = 0
        self._special = special

    def recover(self) -> None:
        self.recovered += 1

    def step(self) -> bool:
        self._special(len(self.done))
        self.done.append(len(self.done))
        return len(self.done) % 3 > 0

    def wait(self) -> None:
        self.waits.append(len(self.done))

    def close(self) -> None:
        self.closed += 1


def guards(told=None, turns=None, lock=None):
    told = [] if told is None else told
    return LoopGuards(Failpoints(), turns or BatchTurns(), told.append, lock or threading.Lock())


def loop(spark, steps, own=None, trigger_ms=1):
    return Loop(spark, steps, LoopSettings("numbers", "build", trigger_ms), own or guards())


def test_steps_follow_each_other_until_it_is_stopped(spark):
    steps = Numbers()
    running = loop(spark, steps).start()
    wait_until(lambda: len(steps.done) > 3)
    assert (running.is_active, running.has_progressed) == (True, True)
    running.stop()
    assert (running.is_active, running.error, steps.closed) == (False, None, 1)
    assert steps.recovered == 1
    assert steps.waits[0] == 3, "after a step without a batch"


def test_an_error_ends_it_and_is_told(spark):
    def fail(number):
        if number == 1:
            raise ValueError("planted")

    told, steps = [], Numbers(fail)
    running = loop(spark, steps, guards(told)).start()
    wait_until(lambda: not running.is_active)
    assert str(running.error) == "planted"
    assert (told, steps.done, steps.closed) == ([running.error], [0], 1)


def test_a_step_that_fails_at_once_is_no_progress(spark):
    running = loop(spark, Numbers(lambda _: 1 // 0)).start()
    wait_until(lambda: not running.is_active)
    assert not running.has_progressed


def test_nothing_begins_while_another_has_the_lock_nor_afterwards_if_it_was_ended(spark):
    lock, steps = threading.Lock(), Numbers()
    with lock:
        running = loop(spark, steps, guards(lock=lock)).start()
        running.end()
    wait_until(lambda: not running.is_active)
    assert (steps.recovered, steps.done, running.error) == (0, [], None)


def test_steps_are_at_least_a_trigger_apart(spark):
    began = []
    running = loop(spark, Numbers(lambda _: began.append(time.monotonic())), trigger_ms=40).start()
    wait_until(lambda: len(began) > 3)
    running.stop()
    assert all(b - a >= 0.039 for a, b in itertools.pairwise(began))


def test_a_stop_cancels_what_runs_outside_of_sparks_jobs(spark):
    cancelled = threading.Event()
    steps = Numbers(lambda _: cancelled.wait())
    settings = LoopSettings("numbers", "build", 1)
    running = Loop(spark, steps, settings, guards(), cancelled.set).start()
    wait_until(lambda: steps.recovered)
    running.stop()
    assert not running.is_active


@pytest.mark.parametrize("pool", ["probe", "build"])
def test_its_jobs_are_in_its_pool_and_broken_off_when_it_is_stopped(spark, pool):
    context, seen, errors = spark.sparkContext, [], []

    def never(batches):
        for batch in batches:
            time.sleep(600)
            yield batch

    def run(_):
        seen.append(context.getLocalProperty("spark.scheduler.pool"))
        spark.range(1).mapInArrow(never, "id long").collect()

    settings = LoopSettings("sleeper", pool, 1)
    running = Loop(spark, Numbers(run), settings, guards(errors)).start()
    wait_until(lambda: context.statusTracker().getActiveJobsIds(), what="the job runs")
    running.stop()
    assert not running.is_active
    assert running.error is None, "it was stopped"
    assert (seen, len(errors)) == ([pool], 1)


def test_a_stop_waits_for_the_running_batch_and_lets_no_other_begin():
    ran, begun, go_on = [], threading.Event(), threading.Event()
    turns = BatchTurns()

    def batch():
        with guards(turns=turns).turn():
            begun.set()
            go_on.wait(60)
            ran.append(4)

    running = threading.Thread(target=batch)
    running.start()
    assert begun.wait(60)
    assert not turns.stop(timeout_s=0.01)
    with pytest.raises(StoppingError):
        batch()
    go_on.set()
    assert turns.stop(timeout_s=10)
    running.join()
    assert ran == [4]


def test_a_loop_is_stopped_also_if_the_jvm_is_gone():
    def refused(*_):
        raise ConnectionRefusedError("Connection refused")

    context = SimpleNamespace(cancelJobGroup=refused, setLocalProperty=refused)
    steps = Numbers()
    ended = loop(SimpleNamespace(sparkContext=context), steps).start()
    wait_until(lambda: not ended.is_active)
    ended.stop()
    assert (steps.recovered, steps.closed) == (0, 1)
