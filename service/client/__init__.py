"""A client of the control plane for programs: typed answers, typed errors, safe repetitions.

    from service.client import Sluice

    with Sluice("http://127.0.0.1:8326") as sluice:
        job = sluice.submit(script, name="enrich")
        job.wait_until("JOIN", timeout_s=600)
        for row in job.dimension("users").rows(keys=[7]):
            print(row.values)

`Client` is the same without types: its answers are the API's JSON documents.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.client.refusals import (
        AccessError,
        ConflictError,
        ExpiredError,
        InvalidRequestError,
        NotFoundError,
        ProblemError,
        UnavailableError,
    )
    from service.client.remote_job import RemoteJob
    from service.client.sluice import Sluice
    from service.client.wire import Client, RefusedError

__all__ = [
    "AccessError",
    "Client",
    "ConflictError",
    "ExpiredError",
    "InvalidRequestError",
    "NotFoundError",
    "ProblemError",
    "RefusedError",
    "RemoteJob",
    "Sluice",
    "UnavailableError",
]
_PLACES = {"RemoteJob": "remote_job", "Sluice": "sluice", "Client": "wire", "RefusedError": "wire"}


def __getattr__(name: str) -> object:
    """Load what is asked for: a command of `sluice` needs `Client` alone, and is quick to start."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'refusals')}"), name)
