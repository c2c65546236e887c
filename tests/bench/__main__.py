"""`python -m tests.bench <name>`: one benchmark; its last line is one JSON object.

A benchmark is a module `<name>_bench` of this package, dashes as underscores. It has either
`measure(place: Place, sizes: Sizes) -> list[Measure]`, the most important measure first, or
`run() -> dict`, which gives that last line itself.
"""

import argparse
import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from service.logs import configure_logs
from tests.bench import report
from tests.bench.measure import RUNS, Sizes, as_json
from tests.bench.place import Place
from tests.support.services import data_directory

BENCHMARKS = Path(__file__).resolve().parents[2] / "deploy" / "BENCHMARKS.md"
_SUFFIX = "_bench.py"


def names() -> tuple[str, ...]:
    found = Path(__file__).parent.glob(f"*{_SUFFIX}")
    return tuple(sorted(p.name.removesuffix(_SUFFIX).replace("_", "-") for p in found))


def run(name: str, place: Place, sizes: Sizes) -> dict[str, Any]:
    """The JSON object of the benchmark `name`."""
    module = importlib.import_module(f"tests.bench.{name.replace('-', '_')}_bench")
    if hasattr(module, "measure"):
        return as_json(name, module.measure(place, sizes))
    found: dict[str, Any] = module.run()
    return found


def read_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; what it cannot be ends the program with a hint."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("name", nargs="?", help=f"all when left out: {', '.join(names())}")
    parser.add_argument("--records", type=_positive, help="of the stream; for some: changes")
    parser.add_argument("--dim", type=_positive, help="rows of the table")
    parser.add_argument("--runs", type=_positive, default=RUNS, help="the median counts")
    parser.add_argument("--save", action="store_true", help=f"write the line of {BENCHMARKS.name}")
    parser.add_argument("--data", type=Path, help="keep everything in this directory")
    parser.add_argument("--json", action="store_true", help="accepted; output is always JSON")
    arguments = parser.parse_args(given)
    if arguments.name is not None and arguments.name not in names():
        parser.error(
            f'no benchmark is named "{arguments.name}"\nhint: There are {", ".join(names())}.'
        )
    return arguments


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def one(arguments: argparse.Namespace) -> bool:
    """Run the named benchmark in a place of its own, and tell what it has found."""
    sizes = Sizes(arguments.records, arguments.dim, arguments.runs)
    with data_directory(arguments.data) as directory, Place(directory) as place:
        told = run(arguments.name, place, sizes)
    if arguments.save:
        report.save(BENCHMARKS, report.machine(), report.versions(), report.lines(told))
    sys.stdout.write(json.dumps(told) + "\n")
    return bool(told["ok"])


def all_of_them(arguments: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "tests.bench"]
    met = [subprocess.run([*command, name, "--save", *arguments]).returncode for name in names()]
    return not any(met)


def main() -> int:
    """Run the named benchmark, or all of them, whose results are written down."""
    arguments = read_arguments()
    configure_logs("WARNING")  # to standard error: the last line on standard output is the result
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended
    met = all_of_them(sys.argv[1:]) if arguments.name is None else one(arguments)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
