"""Replays of dead letters: joined as their batch would have joined them, and written once.

Order: the numbered file that names the letters, the join under each letter's own pin, the rows'
commit with the outcome in it, the file of the outcome. Whoever finds a replay without an outcome
finishes it: if its rows are committed the commit tells the outcome, else it is joined again.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import pyarrow as pa
import structlog

from joins.dead_letters import Coordinates, DeadLetter, DeadLetters, Wanted
from joins.errors import (
    CheckpointError,
    FencedError,
    PinnedVersionExpiredError,
    RequestError,
    SinkError,
    UnknownBatchError,
)
from joins.history import History
from joins.kernels.probe import BatchContext, JoinedBatch, join_batch
from joins.letter_replays import ChosenLetter, LetterReplay, LetterReplays
from joins.past_indexes import PastIndexes
from joins.pins import Pin
from joins.requests import Request
from watermark.errors import SluiceError

MOST_LETTERS = 10_000
_GOES_THROUGH_STATE = (
    "records of a job with event time or windows go through its state: send the record to the "
    "topic again"
)

_log = structlog.get_logger(__name__)
_RECORDS = pa.schema(
    [
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
Part = tuple[JoinedBatch, Pin]


class LetterWriter(Protocol):
    """Where the rows of a replay go."""

    def committed(self, number: int) -> Mapping[str, Any] | None:
        """The outcome of replay `number` if its rows are there for certain."""
        ...

    def write(
        self,
        parts: Iterator[Part],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Write all rows of `parts`, then ask for the outcome; it is done when this returns."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayParts:
    """What replays work with.

    Attributes:
        epoch: the runner's.
        passed: told each step, for planted faults: `chosen`, `joined`, `staged`, `committed`,
            `noted`.
    """

    letters: DeadLetters
    replays: LetterReplays
    history: History
    epoch: int
    writer: LetterWriter
    passed: Callable[[str], None] = lambda _: None


class DeadLetterReplay:
    """Carries out requests of the kind `replay-dead-letters`, one at a time."""

    def __init__(self, parts: ReplayParts) -> None:
        self._parts = parts

    def handle(self, request: Request) -> dict[str, Any]:
        """Replay what the request names; the same request again changes nothing.

        Returns:
            `replay` (None if nothing was to be done), `records`, `rows`, `still_bad`,
            `already_replayed` and `remaining`.

        Raises:
            RequestError: the request cannot be understood.
            UnknownLetterError: it names a letter that is not there.
            FencedError: a newer runner has taken over.
            SinkError: the rows cannot be written; nothing of them is there.
        """
        self._finish_interrupted(request.id)
        done = self._done(request.id)
        if done is not None:
            return done
        replay = self._chosen(request)
        if not replay.letters:
            return _result(replay, {"replay": None, "rows": 0, "still_bad": []})
        return self._finish(replay)

    def _finish_interrupted(self, request_id: str) -> None:
        """What fails of another request is abandoned and does not keep this one from its turn."""
        for number in self._parts.replays.numbers():
            if self._parts.replays.outcome(number) is not None:
                continue
            replay = self._parts.replays.read(number)
            if replay is None:
                raise CheckpointError(
                    f"file of replay {number} vanished",
                    hint="Another program removes files of this job's checkpoint; stop it.",
                )
            try:
                self._finish(replay)
            except SinkError as exc:
                if replay.request == request_id:
                    raise
                _log.warning("replay is abandoned", replay=number, error=exc.message)

    def _done(self, request_id: str) -> dict[str, Any] | None:
        """The result of a replay of this request from before a crash."""
        for number in reversed(self._parts.replays.numbers()):
            replay = self._parts.replays.read(number)
            outcome = self._parts.replays.outcome(number)
            if replay is not None and replay.request == request_id and outcome is not None:
                return None if "abandoned" in outcome else _result(replay, outcome)
        return None

    # Choosing
    # -----------------------------------------------------------------------------------------

    def _chosen(self, request: Request) -> LetterReplay:
        """A new replay, durable unless it has nothing to do."""
        while True:
            number = max(self._parts.replays.numbers(), default=0) + 1
            replay = self._choice(request, number)
            if not replay.letters:
                return replay
            if self._parts.replays.create(replay):
                self._parts.passed("chosen")
                return replay

    def _choice(self, request: Request, number: int) -> LetterReplay:
        if request.body.get("all") is True:
            letters, remaining = self._pending()
            return LetterReplay(number, request.id, request.by, letters, remaining=remaining)
        records = _records_of(request.body)
        wanted = [_wanted(record) for record in records]
        found = self._parts.letters.locate(set(wanted))
        places = {place for place, _ in found.values()}
        if len(places) < len(records):
            raise RequestError("request names a dead letter twice", hint="Name each record once.")
        self._see_finished({batch for batch, _, _ in places})
        pending = tuple(
            ChosenLetter(*found[one][0], _corrected(record))
            for one, record in zip(wanted, records, strict=True)
            if found[one][1] is None
        )
        already = len(records) - len(pending)
        return LetterReplay(number, request.id, request.by, pending, already_replayed=already)

    def _see_finished(self, batches: set[int]) -> None:
        for batch in sorted(batches):
            if not self._is_finished(batch):
                raise RequestError(
                    f"batch {batch} of the dead letter is not finished",
                    hint="Ask again when the batch is committed.",
                )

    def _pending(self) -> tuple[tuple[ChosenLetter, ...], int]:
        """The first letters without rows, and how many more there are."""
        chosen: list[ChosenLetter] = []
        remaining = 0
        is_finished = cache(self._is_finished)
        for letter in self._parts.letters.letters(pending=True):
            if not is_finished(letter.batch):
                continue
            if len(chosen) < MOST_LETTERS:
                chosen.append(ChosenLetter(*letter.coordinates))
            else:
                remaining += 1
        return tuple(chosen), remaining

    def _is_finished(self, batch: int) -> bool:
        """A batch that is not may be abandoned, and its records come again in another one."""
        return self._parts.history.is_committed(batch)

    # Joining and writing
    # -----------------------------------------------------------------------------------------

    def _finish(self, replay: LetterReplay) -> dict[str, Any]:
        """Bring `replay` to its end, from wherever it was interrupted."""
        outcome = self._parts.writer.committed(replay.number)
        if outcome is None:
            outcome = self._write(replay)
        self._parts.passed("committed")
        self._parts.replays.finish(replay.number, outcome)
        self._parts.passed("noted")
        _log.info("dead letters replayed", replay=replay.number, rows=outcome["rows"])
        return _result(replay, outcome)

    def _write(self, replay: LetterReplay) -> Mapping[str, Any]:
        writer, number = self._parts.writer, replay.number
        try:
            with PastIndexes(self._parts.history.places) as indexes:
                run = _Run(self._parts, replay, indexes)
                writer.write(run.parts(), number, self._parts.epoch, run.staged)
        except FencedError:
            raise
        except SluiceError as exc:
            if writer.committed(number) is None:
                told = {"abandoned": f"{exc.message}. {exc.hint}"}
                self._parts.replays.finish(number, told)
            raise
        return run.outcome()


class _Run:
    """One pass over the letters of a replay; `outcome` holds after the last part."""

    def __init__(self, parts: ReplayParts, replay: LetterReplay, indexes: PastIndexes) -> None:
        self._parts = parts
        self._replay = replay
        self._indexes = indexes
        self._rows = 0
        self._bad: list[dict[str, Any]] = []

    def staged(self) -> dict[str, Any]:
        """The outcome, asked for when all rows are staged and none is committed."""
        self._parts.passed("staged")
        return self.outcome()

    def outcome(self) -> dict[str, Any]:
        """What became of the letters."""
        number = self._replay.number
        return {"replay": number, "rows": self._rows, "still_bad": list(self._bad)}

    def parts(self) -> Iterator[Part]:
        """The joined letters, one batch at a time, oldest batch first."""
        chosen: dict[int, list[ChosenLetter]] = {}
        for item in sorted(self._replay.letters, key=lambda c: (c.batch, c.partition, c.offset)):
            chosen.setdefault(item.batch, []).append(item)
        for batch, found in self._parts.letters.of_batches(chosen):
            part = self._joined(batch, chosen[batch], found)
            if part is not None:
                yield part
        self._parts.passed("joined")

    def _joined(
        self, batch: int, chosen: Sequence[ChosenLetter], found: Mapping[Coordinates, DeadLetter]
    ) -> Part | None:
        try:
            pin = self._parts.history.pin(batch)
            indexes = self._indexes.of(pin.versions)
        except (UnknownBatchError, PinnedVersionExpiredError) as exc:
            self._fail(chosen, exc.message)
            return None
        if pin.event is not None:
            self._fail(chosen, _GOES_THROUGH_STATE)
            return None
        known = [c for c in chosen if self._is_usable(c, found)]
        if not known:
            return None
        versions = tuple(sorted(pin.versions.items()))
        context = BatchContext(pin.batch_timestamp_ms, pin.batch, versions)
        records = _records(known, found)
        joined = join_batch(self._parts.history.places.kernel, records, indexes, context)
        for dead in joined.dead_letters.to_pylist():
            self._bad.append(_bad(batch, dead["partition"], dead["offset"], dead["reason"]))
        self._rows += joined.rows.num_rows
        return joined, pin

    def _is_usable(self, chosen: ChosenLetter, found: Mapping[Coordinates, DeadLetter]) -> bool:
        letter = found.get((chosen.batch, chosen.partition, chosen.offset))
        if letter is None:
            self._fail([chosen], "the dead letter was retracted with its batch")
            return False
        fields = self._parts.history.places.kernel.metadata_fields
        if letter.timestamp is None and any(item.key == "timestamp" for item in fields):
            self._fail([chosen], "the record's timestamp was not kept")
            return False
        return True

    def _fail(self, chosen: Sequence[ChosenLetter], reason: str) -> None:
        self._bad += [_bad(c.batch, c.partition, c.offset, reason) for c in chosen]


def _bad(batch: int, partition: int, offset: int, reason: str) -> dict[str, Any]:
    return {"batch": batch, "partition": partition, "offset": offset, "reason": reason}


def _records(
    chosen: Sequence[ChosenLetter], found: Mapping[Coordinates, DeadLetter]
) -> pa.RecordBatch:
    """The letters as records of the probe: their own coordinates, corrected bytes if there are."""
    rows = []
    for item in chosen:
        letter = found[item.batch, item.partition, item.offset]
        value = letter.value if item.corrected is None else item.corrected
        place = {"partition": letter.partition, "offset": letter.offset}
        rows.append({"value": value, "topic": letter.topic, "timestamp": letter.timestamp, **place})
    return pa.RecordBatch.from_pylist(rows, schema=_RECORDS)


def _result(replay: LetterReplay, outcome: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "replay": outcome["replay"],
        "records": len(replay.letters),
        "rows": outcome["rows"],
        "still_bad": outcome["still_bad"],
        "already_replayed": replay.already_replayed,
        "remaining": replay.remaining,
    }


def _records_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    records = body.get("records")
    is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    if not is_list or not records or len(records) > MOST_LETTERS:
        raise RequestError(
            f'request has neither "all" nor "records" with 1 to {MOST_LETTERS} objects',
            hint="Name the dead letters by partition and offset, or ask for all of them.",
        )
    return list(records)


def _wanted(record: Mapping[str, Any]) -> Wanted:
    """The letter that a record of a request names."""
    batch = None if record.get("batch") is None else _number(record, "batch")
    return batch, _number(record, "partition"), _number(record, "offset")


def _number(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if type(value) is not int or value < 0:
        raise RequestError(
            f'"{name}" of a dead letter is {value!r}, expected a whole number',
            hint="Take partition and offset from the list of dead letters.",
        )
    return value


def _corrected(record: Mapping[str, Any]) -> bytes | None:
    """The bytes to take in place of the record's own."""
    text, encoded = record.get("value"), record.get("value_base64")
    try:
        if text is not None and encoded is None:
            return str(text).encode()
        if encoded is not None and text is None:
            return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as exc:
        raise RequestError(
            f"corrected value cannot be read: {exc}",
            hint='Give "value" as text in UTF-8, or "value_base64".',
        ) from exc
    if text is not None:
        raise RequestError('a record has both "value" and "value_base64"', hint="Give one of them.")
    return None
