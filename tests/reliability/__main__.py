"""`python -m tests.reliability <experiment>`, or `all`; the last line is one JSON object."""

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

from service.logs import configure_logs
from tests.reliability.experiment import DEBEZIUM, FULL, MYSQL_CDC, SMALL, SOURCES, open_lab
from tests.support.services import data_directory

ALL, JOURNEYS = "all", "journeys"
NAMES = (
    "crash-points",
    "event-time",
    "foreign-ddl",
    "foreign-rows",
    "foreign-servers",
    "history",
    "job-update",
    JOURNEYS,
    "kill-storm",
    "late-rows",
    "laws",
    "oracle-check",
    "poison",
    "replay",
    "slow-snapshot",
    "snapshot-kills",
    "split-brain",
    "stale",
    "tokens",
    "topic-loss",
    "transactions",
    "verify",
)
CAPTURED = ("kill-storm", "slow-snapshot", "snapshot-kills", "stale")  # also with a real Debezium
_Item, _Result = TypeVar("_Item"), TypeVar("_Result")
_SMALL_WITHIN_S = 2_400  # one that hangs must not take the time of all others


def find(name: str) -> ModuleType:
    return importlib.import_module(f"tests.reliability.{name.replace('-', '_')}")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The result of the named experiment."""
    module = find(arguments.experiment)
    names = ("cases", "only", "writer", "source", "store")
    options = {name: getattr(arguments, name) for name in names}
    size = {"scale": arguments.scale, "seed": arguments.seed, "options": options}
    servers = getattr(module, "SERVERS", True)
    with (
        data_directory(arguments.data) as directory,
        open_lab(directory, servers=servers, **size) as lab,
    ):
        found: dict[str, Any] = module.run(lab)
        return found


class Lanes:
    """Commands that run beside each other, each with a process group of its own."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._groups = set[int]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for group in self._groups.copy():
            _kill_group(group)

    def each(self, run: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        return self._threads.map(run, items)

    def run_within(self, command: Sequence[str], seconds: float | None) -> tuple[int, str]:
        """Exit code and output of a command, which is ended with all of its group behind its time.

        Raises:
            subprocess.TimeoutExpired: it was.
        """
        started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
        with started as process:
            self._groups.add(process.pid)
            try:
                output, _ = process.communicate(timeout=seconds)
            finally:
                _kill_group(process.pid)  # what it left would disturb the next one
                self._groups.discard(process.pid)
        return process.returncode, output


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def run_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of all experiments, each in a process of its own.

    At full scale one runs after the other; at small scale two at a time, but for the tests of the
    suite, which are two at a time by themselves.
    """
    started_at = time.monotonic()
    given = [f"--scale={arguments.scale}", f"--seed={arguments.seed}"]
    within_s = _SMALL_WITHIN_S if arguments.scale == SMALL else None

    def run_one(name: str, source: str = MYSQL_CDC) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.reliability", name, *given, f"--source={source}"]
        name = name if source == MYSQL_CDC else f"{name}-{source}"
        if arguments.data is not None:
            command.append(f"--data={arguments.data / name}")
        found: dict[str, Any] = {"experiment": name}
        try:
            code, output = lanes.run_within(command, within_s)
            last = output.strip().rpartition("\n")[2]
            found = json.loads(last) if last.startswith("{") else found
            found["ok"] = code == 0 and bool(found.get("ok"))
        except subprocess.TimeoutExpired:
            found |= {"ok": False, "seconds": within_s, "not_met": [f"not within {within_s} s"]}
        shown = "" if found["ok"] else f": {json.dumps(found)}"
        passed, cases = found.get("passed", 0), found.get("cases", 0)
        sys.stdout.write(
            f"{name}: {'ok' if found['ok'] else 'FAILED'}, {passed} of {cases} cases, "
            f"{found.get('seconds', 0)} s, {found.get('cpu_s')} of CPU{shown}\n"
        )
        sys.stdout.flush()
        return found

    rest = [(n, MYSQL_CDC) for n in NAMES if n != JOURNEYS] + [(n, DEBEZIUM) for n in CAPTURED]
    with Lanes(2 if arguments.scale == SMALL else 1) as lanes:
        results = [run_one(JOURNEYS), *lanes.each(lambda each: run_one(*each), rest)]
    return {
        "experiment": ALL,
        "scale": arguments.scale,
        "seed": arguments.seed,
        "cases": sum(result.get("cases", 0) for result in results),
        "passed": sum(result.get("passed", 0) for result in results),
        "failed": [result for result in results if not result["ok"]],
        "seconds": round(time.monotonic() - started_at, 1),
        "ok": all(result["ok"] for result in results),
    }


def main() -> int:
    """Run the named experiment."""
    configure_logs("WARNING")  # to standard error: the last line on standard output is the result
    parser = argparse.ArgumentParser(prog="python -m tests.reliability")
    parser.add_argument("experiment", choices=(*NAMES, ALL))
    parser.add_argument("--scale", choices=(SMALL, FULL), default=SMALL)
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same faults")
    parser.add_argument("--cases", type=int, help="run so many cases instead of the scale's number")
    parser.add_argument(
        "--only",
        help="crash-points, event-time: one run, such as kill-3; event-time: one job of it, such "
        "as 'kill-3 windows'; job-update: one action, such as kill; transactions: the isolation "
        "level that the tables ask for; history: table or stream",
    )
    parser.add_argument(
        "--writer",
        choices=("columnar", "spark"),
        default="columnar",
        help="crash-points, kill-storm: who appends to the output",
    )
    parser.add_argument(
        "--source",
        choices=SOURCES,
        default=MYSQL_CDC,
        help=f"{', '.join(CAPTURED)}: what reads the table",
    )
    parser.add_argument(
        "--store",
        choices=("s3",),
        help="crash-points, kill-storm, split-brain: output, tables and durable files of the job "
        "are in an object store",
    )
    parser.add_argument("--data", type=Path, help="keep everything in this directory")
    parser.add_argument("--list", action="store_true", help="show the cases and run nothing")
    parser.add_argument("--json", action="store_true", help="accepted; the result is always JSON")
    arguments = parser.parse_args()
    if arguments.experiment == ALL and (arguments.list or arguments.only or arguments.cases):
        parser.error(f"{ALL} takes --scale, --seed and --data only")
    if arguments.source == DEBEZIUM and arguments.experiment not in CAPTURED:
        parser.error(f"{arguments.experiment} is not run with --source {DEBEZIUM}")
    if arguments.list:
        lines = getattr(find(arguments.experiment), "listing", list)()
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended
    found = (run_all if arguments.experiment == ALL else run)(arguments)
    found["cpu_s"] = round(_cpu_s())
    sys.stdout.write(json.dumps(found) + "\n")
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
