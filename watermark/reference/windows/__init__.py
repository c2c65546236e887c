"""Windows: assigners, triggers, evictors, functions and the operator that runs them."""

from watermark.reference.windows.assigners import (
    CumulativeWindows,
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    WindowAssigner,
)
from watermark.reference.windows.builder import KeyedStream, Stream, WindowedStream
from watermark.reference.windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from watermark.reference.windows.functions import AggregateFunction, WindowContext
from watermark.reference.windows.operator import WindowOperator, WindowOperatorSpec
from watermark.reference.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from watermark.reference.windows.window import GLOBAL_WINDOW, TimeWindow

__all__ = [
    "GLOBAL_WINDOW",
    "AggregateFunction",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountTrigger",
    "CumulativeWindows",
    "DeltaEvictor",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindows",
    "KeyedStream",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "SessionWindows",
    "SlidingWindows",
    "Stream",
    "TimeEvictor",
    "TimeWindow",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "TumblingWindows",
    "WindowAssigner",
    "WindowContext",
    "WindowOperator",
    "WindowOperatorSpec",
    "WindowedStream",
]
