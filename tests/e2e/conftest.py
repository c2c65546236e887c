"""One control plane for all jobs of the whole-system tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, running_rig


@pytest.fixture(scope="session")
def rig(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    spark_jars: list[Path],
) -> Iterator[Rig]:
    with running_rig(tmp_path_factory.mktemp("sluice"), kafka, mariadb) as found:
        yield found
