"""Speed and memory of the watermark package, one JSON line a benchmark.

Run it with `python -m tests.bench.watermark_bench`.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

from watermark.model import Watermark
from watermark.records import Record
from watermark.valve import StatusWatermarkValve
from watermark.windows import SessionWindows, Stream, TumblingWindows, WindowOperator

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


def results() -> Iterator[dict[str, object]]:
    for name, run in (
        ("valve_round_robin", valve_round_robin),
        ("valve_one_behind", valve_one_behind),
    ):
        yield {
            "benchmark": name,
            "channels": CHANNELS,
            "value": max(run() for _ in range(3)),
            "unit": "inputs/s",
            "at_least": 300_000,
        }
    yield {
        "benchmark": "tumbling_sum",
        "keys": KEYS,
        "value": max(tumbling_sum() for _ in range(3)),
        "unit": "rows/s",
        "at_least": 100_000,
    }
    keyed = Stream().key_by(key_of)
    for name, assigner in (("tumbling", TumblingWindows(1_000)), ("session", SessionWindows(30))):
        yield {
            "benchmark": f"bytes_per_open_{name}_window",
            "value": bytes_per_window(lambda each=assigner: keyed.window(each).reduce(add)),
            "unit": "bytes",
            "at_most": 1024,
        }


def judged():
    """Each result with `met`: whether it is within its bar."""
    for result in results():
        value = result["value"]
        met = result.get("at_least", value) <= value <= result.get("at_most", value)
        yield {**result, "met": met}


def main() -> int:
    met = True
    for result in judged():
        met &= result["met"]
        sys.stdout.write(json.dumps(result) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
