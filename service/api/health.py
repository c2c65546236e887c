"""`/livez`, `/readyz` and `/v1/version`."""

from fastapi import APIRouter

from service.api.access import PUBLIC, VIEWER
from service.api.jobs import Injected
from service.api.schemas import Health, VersionView
from service.errors import StoreError
from service.version import program_version

router = APIRouter(tags=["health"])


@router.get("/livez", summary="The process answers", dependencies=[PUBLIC])
def livez() -> Health:
    """Answer as long as the process can."""
    return Health(status="ok")


@router.get("/readyz", summary="Jobs can be submitted and are looked after", dependencies=[PUBLIC])
def readyz(services: Injected) -> Health:
    """Answer 503 when the store cannot be written, or nobody looks after the jobs, or not yet."""
    services.store.check()
    if not services.supervisor.alive:
        raise StoreError("supervisor is not running", hint="Restart the control plane.")
    if not services.supervisor.ready:
        raise StoreError("jobs have not been looked at yet", hint="Ask again in a moment.")
    return Health(status="ok")


@router.get("/v1/version", summary="Which program answers", dependencies=[VIEWER])
def show_version() -> VersionView:
    """Name and version of this control plane."""
    return VersionView(name="sluice", version=program_version())
