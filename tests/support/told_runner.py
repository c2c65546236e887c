"""A runner without Spark that reports what a test tells it, and nothing before that.

What is not told is as `tests.support.runner_program` reports it.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from joins.durable.checkpoint import CheckpointLock, write_json_atomically
from service.config import Settings
from service.jobs.store.layout import JobLayout, write_runner_pid
from tests.support.runner_program import Program

COMMAND = (sys.executable, "-m", "tests.support.told_runner")
_TOLD = "told.json"


def tell(job_dir: Path, **told: object) -> None:
    write_json_atomically(job_dir / _TOLD, told)


class Told(Program):
    def status(self, now_ms, reason, joining, error):
        status = super().status(now_ms, reason, joining, error)
        return {**status, **self.told()}

    def told(self):
        path = self.layout.job_dir / _TOLD
        if not path.exists():
            return {}
        told = json.loads(path.read_bytes())
        del told["format_version"]
        return told

    def run(self) -> int:
        while not self.stopping:
            told = self.told()
            if told:
                self.report(told["state"], told["reason"], told.get("error"))
            time.sleep(0.1)
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job-dir", type=Path, required=True)
    layout = JobLayout(parser.parse_args().job_dir)
    Settings.of_runner(layout.job_dir)
    CheckpointLock(layout.checkpoint / "lock").acquire()
    program = Told(layout)
    signal.signal(signal.SIGTERM, program.stop)
    write_runner_pid(layout.job_dir)
    sys.exit(program.run())


if __name__ == "__main__":
    main()
