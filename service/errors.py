"""Errors of the service.

| error | fault |
|---|---|
| `ServiceError` | root of this package |
| `ConfigError` | a setting is missing, malformed or out of range |
| `SecretError` | a `${secret:name}` reference is malformed or nobody provides it |
| `SubmissionError` | a submission is too large or otherwise not acceptable |
| `JobNotFoundError` | there is no such job |
| `JobConflictError` | the request does not fit the job's state or an earlier request |
| `StoreError` | the job store cannot be opened or is newer than this program |
| `ControlPlaneError` | the control plane cannot start, cannot be reached or refused a request |
"""

from watermark.errors import SluiceError


class ServiceError(SluiceError):
    """A fault of the service around the data path."""


class ConfigError(ServiceError):
    """A setting cannot be used."""


class SecretError(ServiceError):
    """A secret cannot be resolved."""


class SubmissionError(ServiceError):
    """A submission cannot be accepted as it is."""


class JobNotFoundError(ServiceError):
    """There is no job with this id or name."""


class JobConflictError(ServiceError):
    """The request contradicts the job's state or an earlier request."""


class StoreError(ServiceError):
    """The job store cannot be used."""


class ControlPlaneError(ServiceError):
    """The control plane cannot start or be reached."""
