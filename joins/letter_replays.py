"""Which dead letters were replayed: one numbered file a replay, there before any row of it is.

`<n>.json` names the letters and never changes; `<n>.outcome.json` says what became of them. A
replay without an outcome was interrupted and is finished before the next one begins.
"""

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joins.checkpoint import create_json_once, read_json, write_json_atomically

_OUTCOME = ".outcome.json"


@dataclass(frozen=True, slots=True)
class ChosenLetter:
    """A dead letter that is to be replayed.

    Attributes:
        corrected: the bytes to take in place of the record's own; None for its own.
    """

    batch: int
    partition: int
    offset: int
    corrected: bytes | None = None

    def as_json(self) -> dict[str, Any]:
        """For the file of the replay."""
        place = {"batch": self.batch, "partition": self.partition, "offset": self.offset}
        if self.corrected is None:
            return place
        return {**place, "value_base64": base64.b64encode(self.corrected).decode()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "ChosenLetter":
        """The letter that `as_json` wrote."""
        text = value.get("value_base64")
        corrected = None if text is None else base64.b64decode(text)
        return ChosenLetter(value["batch"], value["partition"], value["offset"], corrected)


@dataclass(frozen=True, slots=True)
class LetterReplay:
    """One replay as it was asked for.

    Attributes:
        number: from 1; also the application transaction of its rows.
        request: id of the request.
        already_replayed: letters of the request that had their rows before.
        remaining: pending letters beyond the limit of one replay.
    """

    number: int
    request: str
    by: str
    letters: tuple[ChosenLetter, ...]
    already_replayed: int = 0
    remaining: int = 0


class LetterReplays:
    """The replays of one job; only its runner writes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, replay: LetterReplay) -> bool:
        """Keep `replay`, durable when this returns; False if its number is taken."""
        return create_json_once(
            self._path(replay.number),
            {
                "replay": replay.number,
                "request": replay.request,
                "by": replay.by,
                "at_ms": time.time_ns() // 1_000_000,
                "letters": [letter.as_json() for letter in replay.letters],
                "already_replayed": replay.already_replayed,
                "remaining": replay.remaining,
            },
        )

    def read(self, number: int) -> LetterReplay | None:
        """The replay `number`."""
        value = read_json(self._path(number))
        if value is None:
            return None
        return LetterReplay(
            number=value["replay"],
            request=value["request"],
            by=value["by"],
            letters=tuple(ChosenLetter.from_json(letter) for letter in value["letters"]),
            already_replayed=value["already_replayed"],
            remaining=value["remaining"],
        )

    def finish(self, number: int, outcome: Mapping[str, Any]) -> None:
        """Keep what became of a replay: `still_bad` and more, or `abandoned` and why."""
        write_json_atomically(self._outcome_path(number), outcome)

    def outcome(self, number: int) -> dict[str, Any] | None:
        """What became of a replay, None while it is not finished."""
        value = read_json(self._outcome_path(number))
        if value is not None:
            del value["format_version"]
        return value

    def numbers(self) -> list[int]:
        """All replays, oldest first."""
        if not self._directory.is_dir():
            return []
        stems = (path.stem for path in self._directory.glob("*.json"))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def replayed(self) -> dict[tuple[int, int, int], int]:
        """(batch, partition, offset) of each letter that has its rows → number of its replay."""
        found: dict[tuple[int, int, int], int] = {}
        for number in self.numbers():
            outcome = self.outcome(number)
            if outcome is None or "abandoned" in outcome:
                continue
            replay = self.read(number)
            bad = {(b["batch"], b["partition"], b["offset"]) for b in outcome["still_bad"]}
            for letter in replay.letters if replay is not None else ():
                place = (letter.batch, letter.partition, letter.offset)
                if place not in bad:
                    found[place] = number
        return found

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:06d}.json"

    def _outcome_path(self, number: int) -> Path:
        return self._directory / f"{number:06d}{_OUTCOME}"
