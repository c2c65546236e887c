"""Leases: the oldest version of each dimension that somebody may still have to read.

A version is leased by every kept pin, for its batch can be run again; by the opening while there is
no pin, for the first batch may take it; and by the newest index, for the next batch takes it. What
a job so needs of a shared table it writes into a file, which the job reads that keeps the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.pins import Pin, PinStore


@dataclass(frozen=True, slots=True)
class StateLease:
    """Versions of one table of the state that somebody may still have to read.

    Attributes:
        needed: the oldest one that a batch may read, should it be run again.
        replayed: the oldest one that a replay may want; kept as far as there is room.
    """

    needed: int
    replayed: int


def oldest_kept(pins: Path, newest: int) -> Pin | None:
    """The oldest among the `newest` pins; None if there is none.

    Raises:
        CheckpointError: that pin is damaged, so nobody knows what it leases.
    """
    names = sorted(path.name for path in pins.glob("*.json")) if pins.is_dir() else []
    for name in names[-newest:]:
        pin = PinStore(pins).read(int(name.removesuffix(".json")))
        if pin is not None:  # it may have been pruned just now
            return pin
    return None


def oldest_pinned(pins: Path, newest: int) -> Mapping[str, int]:
    """The versions of the oldest among the `newest` pins; versions never go back.

    Raises:
        CheckpointError: as `oldest_kept`.
    """
    oldest = oldest_kept(pins, newest)
    return {} if oldest is None else dict(oldest.versions)


def oldest_leased(
    pins: Path, newest: int, opening: Mapping[str, int], ready: Mapping[str, int | None]
) -> dict[str, int]:
    """Dimension → the oldest version that must stay readable; nothing before the opening.

    Args:
        pins: directory of the pins.
        newest: how many pins are kept.
        opening: the versions of the opening, empty before it.
        ready: dimension → newest version with an index, None while there is none.

    Raises:
        CheckpointError: the oldest kept pin is damaged.
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
    """What one job needs of a shared table, in a file of the job that keeps the table."""

    file: Path

    def begin(self) -> None:
        """Hold all that is there, unless an earlier runner has said what is needed.

        Whoever reads the table's newest version after this finds it whole: a clean-up that has not
        seen the lease has left what was the newest version then, and all newer ones.
        """
        if read_json(self.file) is None:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.hold(0)

    def hold(self, version: int) -> None:
        write_json_atomically(self.file, {"version": version})


def oldest_attached(directory: Path) -> int | None:
    """The oldest version that a job holds which reads the table from outside; None without one.

    Args:
        directory: of the leases of one shared table.

    Raises:
        CheckpointError: a lease is damaged, so nobody knows what it holds.
    """
    versions = [read_json(file) for file in sorted(directory.glob("*.json"))]
    return min((int(each["version"]) for each in versions if each is not None), default=None)


def oldest_of_shared(directory: Path, ready: Mapping[str, int | None]) -> dict[str, int]:
    """As `oldest_leased`, in a job that keeps a shared table and joins nothing with it itself.

    Args:
        directory: of the leases of those who do.
        ready: as there.

    Raises:
        CheckpointError: as `oldest_attached`.
    """
    held = oldest_attached(directory)
    newest = {name: version for name, version in ready.items() if version is not None}
    return newest if held is None else {name: min(held, at) for name, at in newest.items()}
