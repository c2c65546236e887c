"""Secrets: `${secret:name}` references, their resolution, their store, and their hand-over.

| searched in this order | location of the value |
|---|---|
| the job | `secrets.json`: inline passwords of the script |
| the environment | `SLUICE_SECRET_<NAME>`, or the file that `SLUICE_SECRET_<NAME>_FILE` names |
| a directory | the file `<SLUICE_SECRETS_DIR>/<name>`, as Docker and Kubernetes mount secrets |
| the data directory | the file `<data directory>/secrets/<name>`, from `sluice secrets set` |

Values never enter a plan, a log or an answer. `service.jobs.supervise.runner_process` starts a
runner without the `SLUICE_SECRET_*` of the environment: `handed_over` gives it those that its plans
refer to, and `take_over` reads them there.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
_MOST_PEM_BYTES = 1 << 20  # five times the trusted authorities of a usual machine
_received: dict[str, str] = {}  # from the control plane that started this process


class SecretResolver:
    """Resolves references for allowed servers; holds no values."""

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
        """`text` with each reference replaced by its value, as a `Secret` that shows the reference.

        `servers` are the recipients: host:port, comma-separated. Raises SecretError for a missing
        secret or a malformed reference, NotAllowedError if the operator does not allow one of the
        servers.
        """
        resolved = _REFERENCE.sub(lambda match: self._value(match[1], servers), text)
        if "${" in _REFERENCE.sub("", text):
            raise SecretError(
                'reference "${…}" is malformed, expected ${secret:name}',
                hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
            )
        return Secret(resolved, text) if _REFERENCE.search(text) else resolved

    def pem_file(self, file: str) -> str:
        """The text of a PEM file as a `Secret`. Raises SecretError or NotAllowedError."""
        real = confined_pem(file, self._pem_directories)
        try:
            with real.open("rb") as content:
                text = content.read(_MOST_PEM_BYTES + 1).decode("utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise SecretError(
                f'PEM file "{file}" cannot be read: {type(exc).__name__}',
                hint="Make it readable for the user of Sluice, or correct the path.",
            ) from exc
        if len(text) > _MOST_PEM_BYTES:
            raise SecretError(
                f'PEM file "{file}" has more than {_MOST_PEM_BYTES} bytes',
                hint="Use a file with only the required certificates.",
            )
        return Secret(text, f"file {file}")

    def _value(self, name: str, servers: str) -> str:
        inline = self.of_job(name)
        if inline is not None:  # the script's own password: the operator has nothing to protect
            return inline
        check_name(name)
        check_secret(name, servers, self._allowed)
        value = _received.get(name)
        if value is None:
            value = of_environment(name)
        for directory in self._directories:
            if value is None:
                value = read_secret(directory / name, name)
        if value is None:
            variable = variable_of(name)
            raise SecretError(
                f'secret "{name}" does not exist, expected {variable} or a file of that name',
                hint=f"Run sluice secrets set {name}, or set {variable} for the control plane, "
                f"or put the file into SLUICE_SECRETS_DIR{self._resume_command()}.",
            )
        return value

    def _resume_command(self) -> str:
        if self._job_dir is None or not JobLayout(self._job_dir).plan.exists():
            return ""
        return f"; then run sluice jobs resume {self._job_dir.name}"

    def of_job(self, name: str) -> str | None:
        if self._job_dir is None:
            return None
        content = read_json(JobLayout(self._job_dir).secrets)
        return None if content is None else content["secrets"].get(name)


def receive(values: Mapping[str, str]) -> None:
    """Store handed-over values for this process; children do not inherit them."""
    _received.update(values)


def check_name(name: str) -> None:
    if not _PUBLIC_NAME.fullmatch(name):
        raise SecretError(
            f'name of secret "{name}" is malformed',
            hint="Use letters, digits, dots, dashes and underscores in the secret's name.",
        )


def variable_of(name: str) -> str:
    return VARIABLE_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def references(text: str) -> frozenset[str]:
    return frozenset(_REFERENCE.findall(text))


def of_environment(name: str) -> str | None:
    """The secret in the environment, or in the file it names; None if unset. Raises SecretError."""
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
            f'file of secret "{name}" does not exist, expected at {variable}_FILE',
            hint=f"Correct {variable}_FILE or mount the file.",
        )
    return value


def read_secret(path: Path, name: str) -> str | None:
    """A secret's file without its line end; None if it does not exist. Raises SecretError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise SecretError(
                f'file of secret "{name}" has more than {_MOST_BYTES} bytes',
                hint="Put one password into the file.",
            )
        return content.decode("utf-8").rstrip("\r\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise SecretError(
            f'file of secret "{name}" cannot be read: {exc.__class__.__name__}',
            hint=f'Make "{path}" a text file readable by this user.',
        ) from exc


def write_secrets(job_dir: Path, secrets: Mapping[str, str]) -> None:
    content = json.dumps({"format_version": FORMAT_VERSION, "secrets": dict(secrets)})
    write_new(JobLayout(job_dir).secrets, content.encode())


_STANDARD_INPUT = 0


@contextmanager
def handed_over(job_dir: Path | None, question: Mapping[str, Any] | None = None) -> Iterator[int]:
    """Standard input for a child process: the secrets that its job's plans reference.

    Environments are inherited and visible, so a child gets its `SLUICE_SECRET_*` in a file in
    memory, with the `question` of an inspection. The child reads and closes it before it starts
    other processes.
    """
    values = {} if job_dir is None else _of_plans(JobLayout(job_dir))
    if not values and question is None:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _in_memory({"secrets": values, "question": question})
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def take_over() -> dict[str, Any] | None:
    """Read the hand-over from standard input, first in the process; returns the question."""
    try:
        if not stat.S_ISREG(os.fstat(_STANDARD_INPUT).st_mode):
            return None
        with open(_STANDARD_INPUT, "rb", closefd=False) as file:
            document = json.load(file)
        question: dict[str, Any] | None = document["question"]
        receive(document["secrets"])
    except (OSError, ValueError, LookupError, TypeError):  # not a hand-over: redirected by a user
        return None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.close(nothing)
    return question


def _of_plans(layout: JobLayout) -> dict[str, str]:
    """The plans' secrets that the environment has; the child reports errors."""
    names: set[str] = set()
    for plan in layout.plan_files():
        with suppress(OSError, UnicodeDecodeError):
            names |= set(references(plan.read_text(encoding="utf-8")))
    values: dict[str, str] = {}
    for name in names:
        with suppress(SecretError):
            value = of_environment(name)
            if value is not None:
                values[name] = value
    return values


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
    """A secret without its value; `hidden_by` is an earlier source with a secret of this name."""

    name: str
    source: SecretSource
    jobs: tuple[str, ...]
    hidden_by: SecretSource | None


class SecretStore:
    """One file for each secret in the data directory; mode 0600 in a directory of mode 0700."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.directory = settings.kept_secrets_dir

    def put(self, name: str, value: str) -> None:
        """Store or replace a secret durably; raises SecretError for a bad name, value or disk."""
        check_name(name)
        plain = 0 < len(value) <= MOST_CHARACTERS and _is_plain(value)
        if not plain and not _PEM.fullmatch(value):
            raise SecretError(
                f'value of secret "{name}" has {len(value)} characters or unprintable ones, '
                f"expected 1 to {MOST_CHARACTERS} printable ones",
                hint="Give one password on one line, or PEM text.",
            )
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.directory.chmod(0o700)
            write_private(self.directory / name, value.encode())
        except OSError as exc:
            raise self._failed("written", name, exc) from exc

    def remove(self, name: str) -> None:
        check_name(name)
        try:
            (self.directory / name).unlink()
        except FileNotFoundError as exc:
            raise SecretError(
                f'secret "{name}" does not exist in "{self.directory}"',
                hint="Check sluice secrets ls; remove a secret of the environment from the "
                "environment, and one of SLUICE_SECRETS_DIR from that directory.",
            ) from exc
        except OSError as exc:
            raise self._failed("removed", name, exc) from exc

    def known(self) -> list[KnownSecret]:
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
        used: dict[str, set[str]] = {}
        jobs = self._settings.jobs_dir
        for plan in (*jobs.glob("*/plan.json"), *jobs.glob("*/plans/*.json")):
            try:
                names = references(plan.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError):
                continue
            for name in names:
                used.setdefault(name, set()).add(plan.relative_to(jobs).parts[0])
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
