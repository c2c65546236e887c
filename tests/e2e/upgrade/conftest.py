"""What an archive holds, at another place: its control plane, and one of its jobs at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.process import free_port
from tests.support.recorded import Restored, restored, restored_job, restored_rig
from tests.support.rig import Rig, RunningJob


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, processes: None) -> Iterator[Restored]:
    with restored(request.module.ARCHIVE, free_port(), free_port()) as there:
        yield there


@pytest.fixture(scope="module")
def rig(place: Restored, spark_jars: list[Path]) -> Iterator[Rig]:
    with restored_rig(place) as running:
        yield running


@pytest.fixture
def job(rig: Rig, request: pytest.FixtureRequest) -> Iterator[RunningJob]:
    with restored_job(rig, request.param) as recorded:
        yield recorded
