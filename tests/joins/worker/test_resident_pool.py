"""Both implementations of `Tasks`, and what happens to resident tasks."""

import errno
import hmac
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from joins.plan.causes import fault_in
from joins.plan.errors import DiskFullError, JoinError, SourceError
from joins.worker.channel import ChannelError, ResidentChannel
from joins.worker.resident import Newest, Resident
from joins.worker.resident_pool import PoolTasks, ResidentPool, TaskError
from joins.worker.staging import current_origin
from joins.worker.work import SparkTasks, StageRun
from tests.support.wait import wait_until


def texts_of(batches, work):
    for batch in batches:
        answers = [work(item) for item in batch.column(0).to_pylist()]
        yield pa.record_batch([pa.array(answers, pa.string())], names=["report"])


def run_of(work: Callable[[str], str]) -> StageRun:
    return StageRun(None, partial(texts_of, work=work))


def large_of(item, content):
    return f"{item} {len(content)}"


def fails_by_ours(item):
    raise SourceError('topic "x" is gone', hint="Make it.")


def fails_by_the_system(item):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/out.parquet")


def fails_by_a_library(item):
    raise ZeroDivisionError("nothing")


def fails_first(item, directory):
    """Fail at an item's first attempt; each leaves a file."""
    path = f"{directory}/{item}"
    if os.path.exists(path):
        return f"{item} again"
    with open(path, "w", encoding="utf-8"):
        raise ValueError(item)


def doubled(batches):
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield pa.record_batch([[text, text]], names=["item"])


def origin_of(item):
    origin = current_origin(1, 2)
    return f"{origin.task}"


@pytest.fixture(scope="module")
def pool(spark):
    with running(spark) as one:
        yield one


@contextmanager
def running(spark, size=2, timeout_s=60.0):
    """A pool whose residents are connected."""
    one = ResidentPool(spark, size, timeout_s=timeout_s)
    one.start()
    try:
        wait_until(lambda: len(one.pids) == size)
        yield one
    finally:
        one.close()


@pytest.fixture(params=["spark", "resident"])
def tasks(request, spark):
    return SparkTasks(spark) if request.param == "spark" else request.getfixturevalue("pool")


LARGE = os.urandom(3 << 20)
ANSWERS = {
    "in_order": (run_of(str.upper), "abcdef", list("ABCDEF")),
    "none": (run_of(str.upper), "", []),
    "several_texts_an_item": (StageRun(doubled, partial(texts_of, work=str)), "ab", list("aabb")),
    "large_stage": (
        run_of(partial(large_of, content=LARGE)),
        "ab",
        [f"{n} {3 << 20}" for n in "ab"],
    ),
    "large_items": (
        run_of(len_of := (lambda item: str(len(item)))),
        ["x" * (3 << 20)],
        [str(3 << 20)],
    ),
    "empty_item": (run_of(len_of), [""], ["0"]),
    "numbers_of_items": (run_of(origin_of), "abc", list("012")),
}


@pytest.mark.parametrize(("run", "items", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_the_texts_of_all_items_come_in_their_order(tasks, run, items, expected):
    for _ in range(2):
        assert tasks.collected(run, tuple(items), has_index=True) == expected


ERRORS = {
    "ours": (fails_by_ours, SourceError, 'topic "x" is gone'),
    "of_the_system": (fails_by_the_system, DiskFullError, '"/lake/out.parquet" is full'),
    "of_a_library": (fails_by_a_library, JoinError, "a task failed: nothing"),
}


@pytest.mark.parametrize(("work", "kind", "text"), ERRORS.values(), ids=ERRORS)
def test_an_error_of_a_task_reaches_the_driver_by_its_cause(tasks, work, kind, text):
    with pytest.raises(PySparkException) as found:
        tasks.collected(run_of(work), ("a", "b"))
    cause = fault_in(str(found.value))
    assert type(cause) is kind
    assert text in cause.message


def test_a_task_that_fails_once_is_tried_again(tasks, tmp_path):
    run = run_of(partial(fails_first, directory=tmp_path))
    assert tasks.collected(run, ("a", "b")) == ["a again", "b again"]


# Residents
# --------------------------------------------------------------------------------------------


def pid_of(item):
    return str(os.getpid())


def killed_once(item, directory):
    if item == "b" and not (directory / item).exists():
        (directory / item).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def killed(item):
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def hangs_once(item, directory):
    try:
        (directory / item).touch(exist_ok=False)
    except FileExistsError:
        return item
    time.sleep(3600)
    return item


def test_stages_run_in_the_processes_of_the_pool(pool):
    assert set(pool.collected(run_of(pid_of), "abcd")) <= set(map(str, pool.pids.values()))


def test_the_items_of_a_killed_resident_go_to_another_one(spark, tmp_path):
    with running(spark) as pool:
        before = pool.pids
        assert pool.collected(run_of(partial(killed_once, directory=tmp_path)), "ab") == ["a", "b"]
        wait_until(lambda: len(pool.pids) == 2 and pool.pids != before)
        for pid in pool.pids.values():  # idle ones
            os.kill(pid, signal.SIGKILL)
        assert pool.collected(run_of(str.upper), "ab") == ["A", "B"]


def test_an_item_that_kills_its_task_fails_the_batch_and_not_the_pool(spark):
    with running(spark) as pool:
        with pytest.raises(PySparkException, match="3 times"):
            pool.collected(run_of(killed), "a")
        wait_until(lambda: len(pool.pids) == 2)
        assert pool.collected(run_of(str.upper), "ab") == ["A", "B"]


def test_a_resident_that_hangs_is_given_up(spark, tmp_path):
    with running(spark, size=1, timeout_s=1.0) as pool:
        before = pool.pids
        assert pool.collected(run_of(partial(hangs_once, directory=tmp_path)), "a") == ["a"]
        wait_until(lambda: pool.pids and pool.pids != before)


def test_cancelling_ends_the_batch_and_not_the_pool(spark, tmp_path):
    errors = []

    def batch():
        try:
            pool.collected(run_of(partial(hangs_once, directory=tmp_path)), "a")
        except PySparkException as exc:
            errors.append(exc)

    with running(spark, size=1) as pool:
        thread = threading.Thread(target=batch)
        thread.start()
        wait_until((tmp_path / "a").exists)
        pool.cancel()
        thread.join()
        assert "cancelled" in str(errors[0])
        before = pool.pids
        assert pool.collected(run_of(str.upper), "b") == ["B"], "by a Spark job: it is still busy"
        assert pool.pids == before


def test_the_end_of_the_pool_ends_its_job_and_removes_its_socket(spark):
    tracker = spark.sparkContext.statusTracker()
    with running(spark) as pool:
        group, path = pool._group, pool._listener.address
        assert os.path.exists(path)
        assert tracker.getJobIdsForGroup(group)
    assert not os.path.exists(path)
    wait_until(lambda: not set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(group)))
    assert pool.collected(run_of(str.upper), "ab") == ["A", "B"], "as Spark jobs"


class Impostor:
    """A resident in this process, which can answer as it likes."""

    def __init__(self, pool):
        listener = pool._listener
        self.channel = ResidentChannel.connect(listener.address, listener.secret)
        self.channel.send(json.dumps({"slot": 0, "pid": os.getpid()}).encode())
        wait_until(lambda: pool.pids)

    def next_call(self):
        return json.loads(self.channel.receive().split(b"\n", 1)[0])

    def answer(self, call, *texts):
        self.channel.send(json.dumps({"call": call, "texts": texts}).encode())


def serving(impostor, *rounds):
    def serve():
        for answers in rounds:
            call = impostor.next_call()["call"]
            for back, text in answers:
                impostor.answer(call - back, text)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_the_second_answer_to_a_call_is_ignored(lonely):
    serving(Impostor(lonely), [(0, "one"), (0, "two")], [(0, "three")])
    assert lonely.collected(run_of(str.upper), "a") == ["one"]
    assert lonely.collected(run_of(str.upper), "b") == ["three"]


def test_a_loop_that_stops_leaves_the_tasks_of_the_other_loops(lonely):
    stopped, other, answers = PoolTasks(lonely), PoolTasks(lonely), {}

    def collect(tasks):
        try:
            answers[tasks] = tasks.collected(run_of(str.upper), "a")
        except TaskError as exc:
            answers[tasks] = str(exc)

    resident = Impostor(lonely)
    threads = [threading.Thread(target=collect, args=(each,)) for each in (stopped, other)]
    threads[0].start()
    first = resident.next_call()["call"]
    threads[1].start()
    wait_until(lambda: lonely._waiting)
    stopped.cancel()
    threads[0].join()
    assert "cancelled" in answers[stopped]
    resident.answer(first, "too late")
    resident.answer(resident.next_call()["call"], "right")
    threads[1].join()
    assert answers[other] == ["right"]


def test_a_batch_that_would_have_more_slots_than_residents_runs_as_a_spark_job(lonely):
    Impostor(lonely)  # the one resident, for a session with two slots; it answers nothing
    assert lonely.collected(run_of(str.upper), "ab") == ["A", "B"]


NO_ANSWERS = {
    "of_another_type": lambda call: [],
    "without_texts": lambda call: {"call": call},
    "without_a_list": lambda call: {"call": call, "texts": 5},
}


@pytest.mark.parametrize("made", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_an_answer_that_is_none_costs_an_attempt_and_the_connection(lonely, made):
    first = Impostor(lonely)
    answers = []
    batch = threading.Thread(
        target=lambda: answers.extend(lonely.collected(run_of(str.upper), "a")), daemon=True
    )
    batch.start()
    call = first.next_call()
    assert call["attempt"] == 0
    first.channel.send(json.dumps(made(call["call"])).encode())
    wait_until(lambda: not lonely.pids)
    second = Impostor(lonely)
    second.channel.link.settimeout(10)
    call = second.next_call()
    assert call["attempt"] == 1
    second.answer(call["call"], "right")
    batch.join()
    assert answers == ["right"]


def test_a_connection_that_closes_costs_an_attempt(lonely):
    first = Impostor(lonely)
    answers = []
    batch = threading.Thread(
        target=lambda: answers.extend(lonely.collected(run_of(str.upper), "a"))
    )
    batch.start()
    first.next_call()
    first.channel.close()
    wait_until(lambda: not lonely.pids)
    serving(Impostor(lonely), [(0, "right")])
    batch.join()
    assert answers == ["right"]


def test_a_wrong_secret_is_refused_on_both_sides(lonely):
    with pytest.raises(ChannelError):
        ResidentChannel.connect(lonely._listener.address, b"another")
    assert lonely.pids == {}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(bytes(32) + hmac.digest(b"another", bytes(64), "sha256"))
        with pytest.raises(ChannelError, match="lacks the driver's secret"):
            ResidentChannel.accept(ours, b"secret")


def test_a_frame_that_was_changed_or_repeated_is_refused():
    left, right = socket.socketpair()
    frames = ResidentChannel(left, b"key", b"driver", b"resident")
    back = ResidentChannel(right, b"key", b"resident", b"driver")
    frames.send(b"one")
    assert back.receive() == b"one"
    sent = ResidentChannel(left, b"key", b"driver", b"resident")
    sent.send(b"one")  # a frame with the number of the first
    with pytest.raises(ChannelError):
        back.receive()
    left.close()
    with pytest.raises(ChannelError, match="has ended"):
        back.receive()
    right.close()


def test_a_secret_is_not_shown():
    assert "hidden" not in repr(Resident("path", b"hidden"))


def test_the_newest_values_stay():
    kept = Newest[str](2)
    for key in "abacb":
        kept.get(key) or kept.put(key, key)
    assert [kept.get(key) for key in "abc"] == [None, "b", "c"]


def test_a_pool_is_closed_also_if_the_jvm_is_gone():
    gone = threading.Event()

    def refused(_):
        gone.set()
        raise ConnectionRefusedError("Connection refused")

    session = SimpleNamespace(sparkContext=SimpleNamespace(cancelJobGroup=refused))
    pool = ResidentPool(session, 1, timeout_s=1.0)
    pool._holding = threading.Thread(target=gone.wait)
    pool._holding.start()
    pool.close()
    assert not pool._holding.is_alive()
