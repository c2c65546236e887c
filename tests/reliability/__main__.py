"""`python -m tests.reliability <experiment>`: one experiment; its last line is one JSON object."""

import argparse
import importlib
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from service.logs import configure_logs
from tests.reliability.experiment import FULL, SMALL, open_lab

NAMES = (
    "crash-points",
    "event-time",
    "kill-storm",
    "oracle-check",
    "poison",
    "replay",
    "slow-snapshot",
    "snapshot-kills",
    "split-brain",
    "topic-loss",
)


def find(name: str) -> ModuleType:
    """The module of the experiment `name`."""
    return importlib.import_module(f"tests.reliability.{name.replace('-', '_')}")


@contextmanager
def data_directory(given: Path | None) -> Iterator[Path]:
    """`given`, made and kept, or a temporary one that is removed."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The result of the named experiment."""
    module = find(arguments.experiment)
    options = {"cases": arguments.cases, "only": arguments.only, "writer": arguments.writer}
    with (
        data_directory(arguments.data) as directory,
        open_lab(directory, scale=arguments.scale, seed=arguments.seed, options=options) as lab,
    ):
        found: dict[str, Any] = module.run(lab)
        return found


def main() -> int:
    """Run the named experiment."""
    configure_logs("WARNING")  # to standard error: the last line on standard output is the result
    parser = argparse.ArgumentParser(prog="python -m tests.reliability")
    parser.add_argument("experiment", choices=NAMES)
    parser.add_argument("--scale", choices=(SMALL, FULL), default=SMALL)
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same faults")
    parser.add_argument("--cases", type=int, help="run so many cases instead of the scale's number")
    parser.add_argument(
        "--only",
        help="crash-points, event-time: one run, such as kill-3; event-time: one job of it, such "
        "as 'kill-3 windows'",
    )
    parser.add_argument(
        "--writer",
        choices=("columnar", "spark"),
        default="columnar",
        help="crash-points, kill-storm: who appends to the output",
    )
    parser.add_argument("--data", type=Path, help="keep everything in this directory")
    parser.add_argument("--list", action="store_true", help="show the cases and run nothing")
    parser.add_argument("--json", action="store_true", help="accepted; the result is always JSON")
    arguments = parser.parse_args()
    if arguments.list:
        lines = getattr(find(arguments.experiment), "listing", list)()
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended
    found = run(arguments)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
