"""A fault at each step of a batch: a retry completes what is missing and repeats nothing."""

from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.reliability.crash_points import BUILD, SMALL, run_crash_points

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]


def test_faults_along_the_batch_protocol_lose_and_repeat_nothing(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    outcome = run_crash_points(tmp_path, kafka, mariadb, SMALL + BUILD)
    assert outcome.ok, outcome
    assert set(outcome.faults_met) == {point.split("=")[0] for point in SMALL + BUILD}
    assert outcome.epochs > 3
