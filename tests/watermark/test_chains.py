"""Chains of operators: a restart anywhere changes nothing, and nobody is told what it refuses."""

import pickle

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support.laws import examples
from watermark.model import MIN_TIMESTAMP, PROCESSING_TIME, Watermark, WatermarkStatus
from watermark.reference.emission import SourceOperator, TimestampsAndWatermarksOperator
from watermark.reference.generators import (
    BoundedWait,
    DelayedProcessingTime,
    WatermarkGenerator,
    WatermarkStrategy,
)
from watermark.reference.operator import ProcessFunction, ProcessOperator
from watermark.reference.timers import Record, SideRecord, TimeDomain
from watermark.reference.windows import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    SessionWindows,
    SlidingWindows,
    Stream,
    TumblingWindows,
)

INTERVAL_MS = 3


class SnapshotThenClock(WatermarkGenerator):
    """Event time record by record, ahead of the clock too, until a value says that it is copied."""

    def __init__(self):
        self.greatest_ms = MIN_TIMESTAMP
        self.done = False

    def on_event(self, value, timestamp_ms, output, *, now_ms):
        self.done = self.done or (value == "done" and self.greatest_ms <= now_ms)
        self.greatest_ms = max(self.greatest_ms, timestamp_ms)
        if not self.done:
            output.emit_watermark(Watermark(self.greatest_ms), now_ms=now_ms)

    def on_periodic_emit(self, output, *, now_ms):
        if self.done and self.greatest_ms <= now_ms:
            output.emit_watermark(PROCESSING_TIME, now_ms=now_ms)

    def snapshot(self):
        return {"greatest_ms": self.greatest_ms, "done": self.done}

    def restore(self, state):
        self.greatest_ms, self.done = state["greatest_ms"], state["done"]


class Delays(ProcessFunction):
    def process(self, value, context):
        context.state["count"] = context.state.get("count", 0) + 1
        context.emit(("seen", context.state["count"]))
        context.register_timer(context.timestamp_ms + 4)

    def on_timer(self, timer, context):
        context.emit(("late", context.state.pop("count", 0)))


def count(context, values):
    return [(tuple(context.window), len(values))]


def by_length(value):
    return len(repr(value)) % 2


def windowed(assigner, trigger=None, lateness_ms=0):
    made = Stream().key_by(by_length).window(assigner).allowed_lateness(lateness_ms)
    return (made if trigger is None else made.trigger(trigger)).process(count)


BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(2)
SOURCES = {
    "bounded": BOUNDED,
    "ascending_with_idleness": WatermarkStrategy.for_monotonous_timestamps().with_idleness(4),
    "bounded_wait": WatermarkStrategy(lambda: BoundedWait(2, 5)),
    "delayed_clock": WatermarkStrategy(lambda: DelayedProcessingTime(3)),
    "processing_time": WatermarkStrategy.no_watermarks(),
    "snapshot_then_clock": WatermarkStrategy(SnapshotThenClock),
    "snapshot_with_idleness": WatermarkStrategy(SnapshotThenClock).with_idleness(4),
}
STAGES = {
    "timestamps": lambda: TimestampsAndWatermarksOperator(BOUNDED, interval_ms=INTERVAL_MS),
    "tumbling": lambda: windowed(TumblingWindows(5)),
    "sliding": lambda: windowed(SlidingWindows(8, 3), lateness_ms=4),
    "sessions": lambda: windowed(SessionWindows(4), ContinuousEventTimeTrigger(3), 5),
    "by_the_clock": lambda: windowed(
        SessionWindows(4, time=TimeDomain.PROCESSING), ContinuousProcessingTimeTrigger(3)
    ),
    "process": lambda: ProcessOperator(Delays(), key_of=by_length),
    "join_of_one": lambda: ProcessOperator(
        Delays(), key_of=by_length, inputs=("input", "other"), ignored_inputs=("other",)
    ),
}


class Chain:
    """A source of two splits and what follows; each stage's output is checked on its way."""

    def __init__(self, source, stages):
        self.strategy, self.stages = SOURCES[source], [STAGES[each] for each in stages]
        self.source = self.new_source()
        self.operators = [make() for make in self.stages]
        # The last one only takes: what it is told must not be refused either.
        self.operators.append(ProcessOperator(Delays()))

    def new_source(self):
        return SourceOperator(self.strategy, interval_ms=INTERVAL_MS, splits=("0", "1"))

    def restart(self):
        stored = pickle.dumps([each.snapshot() for each in (self.source, *self.operators)])
        source, *operators = pickle.loads(stored)
        self.source = self.new_source()
        self.source.restore(source)
        self.operators = [make() for make in self.stages] + [ProcessOperator(Delays())]
        for operator, state in zip(self.operators, operators, strict=True):
            operator.restore(state)

    def carry(self, elements, now_ms):
        """Through all operators, the clock of each first; what comes out of each."""
        passed = [list(elements)]
        for operator in self.operators:
            out = list(operator.advance_clock(now_ms))
            for element in passed[-1]:
                out += feed(operator, element, now_ms)
            passed.append(out)
        return passed


def feed(operator, element, now_ms):
    if isinstance(element, Record):
        return operator.process_record(element, now_ms=now_ms)
    if isinstance(element, Watermark):
        return operator.process_watermark(element, now_ms=now_ms)
    if isinstance(element, WatermarkStatus):
        return operator.process_status(element, now_ms=now_ms)
    assert isinstance(element, SideRecord)
    return ()


class ChainMachine(RuleBasedStateMachine):
    @initialize(
        source=st.sampled_from(sorted(SOURCES)),
        stages=st.lists(st.sampled_from(sorted(STAGES)), max_size=3),
    )
    def begin(self, source, stages):
        self.whole, self.cut = Chain(source, stages), Chain(source, stages)
        self.now_ms, self.added, self.ended = 0, 0, False
        self.last = [None] * (len(stages) + 2)
        self.step(lambda chain: chain.source.advance_clock(0))

    def step(self, act):
        passed = self.whole.carry(act(self.whole), self.now_ms)
        assert self.cut.carry(act(self.cut), self.now_ms) == passed
        for place, elements in enumerate(passed):
            for element in elements:
                if isinstance(element, Watermark):
                    self.rises(place, element)

    def rises(self, place, watermark):
        before, self.last[place] = self.last[place], watermark
        if before is not None:
            assert not before.use_processing_time
            assert watermark.use_processing_time or watermark.timestamp_ms > before.timestamp_ms

    @precondition(lambda self: not self.ended)
    @rule(
        split=st.integers(0, 5),
        ahead=st.integers(-6, 9),
        value=st.sampled_from(["a", "bb", "done"]),
    )
    def record(self, split, ahead, value):
        splits = self.whole.source.last_generated
        if splits:
            name = sorted(splits)[split % len(splits)]
            at = self.now_ms + ahead
            self.step(
                lambda chain: chain.source.process_record(value, at, now_ms=self.now_ms, split=name)
            )

    @rule(passing=st.integers(0, 7))
    def clock(self, passing):
        self.now_ms += passing
        self.step(lambda chain: chain.source.advance_clock(self.now_ms))

    @rule()
    def restart(self):
        self.cut.restart()

    @precondition(lambda self: not self.ended)
    @rule()
    def add_split(self):
        self.added += 1
        for chain in (self.whole, self.cut):
            chain.source.add_split(f"added {self.added}")

    @rule(split=st.integers(0, 5))
    def finish_split(self, split):
        names = sorted(self.whole.source.last_generated)
        if names:
            for chain in (self.whole, self.cut):
                chain.source.finish_split(names[split % len(names)])

    @precondition(lambda self: not self.ended)
    @rule()
    def end_of_input(self):
        self.ended = True
        self.step(lambda chain: chain.source.end_of_input(now_ms=self.now_ms))


ChainMachine.TestCase.settings = settings(
    max_examples=examples(60),
    stateful_step_count=25,
)
TestChains = ChainMachine.TestCase
