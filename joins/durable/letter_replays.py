"""Replays and discards of dead letters: one numbered file each, written before any row.

`<n>.json` names the letters and never changes; `<n>.outcome.json` has the result. A replay without
an outcome was interrupted and is finished before the next one begins. With several INSERTs,
`<n>.insert-<k>.json` has the result of one INSERT as soon as its rows are committed.
"""

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import Checkpoint, create_json_once, read_json, write_json_atomically

REPLAYS = "replays"  # the directory, in that of the checkpoint
_OUTCOME = ".outcome.json"
_ONLY = (1,)


@dataclass(frozen=True, slots=True)
class ChosenLetter:
    """A letter to replay for `inserts` (numbers from 1), unchanged if `corrected` is None."""

    batch: int
    partition: int
    offset: int
    corrected: bytes | None = None
    inserts: tuple[int, ...] = _ONLY
    entries: int = 1  # of the record in the table of dead letters; an INSERT each, or one for all

    @property
    def place(self) -> tuple[int, int, int]:
        return self.batch, self.partition, self.offset

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "batch": self.batch,
            "partition": self.partition,
            "offset": self.offset,
            "inserts": list(self.inserts),
            "entries": self.entries,
        }
        if self.corrected is None:
            return document
        return {**document, "value_base64": base64.b64encode(self.corrected).decode()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "ChosenLetter":
        text = value.get("value_base64")
        corrected = None if text is None else base64.b64decode(text)
        inserts = tuple(value.get("inserts", _ONLY))  # older jobs had one INSERT
        place = value["batch"], value["partition"], value["offset"]
        return ChosenLetter(*place, corrected, inserts, value.get("entries", len(inserts)))


@dataclass(frozen=True, slots=True)
class LetterReplay:
    """One requested replay."""

    number: int  # from 1; also the application transaction of its rows
    request: str  # id of the request
    by: str
    letters: tuple[ChosenLetter, ...]
    already_replayed: int = 0  # letters of the request that already had their rows
    remaining: int = 0  # pending letters beyond the limit of one replay
    discarded: str | None = None  # why its letters get no rows; None if they are replayed

    def letters_of(self, insert: int) -> tuple[ChosenLetter, ...]:
        return tuple(letter for letter in self.letters if insert in letter.inserts)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What finished replays have made of one letter."""

    # INSERT, from 1 → number of the replay that produced its rows
    rows_by: Mapping[int, int] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()  # INSERTs that were tried and still have no rows
    # who discarded it and why; None if it was not discarded
    discarded: tuple[str, str] | None = None
    entries: int = 1  # see `ChosenLetter`

    @property
    def finished_by(self) -> int | None:
        return None if self.missing else max(self.rows_by.values(), default=None)

    def after(self, replay: int, tried: frozenset[int], bad: frozenset[int]) -> "Replayed":
        rows_by = {**self.rows_by, **dict.fromkeys(sorted(tried - bad), replay)}
        missing = (self.missing | bad) - rows_by.keys()
        return Replayed(rows_by, missing, entries=self.entries)


@dataclass(frozen=True, slots=True)
class SettledLetters:
    """Entries of the table of dead letters that need nothing more."""

    replayed: int = 0
    discarded: int = 0


class LetterReplays:
    """The replays of one job; only its runner writes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._settled: tuple[int, SettledLetters] = 0, SettledLetters()  # of how many outcomes

    @staticmethod
    def of(checkpoint: Checkpoint) -> "LetterReplays":
        return LetterReplays(checkpoint.directory / REPLAYS)

    def create(self, replay: LetterReplay) -> bool:
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
                **({} if replay.discarded is None else {"discarded": replay.discarded}),
            },
        )

    def read(self, number: int) -> LetterReplay | None:
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
            discarded=value.get("discarded"),
        )

    def finish(self, number: int, outcome: Mapping[str, Any]) -> None:
        write_json_atomically(self._outcome_path(number), outcome)

    def outcome(self, number: int) -> dict[str, Any] | None:
        return _document(self._outcome_path(number))

    def finish_insert(self, number: int, insert: int, outcome: Mapping[str, Any]) -> None:
        write_json_atomically(self._insert_path(number, insert), outcome)

    def insert_outcome(self, number: int, insert: int) -> dict[str, Any] | None:
        return _document(self._insert_path(number, insert))

    def numbers(self) -> list[int]:
        """Numbers of all replays, oldest first."""
        if not self._directory.is_dir():
            return []
        stems = (path.stem for path in self._directory.glob("*.json"))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def replayed(self) -> dict[tuple[int, int, int], Replayed]:
        """(batch, partition, offset) of each letter that was tried → its result."""
        states: dict[tuple[int, int, int], Replayed] = {}
        for number in self.numbers():
            outcome = self.outcome(number)
            if outcome is None or "abandoned" in outcome:
                continue
            replay = self.read(number)
            bad = {(b["batch"], b["partition"], b["offset"]): b for b in outcome["still_bad"]}
            for letter in replay.letters if replay is not None else ():
                reason = bad.get(letter.place)
                missing = () if reason is None else reason.get("inserts", _ONLY)
                before = states.get(letter.place, Replayed(entries=letter.entries))
                if replay is not None and replay.discarded is not None:
                    discarded = replay.by, replay.discarded
                    states[letter.place] = Replayed(
                        before.rows_by, frozenset(), discarded, before.entries
                    )
                    continue
                tried = frozenset(letter.inserts)
                states[letter.place] = before.after(number, tried, frozenset(missing))
        return states

    def settled(self) -> SettledLetters:
        """The counts of `replayed`, read again only after another outcome."""
        outcomes = sum(1 for _ in self._directory.glob(f"*{_OUTCOME}"))
        if outcomes != self._settled[0]:
            states = self.replayed().values()
            discarded = sum(each.entries for each in states if each.discarded is not None)
            done = [each for each in states if each.discarded is None and each.finished_by]
            replayed = sum(each.entries for each in done)
            self._settled = outcomes, SettledLetters(replayed, discarded)
        return self._settled[1]

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:06d}.json"

    def _outcome_path(self, number: int) -> Path:
        return self._directory / f"{number:06d}{_OUTCOME}"

    def _insert_path(self, number: int, insert: int) -> Path:
        return self._directory / f"{number:06d}.insert-{insert}.json"


def _document(path: Path) -> dict[str, Any] | None:
    value = read_json(path)
    if value is not None:
        del value["format_version"]
    return value
