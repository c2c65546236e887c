"""A runner without Spark: a process that keeps the contract between runner and control plane.

The job's name says how it behaves: `crash…` dies by SIGKILL after its first report, `fail…` ends
with 3 and an error, `silent…` stops reporting, `deaf…` ignores SIGTERM, `wait…` reports STALLED and
ends with 1, `lost…` is STALLED until an operator acknowledges it, `slow…` answers requests after a
file `go` is there, `done…` finishes once that file is there and then only answers, `late…` reports
nothing before that file is there, `flows…` prints three rows of a preview and goes on; any other
name goes from SNAPSHOT to JOINING and stays there until SIGTERM. Those that run end with 5 when the
job has a newer plan.
"""

import argparse
import base64
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from joins.durable.checkpoint import CheckpointLock, write_json_atomically
from joins.durable.requests import Request, Requests
from joins.plan.errors import CheckpointError, NothingToAcknowledgeError
from service.config import Settings
from service.jobs.store.layout import JobLayout, write_runner_pid
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import append_event
from tests.support.event_time import event_time

MIN = -(2**63)


class Program:
    def __init__(self, layout: JobLayout) -> None:
        self.layout = layout
        self.name = json.loads(layout.plan.read_bytes())["name"]
        self.state = "STARTING"
        self.stopping = False
        self.lost = self.name.startswith("lost")
        self.requests = Requests(
            layout.requests,
            {"acknowledge": self.acknowledge, "replay-dead-letters": self.replay},
        )
        self.plan = JobPlans(layout).newest_number
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

    def acknowledge(self, request: Request) -> dict[str, object]:
        if not self.lost:
            raise NothingToAcknowledgeError("no such stall", hint="Look at the status.")
        self.lost = False
        record = {
            "id": request.id,
            "at_ms": request.at_ms,
            "by": request.by,
            **request.body,
            "message": "records \x1b[31m5 to 9\x1b[0m are gone",
            "gaps": [{"partition": 0, "from": 5, "to": 9}],
            "life": "probe-2",
        }
        with self.layout.acknowledgements.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return record

    def replay(self, request: Request) -> dict[str, object]:
        records = request.body.get("records", [])
        if "discard" in request.body:
            count = 7 if request.body.get("all") else len(records)
            return {"discard": 1, "records": count, "already_settled": 0, "remaining": 0}
        bad = [r for r in records if "c3RpbGwgYmFk" in _values(r)]
        left = [{**r, "reason": "not \x1b[2JJSON"} for r in bad]
        return {
            "replay": 1,
            "records": len(records),
            "rows": len(records) - len(bad),
            "still_bad": left,
            "already_replayed": 0,
        }

    def work(self) -> None:
        waits = self.name.startswith("slow") and not (self.layout.job_dir / "go").exists()
        if not waits:
            self.requests.serve()
        if self.lost:
            error = {"type": "records-lost", "message": "5 records are gone", "hint": "Decide."}
            self.report("STALLED", "5 records are gone", error)
        elif not (self.name.startswith("silent") and self.state == "JOINING"):
            self.report("JOINING", "The gate is open.")

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
            "probe": {
                "topic": "clicks",
                "held_records": 0 if joining else 7,
                "dead_letters": 2 if self.name.startswith("looks") else 0,
            },
            "event_time": event_time() if self.name.startswith("timed") else None,
            "versions_at_open": {"users": 3} if joining else {},
            "versions": {"users": 3},
            "error": error,
            "warnings": self.warnings(),
            "stalls": [{"part": "probe", **error, "choices": ["continue"]}] if error else [],
        }

    def warnings(self) -> list[dict[str, str]]:
        if not self.name.startswith("near"):
            return []
        message = "topic \x1b]0;clicks\x07 removes held records in 2 h."
        return [{"type": "records-near-loss", "message": message, "hint": "Raise retention.ms."}]

    def has_finished(self) -> bool:
        try:
            return json.loads(self.layout.status.read_bytes())["state"] == "FINISHED"
        except FileNotFoundError:
            return False

    def answer(self) -> int:
        self.requests.serve()
        return 0

    def print_rows(self) -> None:
        if self.name.startswith("flows"):
            sys.stdout.write("".join(f'+I{{"id": "{number}"}}\n' for number in range(3)))
            sys.stdout.flush()

    def run(self) -> int:
        go = self.layout.job_dir / "go"
        while self.name.startswith("late") and not go.exists() and not self.stopping:
            time.sleep(0.1)
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
        if self.name.startswith("looks"):
            rows = ({"id": "1", "name": "\u202e2\u2028\x85"}, {"id": "1", "name": None})
            first, second = (json.dumps(row, ensure_ascii=False) for row in rows)
            sys.stdout.write(f"a line of a log\n+I{first}\n+I[no object\n-U{second}\n")
            sys.stdout.flush()
            self.report("FINISHED", "all is joined")
            return 0
        self.print_rows()
        while not self.stopping:
            self.work()
            time.sleep(0.1)
            if JobPlans(self.layout).has_newer(self.plan):
                self.report("STARTING", "it starts again under a newer plan")
                return 5
            if self.name.startswith("done") and (self.layout.job_dir / "go").exists():
                self.report("FINISHED", "all is joined")
                return 0
        return 0


def _values(record: dict[str, str]) -> tuple[str | None, str]:
    text = record.get("value")
    return record.get("value_base64"), base64.b64encode((text or "").encode()).decode()


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
    sys.exit(program.answer() if program.has_finished() else program.run())


if __name__ == "__main__":
    main()
