"""The runner host: one Spark driver, and the forked runners of all jobs.

`python -m service.jobs.host --directory DIR`. All runners share one copy of the loaded modules, and
one JVM, which is a separate process. Each runner is a process, so its fault ends no other runner.
A fault of the driver ends all runners; driver and runners are then restarted.

The host ends when no control plane is linked and no runner lives. With `SLUICE_STOP_WITH_PARENT` it
ends earlier, and its runners with it.
"""

import argparse
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog
from setproctitle import setproctitle

from joins.adapters.process.forks import Forks, receive, send
from joins.kernels.local_files import take_lock
from service.config import Settings
from service.jobs.supervise.runner_host import BEGIN, listen
from service.logs import configure_logs

_LOADED = (
    "service.jobs.runner",
    "joins.job.session",
    "joins.adapters.mysql.binlog",
    "joins.adapters.topic.feed",
    "joins.adapters.delta.feed",
)
_STANDARD = (0, 1, 2)
_REQUEST_S = 10.0
_LINGER_S = 5.0
_TURN_S = 0.5
_LONGEST_BACK_OFF_S = 30.0
_log = structlog.get_logger(__name__)


class RunnerHost:
    """Forks the driver and runners, and reports each runner's exit to its requester.

    `directory` has its socket, the driver's address and scratch files.
    """

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._address = directory / "driver.json"
        self._forks = Forks()
        self._listener = listen(directory)
        self._forks.watch(self._listener, self._accept)
        self._links: set[socket.socket] = set()
        self._driver: int | None = None
        self._driver_due = 0.0
        self._driver_failures = 0
        self._unlinked_at = time.monotonic()
        self._ending_at: float | None = None

    def serve(self) -> None:
        while not self._is_over():
            self._keep_driver()
            ended = self._forks.turn(_TURN_S)
            if self._driver in ended:
                self._driver_ended(ended[self._driver])
        _log.info("the runner host ends: no control plane is linked and no runner lives")

    def _is_over(self) -> bool:
        if self._links:
            self._ending_at = None
            return False
        now = time.monotonic()
        if self._forks.waiting and self._settings.stop_with_parent:
            if self._ending_at is None:
                self._ending_at = now + self._settings.stop_timeout_s
                self._to_all(os.kill, signal.SIGTERM)
            elif now > self._ending_at:
                self._to_all(os.killpg, signal.SIGKILL)
        return not self._forks.waiting and now - self._unlinked_at > _LINGER_S

    def _to_all(self, kill: Callable[[int, int], None], number: signal.Signals) -> None:
        for pid in self._forks.waiting:
            with suppress(ProcessLookupError):
                kill(pid, number)

    # The driver
    # -----------------------------------------------------------------------------------------

    def _keep_driver(self) -> None:
        if self._driver is not None or time.monotonic() < self._driver_due:
            return
        self._address.unlink(missing_ok=True)
        self._driver = self._forks.fork(self._be_driver, leads=True)

    def _be_driver(self) -> int:
        setproctitle("spark driver of sluice")
        from joins.job.session import run_driver
        from service.wiring.spark import spark_settings

        scratch = self._directory / "scratch"
        return run_driver(spark_settings(self._settings, "sluice", scratch), self._address)

    def _driver_ended(self, code: int) -> None:
        lived = self._address.exists()
        self._driver_failures = 0 if lived else self._driver_failures + 1
        wait_s = min(2.0**self._driver_failures, _LONGEST_BACK_OFF_S)
        self._driver, self._driver_due = None, time.monotonic() + wait_s
        self._address.unlink(missing_ok=True)
        _log.error("the shared spark driver ended", code=code, runners=len(self._forks.waiting))
        if lived:
            self._to_all(os.killpg, signal.SIGKILL)

    # Runners
    # -----------------------------------------------------------------------------------------

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        link.settimeout(_REQUEST_S)
        descriptors: list[int] = []
        try:
            request, descriptors = receive(link, 2)
            if request.get("link"):
                self._links.add(link)
                self._forks.watch(link, lambda: self._unlink(link))
                return
            pid = self._forks.fork(lambda: self._be_runner(request, descriptors, link), leads=True)
            self._forks.waiting[pid] = link
            send(link, {"pid": pid})
        except (OSError, LookupError, TypeError) as exc:
            _log.warning("a request could not be carried out", error=str(exc))
            if link not in self._forks.waiting.values():
                link.close()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _unlink(self, link: socket.socket) -> None:
        self._forks.forget(link)
        self._links.discard(link)
        self._unlinked_at = time.monotonic()

    def _be_runner(
        self, request: Mapping[str, Any], descriptors: list[int], link: socket.socket
    ) -> int:
        job_dir = Path(request["job_dir"])
        standard_input, output = descriptors
        for standard, descriptor in zip(_STANDARD, (standard_input, output, output), strict=True):
            os.dup2(descriptor, standard)
        for descriptor in descriptors:
            os.close(descriptor)
        setproctitle(f"runner of sluice --job-dir {job_dir}")
        os.chdir(job_dir)
        os.environ.clear()
        os.environ.update(request["environment"])
        if link.recv(1) != BEGIN:
            return 1
        link.close()
        from service.jobs.runner import run_to_the_end

        run_to_the_end(job_dir, self._address)


def main() -> None:
    """Entry of the host's process; does nothing if another host has the directory."""
    parser = argparse.ArgumentParser(prog="sluice-host")
    parser.add_argument("--directory", type=Path, required=True)
    directory = parser.parse_args().directory
    lock = os.open(directory / "host.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not take_lock(lock):
        return
    settings = Settings.of_runner(directory)
    configure_logs(settings.log_level)
    gc.disable()  # loaded modules stay: collecting among them takes time
    for name in _LOADED:
        import_module(name)
    gc.freeze()
    gc.enable()
    RunnerHost(directory, settings).serve()


if __name__ == "__main__":
    main()
