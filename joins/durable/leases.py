"""Leases: the oldest version of each dimension that somebody may still have to read.

A version is leased by every kept pin, for its batch can be run again; by the opening while there is
no pin, for the first batch may take it; and by the newest index, for the next batch takes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
