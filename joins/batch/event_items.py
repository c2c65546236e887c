"""Work items: what the tasks of an event batch are told, as JSON texts.

A part is what one bucket of the state needs: a Kafka partition of the records that wait, or a
bucket of windows. Parts go into items by their rows, in their order, so that small batches have few
tasks. When a bucket has many files, the small ones are written anew as one by the batch itself.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joins.adapters.delta.state_log import StateColumns, StateFile
from joins.batch.event_state import Advance
from joins.plan.plan import WindowKind
from joins.worker.work import RECORDS_WORTH_A_TASK

WAITING_COLUMNS = StateColumns(due="_time", keep="_time", bucket="_partition")
WINDOW_COLUMNS = StateColumns(due="_due", keep="_keep", bucket="_bucket")

MANY_IN_BUCKET = 16
_MERGE_FACTOR = 4
_SMALL_ROWS = 4_096
_MAX_MERGED_ROWS = 4_000_000


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage of a batch.

    Attributes:
        items: what tasks are told, at least one.
        removed: files of the state that are superfluous once the batch is committed.
    """

    items: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _WorkItem:
    rows: int
    value: Mapping[str, Any]


def to_merge(files: Sequence[StateFile]) -> frozenset[str]:
    buckets = _by_bucket(files).values()
    chosen = (
        _newest_ones(files_of_one) for files_of_one in buckets if len(files_of_one) > MANY_IN_BUCKET
    )
    return frozenset(name for names in chosen for name in names)


def _newest_ones(files: Sequence[StateFile]) -> list[str]:
    """The newest files, each at the most a few times as large as those behind it.

    No file between two of them stays: rows are read in the order of the files' names, which is that
    of their batches.
    """
    names: list[str] = []
    total = 0
    for file in sorted(files, key=lambda each: each.path, reverse=True):
        limit = _MERGE_FACTOR * max(total, _SMALL_ROWS)
        if names and (file.rows > limit or total + file.rows > _MAX_MERGED_ROWS):
            break
        names.append(file.path)
        total += file.rows
    return names


def act_stage(
    arrivals: Iterable[Mapping[str, Any]], files: Sequence[StateFile], move: Advance
) -> StagePlan:
    """Arrivals and the rows that wait: who is due leaves, in order of arrival by partition.

    Args:
        arrivals: the files that the scan has reported.
        files: of the rows that wait, as the batch has pinned them.
        move: of the watermark.
    """
    after, upto = move.before.watermark, move.after.release_ms
    merged = to_merge(files)
    new: dict[int, list[Mapping[str, Any]]] = {}
    for each in arrivals:
        new.setdefault(int(each["partition"]), []).append(each)
    old = _by_bucket([f for f in files if f.path in merged or f.has_due(after, upto)])
    parts = []
    for partition in sorted({*new, *old}):
        here = new.get(partition, [])
        waiting = [
            {"path": file.path, "rewrite": file.path in merged} for file in old.get(partition, ())
        ]
        rows = sum(each["rows"] for each in here) + sum(f.rows for f in old.get(partition, ()))
        paths = [each["path"] for each in here]
        parts.append(
            _WorkItem(rows, {"partition": partition, "arrivals": paths, "waiting": waiting})
        )
    head = {"stage": "act", "after": after, "upto": upto, "steps": _steps(move)}
    dead = {file.path for file in files if file.max_keep <= upto}
    return StagePlan(_items(head, parts), tuple(sorted(dead | merged)))


def window_stage(
    partials: Iterable[Mapping[str, Any]],
    files: Sequence[StateFile],
    move: Advance,
    kind: WindowKind,
) -> StagePlan:
    """Partials and the state of windows, by bucket; each bucket with news or something due.

    Sessions may merge: a bucket with news is written anew as a whole.
    """
    after, upto = move.before.window_watermark, move.after.window_watermark
    merged = set(to_merge(files))
    new: dict[int, list[Mapping[str, Any]]] = {}
    for each in partials:
        new.setdefault(int(each["bucket"]), []).append(each)
    old = _by_bucket(files)
    parts = []
    for bucket in sorted({*new, *old}):
        mine = old.get(bucket, [])
        busy = bucket in new or any(file.has_due(after, upto) for file in mine)
        if kind is WindowKind.SESSION and busy:
            merged |= {file.path for file in mine}
        if not busy and not any(file.path in merged for file in mine):
            continue
        state = [_described(file, rewrite=file.path in merged) for file in mine]
        rows = sum(file.rows for file in mine) + sum(e.get("rows", 0) for e in new.get(bucket, ()))
        parts.append(
            _WorkItem(rows, {"bucket": bucket, "state": state, "partials": new.get(bucket, [])})
        )
    head = {"stage": "windows", "after": after, "upto": upto, "steps": _steps(move)}
    dead = {file.path for file in files if file.max_keep <= upto}
    return StagePlan(_items(head, parts), tuple(sorted(dead | merged)))


def _steps(move: Advance) -> list[int]:
    return [watermark for _, _, watermark in move.merged.steps]


def _described(file: StateFile, *, rewrite: bool) -> dict[str, Any]:
    return {
        "path": file.path,
        "min_due": file.min_due,
        "max_due": file.max_due,
        "max_keep": file.max_keep,
        "rewrite": rewrite,
    }


def _by_bucket(files: Iterable[StateFile]) -> dict[int, list[StateFile]]:
    buckets: dict[int, list[StateFile]] = {}
    for file in files:
        buckets.setdefault(file.bucket, []).append(file)
    return buckets


def _items(head: Mapping[str, Any], parts: Sequence[_WorkItem]) -> tuple[str, ...]:
    """The parts in as many items as they are worth; one without parts where there is nothing."""
    groups: list[list[Mapping[str, Any]]] = [[]]
    rows = 0
    for part in parts:
        if groups[-1] and rows + part.rows > RECORDS_WORTH_A_TASK:
            groups.append([])
            rows = 0
        groups[-1].append(part.value)
        rows += part.rows
    return tuple(json.dumps({**head, "parts": group}) for group in groups)
