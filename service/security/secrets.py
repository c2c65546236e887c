"""Secrets: `${secret:name}` references and who resolves them.

| asked in this order | where a value is |
|---|---|
| the job | its own `secrets.json`: what the script had inline |
| the environment | `SLUICE_SECRET_<NAME>`, or the file that `SLUICE_SECRET_<NAME>_FILE` names |
| a directory | the file `<SLUICE_SECRETS_DIR>/<name>`, as Docker and Kubernetes mount secrets |
| what we keep | the file `<data directory>/secrets/<name>`, written by `sluice secrets set` |

Values never enter a plan, a log, an answer or the environment of another process.
`service.security.secret_hand_over` gives a runner those of the environment that its plan refers to.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from joins.durable.checkpoint import FORMAT_VERSION, read_json
from service.config import Settings
from service.errors import SecretError
from service.jobs.store.layout import JobLayout, write_new
from service.security.allowed import check_secret, confined_pem
from watermark.errors import Secret

VARIABLE_PREFIX = "SLUICE_SECRET_"
_REFERENCE = re.compile(r"\$\{secret:([^{}]{1,300})\}")
_PUBLIC_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_MOST_BYTES = 64 * 1024
_MOST_PEM_BYTES = 1 << 20  # all authorities that a machine trusts have a fifth of it
_received: dict[str, str] = {}


class SecretResolver:
    """Gives the values of references, to whom they are allowed; holds none of them."""

    def __init__(
        self,
        secrets_dir: Path | None,
        job_dir: Path | None = None,
        kept_dir: Path | None = None,
        *,
        allowed: str | None = None,
        pem_directories: Sequence[Path] = (),
    ) -> None:
        self._pem_directories = pem_directories
        self._directories = tuple(d for d in (secrets_dir, kept_dir) if d is not None)
        self._job_dir = job_dir
        self._allowed = allowed

    @classmethod
    def of(cls, settings: Settings, job_dir: Path | None) -> Self:
        return cls(
            settings.secrets_dir,
            job_dir,
            settings.kept_secrets_dir,
            allowed=settings.allowed_secrets,
            pem_directories=settings.pem_directories,
        )

    def resolve(self, text: str, servers: str = "") -> str:
        """`text` with each reference replaced by its value; text without one comes back as it is.

        What comes back for a reference is a `Secret`: errors show the reference.

        Args:
            text: as the script has it.
            servers: who gets to know it, as host:port, separated by commas.

        Raises:
            SecretError: nobody provides the secret, or something like a reference is malformed.
            NotAllowedError: the operator has not allowed it to one of the servers.
        """
        resolved = _REFERENCE.sub(lambda match: self._value(match[1], servers), text)
        if "${" in _REFERENCE.sub("", text):
            raise SecretError(
                'reference "${…}" is malformed, expected ${secret:name}',
                hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
            )
        return Secret(resolved, text) if _REFERENCE.search(text) else resolved

    def pem_file(self, file: str) -> str:
        """The text of a PEM file that a script names, as a `Secret`: it may have a key.

        Raises:
            SecretError: it cannot be read.
            NotAllowedError: it is in no directory of the operator's.
        """
        real = confined_pem(file, self._pem_directories)
        try:
            with real.open("rb") as content:
                text = content.read(_MOST_PEM_BYTES + 1).decode("utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise SecretError(
                f'PEM file "{file}" cannot be read: {type(exc).__name__}',
                hint="Put it where Sluice runs, readable by its user, or correct the path.",
            ) from exc
        if len(text) > _MOST_PEM_BYTES:
            raise SecretError(
                f'PEM file "{file}" has more than {_MOST_PEM_BYTES} bytes',
                hint="Name a file with the certificates that are needed.",
            )
        return Secret(text, f"file {file}")

    def _value(self, name: str, servers: str) -> str:
        inline = self._of_job(name)
        if inline is not None:
            return inline
        check_name(name)
        check_secret(name, servers, self._allowed)
        value = _received.get(name)
        if value is None:
            value = of_environment(name)
        for directory in self._directories if value is None else ():
            value = read_secret(directory / name, name) if value is None else value
        if value is None:
            variable = variable_of(name)
            raise SecretError(
                f'secret "{name}" is not provided, expected {variable} or a file of that name',
                hint=f"Run sluice secrets set {name}, or set {variable} where the control plane "
                "starts, or put the file into the directory that SLUICE_SECRETS_DIR names"
                f"{self._then()}.",
            )
        return value

    def _then(self) -> str:
        if self._job_dir is None or not JobLayout(self._job_dir).plan.exists():
            return ""
        return f"; then run sluice jobs resume {self._job_dir.name}"

    def _of_job(self, name: str) -> str | None:
        if self._job_dir is None:
            return None
        content = read_json(JobLayout(self._job_dir).secrets)
        return None if content is None else content["secrets"].get(name)


def receive(values: Mapping[str, str]) -> None:
    """Take over what another process of ours has handed over to this one.

    It is for the whole process, as the environment is, but children do not inherit it.
    """
    _received.update(values)


def check_name(name: str) -> None:
    """Let pass what can be the name of a secret; it becomes the name of a file.

    Raises:
        SecretError: it cannot.
    """
    if not _PUBLIC_NAME.fullmatch(name):
        raise SecretError(
            f'secret "{name}" has a malformed name',
            hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
        )


def variable_of(name: str) -> str:
    return VARIABLE_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def references(text: str) -> frozenset[str]:
    return frozenset(_REFERENCE.findall(text))


def of_environment(name: str) -> str | None:
    """The secret as the environment of this process has it or names its file; None without.

    Raises:
        SecretError: the named file cannot be read.
    """
    variable = variable_of(name)
    value = os.environ.get(variable)
    if value is not None:
        return value
    path = os.environ.get(f"{variable}_FILE")
    if not path:
        return None
    value = read_secret(Path(path), name)
    if value is None:
        raise SecretError(
            f'file of secret "{name}" is not there, expected it where {variable}_FILE says',
            hint=f"Correct {variable}_FILE or mount the file.",
        )
    return value


def read_secret(path: Path, name: str) -> str | None:
    """The content of a secret's file without its line end, None if there is no such file.

    Raises:
        SecretError: it cannot be read, or is no secret.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise SecretError(
                f'file of secret "{name}" has more than {_MOST_BYTES} bytes',
                hint="Keep one password in the file.",
            )
        return content.decode("utf-8").rstrip("\r\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise SecretError(
            f'file of secret "{name}" cannot be read: {exc.__class__.__name__}',
            hint=f'Make "{path}" a text file that this user can read.',
        ) from exc


def write_secrets(job_dir: Path, secrets: Mapping[str, str]) -> None:
    content = json.dumps({"format_version": FORMAT_VERSION, "secrets": dict(secrets)})
    write_new(JobLayout(job_dir).secrets, content.encode())
