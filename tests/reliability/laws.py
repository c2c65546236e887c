"""Experiment `laws`: property tests with all their examples; `make test` tries a tenth."""

from typing import Any

from tests.reliability.experiment import Lab
from tests.reliability.selected_tests import run_selected
from tests.support.laws import SHARE

SERVERS = False


def run(lab: Lab) -> dict[str, Any]:
    """As many examples as they name, or ten times as many."""
    return run_selected(lab, "laws", "hypothesis", {SHARE: lab.size("100", "1000")})
