"""A client of the control plane for programs: typed answers, typed errors, safe repetitions.

    from service.client import Sluice

    with Sluice("http://127.0.0.1:8326") as sluice:
        job = sluice.submit(script, name="enrich")
        job.wait_until("JOIN", timeout_s=600)
        for row in job.dimension("users").rows(keys=[7]):
            print(row.values)

`Client` is the same without types: its answers are the API's JSON documents.
"""

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
