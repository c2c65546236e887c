"""The numeric examples of the sources, through the public interface."""

from pathlib import Path

import pytest

from tests.watermark.acceptance import covers
from tests.watermark.seed import VECTORS, clock, elements, millis
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, PROCESSING_TIME, Watermark
from watermark.reference.emission import (
    AUTO_WATERMARK_INTERVAL_MS,
    SourceOperator,
    UndelegatedReader,
)
from watermark.reference.generators import (
    BoundedOutOfOrderness,
    BoundedOutOfOrdernessTimestampExtractor,
    WatermarkStrategy,
)
from watermark.reference.operator import ProcessFunction, ProcessOperator
from watermark.reference.testing import LoggedRecord, OperatorHarness, log, rows_with_watermarks
from watermark.reference.timers import OutputTag, Record
from watermark.reference.windows import GLOBAL_WINDOW, Stream, TimeWindow, TumblingWindows

MINUTE = 60_000
LATE = OutputTag("late")
TUMBLING_100 = ["seed000/tumbling-100ms-lateness-0", "seed000/tumbling-100ms-lateness-10"]


def key(row):
    return row[0]


def add(first, second):
    return first[0], first[1] + second[1]


def summing(vector):
    windowed = Stream().key_by(key).window(TumblingWindows(vector["window"]["size_ms"]))
    lateness_ms = vector["allowed_lateness_ms"]
    return windowed.allowed_lateness(lateness_ms).side_output_late_data(LATE).reduce(add)


class Forward(ProcessFunction):
    def process(self, value, context):
        context.emit((value, context.current_watermark_ms))


@covers("A01", "A04", "A05", "A20", "E05", "E13")
def test_each_event_sees_the_last_watermark_before_it():
    vector = VECTORS["seed000/stream-with-injected-watermarks"]
    harness = OperatorHarness(lambda: ProcessOperator(Forward()))
    harness.feed(elements(vector))
    expected = [
        LoggedRecord(
            (("Mike", each["value"]), millis(each["current_watermark_seen"])),
            millis(each["timestamp"]),
            millis(each["current_watermark_seen"]),
        )
        for each in vector["expected_events_with_current_watermark"]
    ]
    assert harness.logged() == expected


@covers("A04")
def test_lines_with_injected_watermarks_are_a_source():
    vector = VECTORS["seed000/stream-with-injected-watermarks"]
    lines = [
        f"WATERMARK.{each['watermark']}"
        if "watermark" in each
        else f"{each['event_time']},{each['key']},{each['value']}"
        for each in vector["input"]
    ]
    read = [
        Record((each.value[0], int(each.value[1])), each.timestamp_ms)
        if isinstance(each, Record)
        else each
        for each in rows_with_watermarks(lines, time_of=millis)
    ]
    assert read == elements(vector)


@pytest.mark.parametrize("name", TUMBLING_100)
@covers("A06", "A07", "A08", "A09", "A11", "A12", "A13", "A14", "A15", "A16", "D03", "D07", "E19")
def test_results_of_tumbling_windows_with_lateness(name):
    vector = VECTORS[name]
    harness = OperatorHarness(lambda: summing(vector))
    harness.feed(elements(vector))
    harness.end_of_input()
    expected = [
        LoggedRecord(
            (each["key"], each["sum"]), millis(each["timestamp"]), millis(each["logged_watermark"])
        )
        for each in vector["expected"]
    ]
    assert harness.logged() == expected
    assert len(expected) == vector["expected_count"]


@pytest.mark.parametrize("name", TUMBLING_100)
@covers("A08", "A09", "A10", "A11", "A16", "A17", "A18")
def test_verdicts_on_each_event(name):
    vector = VECTORS[name]
    operator = summing(vector)
    verdicts = []
    for element in elements(vector):
        if isinstance(element, Watermark):
            operator.process_watermark(element, now_ms=0)
            continue
        late = [
            each
            for each in operator.process_record(element, now_ms=0)
            if getattr(each, "tag", None) == LATE
        ]
        verdicts.append("dropped" if late else "accepted")
    assert verdicts == [each["verdict"] for each in vector["verdicts"]]
    assert len(verdicts) == 21


@pytest.mark.parametrize("name", TUMBLING_100)
@covers("A06")
def test_windows_are_inclusive_pairs(name):
    vector = VECTORS[name]
    for verdict in vector["verdicts"]:
        (window,) = TumblingWindows(100).assign(None, millis(verdict["event_time"]), 0)
        first, last = vector["windows_inclusive"][verdict["window"]]
        assert (window.start_ms, window.max_timestamp_ms) == (millis(first), millis(last))


@covers("B12", "B13", "B15", "B20", "B21", "B27", "B29", "E07")
def test_constants_of_flip_326():
    values = VECTORS["seed001/constants"]["values"]
    assert f"{AUTO_WATERMARK_INTERVAL_MS}ms" == values["pipeline.auto-watermark-interval default"]
    assert values["record timestamp without assigner"] == "Long.MIN_VALUE"
    assert WatermarkStrategy.no_watermarks().timestamp_of("row", None) == MIN_TIMESTAMP
    source = SourceOperator(WatermarkStrategy.no_watermarks(), emit_progressive_watermarks=False)
    assert source.last_output == Watermark(MIN_TIMESTAMP)
    assert source.process_record("row", now_ms=0)[0] == PROCESSING_TIME
    bounded = SourceOperator(WatermarkStrategy.for_monotonous_timestamps())
    assert list(bounded.end_of_input(now_ms=0)) == [Watermark(MAX_TIMESTAMP)]
    assert UndelegatedReader().delegate_watermark_periodic_emit(print) is False
    assert not Watermark(5).use_processing_time


class Count:
    """Counts elements, and keeps their ids."""

    def create(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value)

    def result(self, accumulator):
        return len(accumulator)

    def merge(self, first, second):
        return first + second


def five_minutes(delay_ms, lateness_ms=0):
    """A source with an extractor of seed 002's rule, and five-minute windows by city."""
    source = SourceOperator(
        WatermarkStrategy.for_generator(
            lambda: BoundedOutOfOrdernessTimestampExtractor(delay_ms)
        ).with_timestamp_assigner(lambda row, _: row["ts"]),
        interval_ms=1,
    )
    windowed = Stream().key_by(lambda row: row["city"]).window(TumblingWindows(5 * MINUTE))
    operator = windowed.allowed_lateness(lateness_ms).uid("agg").aggregate(Count())
    return source, OperatorHarness(lambda: operator)


def arrive(source, harness, time, now_ms):
    """One event, then the periodic watermark that follows it; the counts that fire."""
    caused = []
    for element in (
        *source.process_record({"ts": clock(time), "city": "Paris"}, now_ms=now_ms),
        *source.advance_clock(now_ms),
    ):
        if isinstance(element, Record):
            caused += harness.row(element.value, element.timestamp_ms)
        else:
            caused += harness.watermark(element)
    return [each.value for each in caused if isinstance(each, Record)]


MAX_OUT_OF_ORDERNESS = {
    "seed002/moo-0": (0, ["8:01", "8:03", "8:06"], "8:06"),
    "seed002/moo-2m": (2 * MINUTE, ["8:01", "8:06", "8:03", "8:08"], "8:06"),
}


@pytest.mark.parametrize("name", MAX_OUT_OF_ORDERNESS)
@covers("C01", "C02", "C03", "C04", "C05", "C07", "C10", "C11", "C12", "C19", "E26")
def test_max_out_of_orderness_delays_the_result(name):
    delay_ms, times, expected_watermark = MAX_OUT_OF_ORDERNESS[name]
    fact = VECTORS[name]["facts"][0]
    assert times[-1] == fact["event_time"]
    assert expected_watermark == fact["current_watermark"]
    source, harness = five_minutes(delay_ms)
    source.advance_clock(0)
    fired = [arrive(source, harness, time, number + 1) for number, time in enumerate(times)]
    assert fired == [[]] * (len(times) - 1) + [[fact["emits"]["elements"]]]
    assert source.last_output == Watermark(clock(expected_watermark))
    (record,) = harness.records()
    assert record.timestamp_ms == clock("8:04:59.999")
    # Late from here on.
    assert arrive(source, harness, "8:02", 100) == []
    assert harness.operator.late_records_dropped == 1


@covers("C02", "C06", "C07", "C09", "C13", "E28")
def test_allowed_lateness_of_two_minutes():
    facts = VECTORS["seed002/allowed-lateness-2m"]["facts"]
    source, harness = five_minutes(0, 2 * MINUTE)
    source.advance_clock(0)
    assert arrive(source, harness, "8:01", 1) == []
    assert arrive(source, harness, "8:06", 2) == [facts[0]["emits"]["elements"]]
    assert source.last_output == Watermark(clock(facts[0]["current_watermark"]))
    assert arrive(source, harness, "8:02", 3) == [facts[1]["emits"]["elements"]]
    assert source.last_output == Watermark(clock(facts[1]["current_watermark"]))
    assert arrive(source, harness, "8:08", 4) == []
    assert source.last_output == Watermark(clock(facts[2]["current_watermark"]))
    assert arrive(source, harness, "8:03", 5) == []
    assert harness.operator.late_records_dropped == 1


@covers("C20")
def test_with_a_periodic_generator_over_a_collection_nothing_is_ever_late():
    """Why the author's own test of allowed lateness failed, as we read it.

    A collection is read at once, a periodic generator speaks every 200 ms: all events pass before
    the first watermark, so none is late, and the windows fire once, with everything. With a
    watermark after each event, as above, the text's results come.
    """
    source, harness = five_minutes(0, 2 * MINUTE)
    source.advance_clock(0)
    for time in ("8:01", "8:06", "8:02", "8:08", "8:03"):
        (element,) = source.process_record({"ts": clock(time), "city": "Paris"}, now_ms=0)
        harness.row(element.value, element.timestamp_ms)
    assert harness.values() == []
    (watermark,) = source.advance_clock(200)
    harness.watermark(watermark)
    assert harness.values() == [3]
    assert harness.operator.late_records_dropped == 0


@covers("C14")
def test_out_of_orderness_of_two_minutes_with_lateness_of_one():
    source, harness = five_minutes(2 * MINUTE, MINUTE)
    source.advance_clock(0)
    fired = {
        time: arrive(source, harness, time, number + 1)
        for number, time in enumerate(["8:01", "8:06", "8:04", "8:07", "8:03", "8:08", "8:00"])
    }
    # 8:07 brings the watermark to 8:05 and fires, 8:03 is late but allowed, 8:08 ends the window.
    assert fired == {
        "8:01": [],
        "8:06": [],
        "8:04": [],
        "8:07": [2],
        "8:03": [3],
        "8:08": [],
        "8:00": [],
    }
    assert harness.operator.late_records_dropped == 1


@covers("C15", "C16")
def test_boundaries_are_aligned_to_the_epoch():
    vector = VECTORS["seed002/window-boundaries-5m"]
    assigner = TumblingWindows(5 * MINUTE)
    for text in vector["example_windows"]:
        start, end = (clock(each) for each in text.strip("[)").split(", "))
        assert assigner.assign(None, start, 0) == (TimeWindow(start, end),)
        assert assigner.assign(None, end - 1, 0) == (TimeWindow(start, end),)
    for each in vector["not_windows"]:
        (window,) = assigner.assign(None, clock(each["after_event"]), 0)
        assert window == TimeWindow(clock("8:25"), clock("8:30"))


class Ids:
    def create(self):
        return ("", ())

    def add(self, value, accumulator):
        return value["word"], (*accumulator[1], value["id"])

    def result(self, accumulator):
        word, seen = accumulator
        return word, len(seen), list(seen)

    def merge(self, first, second):
        return first[0], first[1] + second[1]


@pytest.mark.parametrize("lateness_ms", [1_892, 5_000, 10_918])
@covers("B19", "D01", "D05", "D06", "D07", "E27", "E30")
def test_the_log_with_side_output_is_reproduced(lateness_ms):
    vector = VECTORS["seed003/tumbling-1m-lateness-and-side-output"]
    windowed = Stream().key_by(lambda row: row["word"]).window(TumblingWindows(MINUTE))
    harness = OperatorHarness(
        lambda: windowed.allowed_lateness(lateness_ms).side_output_late_data(LATE).aggregate(Ids())
    )
    generator = BoundedOutOfOrderness(5_000)
    out = []

    class Out:
        def emit_watermark(self, watermark, *, now_ms):
            out.extend(harness.watermark(watermark))

    for entry in vector["timeline"]:
        if "event" in entry:
            event = entry["event"]
            time_ms = event["event_time"]
            out.extend(harness.row(event, time_ms))
            generator.on_event(event, time_ms, Out(), now_ms=0)
            generator.on_periodic_emit(Out(), now_ms=0)
    harness.end_of_input()
    fires = [each["fires"] for each in vector["timeline"] if "fires" in each]
    assert harness.values() == [(each["word"], each["count"], each["ids"]) for each in fires]
    sides = [each["side_output"] for each in vector["timeline"] if "side_output" in each]
    assert [
        [row.value["id"], row.value["word"], row.value["count"], row.value["event_time"]]
        for row in harness.side(LATE)
    ] == sides
    mains = [each["main_output"] for each in vector["timeline"] if "main_output" in each]
    assert [[word, count] for word, count, _ in harness.values()] == mains


@pytest.mark.parametrize(("lateness_ms", "late"), [(1_891, [9, 12]), (10_919, [])])
@covers("D01")
def test_the_log_bounds_the_lateness_it_does_not_tell(lateness_ms, late):
    vector = VECTORS["seed003/tumbling-1m-lateness-and-side-output"]
    events = [each["event"] for each in vector["timeline"] if "event" in each]
    operator = (
        Stream()
        .key_by(lambda row: row["word"])
        .window(TumblingWindows(MINUTE))
        .allowed_lateness(lateness_ms)
        .side_output_late_data(LATE)
        .aggregate(Ids())
    )
    harness = OperatorHarness(lambda: operator)
    newest_ms = 0
    for event in events:
        harness.row(event, event["event_time"])
        newest_ms = max(newest_ms, event["event_time"])
        harness.watermark(newest_ms - 5_001)
    assert [row.value["id"] for row in harness.side(LATE)] == late


@covers("D02", "D04", "D13")
def test_an_hour_with_a_minute_of_lateness():
    assert VECTORS["seed003/one-hour-window-one-minute-lateness"]["allowed_lateness"] == "1m"
    windowed = Stream().key_by(key).window(TumblingWindows(60 * MINUTE))
    harness = OperatorHarness(lambda: windowed.allowed_lateness(MINUTE).reduce(add))
    harness.row(("a", 1), clock("8:30"))
    harness.watermark(clock("9:00"))
    assert harness.values() == [("a", 1)]
    assert harness.operator.open_windows == 1
    harness.row(("a", 2), clock("8:59:59.999"))
    assert harness.values() == [("a", 1), ("a", 3)]
    harness.watermark(clock("9:00:59.998"))
    assert harness.operator.open_windows == 1
    harness.watermark(clock("9:00:59.999"))
    assert harness.operator.open_windows == 0
    harness.row(("a", 4), clock("8:30"))
    assert harness.values() == [("a", 1), ("a", 3)]
    assert harness.operator.late_records_dropped == 1


@covers("E07", "E16", "E21")
def test_constants_of_the_event_time_guide():
    values = VECTORS["seed004/constants"]["values"]
    assert f"{AUTO_WATERMARK_INTERVAL_MS} milliseconds" == values["auto watermark interval default"]
    assert TimeWindow(0, 100).max_timestamp_ms == 100 - 1
    assert GLOBAL_WINDOW.max_timestamp_ms == MAX_TIMESTAMP


def test_every_vector_is_used():
    text = Path(__file__).read_text()
    elsewhere = {"seed001/two-channel-combination", "seed001/sql-processing-time-temporal-join"}
    unused = [name for name in VECTORS if name not in text and name not in elsewhere]
    assert unused == []


def test_a_log_starts_at_the_start_of_time():
    assert log([Record("x", 1), Watermark(5), Record("y", 6)]) == [
        LoggedRecord("x", 1, MIN_TIMESTAMP),
        LoggedRecord("y", 6, 5),
    ]
