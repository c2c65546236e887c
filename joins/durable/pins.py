"""Pins: what makes a micro-batch a pure function. One file per batch, whose content never changes.

They are the only log of the stream's batches: the next batch begins where the newest pin ends.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from joins.durable.checkpoint import create_json_once, read_json, remove_durably
from joins.durable.stored import StoredFiles, stored_files
from joins.plan.errors import CheckpointError
from joins.plan.stream_topics import SPAN, StreamTopics
from watermark.freshness import LookUp, Proof, ProofKind

_OF_A_PROOF = ("time_ms", "position", "kind", "source_ms")
Number = TypeVar("Number", int, int | None)
DAMAGED = (KeyError, TypeError, ValueError, AttributeError)  # what a damaged pin raises
ABSENT: Any = ...  # the runner that wrote the pin did not know this field; None is a value


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPin:
    """Time and state before one event batch; the first fields are those of an `EventState`."""

    watermark: int = ABSENT
    processing_time: bool = ABSENT
    window_watermark: int = ABSENT
    clock_ms: int = ABSENT  # of the batch itself
    has_ended: bool = ABSENT
    channels: Mapping[str, Any] | None = ABSENT
    waiting: int = ABSENT
    late: int = ABSENT
    fired: int = ABSENT
    at_end: Sequence[int] = ABSENT  # partitions of a bounded stream that are read to their end
    # partitions behind the job's backlog, by `read` and `read_before`
    backlog: Mapping[str, Sequence[int]] = ABSENT
    unread: Sequence[int] = ABSENT  # partitions with records behind the batch, if time needs them
    # versioned dimension → partition → its watermark, and when its newest records were committed
    dimensions: Mapping[str, Mapping[str, Any]] = ABSENT
    state_versions: Mapping[str, int] = ABSENT  # state table → its version before the batch
    # sums of late rows and the versions they were looked up in; None for jobs without them
    late_rows: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "EventPin":
        return cls(**{name: value[name] for name in cls.__slots__ if name in value})

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        if self.late_rows is None:
            del values["late_rows"]
        return {name: value for name, value in values.items() if value is not ABSENT}


@dataclass(frozen=True, slots=True)
class Pin:
    """The inputs of one micro-batch."""

    batch: int
    topic: str  # the first topic of the stream
    start_offsets: Mapping[int, int]
    # partition → offset after the last one; never beyond the end of a stream
    end_offsets: Mapping[int, int]
    versions: Mapping[str, int]  # dimension → Delta version of its changelog
    batch_timestamp_ms: int  # the batch's PROCTIME
    epoch: int  # the runner's epoch when the pin was written
    # dimension → source time of the newest change in the version; None if the version has no change
    # from the binlog, or if it is unknown
    source_ts_ms: Mapping[str, int | None] = field(default_factory=dict)
    # watermarks, channels and state versions before the batch; None if the job has neither event
    # time nor windows
    event: EventPin | None = None
    # dimension → what its source proves of the version: T and position; absent without a proof
    as_of: Mapping[str, Proof] = field(default_factory=dict)
    # an operator had released records from `join.max-staleness`, and some of the batch may be too
    # new for its tables
    stale_released: bool = False
    # the stream's ends at a time, by which a later runner tells which records came later; None
    # without `join.max-staleness`
    looked_up: LookUp | None = None
    plan: int = 1  # number of the plan that the batch is joined by
    # number of the batch before and the sums up to it; empty before the first batch, and in pins of
    # earlier releases
    before: Mapping[str, int] = field(default_factory=dict)

    @property
    def of_event(self) -> EventPin:
        assert self.event is not None, "the pin of an event batch says its watermarks"
        return self.event

    @property
    def has_several_topics(self) -> bool:
        return any(number >= SPAN for number in self.end_offsets)

    def freshness_ms(self) -> dict[str, int | None]:
        """Dimension → age of the newest change that the batch sees; None if unknown."""
        ages: dict[str, int | None] = {}
        for name in self.versions:
            made = self.source_ts_ms.get(name)
            ages[name] = None if made is None else max(0, self.batch_timestamp_ms - made)
        return ages

    def ranges(self) -> dict[int, tuple[int, int]]:
        bounds = {p: (self.start_offsets.get(p, 0), end) for p, end in self.end_offsets.items()}
        return {p: (first, end) for p, (first, end) in bounds.items() if first < end}

    def records(self) -> int:
        return sum(end - self.start_offsets.get(p, 0) for p, end in self.end_offsets.items())

    def versions_text(self) -> str:
        return ",".join(f"{name}={version}" for name, version in sorted(self.versions.items()))


def offsets_text(offsets: Mapping[int, Number]) -> dict[str, Number]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def offsets_value(value: Mapping[str, Number]) -> dict[int, Number]:
    return {int(partition): offset for partition, offset in value.items()}


class PinStore:
    """The pins of one job."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def stored(self) -> StoredFiles | None:
        return stored_files(self._path(0))

    def _path(self, batch: int) -> Path:
        return self._directory / f"{batch:010d}.json"

    def read(self, batch: int) -> Pin | None:
        """None without a pin; CheckpointError if the file is damaged."""
        value = read_json(self._path(batch))
        if value is None:
            return None
        try:
            return pin_of_json(value)
        except DAMAGED as exc:
            raise CheckpointError(
                f'pin "{self._path(batch)}" is damaged: {exc!r}',
                hint="Restore this file from a backup; without it the job cannot go on.",
            ) from exc

    def create(self, pin: Pin) -> Pin:
        """Create `pin`, durably, unless its batch has one; returns the stored pin."""
        create_json_once(self._path(pin.batch), pin_json(pin))
        stored = self.read(pin.batch)
        if stored is None:
            raise CheckpointError(
                f"pin of batch {pin.batch} vanished after it was written",
                hint="Another program removes files of this job's checkpoint; stop it.",
            )
        return stored

    def prune(self, keep: int = 10_000) -> None:
        pins = sorted(self._directory.glob("*.json"))
        remove_durably(*pins[:-keep])

    def abandon(self, batch: int) -> None:
        """Move the pin of a batch that is never committed into `abandoned/`."""
        path = self._path(batch)
        aside = self._directory / "abandoned" / path.name
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            stored = stored_files(path)
            if stored is not None:
                stored.put(aside, path.read_bytes())
                stored.remove(path)
            path.replace(aside)
        except FileNotFoundError:
            return

    def newest(self) -> Pin | None:
        names = [p.name for p in self._directory.glob("*.json")] if self._directory.is_dir() else []
        return self.read(int(max(names).removesuffix(".json"))) if names else None


def pin_of_json(value: Mapping[str, Any]) -> Pin:
    """What `pin_json` has written; raises one of `DAMAGED` for anything else."""
    event = value.get("event")
    return Pin(
        batch=value["batch"],
        topic=value["topic"],
        start_offsets=offsets_value(value["start_offsets"]),
        end_offsets=offsets_value(value["end_offsets"]),
        versions=value["versions"],
        batch_timestamp_ms=value["batch_timestamp_ms"],
        epoch=value["epoch"],
        source_ts_ms=value.get("source_ts_ms") or {},
        event=None if event is None else EventPin.of(event),
        as_of={name: _proof(each) for name, each in value.get("as_of", {}).items()},
        stale_released=value.get("stale_released", False),
        looked_up=_look_up(value.get("looked_up")),
        plan=value.get("plan", 1),
        before=value.get("before", {}),
    )


def pin_json(pin: Pin) -> dict[str, Any]:
    event = {} if pin.event is None else {"event": pin.event.as_json()}
    as_of = {name: _proof_json(proof) for name, proof in sorted(pin.as_of.items())}
    released = {"stale_released": True} if pin.stale_released else {}
    looked_up = {} if pin.looked_up is None else {"looked_up": _look_up_json(pin.looked_up)}
    return {
        "batch": pin.batch,
        "topic": pin.topic,
        "start_offsets": offsets_text(pin.start_offsets),
        "end_offsets": offsets_text(pin.end_offsets),
        "versions": dict(sorted(pin.versions.items())),
        "batch_timestamp_ms": pin.batch_timestamp_ms,
        "epoch": pin.epoch,
        "source_ts_ms": dict(sorted(pin.source_ts_ms.items())),
        **({"as_of": as_of} if as_of else {}),
        **released,
        **looked_up,
        **({"plan": pin.plan} if pin.plan != 1 else {}),
        **({"before": dict(pin.before)} if pin.before else {}),
        **event,
    }


def as_read(pin: Pin) -> Pin:
    """`pin` as a retry reads it."""
    return pin_of_json(json.loads(json.dumps(pin_json(pin))))


def _proof_json(proof: Proof) -> dict[str, Any]:
    content = proof.as_json()
    return {name: content[name] for name in _OF_A_PROOF if content[name] is not None}


def _proof(value: Mapping[str, Any]) -> Proof:
    return Proof(
        time_ms=value["time_ms"],
        position=value["position"],
        kind=ProofKind(value["kind"]),
        source_ms=value.get("source_ms"),
    )


def _look_up_json(looked_up: LookUp) -> dict[str, Any]:
    return {"time_ms": looked_up.time_ms, "ends": offsets_text(looked_up.ends)}


def _look_up(value: Mapping[str, Any] | None) -> LookUp | None:
    return None if value is None else LookUp(value["time_ms"], offsets_value(value["ends"]))


def shown_pin(pin: Pin, topics: StreamTopics) -> dict[str, Any]:
    offsets = (topics.places(pin.start_offsets), topics.places(pin.end_offsets))
    shown = {**pin_json(pin), "start_offsets": offsets[0], "end_offsets": offsets[1]}
    shown.pop("before", None)
    return shown
