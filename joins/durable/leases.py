"""Leases: the oldest version of each dimension that must stay readable.

Every kept pin leases its versions, as its batch can run again; before the first pin the opening
does; the newest index leases its version for the next batch. A job writes what it needs of a shared
table into a file, which the job that maintains the table reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.pins import Pin, PinStore


@dataclass(frozen=True, slots=True)
class StateLease:
    """Versions of one state table that must stay readable."""

    needed: int  # the oldest version that a batch may read when it runs again
    replayed: int  # the oldest version that a replay may read; kept while there is room


def oldest_kept(pins: Path, newest: int) -> Pin | None:
    """The oldest among the `newest` pins, or None; CheckpointError if that pin is damaged."""
    names = sorted(path.name for path in pins.glob("*.json")) if pins.is_dir() else []
    for name in names[-newest:]:
        pin = PinStore(pins).read(int(name.removesuffix(".json")))
        if pin is not None:  # a pin may be pruned between listing and reading
            return pin
    return None


def oldest_pinned(pins: Path, newest: int) -> Mapping[str, int]:
    """The versions of the oldest among the `newest` pins; raises as `oldest_kept`."""
    oldest = oldest_kept(pins, newest)
    return {} if oldest is None else dict(oldest.versions)


def oldest_leased(
    pins: Path, newest: int, opening: Mapping[str, int], ready: Mapping[str, int | None]
) -> dict[str, int]:
    """Dimension → the oldest version that must stay readable; raises as `oldest_kept`.

    `newest` counts the kept pins. `opening` is empty before the opening. `ready` has the newest
    version with an index, None while there is none.
    """
    leased = dict(opening)
    leased.update(oldest_pinned(pins, newest))
    for dimension, version in ready.items():
        if version is not None and dimension in leased:
            leased[dimension] = min(leased[dimension], version)
    return leased


def leases_in(checkpoint: Path) -> Path:
    return checkpoint / "leases"


@dataclass(frozen=True, slots=True)
class Lease:
    """What one job needs of a shared table, in a file of the job that maintains the table."""

    file: Path

    def begin(self) -> None:
        """Hold all versions, unless an earlier runner has written a lease.

        After this, the table's newest version is readable: a clean-up that has not seen the lease
        has kept the version that was the newest then, and all newer ones.
        """
        if read_json(self.file) is None:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.hold(0)

    def hold(self, version: int) -> None:
        write_json_atomically(self.file, {"version": version})


def oldest_attached(directory: Path) -> int | None:
    """The oldest version that a lease in `directory` holds, or None; CheckpointError if damaged."""
    versions = [read_json(file) for file in sorted(directory.glob("*.json"))]
    return min((int(each["version"]) for each in versions if each is not None), default=None)


def oldest_of_shared(directory: Path, ready: Mapping[str, int | None]) -> dict[str, int]:
    """Like `oldest_leased`, for a job that maintains a shared table and joins nothing with it."""
    held = oldest_attached(directory)
    newest = {name: version for name, version in ready.items() if version is not None}
    return newest if held is None else {name: min(held, at) for name, at in newest.items()}
