"""Replays of dead letters: joined as their batch would have joined them, and written once.

Order: the numbered file that names the letters; for each INSERT without rows the join under each
letter's own pin, then the commit of the rows, which has the outcome; the file of the outcome. The
next request finishes a replay without an outcome: committed rows have it, others are joined again.

In a statement set a letter is replayed for each INSERT that has no rows of it. An INSERT that has
no rows again, or whose output refuses them, keeps the letter; the others do not.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog

from joins.durable.letter_replays import ChosenLetter, LetterReplay, LetterReplays
from joins.durable.pins import Pin
from joins.durable.requests import Request
from joins.lookback.dead_letters import Coordinates, DeadLetters, Standing, Wanted
from joins.lookback.letter_rows import LetterInsert, LetterRows, LetterSource, bad_letter
from joins.lookback.plans import OfPlans, PlanIndexes
from joins.plan.errors import (
    CheckpointError,
    FencedError,
    RequestError,
    UnknownBatchError,
)
from joins.plan.stream_topics import StreamTopics, place_json
from watermark.errors import SluiceError

MOST_LETTERS = 10_000
_TAKE = "Take partition and offset from the list of dead letters."

_log = structlog.get_logger(__name__)
Outcomes = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ReplayParts:
    """What replays work with."""

    letters: DeadLetters
    replays: LetterReplays
    inserts: Sequence[LetterInsert]
    epoch: int
    # called at each step, for planted faults: `chosen`; for each INSERT `joined`, `staged`,
    # `committed` and, of several, `insert_noted`; `noted`
    passed: Callable[[str], None] = lambda _: None


class DeadLetterReplay:
    """Handles requests of the kind `replay-dead-letters`, one at a time.

    Only the commit of the rows takes the turn of the batches.
    """

    def __init__(self, parts: ReplayParts) -> None:
        self._parts = parts
        self._turn: AbstractContextManager[object] = nullcontext()

    def handle(
        self, request: Request, *, turn: AbstractContextManager[object] | None = None
    ) -> dict[str, Any]:
        """Replay the letters that the request names; idempotent by request.

        `turn` is held while a batch runs; None where none does.

        Returns:
            `replay` (None if there was nothing to do), `records`, `rows`, `still_bad`,
            `already_replayed` and `remaining`; for a discard see `_result`.

        Raises:
            RequestError: the request cannot be understood.
            UnknownLetterError: it names a letter that does not exist.
            FencedError: a newer runner has taken over.
            SinkError: no output takes the rows; none of them is written.
        """
        self._turn = nullcontext() if turn is None else turn
        self._finish_interrupted(request.id)
        done = self._done(request.id)
        if done is not None:
            return done
        replay = self._chosen(request)
        if not replay.letters:
            return self._result(replay, {"replay": None, "rows": 0, "still_bad": []})
        return self._finish(replay)

    def _finish_interrupted(self, request_id: str) -> None:
        """A replay of another request that fails is abandoned, so that this request can run."""
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
            except SluiceError as exc:
                is_over = self._parts.replays.outcome(number) is not None
                if replay.request == request_id or not is_over:
                    raise
                _log.warning("replay is abandoned", replay=number, error=exc.message)

    def _done(self, request_id: str) -> dict[str, Any] | None:
        for number in reversed(self._parts.replays.numbers()):
            replay = self._parts.replays.read(number)
            outcome = self._parts.replays.outcome(number)
            if replay is not None and replay.request == request_id and outcome is not None:
                return None if "abandoned" in outcome else self._result(replay, outcome)
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
        discarded = _reason_of(request.body)
        if request.body.get("all") is True:
            letters, remaining = self._pending(_matching_of(request.body))
            return LetterReplay(
                number, request.id, request.by, letters, remaining=remaining, discarded=discarded
            )
        records = _records_of(request.body)
        letters_named = [self._letter_key(record) for record in records]
        located = self._parts.letters.locate(set(letters_named))
        places = {place for place, _ in located.values()}
        if len(places) < len(records):
            raise RequestError("request names a dead letter twice", hint="Name each record once.")
        self._see_finished({batch for batch, _, _ in places})
        pending = tuple(
            self._letter(located[one], _corrected(record))
            for one, record in zip(letters_named, records, strict=True)
            if self._missing(located[one][1])
        )
        already = len(records) - len(pending)
        return LetterReplay(
            number, request.id, request.by, pending, already_replayed=already, discarded=discarded
        )

    def _letter_key(self, record: Mapping[str, Any]) -> Wanted:
        batch = None if record.get("batch") is None else _number(record, "batch")
        topic = record.get("topic")
        partition = _number(record, "partition")
        if topic is not None and not isinstance(topic, str):
            raise RequestError(
                f'"topic" of a dead letter is {topic!r}, expected its name', hint=_TAKE
            )
        number = self._parts.letters.number(topic, partition)
        return batch, number, _number(record, "offset")

    def _missing(self, standing: Standing) -> tuple[int, ...]:
        return standing.missing(len(self._parts.inserts))

    def _letter(
        self, located: tuple[Coordinates, Standing], corrected: bytes | None = None
    ) -> ChosenLetter:
        place, standing = located
        return ChosenLetter(*place, corrected, self._missing(standing), standing.entries)

    def _see_finished(self, batches: set[int]) -> None:
        for batch in sorted(batches):
            if not self._is_finished(batch):
                raise RequestError(
                    f"batch {batch} of the dead letter is not finished",
                    hint="Ask again when the batch is committed.",
                )

    def _pending(self, matching: str) -> tuple[tuple[ChosenLetter, ...], int]:
        chosen: list[ChosenLetter] = []
        remaining = 0
        is_finished = cache(self._is_finished)
        for letter in self._parts.letters.letters(pending=True, matching=matching):
            if not is_finished(letter.batch):
                continue
            if len(chosen) < MOST_LETTERS:
                chosen.append(self._letter((letter.coordinates, letter.standing)))
            else:
                remaining += 1
        return tuple(chosen), remaining

    def _is_finished(self, batch: int) -> bool:
        return all(insert.history.is_committed(batch) for insert in self._parts.inserts)

    # Joining and writing
    # -----------------------------------------------------------------------------------------

    def _finish(self, replay: LetterReplay) -> dict[str, Any]:
        if replay.discarded is not None:
            nothing = {"replay": replay.number, "rows": 0, "still_bad": []}
            self._parts.replays.finish(replay.number, nothing)
            _log.info("dead letters discarded", by=replay.by, reason=replay.discarded)
            return self._result(replay, nothing)
        outcomes: dict[int, Mapping[str, Any]] = {}
        refused: dict[int, SluiceError] = {}
        for insert in self._parts.inserts:
            if not replay.letters_of(insert.number):
                continue
            try:
                outcomes[insert.number] = self._insert_done(insert, replay)
            except FencedError:
                raise
            except SluiceError as exc:
                if insert.writer.committed(replay.number) is not None:
                    raise
                refused[insert.number] = exc
        if refused and not outcomes:
            error = next(iter(refused.values()))
            self._parts.replays.finish(replay.number, {"abandoned": _words(error)})
            raise error
        outcomes |= {i.number: _none_there(i, replay, e) for i, e in self._of(refused)}
        outcome = _outcome_of_all(replay, outcomes)
        self._parts.replays.finish(replay.number, outcome)
        self._parts.passed("noted")
        _log.info("dead letters replayed", replay=replay.number, rows=outcome["rows"])
        return self._result(replay, outcome)

    def _insert_done(self, insert: LetterInsert, replay: LetterReplay) -> Mapping[str, Any]:
        """The outcome in one INSERT, whose rows are written when this returns."""
        parts, number = self._parts, replay.number
        noted = parts.replays.insert_outcome(number, insert.number)
        if noted is not None:
            return noted
        outcome = insert.writer.committed(number)
        if outcome is None:
            outcome = self._write(insert, replay)
        parts.passed("committed")
        if len(parts.inserts) > 1:  # a topic has no record of the outcome
            parts.replays.finish_insert(number, insert.number, outcome)
            parts.passed("insert_noted")
        return outcome

    def _write(self, insert: LetterInsert, replay: LetterReplay) -> Mapping[str, Any]:
        parts, number = self._parts, replay.number
        with ExitStack() as commit, closing(OfPlans(insert.history, PlanIndexes)) as plans:
            source = LetterSource(parts.letters, plans, self._pin, parts.passed)
            rows = LetterRows(number, replay.letters_of(insert.number), insert, source)

            def staged() -> Mapping[str, Any]:
                commit.enter_context(self._turn)  # until the rows are committed
                return rows.staged()

            insert.writer.write(rows.parts(), number, parts.epoch, staged)
        return rows.outcome()

    def _pin(self, batch: int) -> Pin:
        """The pin of `batch`; once its file is pruned, the commit of any output may have it."""
        *others, last = self._parts.inserts
        for insert in others:
            try:
                return insert.history.pin(batch)
            except UnknownBatchError:
                continue
        return last.history.pin(batch)

    def _result(self, replay: LetterReplay, outcome: Mapping[str, Any]) -> dict[str, Any]:
        if replay.discarded is not None:
            return {
                "discard": outcome["replay"],
                "records": len(replay.letters),
                "already_settled": replay.already_replayed,
                "remaining": replay.remaining,
            }
        topics = self._parts.letters.topics() or StreamTopics.one("")
        return {
            "replay": outcome["replay"],
            "records": len(replay.letters),
            "rows": outcome["rows"],
            "still_bad": [
                {**bad, **place_json(topics, bad["partition"])} for bad in outcome["still_bad"]
            ],
            "already_replayed": replay.already_replayed,
            "remaining": replay.remaining + len(outcome["still_bad"]),
        }

    def _of(self, refused: Mapping[int, SluiceError]) -> list[tuple[LetterInsert, SluiceError]]:
        return [(i, refused[i.number]) for i in self._parts.inserts if i.number in refused]


def _none_there(
    insert: LetterInsert, replay: LetterReplay, error: SluiceError
) -> Mapping[str, Any]:
    _log.warning(
        "rows of dead letters are refused",
        replay=replay.number,
        insert=insert.number,
        error=error.message,
    )
    reason = insert.reason_of(_words(error))
    letters = replay.letters_of(insert.number)
    return {"rows": 0, "still_bad": [bad_letter(letter.place, reason) for letter in letters]}


def _outcome_of_all(replay: LetterReplay, outcomes: Outcomes) -> dict[str, Any]:
    bad: dict[Coordinates, dict[int, str]] = {}
    for number, outcome in sorted(outcomes.items()):
        for each in outcome["still_bad"]:
            place = (each["batch"], each["partition"], each["offset"])
            bad.setdefault(place, {})[number] = each["reason"]
    still_bad = [
        {**bad_letter(place, "; ".join(dict.fromkeys(reason.values()))), "inserts": sorted(reason)}
        for place, reason in sorted(bad.items())
    ]
    rows = sum(outcome["rows"] for outcome in outcomes.values())
    return {"replay": replay.number, "rows": rows, "still_bad": still_bad}


def _words(error: SluiceError) -> str:
    return f"{error.message}. {error.hint}"


def _records_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    records = body.get("records")
    is_list = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    if not is_list or not records or len(records) > MOST_LETTERS:
        raise RequestError(
            f'request has neither "all" nor "records" with 1 to {MOST_LETTERS} objects',
            hint="Name the dead letters by partition and offset, or ask for all of them.",
        )
    return list(records)


def _matching_of(body: Mapping[str, Any]) -> str:
    """Part of the reasons of the letters that are meant; empty for all letters."""
    matching = body.get("matching")
    if matching is not None and not isinstance(matching, str):
        raise RequestError(
            f'"matching" of the request is {matching!r}, expected a part of the reason',
            hint="Give a text that the reasons of the letters contain.",
        )
    return matching or ""


def _reason_of(body: Mapping[str, Any]) -> str | None:
    """The reason of a discard; None for a replay."""
    reason = body.get("discard")
    if reason is not None and (not isinstance(reason, str) or not reason.strip()):
        raise RequestError(
            f'"discard" of the request is {reason!r}, expected a reason',
            hint="Say in a few words why the records are to have no rows.",
        )
    return reason


def _number(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if type(value) is not int or value < 0:
        raise RequestError(
            f'"{name}" of a dead letter is {value!r}, expected a whole number',
            hint=_TAKE,
        )
    return value


def _corrected(record: Mapping[str, Any]) -> bytes | None:
    """The bytes that replace the record's own, None if there are none."""
    text, encoded = record.get("value"), record.get("value_base64")
    try:
        if text is not None and encoded is None:
            return bytes(text, "utf-8")
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
