"""Finds the first batch whose pinned versions have a position of a table's source."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joins.durable.pins import Pin, PinStore
from joins.plan.positions import PositionToken, TokenKind, file_number
from watermark.freshness import Proof


@dataclass(frozen=True, slots=True)
class Found:
    """Where a job stands; `batch` is None before a batch has the position."""

    batch: int | None
    newest_batch: int | None
    proof: Proof | None
    """Of `batch`, or of the newest batch."""

    def as_json(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "newest_batch": self.newest_batch,
            "as_of_ms": None if self.proof is None else self.proof.time_ms,
            "position": {} if self.proof is None else dict(self.proof.position),
        }


def first_batch(pins: Path, table: str, token: PositionToken, committed: int | None) -> Found:
    """The first of the kept batches up to `committed` whose version of `table` has the position.

    A pin proves that everything up to its P is there. Its version may have later changes, too:
    earlier batches are named as long as their successors add nothing of the position. A place in a
    binlog is one of the server that the newest batch names: before a failover places were others.
    """
    batches = sorted(int(path.name.removesuffix(".json")) for path in pins.glob("*.json"))
    batches = [batch for batch in batches if committed is not None and batch <= committed]
    store = PinStore(pins)
    seen: dict[int, Pin | None] = {}

    def proof_of(batch: int) -> Proof | None:
        if batch not in seen:
            seen[batch] = store.read(batch)
        pin = seen[batch]
        return None if pin is None else pin.as_of.get(table)

    def has_it(batch: int) -> bool:
        proof = proof_of(batch)
        return proof is not None and token.is_in(proof.time_ms, proof.position)

    def server_of(batch: int) -> object:
        proof = proof_of(batch)
        return None if proof is None else proof.position.get("server_id")

    if not batches:
        return Found(None, None, None)
    if token.kind is TokenKind.BINLOG:
        server = server_of(batches[-1])
        del batches[: bisect_left(batches, True, key=lambda batch: server_of(batch) == server)]
    at = bisect_left(batches, True, key=has_it)
    if at == len(batches):
        return Found(None, batches[-1], proof_of(batches[-1]))
    before = proof_of(batches[at - 1]) if at else None
    named = at
    if before is not None and token.place is not None:
        named = _first_seen(at, lambda number: proof_of(batches[number]), token.place, before)
    return Found(batches[named], batches[-1], proof_of(batches[named]))


def _first_seen(
    at: int, proof_of: Callable[[int], Proof | None], place: tuple[int, int], before: Proof
) -> int:
    """The first batch before `at` to which no later one adds a change before `place`.

    It is `at` itself if the table has no change between what `before` proves and `place`.
    """
    for number in range(at, -1, -1):
        proof = proof_of(number)
        if proof is None or "added" not in proof.position:
            return number
        through, added = proof.position["through"], proof.position["added"]
        if through is None or _pair(through) < _end(before):
            return at
        if added is not None and _pair(added) < place:
            return number
    return at


def _pair(value: Sequence[int]) -> tuple[int, int]:
    return int(value[0]), int(value[1])


def _end(proof: Proof) -> tuple[int, int]:
    position = proof.position
    if "version" in position:
        return int(position["version"]) + 1, 0
    return file_number(position["file"]), int(position["pos"])
