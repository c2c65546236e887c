"""`/livez`, `/readyz` and `/v1/version`.

The first two are answered on the event loop: whoever ends a control plane that does not answer them
must not do it because all of its threads wait for databases.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from fastapi import APIRouter, Request

from service.api.http.access import PUBLIC, VIEWER
from service.api.routes.jobs import Injected
from service.errors import StoreError
from service.schemas.document import Health, VersionView
from service.version import program_version

_PATIENCE_S = 5.0
router = APIRouter(tags=["health"])


class SharedProbe:
    """Asks on a thread of its own; whoever comes meanwhile shares the answer."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._pending: asyncio.Future[None] | None = None

    async def __call__(self) -> None:
        """Return when all is well.

        Raises:
            StoreError: it is not, or there is no answer in time.
        """
        if self._pending is None or self._pending.done():
            self._pending = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._answer, args=(self._pending,), daemon=True).start()
        try:
            await asyncio.wait_for(asyncio.shield(self._pending), _PATIENCE_S)
        except TimeoutError as exc:
            raise StoreError(
                f"job store has not answered for {_PATIENCE_S:g} s",
                hint="Look at the database of SLUICE_DATABASE_URL, or the disk of SLUICE_DATA_DIR.",
            ) from exc

    def _answer(self, pending: "asyncio.Future[None]") -> None:
        error: BaseException | None = None
        try:
            self._ask()
        except Exception as exc:  # whatever it is, somebody waits for it
            error = exc
        with suppress(RuntimeError):  # the loop has ended
            pending.get_loop().call_soon_threadsafe(_settle, pending, error)


def _settle(pending: "asyncio.Future[None]", error: BaseException | None) -> None:
    if error is None:
        pending.set_result(None)
    else:
        pending.set_exception(error)
        pending.exception()  # nobody may have had the patience


@router.get("/livez", summary="The process answers", dependencies=[PUBLIC])
async def livez() -> Health:
    """Answer as long as the process can."""
    return Health(status="ok")


@router.get("/readyz", summary="Jobs can be submitted and are looked after", dependencies=[PUBLIC])
async def readyz(request: Request, services: Injected) -> Health:
    """Answer 503 when the store cannot be written, or nobody looks after the jobs, or not yet."""
    await request.app.state.look_at_store()
    services.leadership.require()
    if not services.supervisor.alive:
        raise StoreError("supervisor is not running", hint="Restart the control plane.")
    if not services.supervisor.ready:
        raise StoreError("jobs have not been looked at yet", hint="Ask again in a moment.")
    return Health(status="ok")


@router.get("/v1/version", summary="Which program answers", dependencies=[VIEWER])
async def show_version(services: Injected) -> VersionView:
    """Name, version and role of this control plane, and the brokers that it uses by itself."""
    return VersionView(
        name="sluice",
        version=program_version(),
        role=services.leadership.role.value,
        leader_url=services.leadership.leader_url or None,
        kafka_bootstrap_servers=services.settings.kafka_bootstrap_servers,
    )
