"""A client of the control plane for programs: typed answers, typed errors, safe repetitions.

    from sluice import Sluice

    with Sluice("http://127.0.0.1:8326") as sluice:
        job = sluice.submit(script, name="enrich")
        job.wait_until("JOIN", timeout_s=600)
        for row in job.dimension("users").rows(keys=[7]):
            print(row.values)

The command line uses it, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from service.client.transport import (
    AccessError,
    ConflictError,
    ExpiredError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from service.client.remote_job import RemoteJob
    from service.client.sluice import Sluice

__all__ = [
    "AccessError",
    "ConflictError",
    "ExpiredError",
    "InvalidRequestError",
    "NotFoundError",
    "RefusedError",
    "RemoteJob",
    "Sluice",
    "UnavailableError",
]
_PLACES = {"RemoteJob": "remote_job", "Sluice": "sluice"}


def __getattr__(name: str) -> object:
    """Load a class on first use: commands that send no request start faster."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
