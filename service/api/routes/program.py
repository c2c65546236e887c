"""The program itself: its health, its version and its status page."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from service.api.http.access import PUBLIC, VIEWER
from service.api.services import Injected
from service.errors import StoreError
from service.schemas.document import ExampleList, ExampleView, Health, VersionView
from service.version import program_version

_PATIENCE_S = 5.0
router = APIRouter(tags=["health"])


class SharedProbe:
    """Runs a check on a thread; concurrent callers share its result.

    `/livez` and `/readyz` run on the event loop, so that they answer even when all threads wait for
    databases: a supervisor must not kill the control plane for that.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._pending: asyncio.Future[None] | None = None

    async def __call__(self) -> None:
        """Wait for the check; raises StoreError if it fails or does not answer in time."""
        if self._pending is None or self._pending.done():
            self._pending = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._answer, args=(self._pending,), daemon=True).start()
        try:
            await asyncio.wait_for(asyncio.shield(self._pending), _PATIENCE_S)
        except TimeoutError as exc:
            raise StoreError(
                f"job store did not answer within {_PATIENCE_S:g} s",
                hint="Check the database of SLUICE_DATABASE_URL, or the disk of SLUICE_DATA_DIR.",
            ) from exc

    def _answer(self, pending: "asyncio.Future[None]") -> None:
        error: BaseException | None = None
        try:
            self._ask()
        except Exception as exc:  # passed to the waiting callers
            error = exc
        with suppress(RuntimeError):  # the loop has ended
            pending.get_loop().call_soon_threadsafe(_settle, pending, error)


def _settle(pending: "asyncio.Future[None]", error: BaseException | None) -> None:
    if error is None:
        pending.set_result(None)
    else:
        pending.set_exception(error)
        pending.exception()  # mark as retrieved: all callers may have timed out


@router.get("/livez", summary="The process answers", dependencies=[PUBLIC])
async def livez() -> Health:
    """Answers 200 while the process runs."""
    return Health(status="ok")


@router.get("/readyz", summary="Jobs can be submitted and are supervised", dependencies=[PUBLIC])
async def readyz(request: Request, services: Injected) -> Health:
    """Answers 503 while the store is not writable or the supervisor is not running or not ready."""
    await request.app.state.look_at_store()
    services.leadership.require()
    if not services.supervisor.alive:
        raise StoreError("supervisor is not running", hint="Restart the control plane.")
    if not services.supervisor.ready:
        raise StoreError("supervisor has not checked the jobs yet", hint="Retry in a moment.")
    return Health(status="ok")


@router.get("/v1/version", summary="Which program answers", dependencies=[VIEWER])
async def show_version(services: Injected) -> VersionView:
    """Name, version and role of this control plane, and its default brokers."""
    return VersionView(
        name="sluice",
        version=program_version(),
        role=services.leadership.role.value,
        leader_url=services.leadership.leader_url or None,
        kafka_bootstrap_servers=services.settings.kafka_bootstrap_servers,
    )


UP_DIRECTORY = "up-directory"  # the file that `sluice up` writes beside its examples


@router.get("/v1/examples", summary="List scripts that run here", dependencies=[VIEWER])
def list_examples(services: Injected) -> ExampleList:
    """Scripts with the addresses of this installation; `sluice up` provides some."""
    directory = services.settings.data_dir / "examples"
    files = sorted(directory.glob("*.sql"))
    up = directory / UP_DIRECTORY
    return ExampleList(
        items=[ExampleView(name=each.stem, sql=each.read_text(encoding="utf-8")) for each in files],
        directory=up.read_text(encoding="utf-8") if up.exists() else None,
    )


DIRECTORY = Path(__file__).resolve().parents[2] / "page"
_INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing inline, nothing from elsewhere, no markup made of strings.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
page_router = APIRouter(include_in_schema=False, dependencies=[PUBLIC])


@page_router.get("/")
def show_page() -> Response:
    """The status page."""
    return _file(_INDEX)


@page_router.get("/ui/{name}")
def show_asset(name: str) -> Response:
    """A file of the page; only names listed from its directory become paths."""
    if name == _INDEX or name not in asset_names():
        raise HTTPException(404)
    return _file(name)


def asset_names() -> set[str]:
    return {path.name for path in DIRECTORY.iterdir() if path.suffix in _MEDIA_TYPES}


def _file(name: str) -> Response:
    path = DIRECTORY / name
    media_type = _MEDIA_TYPES[path.suffix]
    return Response(path.read_bytes(), media_type=media_type, headers=_HEADERS)
