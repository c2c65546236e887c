"""A node of a cluster as processes that share an index directory: `python -m tests.support.node`.

The task comes pickled in a file; the answer is one JSON line. With `STOPS_WHILE_IT_BUILDS` it stops
before the first file of the index gets its final name.
"""

import json
import os
import pickle
import signal
import sys
from pathlib import Path

from joins.worker.probe_task import ProbeTask

STOPS = "STOPS_WHILE_IT_BUILDS"


def stop_at_a_file(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.rename" and str(arguments[0]).endswith(".partial"):
        os.kill(os.getpid(), signal.SIGSTOP)


def main(task_file: str, version: str) -> None:
    task: ProbeTask = pickle.loads(Path(task_file).read_bytes())
    (index,) = task.attach({"users": int(version)}).values()
    sys.stdout.write(json.dumps({"rows": index.num_rows}) + "\n")


if __name__ == "__main__":
    if STOPS in os.environ:
        sys.addaudithook(stop_at_a_file)
    main(*sys.argv[1:])
