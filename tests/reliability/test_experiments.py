"""Every experiment at small scale, on the session's broker and database."""

from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.reliability.__main__ import NAMES, find
from tests.reliability.crash_points import (
    ACTIONS,
    IMPOSSIBLE,
    POINTS,
    POSITIONS,
    all_cases,
    full_runs,
    listing,
)
from tests.reliability.experiment import Lab

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


IN_TEST_ORACLE = "oracle-check"  # its small scale is what `test_oracle` does, case by case


@pytest.mark.parametrize("name", [name for name in NAMES if name != IN_TEST_ORACLE])
def test_experiment(
    name: str, tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    found = find(name).run(Lab(tmp_path, kafka, mariadb))
    assert found["ok"], found
    assert found["cases"] == found["passed"] > 0
    assert found["experiment"] == name
    assert not any(found[count] for count in ("lost", "duplicate", "wrong_version", "early"))


def test_every_combination_is_run_or_has_a_reason() -> None:
    planned = [case for cases in full_runs().values() for case in cases]
    assert sorted(map(str, planned)) == sorted(map(str, all_cases()))
    assert len(planned) >= 100
    total = len(POINTS) * len(ACTIONS) * len(POSITIONS)
    in_table = [case for case in planned if case.action in ACTIONS]
    assert len(in_table) + len(IMPOSSIBLE) * len(POSITIONS) == total
    assert all(any(f"{p} {a}: cannot exist, " in line for line in listing()) for p, a in IMPOSSIBLE)
