"""How a schema registry is reached."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """A registry with Confluent's interface.

    Attributes:
        url: of its root.
        user_info: who asks, where it wants to know: `user:password` (basic authentication).
        ca: the certificates that are trusted, PEM; None: those of the machine.
        cert: our own certificate, PEM, and `key` its key, where it wants one.
    """

    url: str
    user_info: str | None = field(default=None, repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = field(default=None, repr=False)
