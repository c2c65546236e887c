"""The rows of replayed dead letters in one INSERT: each letter is joined under its batch's pin."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from joins.durable.letter_replays import ChosenLetter
from joins.durable.pins import Pin
from joins.kernels.probe.probe import BatchContext, JoinedBatch, ProbeKernelSpec, join_batch
from joins.kernels.records.layout import MORE_OF_A_RECORD
from joins.lookback.dead_letters import Coordinates, DeadLetter, DeadLetters
from joins.lookback.history import History
from joins.lookback.plans import OfPlans, PlanIndexes, widened
from joins.plan.errors import PinnedVersionExpiredError, UnknownBatchError
from joins.plan.plan import KafkaSink

_IS_A_CHANGE = (
    "records of this stream are changes, and a newer one may have replaced its row: write the row "
    "again"
)
_IS_REPLACED = (
    "the output has the newest row of each key, and a newer record may have written the row of its "
    "key: send the record to the topic again"
)
_GOES_THROUGH_STATE = (
    "records of a job with event time or windows go through its state: send the record to the "
    "topic again"
)
_RECORDS = pa.schema(
    [
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        *MORE_OF_A_RECORD,
    ]
)
Part = tuple[JoinedBatch, Pin]


class LetterWriter(Protocol):
    """Writes the rows of a replay."""

    def committed(self, number: int) -> Mapping[str, Any] | None:
        """The outcome of replay `number` if its rows are certainly written."""

    def write(
        self,
        parts: Iterator[Part],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Write all rows of `parts`, then call `outcome`; durable when this returns."""


@dataclass(frozen=True, slots=True)
class LetterInsert:
    """One INSERT of the job; the kernel in its `history` tells all records that have no rows."""

    history: History
    writer: LetterWriter

    @property
    def number(self) -> int:
        return self.history.places.insert + 1

    def reason_of(self, reason: str) -> str:
        member = self.history.places.kernel.member
        return reason if member is None else member.reason(reason)


@dataclass(frozen=True, slots=True)
class LetterSource:
    """What letters are joined with."""

    letters: DeadLetters
    plans: OfPlans[PlanIndexes]
    pin: Callable[[int], Pin]  # by batch; raises UnknownBatchError where there is none any more
    passed: Callable[[str], None]  # called at each step, for planted faults


class LetterRows:
    """One pass over the letters of a replay for one INSERT; `outcome` holds after the last part."""

    def __init__(
        self,
        number: int,
        chosen: Sequence[ChosenLetter],
        insert: LetterInsert,
        source: LetterSource,
    ) -> None:
        self._number = number
        self._chosen = sorted(chosen, key=lambda letter: letter.place)
        self._plan = insert.history.places.plan
        self._rows_schema = insert.history.places.kernel.joined_schema
        sink = insert.history.places.sink
        self._has_newest = isinstance(sink, KafkaSink) and sink.upsert
        self._source = source
        self._rows = 0
        self._bad: list[dict[str, Any]] = []

    def staged(self) -> dict[str, Any]:
        self._source.passed("staged")
        return self.outcome()

    def outcome(self) -> dict[str, Any]:
        return {"replay": self._number, "rows": self._rows, "still_bad": list(self._bad)}

    def parts(self) -> Iterator[Part]:
        """The joined letters, one batch at a time, oldest batch first."""
        chosen: dict[int, list[ChosenLetter]] = {}
        for item in self._chosen:
            chosen.setdefault(item.batch, []).append(item)
        for batch, letters in self._source.letters.of_batches(chosen):
            part = self._joined(batch, chosen[batch], letters)
            if part is not None:
                yield part
        self._source.passed("joined")

    def _joined(
        self, batch: int, chosen: Sequence[ChosenLetter], letters: Mapping[Coordinates, DeadLetter]
    ) -> Part | None:
        try:
            pin = self._source.pin(batch)
            plan = self._source.plans.of(pin.plan)
            indexes = plan.indexes.of(pin.versions)
        except (UnknownBatchError, PinnedVersionExpiredError) as exc:
            self._fail(chosen, exc.message)
            return None
        if pin.event is not None:
            self._fail(chosen, _GOES_THROUGH_STATE)
            return None
        kernel = plan.history.places.kernel
        if kernel.changes is not None:
            self._fail(chosen, _IS_A_CHANGE)
            return None
        if self._has_newest:
            self._fail(chosen, _IS_REPLACED)
            return None
        surplus = set(kernel.joined_schema.names) - set(self._rows_schema.names)
        if surplus:
            self._fail(chosen, f"plan {self._plan} of the job has no column {min(surplus)}")
            return None
        known = [c for c in chosen if self._is_usable(c, letters, kernel)]
        if not known:
            return None
        versions = tuple(sorted(pin.versions.items()))
        context = BatchContext(pin.batch_timestamp_ms, pin.batch, versions)
        records = _records(known, letters)
        joined = join_batch(kernel, records, indexes, context)
        if pin.plan != self._plan:
            joined = replace(joined, rows=widened(joined.rows, self._rows_schema))
        topics = self._source.letters.topics()
        for dead in joined.dead_letters.to_pylist():
            number = topics.number(dead["topic"], dead["partition"]) if topics else None
            place = (batch, dead["partition"] if number is None else number, dead["offset"])
            self._bad.append(bad_letter(place, dead["reason"]))
        self._rows += joined.rows.num_rows
        return joined, pin

    def _is_usable(
        self,
        chosen: ChosenLetter,
        letters: Mapping[Coordinates, DeadLetter],
        kernel: ProbeKernelSpec,
    ) -> bool:
        letter = letters.get(chosen.place)
        if letter is None:
            self._fail([chosen], "the dead letter was retracted with its batch")
            return False
        fields = kernel.metadata_fields
        if letter.timestamp is None and any(item.key == "timestamp" for item in fields):
            self._fail([chosen], "the record's timestamp was not kept")
            return False
        return True

    def _fail(self, chosen: Sequence[ChosenLetter], reason: str) -> None:
        self._bad += [bad_letter(letter.place, reason) for letter in chosen]


def bad_letter(place: Coordinates, reason: str) -> dict[str, Any]:
    batch, partition, offset = place
    return {"batch": batch, "partition": partition, "offset": offset, "reason": reason}


def _records(
    chosen: Sequence[ChosenLetter], letters: Mapping[Coordinates, DeadLetter]
) -> pa.RecordBatch:
    rows = []
    for item in chosen:
        letter = letters[item.place]
        value = letter.value if item.corrected is None else item.corrected
        place = {"partition": letter.partition, "offset": letter.offset}
        stamp = letter.timestamp
        rows.append(
            {"value": value, "topic": letter.topic, "timestamp": stamp, **place, **letter.more}
        )
    return pa.RecordBatch.from_pylist(rows, schema=_RECORDS)
