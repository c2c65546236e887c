"""Errors of the service; docs/reference/errors.md lists all of them."""

from watermark.errors import SluiceError


class ServiceError(SluiceError, fault="service"):
    """A fault of the service around the data path."""


class ConfigError(ServiceError, fault="config"):
    """A setting cannot be used."""


class SecretError(ServiceError, fault="secret"):
    """A `${secret:name}` is malformed, or not provided."""


class NotAllowedError(ServiceError, fault="not-allowed"):
    """A script names a broker, server or path that the operator's lists do not have."""


class SubmissionError(ServiceError, fault="submission"):
    """A submission is too large or not text."""


class JobNotFoundError(ServiceError, fault="job-not-found"):
    """There is no job with this id or name."""


class VertexNotFoundError(ServiceError, fault="vertex-not-found"):
    """The job has no part of this id; `/v1/jobs/{id}/watermarks` lists them."""


class JobConflictError(ServiceError, fault="job-conflict"):
    """The request contradicts the job's state or an earlier request."""


class UpdateRefusedError(JobConflictError, fault="update-refused"):
    """A running job cannot take this change; `sluice jobs update --preview` shows each one."""


class JobStateError(JobConflictError, fault="job-state"):
    """The job's state does not allow that: start a stopped job, resume a paused one.

    Attributes:
        state: where the job stands.
        desired_state: what was wanted of it last.
    """

    def __init__(self, message: str, *, hint: str, states: tuple[str, str]) -> None:
        super().__init__(message, hint=hint)
        self.state, self.desired_state = states


class TableConflictError(JobConflictError, fault="table-conflict"):
    """A table of the catalog is there already, or is used."""


class RunnerAbsentError(JobConflictError, fault="runner-absent"):
    """The request needs a runner that lives: start the job."""


class BusyError(ServiceError, fault="busy"):
    """Too much is asked at once; asking again later helps."""


class InspectionError(ServiceError, fault="inspection"):
    """A job's files could not be looked at in time."""


class AnsweredError(ServiceError, fault="answered"):
    """A runner or an inspection refused, in its own words and under its own name."""

    def __init__(self, message: str, *, hint: str, kind: str) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind  # what is wrong, in kebab case, such as `pinned-version-expired`


class UnauthorizedError(ServiceError, fault="unauthorized"):
    """A request has no token, or one that cannot be used."""

    def __init__(self, message: str, *, hint: str, invalid: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.invalid = invalid  # a token was sent, but it cannot be used


class ForbiddenError(ServiceError, fault="forbidden"):
    """The token's scope is too small, or the request came a way that is not allowed."""


class TooManyRequestsError(ServiceError, fault="too-many-requests"):
    """A caller asks, or is refused, too often: wait as `Retry-After` says."""

    def __init__(self, message: str, *, hint: str, retry_after_s: float) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s  # how long at least


class TableNotFoundError(ServiceError, fault="table-not-found"):
    """The catalog has no table or view of this name."""


class TokenNotFoundError(ServiceError, fault="token-not-found"):
    """There is no token with this id or name."""


class TokenLimitError(ServiceError, fault="token-limit"):
    """There are too many tokens: revoke some."""


class StoreError(ServiceError, fault="store"):
    """The job store cannot be used, or is newer than the program."""


class StandbyError(ServiceError, fault="standby"):
    """This control plane does not lead: another one takes changes and looks after jobs."""

    def __init__(self, message: str, *, hint: str, leader_url: str = "") -> None:
        super().__init__(message, hint=hint)
        self.leader_url = leader_url  # where that one answers; empty while none leads


class ControlPlaneError(ServiceError, fault="control-plane"):
    """The control plane cannot start or refused a request."""


class UnreachableError(ControlPlaneError, fault="unreachable"):
    """No control plane answers at the address (exit code 3)."""


class WaitTimeoutError(ControlPlaneError, fault="wait-timeout"):
    """What was waited for has not happened in time (exit code 5); it goes on."""


class ExportError(ServiceError, fault="export"):
    """`sluice export`: package, address or cursor's file is missing, or no receiver answers."""

    def __init__(self, message: str, *, hint: str, passing: bool) -> None:
        super().__init__(message, hint=hint)
        self.passing = passing  # the same may succeed later
