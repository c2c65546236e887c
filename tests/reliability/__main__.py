"""`python -m tests.reliability <experiment>`: one experiment; its last line is one JSON object."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from service.config import Settings
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import find_java
from tests.reliability.crash_points import BUILD, FULL, SMALL, Outcome, run_crash_points


def crash_points(scale: str) -> dict[str, Any]:
    """A fault at every reachable point of the batch protocol; `full` repeats it for each action."""
    rounds = {"mixed": SMALL + BUILD} if scale == "small" else FULL
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    cache = JarCache(settings.cache_dir, java)
    outcomes: dict[str, Outcome] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sluice-reliability-") as directory,
        KafkaBroker(Path(directory) / "kafka", java, cache.jars(JarSet.BROKER)) as kafka,
        MariaDb(Path(directory) / "mariadb", cache.database_home()) as mariadb,
    ):
        for name, points in rounds.items():
            outcomes[name] = run_crash_points(Path(directory) / name, kafka, mariadb, points)
            sys.stderr.write(f"{name}: {outcomes[name]}\n")
    cases = sum(len(points) for points in rounds.values())
    met = sum(len(outcome.faults_met) for outcome in outcomes.values())
    wrong = [outcome for outcome in outcomes.values() if not outcome.ok]
    return {
        "experiment": "crash-points",
        "scale": scale,
        "cases": cases,
        "passed": 0 if wrong else met,
        "lost": sum(outcome.lost for outcome in outcomes.values()),
        "duplicate": sum(outcome.duplicate for outcome in outcomes.values()),
        "wrong_version": sum(outcome.wrong_value for outcome in outcomes.values()),
        "early": sum(outcome.early for outcome in outcomes.values()),
        "ok": not wrong and met == cases,
    }


EXPERIMENTS = {"crash-points": crash_points}


def main() -> int:
    """Run the named experiment."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability")
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--json", action="store_true", help="accepted; output is always JSON")
    arguments = parser.parse_args()
    result = EXPERIMENTS[arguments.experiment](arguments.scale)
    sys.stdout.write(json.dumps(result) + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
