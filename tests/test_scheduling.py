"""Files are given to workers so that none is left with the longest, and few start a Spark."""

import heapq
import json
from types import SimpleNamespace

import pytest

from tests.support.durations import RECORDED, TEST
from tests.support.scheduling import _START_S, RIG, SPARK, ByFile, kind_of

WORKERS = 4
SECONDS = {
    f"{name}::test_{number}": lanes[TEST] / 4
    for name, lanes in json.loads(RECORDED.read_text(encoding="utf-8"))["files"].items()
    if TEST in lanes
    for number in range(4)
}


def nothing(*_):
    """What the scheduler logs."""


class Worker:
    """Runs what it is sent, one test after the other, by its simulated clock."""

    def __init__(self, number):
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down, self.sent, self.ran, self.now_s = False, [], [], 0.0
        self.started = set()

    def send_runtest_some(self, indexes):
        self.sent += indexes

    def shutdown(self):
        self.shutting_down = True

    def run(self, index, tests):
        self.sent.remove(index)
        name = tests[index].partition("::")[0]
        self.now_s += SECONDS[tests[index]]
        if kind_of(name) not in self.started:
            self.started.add(kind_of(name))
            self.now_s += _START_S
        self.ran.append(name)


@pytest.fixture
def workers():
    """Those of a lane that has run to its end."""
    option = SimpleNamespace(markexpr="not experiment and not matrix", loadscopereorder=False)
    config = SimpleNamespace(option=option, getvalue=lambda _: [f"{WORKERS}*popen"])
    log = SimpleNamespace(loadscopesched=nothing, loadfilesched=nothing)
    scheduler = ByFile(config, log)
    total = {name: sum(SECONDS[f"{name}::test_{n}"] for n in range(4)) for name in names()}
    tests = sorted(SECONDS, key=lambda test: -total[test.partition("::")[0]])
    made = [Worker(number) for number in range(WORKERS)]
    for each in made:
        scheduler.add_node(each)
        scheduler.add_node_collection(each, tests)
    scheduler.schedule()
    turns = [(0.0, number) for number in range(WORKERS)]
    while turns:
        _, number = heapq.heappop(turns)
        worker = made[number]
        if worker.sent:
            index = worker.sent[0]
            worker.run(index, tests)
            scheduler.mark_test_complete(worker, index)
            heapq.heappush(turns, (worker.now_s, number))
    return made


def names():
    return {test.partition("::")[0] for test in SECONDS}


def test_every_file_runs_once_on_one_worker(workers):
    assert sum(len(each.ran) for each in workers) == len(SECONDS)
    assert sum(len(set(each.ran)) for each in workers) == len(names())


def test_no_worker_ends_long_before_the_others(workers):
    ends = [each.now_s for each in workers]
    assert max(ends) - min(ends) < 0.05 * max(ends), ends


def test_few_workers_start_a_spark(workers):
    assert sum(SPARK in each.started for each in workers) == 2
    assert sum(RIG in each.started for each in workers) <= 2
