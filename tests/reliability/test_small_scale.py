"""Each experiment once, at small scale: a process of its own that brings its servers along."""

import json
import os
import sys

import pytest

from service.embedded import launch
from tests.reliability.__main__ import CAPTURED, JOURNEYS, NAMES, Lanes
from tests.reliability.experiment import DEBEZIUM, MYSQL_CDC, SMALL

WITHIN_S = 2_400
pytestmark = [pytest.mark.matrix, pytest.mark.timeout(WITHIN_S + 60)]
OF_THE_SUITE = (JOURNEYS, "laws", "oracle-check")  # tests of this run by themselves
# The connector's copy is slow in tests/e2e/test_debezium.py, too, and killed there.
RUNS = {name: (name, MYSQL_CDC) for name in NAMES if name not in OF_THE_SUITE} | {
    f"{name}-{DEBEZIUM}": (name, DEBEZIUM) for name in CAPTURED if name != "slow-snapshot"
}


@pytest.mark.parametrize(("name", "source"), RUNS.values(), ids=RUNS)
def test_every_case_meets_what_is_promised(name: str, source: str, processes: None) -> None:
    bound_to_us = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
    command = [sys.executable, "-m", "tests.reliability", name, f"--scale={SMALL}"]
    with Lanes(1) as lanes:
        code, output = lanes.run_within([*bound_to_us, *command, f"--source={source}"], WITHIN_S)
    last = output.strip().rpartition("\n")[2]
    assert last.startswith("{"), output[-2_000:]
    found = json.loads(last)
    assert (code, found["ok"]) == (0, True), json.dumps(found, indent=1)
