"""Experiment `journeys`: the tests marked `experiment`, which `make test` leaves out.

Kills, hangs, clusters, restarts of servers, the oracle's own runs: each is a test like any other,
but takes long, or the machine for itself.
"""

from typing import Any

from tests.reliability.experiment import Lab
from tests.reliability.selected_tests import run_selected

SERVERS = False  # its tests start theirs


def run(lab: Lab) -> dict[str, Any]:
    return run_selected(lab, "journeys", "experiment")
