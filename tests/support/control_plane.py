"""A control plane over `tests.support.runner_program`: in process, or as a program."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpcore  # noqa: F401 (it loads trio, which runs ldconfig: now, not within a test)
import httpx
import psutil

from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import JoinPlan, SharedSource
from service.api.server import ControlPlane
from service.config import Settings
from service.jobs.store import plan_codec
from service.jobs.store.job import RESTING, DesiredState
from service.jobs.supervise.hooks import Hooks
from service.security.secrets import SecretResolver
from service.sql.planner.planner import plan_script
from tests.support.quick_start import quick_start
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
RUNNER = quick_start("tests.support.runner_program")
INSPECT = (sys.executable, "-m", "tests.support.inspect_program")
SCRIPT = """
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='{host}', 'port'='3306', 'username'='cdc',
      'password'='{password}', 'database-name'='shop', 'table-name'='users');
CREATE TABLE clicks (user_id BIGINT, item BIGINT, proctime AS PROCTIME())
WITH ('connector'='kafka', 'topic'='clicks', 'properties.bootstrap.servers'='127.0.0.1:9092',
      'format'='json', 'scan.startup.mode'='earliest-offset');
CREATE TABLE enriched (user_id BIGINT, name STRING) WITH ('connector'='blackhole');
INSERT INTO enriched SELECT c.user_id, u.name FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
"""


def script(*, host: str = "127.0.0.1", password: str = "${secret:shop}") -> str:
    return SCRIPT.format(host=host, password=password)


def check_outside(plan: JoinPlan, settings: Settings, secrets: SecretResolver) -> JoinPlan:
    """A preflight whose world is one database with one password; `down` does not answer."""
    source = plan.dimensions[0].source
    if isinstance(source, SharedSource):
        return plan
    if source.hostname == "down":
        raise SourceUnavailableError('database "down" does not answer', hint="Start it.")
    if secrets.resolve(source.password) != "open sesame":
        raise SourceError('access denied for user "cdc"', hint="Correct the password.")
    return plan


def remove_outside(job_dir: Path, settings: Settings, *, output: bool) -> tuple[str, ...]:
    """A removal whose world is a file per job; a file `locked` beside it makes it fail.

    What a file `shared` beside it names is left.
    """
    if (settings.data_dir / "locked").exists():
        raise SourceUnavailableError("broker does not answer", hint="Start the broker.")
    (settings.data_dir / f"removed-{job_dir.name}").write_text(str(output))
    shared = settings.data_dir / "shared"
    return (shared.read_text(),) if output and shared.exists() else ()


HOOKS = Hooks(
    plan=plan_script, dump=plan_codec.dump, preflight=check_outside, remove=remove_outside
)


def settings_in(data_dir: Path, **values: object) -> Settings:
    given = {"port": 0, "restart_backoff_min_s": 0.05, "restart_backoff_max_s": 0.2}
    return Settings.load(data_dir=data_dir, **{**given, **values})


def stop_jobs(plane: ControlPlane, *, timeout_s: float) -> bool:
    """Stop every job, also those that come meanwhile; whether all have stopped in time."""
    services = plane.services
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        jobs = services.store.all_jobs()
        for job in jobs:
            if job.desired_state is DesiredState.RUNNING:
                services.want(job.id, DesiredState.STOPPED)
        if all(job.state in RESTING for job in jobs):
            return True
        time.sleep(0.02)
    return False


@contextmanager
def control_plane(data_dir: Path, **values: object) -> Iterator[ControlPlane]:
    """A control plane in this process; its jobs are stopped at the end."""
    settings = settings_in(data_dir, **values)
    commands = {"runner_command": RUNNER, "inspect_command": INSPECT}
    with ControlPlane(settings, hooks=HOOKS, **commands) as plane:
        try:
            yield plane
        finally:
            stop_jobs(plane, timeout_s=100)


class ControlPlaneProgram:
    """A control plane in a process of its own, to be killed."""

    def __init__(self, data_dir: Path, port: int) -> None:
        command = [sys.executable, "-m", "tests.support.control_plane"]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [*command, "--data-dir", str(data_dir), "--port", str(port)], cwd=ROOT
        )
        wait_until(self._ready, deadline_s=30, what="control plane")

    def _ready(self) -> bool:
        assert self.process.poll() is None, "control plane ended"
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=120)


def end_runners(data_dir: Path) -> None:
    """End what a killed control plane has left behind below `data_dir`."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "tests.support.runner_program" in command and command[-1].startswith(str(data_dir)):
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    settings = settings_in(arguments.data_dir, port=arguments.port)
    plane = ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER)
    plane.open()
    try:
        plane.run()
    finally:
        plane.close()


if __name__ == "__main__":
    os.environ.setdefault("SLUICE_SECRET_SHOP", "open sesame")
    main()
