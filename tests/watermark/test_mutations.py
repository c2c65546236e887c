"""The tests notice classic bugs; see `mutations`."""

import json
import subprocess
import sys

import pytest

from tests.watermark.mutations import MUTATIONS, ROOT

pytestmark = [pytest.mark.experiment, pytest.mark.usefixtures("processes")]


@pytest.fixture(scope="module")
def outcomes():
    """Of all planted bugs, from a process of its own that has loaded nothing of ours."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.watermark.mutations"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {each["bug"] for each in lines} == {None, *MUTATIONS}, ran.stderr
    return lines


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_bug_makes_a_test_fail(name, outcomes):
    (outcome,) = [each for each in outcomes if each["bug"] == name]
    assert outcome["noticed"], outcome


def test_without_a_bug_the_same_tests_pass(outcomes):
    assert {each["status"] for each in outcomes if each["bug"] is None} == {0}


def test_ten_classic_bugs_are_planted():
    assert len(MUTATIONS) >= 10
