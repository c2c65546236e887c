"""Each experiment once, at small scale, on the servers of this run."""

import json
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.reliability.__main__ import CAPTURED, JOURNEYS, NAMES, find
from tests.reliability.experiment import DEBEZIUM, MYSQL_CDC, Lab, open_lab

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(2_400)]
# They halt their servers, or have written what the oracle of others cannot read.
OF_THEIR_OWN = ("foreign-ddl", "foreign-rows", "stale")
OF_THE_SUITE = (JOURNEYS, "laws", "oracle-check")  # tests of this run by themselves
# A connector's copy is slow in tests/e2e/test_debezium.py, too; snapshot-kills kills each part.
SHOWN_ELSEWHERE = ("kill-storm", "slow-snapshot")
RUNS = {name: (name, MYSQL_CDC) for name in NAMES if name not in OF_THE_SUITE} | {
    f"{name}-{DEBEZIUM}": (name, DEBEZIUM) for name in CAPTURED if name not in SHOWN_ELSEWHERE
}


@pytest.mark.parametrize(("name", "source"), RUNS.values(), ids=RUNS)
@pytest.mark.usefixtures("class_archive")
def test_every_case_meets_what_is_promised(
    name: str, source: str, tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb
) -> None:
    options = {"source": source}
    if name in OF_THEIR_OWN:
        with open_lab(tmp_path, options=options) as lab:
            found = find(name).run(lab)
    else:
        found = find(name).run(Lab(tmp_path, kafka, mariadb, options=options))
    assert found["ok"], json.dumps(found, indent=1)
