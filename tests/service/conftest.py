"""Control planes: an empty one a module, and one with tables for all that look at tables."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from service.api.server import ControlPlane
from tests.support.control_plane import HOOKS, RUNNER, control_plane, settings_in, stop_jobs
from tests.support.documents import Documents
from tests.support.table_job import TableJob, fill, script
from tests.support.wait import wait_until
from tests.support.warm_inspections import warm_inspections

KEY = "my-deployment-7"


@dataclass(frozen=True)
class TablesPlane:
    """Where it answers, and the ids of its jobs; `printed` has a sink without a table."""

    url: str
    enriched: str
    printed: str


@pytest.fixture(scope="session")
def secret() -> Iterator[None]:
    """The password that scripts refer to; it stays while other files use `tables_plane`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_SECRET_SHOP", "open sesame")
        yield


@pytest.fixture(scope="module")
def plane(
    request: pytest.FixtureRequest,
    processes: None,
    secret: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane without jobs; its runners are programs that report as they are named.

    A file of tests has other settings in its `PLANE`.
    """
    given = getattr(request.module, "PLANE", {})
    with control_plane(tmp_path_factory.mktemp("data"), **given) as running:
        yield running


@pytest.fixture(scope="session")
def tables_plane(
    processes: None, secret: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TablesPlane]:
    """The real application and the real inspection, over real Delta tables."""
    data_dir = tmp_path_factory.mktemp("tables-plane")
    commands = {"runner_command": RUNNER, "inspect_command": warm_inspections()}
    plane = ControlPlane(settings_in(data_dir), hooks=HOOKS, **commands)
    with plane, Documents(plane.url) as client:
        try:
            enriched = client.submit(script(), "enriched", idempotency_key=KEY)["id"]
            fill(TableJob(data_dir, enriched))
            printed = client.submit(script("'connector'='print'"), "printed")["id"]
            wait_until(
                lambda: all(job["state"] == "JOINING" for job in client.jobs()), deadline_s=60
            )
            yield TablesPlane(plane.url, enriched, printed)
        finally:
            stop_jobs(plane, timeout_s=20)
