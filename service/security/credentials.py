"""What the commands show to a control plane: a token, and whose certificates they trust.

Its usual address is here, too, as settings are slow to load and commands seldom need them.

Read from the environment only, never from the command line, where every user of the machine could
see it; and not a part of the settings, which a control plane hands to its runners.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from service.errors import ConfigError

TOKEN, TOKEN_FILE, CA_FILE = "SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8326
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client needs beside an address.

    Attributes:
        token: sent with each request; None sends none.
        ca_file: PEM of the authorities whose certificates are trusted; None is the machine's own.
    """

    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    @classmethod
    def of_environment(cls) -> Self:
        """SLUICE_TOKEN, else the content of the file SLUICE_TOKEN_FILE; and SLUICE_CA_FILE.

        Raises:
            ConfigError: a file cannot be read, or has no token.
        """
        token = os.environ.get(TOKEN, "").strip() or _token_of_file()
        ca_file = os.environ.get(CA_FILE)
        return cls(token or None, Path(ca_file) if ca_file else None)


def _token_of_file() -> str | None:
    name = os.environ.get(TOKEN_FILE)
    if not name:
        return None
    try:
        with Path(name).open(encoding="ascii") as file:
            token = file.read(_MOST_BYTES).strip()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise ConfigError(
            f'token file "{name}" cannot be read: {why}',
            hint=f"Correct {TOKEN_FILE}, or unset it where no token is needed.",
        ) from exc
    if not token or len(token.split()) != 1:
        raise ConfigError(
            f'token file "{name}" does not have one token in it',
            hint="Write what sluice tokens create has printed into it, and nothing else.",
        )
    return token
