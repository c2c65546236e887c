"""The harness of the benchmarks, and one of them as small as can be. No test asserts a time."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from joins.durable.pins import Pin, PinStore
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from tests.bench import (
    api_bench,
    join_bench,
    poison_bench,
)
from tests.bench.__main__ import names, read_arguments
from tests.bench.batches import (
    WARM_UP,
    BatchTime,
    batch_limit,
    batch_times,
    newest_pinned,
    pinned_span,
    pinned_times,
    records_per_second,
)
from tests.bench.event_shop import clicks_counted, timed_clicks, wrong_rows
from tests.bench.event_subject import Memory, Used, used_by
from tests.bench.measure import Bar, Measure, Sense, as_json, quantile, spread
from tests.bench.place import Place
from tests.bench.report import line, lines, save
from tests.support.control_plane import control_plane

pytestmark = pytest.mark.matrix

ROOT = Path(__file__).resolve().parents[2]
PROMISED = (
    "api",
    "asof",
    "join",
    "join-kafka",
    "batch-cost",
    "snapshot",
    "store",
    "freshness",
    "history",
    "debezium",
    "large-records",
    "late-rows",
    "latency",
    "drain",
    "memory",
    "page",
    "poison",
    "maintenance",
    "many",
    "project",
    "shared",
    "staleness",
    "update",
    "watermark",
    "windows",
)
TWICE = Bar(Sense.RATIO_AT_LEAST, 2.0)


def measured(values, references=(), bar=None, *, full=True):
    return Measure("speed", "records/s", "10 records", full, values, references, bar)


# Measures
# --------------------------------------------------------------------------------------------------

BARS = {
    "ratio_reaches_the_bar": ([4.0], [2.0], Bar(Sense.RATIO_AT_LEAST, 2.0), True),
    "ratio_is_below_the_bar": ([3.9], [2.0], Bar(Sense.RATIO_AT_LEAST, 2.0), False),
    "ratio_is_small_enough": ([2.4], [2.0], Bar(Sense.RATIO_AT_MOST, 1.2), True),
    "ratio_is_too_large": ([2.5], [2.0], Bar(Sense.RATIO_AT_MOST, 1.2), False),
    "value_is_small_enough": ([30.0], [], Bar(Sense.VALUE_AT_MOST, 30.0), True),
    "value_is_too_large": ([30.1], [], Bar(Sense.VALUE_AT_MOST, 30.0), False),
    "value_is_too_small": ([1.0], [], Bar(Sense.VALUE_AT_LEAST, 2.0), False),
    "no_reference_reaches_no_ratio": ([9.0], [], Bar(Sense.RATIO_AT_LEAST, 2.0), False),
    "reference_of_nothing_reaches_no_ratio": ([9.0], [0.0], Bar(Sense.RATIO_AT_LEAST, 2.0), False),
    "without_a_bar_it_is_told_only": ([1.0], [], None, True),
}


@pytest.mark.parametrize(("values", "references", "bar", "ok"), BARS.values(), ids=BARS)
def test_a_bar_is_met_or_not(values, references, bar, ok) -> None:
    assert measured(values, references, bar).ok is ok


def test_the_median_of_the_runs_counts() -> None:
    found = measured([1.0, 100.0, 3.0], [2.0, 1.0, 50.0], TWICE)
    assert (found.value, found.reference, found.ratio) == (3.0, 2.0, 1.5)
    assert spread([1.0, 100.0, 3.0]) == 33.0


QUANTILES = {
    "median_of_an_odd_number": ([3, 1, 2], 0.5, 2),
    "last_of_few": ([1, 2, 3], 0.99, 3),
    "of_a_hundred": (list(range(1, 101)), 0.99, 99),
    "of_one": ([7], 0.5, 7),
}


@pytest.mark.parametrize(("values", "share", "expected"), QUANTILES.values(), ids=QUANTILES)
def test_quantile_is_a_value_that_was_measured(values, share, expected) -> None:
    assert quantile(values, share) == expected


def test_the_last_line_has_what_is_promised_and_its_parts() -> None:
    told = as_json("join", [measured([3.0], [1.0], TWICE), measured([1.0], [1.0], TWICE)])
    assert json.loads(json.dumps(told)) == told
    assert {"bench", "value", "unit", "reference", "ratio", "bar", "ok", "spread"} <= told.keys()
    assert (told["bench"], told["ratio"], told["bar"]) == ("join", 3.0, 2.0)
    assert told["ok"] is False, "one part misses its bar"
    assert [part["ok"] for part in told["parts"]] == [False]


# Batches
# --------------------------------------------------------------------------------------------------


def spark_logs(directory: Path, *batches: tuple[int, float]) -> Path:
    """A query's logs: (end offset, time of the commit) a batch."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True)
    for number, (end, at) in enumerate(batches):
        ends = json.dumps({"clicks": {"0": end - 1, "1": 1}})
        (directory / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{ends}')
        entry = directory / "commits" / str(number)
        entry.touch()
        os.utime(entry, (at, at))
    return directory


def test_a_batch_lasts_from_one_commit_to_the_next_and_the_first_two_do_not_count(
    tmp_path: Path,
) -> None:
    logs = spark_logs(tmp_path, (10, 100.0), (20, 101.0), (30, 103.0), (45, 104.5))
    assert batch_times(logs) == [BatchTime(2, 10, 2.0), BatchTime(3, 15, 1.5)]


def test_after_a_start_the_first_two_batches_are_left_out_again(tmp_path: Path) -> None:
    logs = spark_logs(tmp_path, *((10 * n + 10, 100.0 + n) for n in range(8)))
    assert [time.number for time in batch_times(logs, behind=3)] == [4 + WARM_UP, 7]


def pinned(checkpoint: Path, *batches: tuple[int, int, float], ended_at: float) -> Path:
    """A job's pins: (first offset, offset behind the last one, time of the pin) a batch."""
    store = PinStore(checkpoint / "pins")
    for number, (start, end, at) in enumerate(batches):
        store.create(Pin(number, "clicks", {0: start}, {0: end}, {}, 0, 1))
        os.utime(checkpoint / "pins" / f"{number:010d}.json", (at, at))
    (checkpoint / "progress.json").touch()
    os.utime(checkpoint / "progress.json", (ended_at, ended_at))
    return checkpoint


def test_a_batch_lasts_from_its_pin_to_the_next_one_and_the_last_until_it_is_counted(
    tmp_path: Path,
) -> None:
    times = ((10 * n, 10 * n + 10, 100.0 + 2 * n) for n in range(4))
    checkpoint = pinned(tmp_path, *times, ended_at=107.0)
    measured = pinned_times(checkpoint)
    assert measured == [BatchTime(2, 10, 2.0), BatchTime(3, 10, 1.0)]
    assert pinned_span(checkpoint, measured) == (104.0, 107.0)
    assert newest_pinned(checkpoint) == 3
    assert [time.number for time in pinned_times(checkpoint, behind=0)] == [3]


def test_a_last_batch_that_had_less_to_do_does_not_count() -> None:
    times = [BatchTime(2, 10, 1.0), BatchTime(3, 10, 1.0), BatchTime(4, 1, 1.0)]
    assert records_per_second(times) == 10.0


def test_a_run_without_enough_batches_is_no_measure() -> None:
    with pytest.raises(ValueError, match="give more records"):
        records_per_second([])


@pytest.mark.parametrize(("records", "limit"), [(4_000_000, 500_000), (50_000, 12_500), (3, 1)])
def test_few_records_are_cut_into_batches_that_can_be_measured(records: int, limit: int) -> None:
    assert batch_limit(records) == limit
    assert records // limit >= min(records, 4)


# The command line
# --------------------------------------------------------------------------------------------------


def test_every_promised_benchmark_is_there() -> None:
    assert [name for name in PROMISED if name not in names()] == []


@pytest.mark.usefixtures("processes")
def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.bench", "joins"], cwd=ROOT, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert 'no benchmark is named "joins"' in ended.stderr
    assert "hint: There are api, asof, batch-cost, changes, " in ended.stderr


@pytest.mark.parametrize("given", [["join", "--records", "0"], ["join", "--dim", "many"]])
def test_sizes_are_positive_numbers(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_arguments(given)
    assert given[2] in capsys.readouterr().err


# The table
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "BENCHMARKS.md"
    path.write_text("# Benchmarks\n\nRead me.\n\n## What falls short\nNothing.\n")
    return path


def rows(path: Path) -> list[str]:
    return [row for row in path.read_text().splitlines() if row.startswith("| `")]


def test_a_line_tells_numbers_bar_and_spread() -> None:
    found = line("join", measured([3.0, 4.0, 5.0], [1.0, 2.0, 2.5], TWICE).as_json(), "today")
    assert found == (
        "| `join` | speed | 10 records | 4 records/s | 2 | 2 | ≥ 2x | yes | 50%, 75% | today |"
    )


def test_a_line_says_when_it_was_measured_at_a_smaller_size() -> None:
    found = line("join", measured([1.0], [1.0], TWICE, full=False).as_json(), "today")
    assert "| 10 records (*smaller*) |" in found
    assert "| **no**, at this size |" in found


def test_lines_of_a_benchmark_that_runs_again_are_replaced(document: Path) -> None:
    for new in (
        ["| `join` | a |", "| `join` | b |"],
        ["| `drain` | a |"],
        ["| `join-kafka` | a |"],
        ["| `join` | c |"],
    ):
        save(document, "2 cores", "Python 3", new)
    assert rows(document) == ["| `drain` | a |", "| `join` | c |", "| `join-kafka` | a |"]
    text = document.read_text()
    assert text.startswith("# Benchmarks\n\nRead me.\n\n## 2 cores\nPython 3.\n\n| bench |")
    assert text.endswith("\n\n## What falls short\nNothing.\n")


def test_each_part_has_its_own_line_and_its_own_verdict() -> None:
    told = as_json("join", [measured([3.0], [1.0], TWICE), measured([1.0], [1.0], TWICE)])
    first, second = lines(told)
    assert "| yes |" in first
    assert "| **no** |" in second


def test_a_benchmark_that_makes_its_own_last_line_has_a_line_too() -> None:
    told = {"bench": "kernel", "value": 1.5, "unit": "M rec/s", "reference": 3.0, "ratio": 0.5}
    (found,) = lines({**told, "bar": 0.4, "ok": True, "parts": [{"ratio": 1.0}]})
    assert found.startswith("| `kernel` | kernel |  | 1.5 M rec/s | 3 | 0.5 | ≥ 0.4x | yes |")


def test_another_machine_or_version_has_a_table_of_its_own(document: Path) -> None:
    save(document, "2 cores", "Python 3", ["| `join` | old |"])
    save(document, "2 cores", "Python 4", ["| `join` | new |"])
    assert rows(document) == ["| `join` | new |", "| `join` | old |"]


# The benchmarks
# --------------------------------------------------------------------------------------------------


def test_forty_kinds_of_bad_values_come_to_one_in_a_hundred() -> None:
    assert len(set(poison_bench.bad_values())) == poison_bench.KIND_COUNT
    clean = poison_bench.visits(range(50, 8_050))
    poisoned = poison_bench.poisoned_visits(range(50, 8_050))
    odd = [
        at for at, (good, found) in enumerate(zip(clean, poisoned, strict=True)) if good != found
    ]
    assert odd == list(range(50, 8_000, 100))
    assert {poisoned[at] for at in odd} == set(poison_bench.bad_values())


def test_a_version_or_a_count_that_is_wrong_is_found() -> None:
    users, span_ms = 10, 300
    clicks = [json.loads(click) for click in timed_clicks(users, 1)(range(span_ms))]
    times = [datetime.fromisoformat(click["ts"]) for click in clicks]

    def name(user: int, at_ms: int) -> str | None:
        version = (at_ms - user * 7919 % 100) // 100 + 1
        return None if user > users or version < 1 else f"user {user} v{min(version, 3)}"

    columns = {
        "user_id": pa.array([click["user_id"] for click in clicks]),
        "ts": pa.array(times, pa.timestamp("us")),
        "name": pa.array([name(click["user_id"], n) for n, click in enumerate(clicks)]),
    }
    right = pa.table(columns)
    assert wrong_rows(right, users, span_ms) == 0
    names = pa.array(["user 1 v9", *columns["name"].to_pylist()[1:]])
    assert wrong_rows(right.set_column(2, "name", names), users, span_ms) == 1
    starts = [times[0], times[0] + timedelta(minutes=5), times[0] + timedelta(minutes=10)]
    counts = pa.table(
        {
            "window_start": pa.array(starts, pa.timestamp("us")),
            "window_end": pa.array([t + timedelta(minutes=5) for t in starts], pa.timestamp("us")),
            "clicks": [1, 20, 300],
        }
    )
    assert clicks_counted(counts, 300_000, 900_000) == 320
    assert clicks_counted(counts, 0, 899_999) == 21


def test_memory_of_a_drain_is_compared_behind_its_warm_up() -> None:
    me = used_by([psutil.Process()])
    assert me.python > 1
    assert me.jvm == 0
    memory = Memory(Path(), [Used(1.0, 900, 0), Used(2.0, 10, 0), Used(3.0, 20, 0)])
    assert memory.halves(2.0) == (10, 20)
    assert memory.halves(3.0) is None


def test_requests_are_sent_when_they_are_due_and_counted_by_kind(tmp_path: Path) -> None:
    with control_plane(tmp_path) as plane:
        port = int(plane.url.rpartition(":")[2])
        load = api_bench.Load(port, lambda n: api_bench.Ask(f"kind {n % 2}", "/livez"), per_s=50)
        began = time.monotonic()
        load.run(25)
        assert time.monotonic() - began >= 24 / 50
        assert {kind: len(took) for kind, took in load.took_ms.items()} == {
            "kind 0": 13,
            "kind 1": 12,
        }
        with pytest.raises(RuntimeError, match=r"/v1/nothing: 404"):
            api_bench.Load(port, lambda _: api_bench.Ask("read", "/v1/nothing")).run(1)


@pytest.mark.experiment
def test_join_runs_the_reference_and_a_real_job_on_the_same_records(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, java: Java
) -> None:
    soon = {"fold_interval_s": 1.0}  # the job is stopped when its table is folded
    place = Place(tmp_path, driver_memory="1g", services=(kafka, mariadb), settings=soon)
    found, cpu = join_bench.measure_one(place, (8_000, 1_000, 1), changes_per_s=0)
    assert cpu.value > 0
    assert found.value > 0
    assert found.reference > 0
    assert "batches of 2,000" in found.size
