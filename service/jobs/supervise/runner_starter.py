"""Starts runners: each as a process of its own, or forked by a host that they share."""

import threading
from collections.abc import Sequence
from pathlib import Path

from service.config import Settings
from service.jobs.supervise.runner_host import RunnerHostLink
from service.jobs.supervise.runner_process import RUNNER_COMMAND, RunnerProcess
from service.jobs.supervise.watch import Watch


class RunnerStarter:
    """Starts runners until it is told to give up; `begin_anew` makes it start them again.

    Args:
        settings: handed over to each runner.
        command: of a runner, in place of ours.
    """

    def __init__(self, settings: Settings, command: Sequence[str] | None) -> None:
        self._settings = settings
        self._command = tuple(command or RUNNER_COMMAND)
        is_shared = settings.runners == "shared" and command is None
        self._host = RunnerHostLink(settings) if is_shared else None
        self._given_up = threading.Event()

    def start(self, watch: Watch, job_dir: Path) -> bool:
        """Start a runner for `watch`; False if the next look has to ask for it again, or never.

        Raises:
            OSError: that cannot be done.
        """
        if self._given_up.is_set():
            return False
        if self._host is None:
            self._settings.hand_over(job_dir)
            runner: RunnerProcess | None = RunnerProcess.start(self._command, job_dir)
        else:
            runner = self._host.start(job_dir)
        if runner is None:
            return False
        watch.begin(runner)
        if self._given_up.is_set():  # meanwhile, and perhaps nobody waits for its end any more
            runner.kill()
            return False
        return True

    def give_up(self) -> None:
        self._given_up.set()

    def begin_anew(self) -> None:
        self.close()
        self._given_up.clear()

    def close(self) -> None:
        if self._host is not None:
            self._host.close()
