"""A control plane as a process, so that it can be killed; started again on the same port."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from service.config import PREFIX, Settings
from service.embedded.process import free_port
from tests.reliability.experiment import Lab
from tests.support.rig import Rig, rig_settings
from tests.support.wait import wait_until

_ROOT = Path(__file__).resolve().parents[2]
_UP_S = 60.0
_STOP_S = 60.0


def _as_text(value: Any) -> str:
    if isinstance(value, dict | bool):
        return json.dumps(value)
    return str(value)


class PlaneProcess:
    """`sluice serve` with given settings."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{settings.port}", timeout=60.0)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        values = self._settings.model_dump(mode="json", exclude={"database_url"})
        given = {PREFIX + k.upper(): _as_text(v) for k, v in values.items() if v not in (None, "")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service.cli", "serve"],
                cwd=_ROOT,
                env={**os.environ, **given},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._ready, deadline_s=_UP_S, what="the control plane is ready")

    def _ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait for its end; its jobs go on."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=_STOP_S)
        self.client.close()

    def stop_jobs(self) -> None:
        """Stop every job and wait until no runner is left."""
        if not self._ready():
            self.start()
        jobs = [job["id"] for job in self.client.get("/v1/jobs").json()["items"]]
        for job in jobs:
            self.client.post(f"/v1/jobs/{job}:stop")
        for job in jobs:
            wait_until(lambda j=job: self._at_rest(j), deadline_s=_STOP_S, what="jobs have stopped")

    def _at_rest(self, job: str) -> bool:
        state = self.client.get(f"/v1/jobs/{job}").json()["state"]
        return state in ("STOPPED", "FAILED")


@contextmanager
def rig_of_process(lab: Lab, name: str, **given: Any) -> Iterator[tuple[Rig, PlaneProcess]]:
    """A rig whose control plane is a process; its jobs are stopped at the end."""
    directory = lab.place(name)
    settings = rig_settings(directory, lab.kafka, **{"port": free_port(), **given})
    plane = PlaneProcess(settings, directory / "serve.log")
    plane.start()
    try:
        yield Rig(settings, plane.client, lab.kafka, lab.mariadb), plane
    finally:
        try:
            plane.stop_jobs()
        finally:
            plane.stop()
