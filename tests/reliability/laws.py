"""Experiment `laws`: property tests with more of their examples.

`make test` tries a tenth of them, `.ci/run` a third.
"""

from typing import Any

from tests.reliability.experiment import Lab
from tests.reliability.selected_tests import run_selected
from tests.support.laws import SHARE

SERVERS = False


def run(lab: Lab) -> dict[str, Any]:
    return run_selected(lab, "laws", "hypothesis", {SHARE: lab.size("33", "1000")})
