"""Room on the disks that jobs write to.

It is looked at whenever somebody asks about a job: on a disk that is full no runner and no store
can note that it is.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

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
        except OSError:  # it is not there yet: whoever makes it tells what is in the way
            continue
        if not room.f_blocks:  # a file system that does not tell
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
