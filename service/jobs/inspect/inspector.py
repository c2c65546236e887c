"""Runs inspections of a job's files in separate processes, for the control plane.

`python -m service.jobs.inspect --job-dir DIR <command>` prints one JSON object. It runs at a low
priority, with limits on concurrency, time and output, and ends with the thread that waits for it: a
damaged or hostile file cannot harm the control plane.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import structlog

from service.config import PREFIX, Settings
from service.embedded import launch
from service.errors import AnsweredError, InspectionError
from service.jobs.supervise.hooks import Seats
from service.jobs.supervise.runner_process import environment
from service.security.secrets import handed_over

INSPECT_COMMAND = (sys.executable, "-m", "service.jobs.inspect")
MOST_AT_ONCE = 2
_MOST_WAITING = 6
_NICENESS = 10
_PATIENCE_S = 10.0
_ANSWER_LIMIT_BYTES = 32 << 20
_LOG_BYTES = 4096
_TOLD = ("host", "port", "data_dir", "warehouse_dir", "cache_dir")
_log = structlog.get_logger(__name__)


class Inspector:
    """Runs inspections; thread-safe. `settings` describe the machine to examine."""

    def __init__(
        self, command: Sequence[str] | None = None, settings: Settings | None = None
    ) -> None:
        self._command = tuple(command or INSPECT_COMMAND)
        self._environment = {} if settings is None else _variables(settings)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False
        self._seats = Seats(
            "inspections", at_once=MOST_AT_ONCE, waiting=_MOST_WAITING, patience_s=_PATIENCE_S
        )

    def close(self) -> None:
        """End inspections that run; they and later ones fail with InspectionError."""
        self._is_closed = True
        for process in [*self._processes]:
            _end(process)

    def ask(
        self,
        job_dir: Path | None,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        question: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The result of one inspection; without a job, of the machine.

        All users of the machine can see `arguments`; `question` goes through standard input. Raises
        AnsweredError for a refusal, BusyError if no slot becomes free in time, InspectionError for
        a timeout or an end without an answer.
        """
        with self._seats.one():
            place = [] if job_dir is None else ["--job-dir", str(job_dir)]
            with handed_over(job_dir, question) as descriptor:
                command = [*self._command, *place, *arguments]
                return _result(self._run(command, descriptor, timeout_s))

    def _run(self, command: Sequence[str], descriptor: int, timeout_s: float) -> bytes:
        """The output of `command`; its process group is gone when this returns."""
        bound = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *command]
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                bound,
                stdin=descriptor,
                stdout=printed,
                stderr=said,
                env={**environment(), **self._environment},
                start_new_session=True,
            )
            self._processes.add(process)
            try:
                if self._is_closed:
                    raise InspectionError(
                        "the control plane ends", hint="Ask again when it is there again."
                    )
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired as exc:
                raise InspectionError(
                    f"inspection did not end within {timeout_s:g} s",
                    hint="Ask again when the machine has less to do, or ask for less.",
                ) from exc
            finally:
                self._processes.discard(process)
                _end(process)
            answer = _read(printed)
            if not answer.strip():
                _tell(code, said)
            return answer


def _variables(settings: Settings) -> dict[str, str]:
    return {f"{PREFIX}{name.upper()}": str(getattr(settings, name)) for name in _TOLD}


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(printed: IO[bytes]) -> bytes:
    size = printed.seek(0, os.SEEK_END)
    if size > _ANSWER_LIMIT_BYTES:
        raise InspectionError(
            f"inspection printed {size} bytes, expected at most {_ANSWER_LIMIT_BYTES}",
            hint="Ask for less, for instance for fewer records at once.",
        )
    printed.seek(0)
    return printed.read()


def _tell(code: int, said: IO[bytes]) -> None:
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - _LOG_BYTES))
    _log.error(
        "inspection ended without an answer", code=code, said=said.read().decode(errors="replace")
    )


def _result(answer: bytes) -> dict[str, Any]:
    try:
        document = json.loads(answer)
        if document["ok"] is True:
            return dict(document["result"])
        error = document["error"]
        refused = AnsweredError(
            str(error["message"]), hint=str(error["hint"]), kind=str(error["type"])
        )
    except (KeyError, TypeError, ValueError, RecursionError) as exc:
        raise InspectionError(
            "inspection ended without an answer",
            hint="Look at the log of the control plane and report the error with it.",
        ) from exc
    raise refused
