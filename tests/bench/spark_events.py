"""When Spark's tasks ran, by its log of events; the rest of a batch is the driver's own share."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

Span = tuple[float, float]
"""From when until when, in seconds of Unix time."""


def event_log_conf(directory: Path) -> dict[str, str]:
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def newest_tasks(directory: Path, pool: str) -> list[Span]:
    """The tasks of the application that ended last, as far as their jobs were in `pool`."""
    stages, tasks = set[int](), list[Span]()
    for event in _events(max(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns)):
        if event["Event"] == "SparkListenerJobStart":
            if event["Properties"].get("spark.scheduler.pool") == pool:
                stages.update(event["Stage IDs"])
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
            info = event["Task Info"]
            tasks.append((info["Launch Time"] / 1e3, info["Finish Time"] / 1e3))
    return sorted(tasks)


def _events(log: Path) -> Iterator[dict[str, object]]:
    with log.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def seconds_of(tasks: Sequence[Span], span: Span) -> float:
    """How long at least one of the tasks, which are sorted, ran within the span."""
    total, (reached, until) = 0.0, span
    for began, ended in tasks:
        since, end = max(began, reached), min(ended, until)
        if end > since:
            total, reached = total + end - since, end
    return total
