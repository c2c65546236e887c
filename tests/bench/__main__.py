"""`python -m tests.bench <name>`: one benchmark; its last line is one JSON object."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.bench import kernel_bench, watermark_bench

SNAPSHOT_BAR_S = 45.0


def watermark(_: argparse.Namespace) -> dict[str, Any]:
    """The pure package: valve, window operator, bytes of an open window."""
    results = list(watermark_bench.judged())
    for result in results:
        sys.stdout.write(json.dumps(result) + "\n")
    return {"bench": "watermark", "ok": all(result["met"] for result in results)}


def snapshot(arguments: argparse.Namespace) -> dict[str, Any]:
    """Submission to open gate for `--dim` rows of MariaDB, through `sluice demo`."""
    command = [sys.executable, "-m", "service.cli", "demo", "--json", "--exit"]
    command += ["--rows", str(arguments.dim), "--records", str(arguments.records)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shown = json.loads(ran.stdout.splitlines()[-1])
    seconds = shown["seconds_to_open"]
    ok = seconds <= SNAPSHOT_BAR_S and shown["early_records"] == 0
    return {
        "bench": "snapshot",
        "value": seconds,
        "unit": "s",
        "reference": None,
        "ratio": None,
        "bar": SNAPSHOT_BAR_S,
        "ok": ok,
        "demo": shown,
    }


BENCHES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "kernel": lambda _: kernel_bench.run(),
    "watermark": watermark,
    "snapshot": snapshot,
}


def main() -> int:
    """Run the named benchmark, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="all when left out")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="accepted; output is always JSON")
    arguments = parser.parse_args()
    results = [
        BENCHES[name](arguments) for name in ([arguments.name] if arguments.name else BENCHES)
    ]
    for result in results:
        sys.stdout.write(json.dumps(result) + "\n")
    return 0 if all(result["ok"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
