"""Progress, defined once: watermarks, valves, generators, timers, windows, the join's gate.

Everything here is plain Python that is fed and answers: no clock, no thread, no I/O. Time is an
argument.

**What a watermark says.** `Watermark(t)` travels with the records of a stream and promises that no
record at or before `t` is still to come. `Watermark(t, use_processing_time=True)` promises that
from here on the clock is the time: `t` has passed already (t <= now), and no event time comes back
after it. A stream starts at `MIN_TIMESTAMP` and ends at `MAX_TIMESTAMP`.

**What the valve does.** The records of one input come over several channels, for instance the
partitions of a changelog topic. `watermark.valve` makes one watermark of all of theirs, so that
what it says is true for every channel. For two channels (FLIP-326, "StatusWatermarkValve"):

| channel 1 / channel 2  | (t2, true)              | (t2, false)         |
|------------------------|-------------------------|---------------------|
| **(t1, true)**         | (MIN_TIMESTAMP, true)   | (t2, false)         |
| **(t1, false)**        | (t1, false)             | (min(t1, t2), false)|

A channel in processing time is always as far as anybody needs it to be, so it takes no part in the
minimum; one that is still in event time keeps the whole input there. Idle channels are left out of
the minimum too, but they have not promised anything: they never let the input into processing
time.

**An example.** Two partitions of a table that is being copied; `.` is "nothing goes out":

    time ->      1           2           3           4       5        6
    items/0   (10,false)              (MIN,true)
    items/1               (7,false)               IDLE    ACTIVE   (MIN,true)
                 |           |           |           |       |        |
    valve        .       (7,false)       .           .       .     (MIN,true)
    gate      closed      closed      closed      closed  closed    OPEN, for good

The same, as a program:

>>> from watermark import PROCESSING_TIME as done
>>> from watermark import ProbeGate, StatusWatermarkValve, Watermark, WatermarkStatus
>>> valve, gate = StatusWatermarkValve(["items/0", "items/1"]), ProbeGate()
>>> valve.input_watermark("items/0", Watermark(10), now_ms=1_000)
()
>>> valve.input_watermark("items/1", Watermark(7), now_ms=1_000)
(Watermark(timestamp_ms=7, use_processing_time=False),)
>>> valve.input_watermark("items/0", done, now_ms=2_000)
()
>>> valve.input_status("items/1", WatermarkStatus.IDLE)
()
>>> valve.input_status("items/1", WatermarkStatus.ACTIVE)
()
>>> opening = valve.input_watermark("items/1", done, now_ms=3_000)
>>> opening == (done,), [gate.on_watermark(each) for each in opening], gate.is_open
(True, [True], True)

**Where to look.**

| module | question |
|---|---|
| `model`, `errors`, `checks` | what are the values, and what can go wrong? |
| `combine` | what do many channels add up to? The only such rule. |
| `valve` | which channels count, within an input and between inputs? |
| `gate` | when may the join start, what waits, what is the evidence? |
| `freshness` | how far is a table after the opening, which records may meet it? |
| `foreign`, `foreign_journal`, `foreign_records` | when is a foreign topic's table complete? |
| `reference`: `generators`, `outputs`, `emission` | where do watermarks come from, who must wait? |
| `timers`, `operator` | what happens when time moves? |
| `windows` | how are records grouped, when do results come, who is late? |
| `temporal` | which version of a row does a probe row see? |
| `testing` | how do I test my own job? |

**Decided here** where the sources are silent:

- `(T, true)` needs T <= now; equal is fine. A clock that steps back moves nothing back.
- An idle channel in event time does not hold the watermark, but it holds the gate; and the end of
  time goes out only when every channel has reached it, with one that merely idles it stops one
  millisecond before.
- A false watermark on an idle channel is thrown away; a true one counts, as it makes the channel
  active.
- When the last active channel goes idle, the maximum of all channels goes out, then IDLE.
- Removing a channel moves nothing at once; no channels say nothing. What is left may be in
  processing time while a removed channel had promised a later time: that waits for the clock.
- A source in processing time that ends says nothing more: it has no event time to give.
"""

from watermark.errors import SluiceError, WatermarkError
from watermark.gate import HeldOffsets, Phase, PhaseEvent, ProbeGate, advance
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    START_OF_TIME,
    Evidence,
    Watermark,
    WatermarkStatus,
)
from watermark.valve import ChannelState, CombinedWatermarkStatus, StatusWatermarkValve

__all__ = [
    "END_OF_TIME",
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "PROCESSING_TIME",
    "START_OF_TIME",
    "ChannelState",
    "CombinedWatermarkStatus",
    "Evidence",
    "HeldOffsets",
    "Phase",
    "PhaseEvent",
    "ProbeGate",
    "SluiceError",
    "StatusWatermarkValve",
    "Watermark",
    "WatermarkError",
    "WatermarkStatus",
    "advance",
]
