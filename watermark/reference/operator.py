"""Operators: effects of records, watermarks, statuses and the clock, and their order.

Each input returns the elements that it causes, in order. A watermark first moves the operator's
time, then fires what is due, and is forwarded last: results never come after the watermark that
caused them, and watermarks never overtake records.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from watermark.checks import checked, refused, unchecked
from watermark.errors import StateFormatError, UnknownChannelError, reading_state
from watermark.model import Progress, Watermark, WatermarkStatus
from watermark.reference.timers import (
    Element,
    Namespace,
    OutputTag,
    Record,
    SideRecord,
    TimeDomain,
    Timer,
    TimerService,
    Value,
)
from watermark.valve import CombinedWatermarkStatus

SINGLE_INPUT = "input"
STATE_FORMAT = 1


@checked
class Operator(ABC):
    """Common part of all operators: inputs, combined time, timers, forwarding, state.

    Watermarks and statuses of an ignored input do not count. With such inputs, results depend on
    how the inputs interleave, and so may differ after a restart.
    """

    def __init__(
        self,
        *,
        uid: str = "operator",
        inputs: Sequence[str] = (SINGLE_INPUT,),
        ignored_inputs: Collection[str] = (),
    ) -> None:
        unknown = sorted(set(ignored_inputs) - set(inputs))
        if unknown:
            raise UnknownChannelError(
                f'operator "{uid}" has no input "{unknown[0]}" to ignore',
                hint=f"Name one of its inputs: {', '.join(inputs)}.",
            )
        self.uid = uid  # stable id of the operator; state is restored only into the same one
        self.inputs = tuple(inputs)
        self.timers = TimerService()
        # watermark and status of each input that is not ignored
        self.combined = CombinedWatermarkStatus([i for i in inputs if i not in ignored_inputs])
        self._ignored = frozenset(ignored_inputs)
        self._out: list[Element] = []

    @property
    def current_watermark_ms(self) -> int:
        return self.timers.current_watermark_ms

    @unchecked
    def process_record(
        self, record: Record, *, now_ms: int, source: str = SINGLE_INPUT
    ) -> Sequence[Element]:
        """Take a record of the input `source`, after all that the clock has made due.

        UnknownChannelError: there is no such input. InvalidParameterError: no record, or no time.
        """
        if type(record) is not Record:
            raise refused(f'operator "{self.uid}"', "record", record, "Record")
        if type(now_ms) is not int:
            raise refused(f'operator "{self.uid}"', "now_ms", now_ms, "int")
        if source not in self.inputs:
            raise UnknownChannelError(
                f'operator "{self.uid}" has no input "{source}"',
                hint=f"Name one of its inputs: {', '.join(self.inputs)}.",
            )
        timers = self.timers
        if now_ms > timers.now_ms:
            self._fire(timers.advance_clock(now_ms))
        self._on_record(record, source)
        return self._taken() if self._out else ()

    def process_watermark(
        self, watermark: Watermark, *, now_ms: int, source: str = SINGLE_INPUT
    ) -> Sequence[Element]:
        """Take a watermark of the input `source`; raises as `CombinedWatermarkStatus`."""
        if source not in self._ignored:
            # A clock that stepped back must not turn an earlier promise into one of the future.
            now_ms = max(now_ms, self.timers.now_ms)
            self._forward(self.combined.input_watermark(source, watermark, now_ms=now_ms), now_ms)
        return self._taken()

    def process_status(
        self, status: WatermarkStatus, *, now_ms: int, source: str = SINGLE_INPUT
    ) -> Sequence[Element]:
        """Take a status of the input `source`; raises UnknownChannelError."""
        if source not in self._ignored:
            self._forward(self.combined.input_status(source, status), now_ms)
        return self._taken()

    def advance_clock(self, now_ms: int) -> Sequence[Element]:
        """Pass the clock to processing timers and, in processing time, to event timers."""
        self._fire(self.timers.advance_clock(now_ms))
        return self._taken()

    def snapshot(self) -> dict[str, object]:
        """The whole state as a plain value; JSON can store it if keys and values are plain."""
        return {
            "format": STATE_FORMAT,
            "uid": self.uid,
            "combined": self.combined.snapshot(),
            "timers": self.timers.snapshot(),
            "own": self._own_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`, with the same output.

        Raises:
            StateFormatError: damaged, of another format, or of an operator with another uid.
        """
        if state.get("format") != STATE_FORMAT or state.get("uid") != self.uid:
            raise StateFormatError(
                f'operator "{self.uid}" got state of format {state.get("format")!r} and uid '
                f'"{state.get("uid")}", expected format {STATE_FORMAT}',
                hint="Give operators stable uids, and restore with the version that stored.",
            )
        with reading_state(f'operator "{self.uid}"'):
            combined, timers, own = state["combined"], state["timers"], state["own"]
            self.combined.restore(combined)
            self.timers.restore(timers, namespace_of=self._namespace_of)
            self._restore_own(own)

    @abstractmethod
    def _on_record(self, record: Record, source: str) -> None:
        """Process a record; emit through `_out`."""

    @abstractmethod
    def _on_timer(self, timer: Timer) -> None:
        """Process a due timer; emit through `_out`."""

    def _before_forwarding(self, watermark: Watermark) -> None:
        """Called after the timers that a watermark fired, before it is forwarded."""
        return

    def _namespace_of(self, stored: Namespace) -> Namespace:
        """Restores the type of a timer's stored namespace."""
        return stored

    def _own_state(self) -> dict[str, object]:
        return {}

    def _restore_own(self, own: Mapping[str, Any]) -> None:
        """Restore a value of `_own_state`."""
        return

    def _forward(self, progress: tuple[Progress, ...], now_ms: int) -> None:
        for each in progress:
            if isinstance(each, Watermark):
                self._fire(self.timers.advance_watermark(each, now_ms=now_ms))
                self._before_forwarding(each)
            self._out.append(each)

    def _fire(self, due: Iterable[Timer]) -> None:
        for timer in due:
            self._on_timer(timer)

    def _taken(self) -> list[Element]:
        taken, self._out = self._out, []
        return taken


@checked
class ProcessContext:
    """Access of a process function while it handles one record or timer.

    `timestamp_ms` is that of the record or timer; `source` is empty for a timer; `state` belongs to
    the function and the key.
    """

    __slots__ = ("_operator", "_out_ms", "key", "source", "state", "timestamp_ms")

    def __init__(self, operator: "ProcessOperator", key: Hashable) -> None:
        self._operator = operator
        self.key = key
        self.state = operator.state_of(key)
        self.timestamp_ms: int | None = None
        self.source = ""
        self._out_ms: int | None = None

    @property
    def current_watermark_ms(self) -> int:
        return self._operator.timers.current_watermark_ms

    @property
    def now_ms(self) -> int:
        return self._operator.timers.now_ms

    @unchecked
    def emit(self, value: Value) -> None:
        self._operator.put(Record(value, self._out_ms))

    def output(self, tag: OutputTag, value: Value) -> None:
        self._operator.put(SideRecord(tag, Record(value, self._out_ms)))

    def register_timer(self, timestamp_ms: int, domain: TimeDomain = TimeDomain.EVENT) -> None:
        self._operator.timers.register(domain, timestamp_ms, self.key)

    def delete_timer(self, timestamp_ms: int, domain: TimeDomain = TimeDomain.EVENT) -> None:
        self._operator.timers.delete(domain, timestamp_ms, self.key)


class ProcessFunction(ABC):
    """A function of one record at a time with timers, state and side outputs."""

    @abstractmethod
    def process(self, value: Value, context: ProcessContext) -> None:
        """Handle a record."""

    def on_timer(self, timer: Timer, context: ProcessContext) -> None:
        """Handle a timer of `context.register_timer`; nothing by default."""
        return


@checked
class ProcessOperator(Operator):
    """Runs a `ProcessFunction` over one or several inputs.

    Results carry the timestamp of the record, or of the event timer; results of a processing timer
    have none. So input that is not late gives no late output.
    """

    def __init__(
        self,
        function: ProcessFunction,
        *,
        key_of: Callable[[Value], Hashable] = lambda value: None,
        uid: str = "process",
        inputs: Sequence[str] = (SINGLE_INPUT,),
        ignored_inputs: Collection[str] = (),
    ) -> None:
        super().__init__(uid=uid, inputs=inputs, ignored_inputs=ignored_inputs)
        self._function = function
        self._key_of = key_of
        self._states: dict[Hashable, dict[str, Any]] = {}

    @unchecked
    def put(self, element: Record | SideRecord) -> None:
        self._out.append(element)

    @unchecked
    def state_of(self, key: Hashable) -> dict[str, Any]:
        return self._states.setdefault(key, {})

    def _on_record(self, record: Record, source: str) -> None:
        context = ProcessContext(self, self._key_of(record.value))
        context.source = source
        context.timestamp_ms = context._out_ms = record.timestamp_ms
        self._function.process(record.value, context)
        self._drop_empty(context)

    def _on_timer(self, timer: Timer) -> None:
        context = ProcessContext(self, timer.key)
        context.timestamp_ms = timer.timestamp_ms
        context._out_ms = timer.timestamp_ms if timer.domain is TimeDomain.EVENT else None
        self._function.on_timer(timer, context)
        self._drop_empty(context)

    def _drop_empty(self, context: ProcessContext) -> None:
        if not context.state:
            self._states.pop(context.key, None)

    def _own_state(self) -> dict[str, object]:
        return {"states": [(key, deepcopy(state)) for key, state in self._states.items()]}

    def _restore_own(self, own: Mapping[str, Any]) -> None:
        self._states = {key: deepcopy(state) for key, state in own["states"]}
