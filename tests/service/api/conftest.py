"""Clients of the control plane of a file of tests, and parts of one without a server."""

from collections.abc import Iterator

import httpx
import pytest

from service.api.server import ControlPlane
from service.api.services import Services
from tests.support.documents import Documents
from tests.support.stored_jobs import stored_services


@pytest.fixture(scope="module")
def http(plane: ControlPlane) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[Documents]:
    with Documents(plane.url) as client:
        yield client


@pytest.fixture(scope="module")
def services(secret: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with stored_services(tmp_path_factory.mktemp("data")) as parts:
        yield parts
