"""Secrets: `${secret:name}` references and who resolves them.

A reference is resolved from the job's own `secrets.json`, then the variable `SLUICE_SECRET_<NAME>`,
then the file `<SLUICE_SECRETS_DIR>/<name>`. The job's own file holds what the script had inline.
Values never enter a plan, a log or an answer.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from joins.checkpoint import FORMAT_VERSION, read_json
from service.errors import SecretError
from service.jobs.layout import JobLayout, write_private

_REFERENCE = re.compile(r"\$\{secret:([^{}]{1,300})\}")
_PUBLIC_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class SecretResolver:
    """Gives the values of references; holds none of them."""

    def __init__(self, secrets_dir: Path | None, job_dir: Path | None = None) -> None:
        self._secrets_dir = secrets_dir
        self._job_dir = job_dir

    def resolve(self, text: str) -> str:
        """`text` with each reference replaced by its value; text without one comes back as it is.

        Raises:
            SecretError: nobody provides the secret, or something like a reference is malformed.
        """
        resolved = _REFERENCE.sub(lambda match: self._value(match[1]), text)
        if "${" in _REFERENCE.sub("", text):
            raise SecretError(
                'reference "${…}" is malformed, expected ${secret:name}',
                hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
            )
        return resolved

    def _value(self, name: str) -> str:
        inline = self._of_job(name)
        if inline is not None:
            return inline
        if not _PUBLIC_NAME.fullmatch(name):  # it becomes a file name
            raise SecretError(
                f'secret "{name}" has a malformed name',
                hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
            )
        variable = "SLUICE_SECRET_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        for value in (os.environ.get(variable), self._of_file(name)):
            if value is not None:
                return value
        raise SecretError(
            f'secret "{name}" is not provided, expected {variable} or a file of that name',
            hint=f"Set {variable} where the control plane starts, or put the file into "
            "the directory that SLUICE_SECRETS_DIR names.",
        )

    def _of_job(self, name: str) -> str | None:
        if self._job_dir is None:
            return None
        content = read_json(JobLayout(self._job_dir).secrets)
        return None if content is None else content["secrets"].get(name)

    def _of_file(self, name: str) -> str | None:
        if self._secrets_dir is None:
            return None
        try:
            return (self._secrets_dir / name).read_text(encoding="utf-8").rstrip("\r\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as exc:
            raise SecretError(
                f'file of secret "{name}" cannot be read: {exc.__class__.__name__}',
                hint=f'Make "{self._secrets_dir / name}" a text file that this user can read.',
            ) from exc


def write_secrets(job_dir: Path, secrets: Mapping[str, str]) -> None:
    """Keep `secrets` in the job's directory, readable by its owner only."""
    content = json.dumps({"format_version": FORMAT_VERSION, "secrets": dict(secrets)})
    write_private(JobLayout(job_dir).secrets, content.encode())
