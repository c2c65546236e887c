"""Flink's own tests of scalar expressions as data: none is answered otherwise, most are answered.

A case that is refused, or whose input Flink's test makes by code, does not count; the sums say how
many agree. `tests/support/flink_cases.py` tells where the data is from and how it is compared.
"""

from collections import Counter
from functools import cache
from itertools import groupby

import pytest

from tests.support.flink_cases import Verdict, cases, outcome

BY_TEST = {
    name: list(group) for name, group in groupby(cases(), lambda case: case["id"].partition(":")[0])
}
LEAST_OF_VALUES, LEAST_OF_FAILURES = 1_840, 225
BAD = (Verdict.WRONG, Verdict.RAISES)
# Flink divides literals before the job runs, and refuses: a division by zero of a DOUBLE is one.
LENIENT = {"SqlExpressionTest:166", "SqlExpressionTest:170"}


@cache
def outcomes(name):
    return {case["id"]: (case, outcome(case)) for case in BY_TEST[name]}


@pytest.mark.parametrize("name", BY_TEST)
def test_no_expression_gives_another_value_than_in_flink(name):
    bad = {
        key: (case["expr"], each.detail)
        for key, (case, each) in outcomes(name).items()
        if each.verdict in BAD
    }
    assert bad == {}


@pytest.mark.parametrize("name", BY_TEST)
def test_what_fails_in_flink_has_no_value_here(name):
    lenient = {key for key, (_, each) in outcomes(name).items() if each.verdict is Verdict.LENIENT}
    assert lenient <= LENIENT


def test_most_expressions_give_what_they_give_in_flink():
    agreeing = Counter(
        "fails" in case
        for name in BY_TEST
        for case, each in outcomes(name).values()
        if each.verdict is Verdict.AGREES
    )
    assert agreeing[False] >= LEAST_OF_VALUES
    assert agreeing[True] >= LEAST_OF_FAILURES
