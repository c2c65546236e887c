"""The control plane of the benchmark `api`, a process of its own; its settings are variables.

Only the job that is named first has a real runner. The other jobs are there to be created and
listed: a process that sleeps stands for their runners, so that two cores are enough for the rest.
"""

import shlex
import signal
import sys

from service.config import Settings
from service.footprint import kept_for_good, leave_out
from service.logs import configure_logs


def runner_command(name: str) -> tuple[str, ...]:
    real = shlex.join((sys.executable, "-m", "service.jobs.runner"))
    choice = (
        f'grep -q "\\"name\\":\\"{name}\\"" "$2/plan.json" && exec {real} "$@"; exec sleep 86400'
    )
    return ("/bin/sh", "-c", choice, "runner")


def main() -> None:
    """Serve until a signal."""
    leave_out("pandas")  # as `sluice serve`
    with kept_for_good():
        from service.api.server import ControlPlane

        configure_logs("WARNING")
        plane = ControlPlane(Settings.load(), runner_command=runner_command(sys.argv[1]))
        plane.open()
        plane.warm_up()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    try:
        plane.run()
    finally:
        from tests.support.control_plane import stop_jobs  # (loads what is not measured)

        stop_jobs(plane, timeout_s=60.0)
        plane.close()


if __name__ == "__main__":
    main()
