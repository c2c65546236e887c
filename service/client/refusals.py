"""Problem documents of the control plane as typed errors.

| error | status |
|---|---|
| `InvalidRequestError` | 400, 405, 406, 413, 415, 422: correct the request or its script |
| `AccessError` | 401, 403: who asks may not |
| `NotFoundError` | 404 |
| `ConflictError` | 409: not in this state of the job |
| `ExpiredError` | 410: it was there and is not kept any more |
| `UnavailableError` | 429, 503: asking again later helps |
| `ProblemError` | root of these, and every other status |
"""

from service.client.wire import RefusedError


class ProblemError(RefusedError, fault="problem"):
    """The control plane answered with a problem; `kind` and `status` say which."""

    @property
    def kind(self) -> str:
        """What is wrong, in kebab case, such as `job-not-found`."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    @property
    def status(self) -> int:
        """The status of the answer."""
        return int(self.problem.get("status", 0))


class InvalidRequestError(ProblemError, fault="invalid-request"):
    """400 to 422: the request or its script must be corrected."""


class AccessError(ProblemError, fault="access"):
    """401, 403: a token is missing, wrong, expired, or of too small a scope."""


class NotFoundError(ProblemError, fault="not-found"):
    """404: there is no such job, table, version, batch or record."""


class ConflictError(ProblemError, fault="conflict"):
    """409: the request does not fit the job's state, its sink or an earlier request."""


class ExpiredError(ProblemError, fault="expired"):
    """410: it was there and is not kept any more."""


class UnavailableError(ProblemError, fault="unavailable"):
    """429, 503: it cannot be done now; the client asks again, for a minute."""


_KINDS: dict[int, type[ProblemError]] = {
    **dict.fromkeys((400, 405, 406, 413, 415, 422), InvalidRequestError),
    **dict.fromkeys((401, 403), AccessError),
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    **dict.fromkeys((429, 503), UnavailableError),
}


def typed(refused: RefusedError) -> ProblemError:
    """`refused` as the error for its status."""
    kind = _KINDS.get(int(refused.problem.get("status", 0)), ProblemError)
    return kind(
        refused.message,
        hint=refused.hint,
        problem=refused.problem,
        retry_after_s=refused.retry_after_s,
    )
