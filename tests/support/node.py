"""A node of a cluster as processes that share an index directory: `python -m tests.support.node`.

The task comes pickled in a file; the answer is one JSON line.
"""

import json
import pickle
import sys
from pathlib import Path

from joins.worker.probe_task import ProbeTask


def main(task_file: str, version: str) -> None:
    task: ProbeTask = pickle.loads(Path(task_file).read_bytes())
    (index,) = task.attach({"users": int(version)}).values()
    sys.stdout.write(json.dumps({"rows": index.num_rows}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
