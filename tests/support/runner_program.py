"""A runner without Spark: a process that keeps the contract between runner and control plane.

The job's name says how it behaves: `crash…` dies by SIGKILL after its first report, `fail…` ends
with 3 and an error, `silent…` stops reporting, `deaf…` ignores SIGTERM, `wait…` reports STALLED and
ends with 1; any other name goes from SNAPSHOT to JOINING and stays there until SIGTERM.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from joins.checkpoint import CheckpointLock, write_json_atomically
from joins.errors import CheckpointError
from service.config import Settings
from service.jobs.layout import JobLayout, append_event, write_runner_pid

MIN = -(2**63)


class Program:
    def __init__(self, layout: JobLayout) -> None:
        self.layout = layout
        self.name = json.loads(layout.plan.read_bytes())["name"]
        self.state = "STARTING"
        self.stopping = False
        self.started_at_ms = time.time_ns() // 1_000_000

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        self.stopping = not self.name.startswith("deaf")

    def report(self, state: str, reason: str, error: dict[str, str] | None = None) -> None:
        now_ms = time.time_ns() // 1_000_000
        if state != self.state:
            event = {"at_ms": now_ms, "from": self.state, "to": state, "cause": reason}
            append_event(self.layout.job_dir, event)
            self.state = state
        joining = state == "JOINING"
        write_json_atomically(self.layout.status, self.status(now_ms, reason, joining, error))

    def status(self, now_ms, reason, joining, error):
        watermark = {"timestamp_ms": MIN, "use_processing_time": joining}
        snapshot = {
            "rows_done": 10 if joining else 4,
            "rows_total": 10,
            "rows_total_is_estimate": not joining,
            "chunks_done": 1,
            "chunks_total": 2,
        }
        dimension = {
            "name": "users",
            "snapshot": snapshot,
            "generation": 1,
            "low": {"epoch": 0, "file": 1, "pos": 2, "row": -1},
            "changelog_version": 3,
            "lag_records": 0,
            "channels": [{"channel": "users/0", "status": "ACTIVE", "watermark": watermark}],
        }
        return {
            "job_id": self.layout.job_dir.name,
            "pid": os.getpid(),
            "epoch": 1,
            "state": self.state,
            "phase": "JOIN" if joining else "LOAD",
            "reason": reason,
            "updated_at_ms": now_ms,
            "started_at_ms": self.started_at_ms,
            "opened_at_ms": now_ms if joining else None,
            "dimensions": [dimension],
            "combined_watermark": watermark,
            "probe": {"topic": "clicks", "held_records": 0 if joining else 7},
            "versions_at_open": {"users": 3} if joining else {},
            "versions": {"users": 3},
            "error": error,
        }

    def run(self) -> int:
        self.report("SNAPSHOT", "The snapshot of users is being read.")
        if self.name.startswith("crash"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.name.startswith("fail"):
            error = {"type": "SourceError", "message": "table is gone", "hint": "Restore it."}
            self.report("FAILED", "table is gone", error)
            return 3
        if self.name.startswith("wait"):
            error = {
                "type": "SourceUnavailableError",
                "message": "no database",
                "hint": "Start it.",
            }
            self.report("STALLED", "no database", error)
            return 1
        while not self.stopping:
            if not (self.name.startswith("silent") and self.state == "JOINING"):
                self.report("JOINING", "The gate is open.")
            time.sleep(0.1)
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job-dir", type=Path, required=True)
    layout = JobLayout(parser.parse_args().job_dir)
    Settings.of_runner(layout.job_dir)
    try:
        CheckpointLock(layout.checkpoint / "lock").acquire()
    except CheckpointError:
        sys.exit(4)
    program = Program(layout)
    signal.signal(signal.SIGTERM, program.stop)
    write_runner_pid(layout.job_dir)
    sys.stdout.write("runner runs \x1b[31mred\n")
    sys.stdout.flush()
    sys.exit(program.run())


if __name__ == "__main__":
    main()
