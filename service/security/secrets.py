"""Secrets: `${secret:name}` references and who resolves them.

| asked in this order | where a value is |
|---|---|
| the job | its own `secrets.json`: what the script had inline |
| the environment | `SLUICE_SECRET_<NAME>`, or the file that `SLUICE_SECRET_<NAME>_FILE` names |
| a directory | the file `<SLUICE_SECRETS_DIR>/<name>`, as Docker and Kubernetes mount secrets |
| what we keep | the file `<data directory>/secrets/<name>`, written by `sluice secrets set` |

Values never enter a plan, a log, an answer or the environment of another process.
`service.security.secrets` gives a runner those of the environment that its plan refers to.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from joins.durable.checkpoint import FORMAT_VERSION, read_json
from service.config import Settings
from service.errors import SecretError
from service.jobs.store.layout import JobLayout, write_new, write_private
from service.schemas.tokens import SecretSource
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


_STANDARD_INPUT = 0


@contextmanager
def handed_over(job_dir: Path | None, question: Mapping[str, Any] | None = None) -> Iterator[int]:
    """The standard input of a child that works on the job of `job_dir`."""
    values = {} if job_dir is None else _of_plan(JobLayout(job_dir).plan)
    if not values and question is None:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _in_memory({"secrets": values, "question": question})
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def take_over() -> dict[str, Any] | None:
    """Take what was handed over to this process; called first, before anything is started.

    Returns:
        The question, None if there is none.
    """
    try:
        if not stat.S_ISREG(os.fstat(_STANDARD_INPUT).st_mode):
            return None
        with open(_STANDARD_INPUT, "rb", closefd=False) as file:
            document = json.load(file)
        receive(document["secrets"])
        question: dict[str, Any] | None = document["question"]
    except (OSError, ValueError, LookupError, TypeError):  # not ours: a person has redirected it
        return None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.close(nothing)
    return question


def _of_plan(plan: Path) -> dict[str, str]:
    """What the environment provides of what the plan refers to; faults are the child's to tell."""
    try:
        names = references(plan.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    values = {name: _or_none(name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _or_none(name: str) -> str | None:
    try:
        return of_environment(name)
    except SecretError:
        return None


def _in_memory(document: Mapping[str, Any]) -> int:
    descriptor = os.memfd_create("hand-over", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(json.dumps(document).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


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
