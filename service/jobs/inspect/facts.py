"""Which values of a runner's report REST, commands and page may show.

A report outlives its runner. Committed values stay true: counts, offsets, versions, copied rows.
Values of the moment are absent unless the living runner has reported them.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joins.plan.errors import DiskFullError
from service.config import Settings
from service.schemas.inspection import WarningView

DISK_FULL = DiskFullError.fault
_LEAST_FREE_BYTES = 16 << 20
_LEAST_INODES = 100


def full_disks(settings: Settings) -> list[WarningView]:
    return list(_full({"data": settings.data_dir, "warehouse": settings.warehouse_dir}))


def _full(places: Mapping[str, Path]) -> Iterator[WarningView]:
    devices = set[int]()
    for name, path in places.items():
        try:
            device, room = path.stat().st_dev, os.statvfs(path)
        except OSError:  # not created yet; its creator reports faults
            continue
        if not room.f_blocks:  # the file system does not report it
            continue
        free = room.f_bavail * room.f_frsize
        few_inodes = room.f_files > 0 and room.f_favail < _LEAST_INODES
        if device in devices or not (free < _LEAST_FREE_BYTES or few_inodes):
            continue
        devices.add(device)
        have = f"{free >> 20} of {room.f_blocks * room.f_frsize >> 20} MiB are free"
        have += f", and {room.f_favail} inodes" if few_inodes else ""
        yield WarningView(
            type=DISK_FULL,
            message=f'the disk of {name} directory "{path}" is full: {have}',
            hint=DiskFullError.HINT,
        )


Document = Mapping[str, Any]
_OF_THE_PROBE = (
    "held_records",
    "held_bytes",
    "lag_records",
    "ends_at_ms",
    "records_per_s",
    "rows_per_s",
    "batch_ms",
)
_OF_A_TABLE = ("lag_records", "binlog_delay_ms", "position", "emitted")
_OF_THE_MOMENT = ("warnings", "stalls")


def shown(report: Document, *, is_live: bool) -> dict[str, Any]:
    """`report`; without a live runner (`is_live`), only values that stay true."""
    known = dict(report)
    probe, tables = known.get("probe"), known.get("dimensions") or ()
    if isinstance(probe, Mapping):
        known["probe"] = _probe(probe, is_live=is_live, joins_tables=bool(tables))
    if not is_live:
        known["dimensions"] = [_without(table, _OF_A_TABLE) for table in tables]
        known |= {name: [] for name in _OF_THE_MOMENT}
    return known


def _probe(probe: Document, *, is_live: bool, joins_tables: bool) -> dict[str, Any]:
    if is_live:
        known = dict(probe)
    else:
        known = _without(probe, _OF_THE_PROBE) | {"end_offsets": {}, "open_transactions": []}
        end, done = probe.get("bounded_offsets") or {}, probe.get("next_offsets") or {}
        if bool(end) and all(done.get(name, 0) >= offset for name, offset in end.items()):
            known |= {"lag_records": 0, "end_offsets": probe["bounded_offsets"]}
    return known if joins_tables else _without(known, ("matched", "unmatched"))


def unread(probe: Document) -> int | None:
    """Records of the stream that are not in the committed output; None if unknown."""
    lag: int | None = probe.get("lag_records")
    ends = probe.get("end_offsets") or {}
    if lag is None or not ends:
        return None
    start, done = probe.get("start_offsets") or {}, probe.get("next_offsets") or {}
    ahead = (end - done.get(name, start.get(name, 0)) for name, end in ends.items())
    left: int = sum(max(0, each) for each in ahead)
    return max(lag, left)


def _without(value: Document, names: tuple[str, ...]) -> dict[str, Any]:
    return {**value, **{name: None for name in names if name in value}}
