"""`watermark`: speed and memory of the watermark package."""

import time
import tracemalloc
from collections.abc import Callable

from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from watermark.model import Watermark
from watermark.reference.timers import Record
from watermark.reference.windows import SessionWindows, Stream, TumblingWindows, WindowOperator
from watermark.valve import StatusWatermarkValve

CHANNELS = 64
KEYS = 10_000


def add(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return first[0], first[1] + second[1]


def key_of(row: tuple[int, int]) -> int:
    return row[0]


def valve_round_robin() -> int:
    """Every channel moves in turn, so that every round moves the minimum."""
    names = [f"table/{number}" for number in range(CHANNELS)]
    valve = StatusWatermarkValve(names)
    inputs = [(names[each % CHANNELS], Watermark(each)) for each in range(300_000)]
    started = time.perf_counter()
    for name, watermark in inputs:
        valve.input_watermark(name, watermark, now_ms=0)
    return round(len(inputs) / (time.perf_counter() - started))


def valve_one_behind() -> int:
    """One channel stays behind: no input moves the minimum."""
    names = [f"table/{number}" for number in range(CHANNELS)]
    valve = StatusWatermarkValve(names)
    moving = CHANNELS - 1
    inputs = [(names[1 + each % moving], Watermark(each)) for each in range(300_000)]
    started = time.perf_counter()
    for name, watermark in inputs:
        valve.input_watermark(name, watermark, now_ms=0)
    return round(len(inputs) / (time.perf_counter() - started))


def tumbling_sum() -> int:
    """Rows of 10,000 keys, a watermark every 1,000 rows, every window fires."""
    operator = Stream().key_by(key_of).window(TumblingWindows(1_000)).reduce(add)
    rows = [Record((each * 7919 % KEYS, 1), each // 100) for each in range(300_000)]
    started = time.perf_counter()
    emitted = 0
    for number, row in enumerate(rows):
        operator.process_record(row, now_ms=0)
        if number % 1_000 == 999:
            emitted += len(operator.process_watermark(Watermark(number // 100 - 5), now_ms=0))
    assert emitted > 0
    return round(len(rows) / (time.perf_counter() - started))


def bytes_per_window(make: Callable[[], WindowOperator]) -> int:
    """Memory of an open window with its contents and its timer.

    Two rows a key, so that the contents are the window's own and not a row that lives elsewhere.
    """
    rows = [Record((key, 1_000 + key), key % 1_000) for key in (*range(KEYS), *range(KEYS))]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    operator = make()
    for row in rows:
        operator.process_record(row, now_ms=0)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert operator.open_windows == KEYS
    return round((after - before) / KEYS)


def measure(_: Place, sizes: Sizes) -> list[Measure]:
    """Inputs of the valve, rows of a window operator, bytes of an open window."""
    keyed = Stream().key_by(key_of)
    fast = {
        f"valve of {CHANNELS} channels in turns": ("inputs/s", valve_round_robin, 300_000.0),
        f"valve of {CHANNELS} channels, one behind": ("inputs/s", valve_one_behind, 300_000.0),
        f"tumbling sum of {KEYS:,} keys": ("rows/s", tumbling_sum, 100_000.0),
    }
    found = [
        Measure(
            name,
            unit,
            "300,000 inputs",
            True,
            [float(run()) for _ in range(sizes.runs)],
            bar=Bar(Sense.VALUE_AT_LEAST, limit),
        )
        for name, (unit, run, limit) in fast.items()
    ]
    for name, assigner in (("tumbling", TumblingWindows(1_000)), ("session", SessionWindows(30))):
        per_window = bytes_per_window(lambda each=assigner: keyed.window(each).reduce(add))
        found.append(
            Measure(
                f"bytes of an open {name} window",
                "bytes",
                f"{KEYS:,} windows",
                True,
                [float(per_window)],
                bar=Bar(Sense.VALUE_AT_MOST, 1024.0),
            )
        )
    return found
