"""A database for the experiments of a worker: the oracle reads its binlog from the beginning."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.database import MariaDb


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory, database_home: Path) -> Iterator[MariaDb]:
    with MariaDb(tmp_path_factory.mktemp("mariadb"), database_home) as database:
        yield database
