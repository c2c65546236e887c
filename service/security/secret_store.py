"""The secrets that Sluice keeps itself, one file each, and the names of all the others."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.config import Settings
from service.errors import SecretError
from service.jobs.store.layout import JobLayout, write_private
from service.schemas.tokens import SecretSource
from service.security.secrets import VARIABLE_PREFIX, check_name, references, variable_of

MOST_CHARACTERS = 1024
_PEM = re.compile(
    r"(?:-----BEGIN [A-Z0-9 ]+-----[A-Za-z0-9+/=\s]{1,20000}-----END [A-Z0-9 ]+-----\s*){1,16}"
)


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """A secret without its value.

    Attributes:
        jobs: ids of the jobs whose scripts refer to it.
        hidden_by: the place that is searched first and has one of the same name, None without.
    """

    name: str
    source: SecretSource
    jobs: tuple[str, ...]
    hidden_by: SecretSource | None


class SecretStore:
    """One file per secret in the data directory; mode 0600 in a directory of mode 0700.

    Attributes:
        directory: where they are kept.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.directory = settings.kept_secrets_dir

    def put(self, name: str, value: str) -> None:
        """Keep a secret, in place of the one of that name; durable when this returns.

        Raises:
            SecretError: the name or the value cannot be one of a secret, or it cannot be written.
        """
        check_name(name)
        plain = 0 < len(value) <= MOST_CHARACTERS and _is_plain(value)
        if not plain and not _PEM.fullmatch(value):
            raise SecretError(
                f'value of secret "{name}" has {len(value)} characters or others than printable '
                f"ones, expected 1 to {MOST_CHARACTERS}",
                hint="Give one password on one line, or PEM texts.",
            )
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.directory.chmod(0o700)
            write_private(self.directory / name, value.encode())
        except OSError as exc:
            raise self._failed("written", name, exc) from exc

    def remove(self, name: str) -> None:
        """Forget a secret that is kept here.

        Raises:
            SecretError: there is none of that name, or it cannot be removed.
        """
        check_name(name)
        try:
            (self.directory / name).unlink()
        except FileNotFoundError as exc:
            raise SecretError(
                f'secret "{name}" is not kept in "{self.directory}"',
                hint="Look at sluice secrets ls; what comes from the environment or from "
                "SLUICE_SECRETS_DIR is removed there.",
            ) from exc
        except OSError as exc:
            raise self._failed("removed", name, exc) from exc

    def known(self) -> list[KnownSecret]:
        """Every secret that can be seen, in the order in which places are asked."""
        used, visible = self._used(), list[KnownSecret]()
        for name, source in self._everywhere():
            key = variable_of if source == "environment" else str
            jobs = {job for n, ids in used.items() if key(n) == key(name) for job in ids}
            hidden_by = next((s.source for s in visible if _hides(s, name)), None)
            visible.append(KnownSecret(name, source, tuple(sorted(jobs)), hidden_by))
        return visible

    def jobs_of(self, name: str) -> list[str]:
        return sorted(self._used().get(name, ()))

    def _everywhere(self) -> Iterator[tuple[str, SecretSource]]:
        """Name and source of each."""
        for variable, value in sorted(os.environ.items()):
            if variable.startswith(VARIABLE_PREFIX) and value:
                name = variable.removeprefix(VARIABLE_PREFIX).removesuffix("_FILE")
                yield name.lower(), "environment"
        places: tuple[tuple[SecretSource, Path | None], ...] = (
            ("directory", self._settings.secrets_dir),
            ("kept", self.directory),
        )
        for source, directory in places:
            for path in sorted(directory.glob("*")) if directory is not None else ():
                if not path.name.startswith(".") and path.is_file():
                    yield path.name, source

    def _used(self) -> dict[str, set[str]]:
        """Name → jobs."""
        used: dict[str, set[str]] = {}
        for plan in self._settings.jobs_dir.glob("*/plan.json"):
            layout = JobLayout(plan.parent)
            try:
                names = references(layout.plan.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError):
                continue
            for name in names:
                used.setdefault(name, set()).add(plan.parent.name)
        return used

    def _failed(self, what: str, name: str, exc: OSError) -> SecretError:
        return SecretError(
            f'secret "{name}" cannot be {what} in "{self.directory}": {exc.strerror}',
            hint="Run the command as the user of the control plane, with its data directory.",
        )


def _hides(earlier: KnownSecret, name: str) -> bool:
    if earlier.source == "environment":
        return variable_of(earlier.name) == variable_of(name)
    return earlier.name == name


def _is_plain(value: str) -> bool:
    return not any(char < " " or char == "\x7f" for char in value)
