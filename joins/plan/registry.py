"""How a schema registry is reached."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """A registry with Confluent's interface.

    Attributes:
        url: of its root.
        user: who asks, where it wants to know; with `password` (basic authentication).
        ca_file: the certificates that are trusted, PEM; None: those of the machine.
        certificate_file: our own certificate, PEM, and `key_file` its key, where it wants one.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
