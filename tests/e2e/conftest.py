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
    """A control plane that all tests share, and so do its runners a Spark driver.

    Those of the experiments, the demo and the command line have one each.
    """
    directory = tmp_path_factory.mktemp("sluice")
    with running_rig(directory, kafka, mariadb, runners="shared") as found:
        yield found


@pytest.fixture(scope="session")
def prepared(spark_jars: list[Path], class_archive: Path | None) -> None:
    """What runners need is there."""
