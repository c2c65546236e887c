"""Problem documents of the control plane as typed errors, one class for each kind of status."""

from collections.abc import Mapping
from typing import Any

from service.errors import ControlPlaneError


class RefusedError(ControlPlaneError, fault="refused"):
    """The control plane answered with a problem; `problem` is the whole document."""

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        problem: Mapping[str, Any],
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def kind(self) -> str:
        """The problem's type in kebab case, such as `job-not-found`."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    @property
    def status(self) -> int:
        return int(self.problem.get("status", 0))


class InvalidRequestError(RefusedError, fault="invalid-request"):
    """400 to 422: the request or its script must be corrected."""


class AccessError(RefusedError, fault="access"):
    """401, 403: a token is missing, wrong, expired, or of too small a scope."""


class NotFoundError(RefusedError, fault="not-found"):
    """404: there is no such job, table, version, batch or record."""


class ConflictError(RefusedError, fault="conflict"):
    """409: the request conflicts with the job's state, its sink or an earlier request."""


class ExpiredError(RefusedError, fault="expired"):
    """410: the record or version existed and has expired."""


class UnavailableError(RefusedError, fault="unavailable"):
    """429, 503: temporarily unavailable; the client retries for a minute."""


_KINDS: dict[int, type[RefusedError]] = {
    **dict.fromkeys((400, 405, 406, 413, 415, 422), InvalidRequestError),
    **dict.fromkeys((401, 403), AccessError),
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    **dict.fromkeys((429, 503), UnavailableError),
}


def refusal(problem: Mapping[str, Any], retry_after_s: float | None) -> RefusedError:
    kind = _KINDS.get(int(problem.get("status", 0)), RefusedError)
    return kind(
        problem["detail"], hint=problem["hint"], problem=problem, retry_after_s=retry_after_s
    )


def is_passing(error: Exception) -> bool:
    """True if a retry may succeed."""
    if isinstance(error, RefusedError):
        return isinstance(error, UnavailableError)
    return isinstance(error, ControlPlaneError)
