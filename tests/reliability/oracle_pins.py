"""A job's durable words as the oracle reads them: pins, opening, first offsets, gaps."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reliability.oracle_log import Commit, TableLog


@dataclass(frozen=True)
class PinnedBatch:
    """What a micro-batch says it was made of."""

    batch: int
    start: Mapping[int, int]
    end: Mapping[int, int]
    versions: Mapping[str, int]
    at_ms: int
    epoch: int


@dataclass(frozen=True)
class OutputCommit:
    """The commit of a batch's output."""

    version: int
    pin: PinnedBatch | None


@dataclass(frozen=True)
class JobWords:
    """All of them.

    Attributes:
        pins: by batch, from the pin files, and from the output's commits where those are gone.
        files: batches whose pin file is there.
        abandoned: batches that were never committed and never will be.
        commits: by batch, the output's commits of this job.
        opening: `phase.json`, None before the opening.
        start: partition → first offset of the job.
        gaps: (partition, from, to) that an operator has acknowledged.
        replayed: coordinates of dead letters that have their rows by now → the corrected value.
    """

    pins: Mapping[int, PinnedBatch]
    files: frozenset[int]
    abandoned: frozenset[int]
    commits: Mapping[int, tuple[OutputCommit, ...]]
    opening: Mapping[str, Any] | None
    start: Mapping[int, int]
    gaps: tuple[tuple[int, int, int], ...]
    replayed: Mapping[tuple[int, int], bytes | None]


def _offsets(value: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in value.items()}


def _pinned(value: Mapping[str, Any]) -> PinnedBatch:
    return PinnedBatch(
        batch=value["batch"],
        start=_offsets(value["start_offsets"]),
        end=_offsets(value["end_offsets"]),
        versions=dict(value["versions"]),
        at_ms=value["batch_timestamp_ms"],
        epoch=value["epoch"],
    )


def _json(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_bytes())) if path.exists() else None


def _batch(commit: Commit, app_id: str) -> int | None:
    """The batch that a commit is of; Spark's writer puts epoch and batch into one transaction."""
    number = commit.transactions.get(f"{app_id}:spark")
    if number is None or "sluice.epoch" in commit.metadata:  # a new runner has fenced older ones
        return commit.transactions.get(app_id)
    return number % 2**40 - 1


def _commits(output: Path, app_id: str) -> dict[int, tuple[OutputCommit, ...]]:
    found: dict[int, tuple[OutputCommit, ...]] = {}
    for commit in TableLog(output).commits():
        batch = _batch(commit, app_id)
        if batch is not None:
            pin = _pinned(commit.metadata) if "start_offsets" in commit.metadata else None
            found[batch] = (*found.get(batch, ()), OutputCommit(commit.version, pin))
    return found


def _gaps(checkpoint: Path) -> tuple[tuple[int, int, int], ...]:
    path = checkpoint / "acknowledgements.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    gaps = [gap for line in lines if line for gap in json.loads(line).get("gaps", ())]
    return tuple((int(g["partition"]), int(g["from"]), int(g["to"])) for g in gaps)


def _replayed(checkpoint: Path) -> dict[tuple[int, int], bytes | None]:
    """What finished replays of dead letters gave rows to, with the value where it was corrected."""
    found: dict[tuple[int, int], bytes | None] = {}
    for path in sorted((checkpoint / "replays").glob("*.outcome.json")):
        outcome = json.loads(path.read_bytes())
        if "abandoned" in outcome:
            continue
        asked = json.loads(path.with_name(path.name.replace(".outcome", "")).read_bytes())
        for letter in asked["letters"]:
            text = letter.get("value_base64")
            where = (letter["partition"], letter["offset"])
            found[where] = None if text is None else base64.b64decode(text)
        for letter in outcome["still_bad"]:
            found.pop((letter["partition"], letter["offset"]), None)
    return found


def read_words(job_directory: Path, output: Path) -> JobWords:
    """What the job has written down so far."""
    checkpoint = job_directory / "checkpoint"
    meta = _json(checkpoint / "meta.json") or {}
    app_id = f"sluice:{job_directory.name}:{meta.get('incarnation')}"
    commits = _commits(output, app_id)
    files = [
        _pinned(json.loads(p.read_bytes())) for p in sorted((checkpoint / "pins").glob("*.json"))
    ]
    pins = {pin.batch: pin for pin in files}
    oldest = min(pins, default=None)
    for batch, several in commits.items():  # the files of old batches are removed in time
        if oldest is not None and batch < oldest and several[0].pin is not None:
            pins[batch] = several[0].pin
    return JobWords(
        pins=dict(sorted(pins.items())),
        files=frozenset(pin.batch for pin in files),
        abandoned=frozenset(int(p.stem) for p in (checkpoint / "pins/abandoned").glob("*.json")),
        commits=commits,
        opening=_json(checkpoint / "phase.json"),
        start=_offsets(meta.get("probe_start_offsets", {})),
        gaps=_gaps(checkpoint),
        replayed=_replayed(checkpoint),
    )
