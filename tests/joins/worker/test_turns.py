"""Turns of tasks that send: in their order, one at a time, and none behind a task that was lost."""

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.plan.errors import SinkError
from joins.worker.channel import ChannelError, ResidentChannel
from joins.worker.turns import SendTurns
from tests.support.laws import examples
from tests.support.wait import wait_until


class Counting:
    """A sender that counts records by partition, as a broker does."""

    def __init__(self):
        self.sequences, self.fault = Counter(), None

    def admit(self, records):
        if self.fault is not None:
            raise self.fault
        return {"sequences": dict(self.sequences)}

    def acknowledge(self, records):
        self.sequences.update(records)


@pytest.fixture
def sender():
    return Counting()


@pytest.fixture
def server(spark, sender):
    server = SendTurns(sender)
    server.begin(spark.sparkContext)
    yield server
    server._listener.close()


@pytest.fixture
def turns(spark, server):
    return server.begin(spark.sparkContext)


def sent_by(turns, item, records, log):
    with turns.turn(item, records) as granted:
        log.append((item, granted["sequences"]))


@given(st.data())
@settings(max_examples=examples(20), deadline=None)
def test_tasks_send_in_their_order_whoever_comes_first(spark, data):
    tasks = data.draw(st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 9)), max_size=5))
    order = data.draw(st.permutations(range(len(tasks))))
    log, server = [], SendTurns(Counting())
    turns = server.begin(spark.sparkContext)
    try:
        with ThreadPoolExecutor(5) as threads:
            list(threads.map(lambda item: sent_by(turns, item, tasks[item], log), order))
    finally:
        server._listener.close()
    expected, before = [], Counter()
    for item, records in enumerate(tasks):
        expected.append((item, {str(p): n for p, n in before.items()}))
        before.update(records)
    assert log == expected


def lost_in_its_turn(turns):
    channel = ResidentChannel.connect(turns.address, turns.secret)
    request = {"batch": turns.batch, "item": 0, "records": {"0": 1}}
    channel.send(json.dumps(request).encode())
    channel.receive()
    return channel


def test_a_connection_that_ends_within_a_turn_fails_the_batch(turns, sender):
    channel, refused = lost_in_its_turn(turns), []

    def next_one():
        with pytest.raises(SinkError) as caught, turns.turn(1, {0: 1}):
            raise AssertionError("it has no turn")
        refused.append(caught.value.message)

    waiting = threading.Thread(target=next_one)
    waiting.start()
    channel.close()
    waiting.join()
    assert refused == [
        "task 0 has failed while it sent: which of its rows are in the topic is unknown"
    ]
    assert sender.sequences == {}


@pytest.mark.parametrize("is_over", [False, True])
def test_a_task_that_comes_twice_fails_the_batch(turns, is_over):
    """As when a task that hangs was given up, or has not answered though it has sent."""
    if is_over:
        sent_by(turns, 0, {0: 1}, [])
    else:
        first = lost_in_its_turn(turns)
    for item in (0, 1):
        with pytest.raises(SinkError, match="task 0 has failed while it sent"):
            sent_by(turns, item, {0: 1}, [])
    if not is_over:
        first.close()


def asking(turns, item):
    channel = ResidentChannel.connect(turns.address, turns.secret)
    request = {"batch": turns.batch, "item": item, "records": {"0": 1}}
    channel.send(json.dumps(request).encode())
    return channel


def test_of_two_attempts_of_a_task_that_wait_for_its_turn_one_sends_and_the_batch_fails(sender):
    """As when a task was given up that still waits: both would send as one producer."""
    server = SendTurns(sender)
    turns = server.begin(SimpleNamespace(master="local[1]"))
    try:
        with turns.turn(0, {0: 5}):
            both = [asking(turns, 1), asking(turns, 1)]
            wait_until(lambda: len(server._changed._waiters) == 2, what="both wait")
        answers = [json.loads(channel.receive()) for channel in both]
        assert sorted(map(sorted, answers)) == [["detail", "hint", "refused"], ["sequences"]]
        both[answers.index({"sequences": {"0": 5}})].send(b"{}")
        with pytest.raises(SinkError, match="task 1 has failed while it sent"):
            sent_by(turns, 2, {0: 1}, [])
        for channel in both:
            channel.close()
    finally:
        server._listener.close()


TOO_LARGE = SinkError("rows cannot be sent", hint="Raise the limit.", detail="10 MB")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TOO_LARGE, "rows cannot be sent"), (ZeroDivisionError(), "task 0 has failed while it sent")],
    ids=["told", "unknown"],
)
def test_an_error_of_a_task_within_its_turn_fails_the_batch_with_its_cause(turns, error, reason):
    with pytest.raises(type(error)), turns.turn(0, {0: 1}):
        raise error
    for item in (0, 1):
        with pytest.raises(SinkError, match=reason):
            sent_by(turns, item, {0: 1}, [])


def test_another_attempt_ends_the_turns_of_the_one_before(spark, server, turns, sender):
    waiting = ThreadPoolExecutor(1).submit(sent_by, turns, 1, {0: 1}, [])
    late = lost_in_its_turn(turns)
    again = server.begin(spark.sparkContext)
    with pytest.raises(SinkError, match="the batch of task 1 has ended"):
        waiting.result()
    sent_by(again, 0, {0: 5}, [])
    late.send(b"{}")
    late.close()
    with pytest.raises(SinkError, match="the batch of task 0 has ended"):
        sent_by(turns, 0, {0: 1}, [])
    log = []
    sent_by(again, 1, {0: 1}, log)
    assert log == [(1, {"0": 5})], "what was sent late does not count"


def test_an_error_of_the_driver_reaches_the_task(turns, sender):
    sender.fault = SinkError("no broker answers", hint="Wait.", detail="timeout")
    for item in (0, 1):
        with pytest.raises(SinkError, match="no broker answers") as caught:
            sent_by(turns, item, {0: 1}, [])
        assert caught.value.detail == "timeout"


def test_what_is_no_request_ends_the_connection_alone(turns):
    channel = ResidentChannel.connect(turns.address, turns.secret)
    channel.send(b"[]")
    wait_until(channel.has_ended)
    with pytest.raises(ChannelError):
        channel.receive()
    channel.close()
    sent_by(turns, 0, {0: 1}, [])


def test_a_secret_is_not_shown(turns):
    assert repr(turns.secret) not in repr(turns)
