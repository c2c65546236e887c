"""The last day of a job: a file of fixed size, whose points are those of their times or none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs.store.history import (
    COARSE,
    FILE_BYTES,
    FINE,
    SERIES,
    UNKNOWN,
    HistoryPoint,
    JobSampler,
    means,
    read_points,
    write_point,
)
from service.jobs.store.job import JobState
from service.jobs.store.runner_files import Status

AT_MS = 1_700_000_000_000 // 60_000 * 60_000


def row(value):
    return [float(value)] * len(SERIES)


def seen(tmp_path, ring):
    first = ring.slot(AT_MS)
    return read_points(tmp_path / "history.bin", ring, first, first + 20)


@given(slots=st.lists(st.integers(1, 2_000), max_size=60), ring=st.sampled_from([FINE, COARSE]))
def test_a_ring_has_the_newest_points_of_its_turn_and_no_others(tmp_path_factory, slots, ring):
    file = tmp_path_factory.mktemp("ring") / "history.bin"
    places = {}
    for slot in slots:
        write_point(file, ring, slot, row(slot))
        places[slot % ring.points] = slot
    newest = max(slots, default=0)
    points = read_points(file, ring, 0, newest)
    kept = sorted(slot for slot in places.values() if slot > newest - ring.points)
    assert [point.at_ms for point in points] == [slot * ring.step_s * 1000 for slot in kept]
    assert [point.values[0] for point in points] == kept
    assert not slots or file.stat().st_size == FILE_BYTES


def test_the_rings_of_a_file_do_not_touch_one_another(tmp_path):
    file = tmp_path / "history.bin"
    for slot in range(FINE.points):
        write_point(file, FINE, slot, row(1))
    for slot in range(COARSE.points):
        write_point(file, COARSE, slot, row(2))
    assert {p.values[0] for p in read_points(file, FINE, 0, FINE.points - 1)} == {1}
    assert {p.values[0] for p in read_points(file, COARSE, 0, COARSE.points - 1)} == {2}


DAMAGE = {
    "torn": lambda content: content[: FILE_BYTES // 8],
    "a_flipped_bit": lambda content: content[:70] + bytes([content[70] ^ 1]) + content[71:],
    "another_form": lambda content: b"SLUICEH9" + content[8:],
    "no_file_of_ours": lambda content: b"{}",
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_points_are_none_and_the_next_ones_are_kept(tmp_path, damage):
    file = tmp_path / "history.bin"
    write_point(file, FINE, 0, row(1))
    file.write_bytes(damage(file.read_bytes()))
    read = read_points(file, FINE, 0, 0)
    assert [point.values[0] for point in read] in ([], [1.0])
    write_point(file, FINE, 3, row(3))
    assert [p.values[0] for p in read_points(file, FINE, 3, 3)] == [3.0]


def test_a_job_that_was_never_seen_has_no_points(tmp_path):
    assert read_points(tmp_path / "history.bin", FINE, 0, 100) == []


def test_means_count_what_is_known():
    points = [
        HistoryPoint(at, [value]) for at, value in ((0, 1.0), (10_000, UNKNOWN), (20_000, 3.0))
    ]
    assert [(p.at_ms, list(p.values)) for p in means(points, 60_000)] == [(0, [2.0])]
    [unknown] = means(points[1:2], 60_000)
    assert math.isnan(unknown.values[0])


def report(at_ms, **probe):
    content = {
        "updated_at_ms": at_ms,
        "probe": {"next_offsets": {"0": 0}, "joined_records": 0, **probe},
        "dimensions": [
            {
                "snapshot": {"rows_done": 5},
                "streamed_records": None,
                "lag_records": 7,
                "freshness": {"as_of_ms": at_ms - 2_000},
            }
        ],
        "event_time": {"watermark_ms": at_ms - 4_000},
    }
    return Status(1, JobState.JOINING, "", None, at_ms, content)


def sampled(tmp_path, reports, *, restarts=()):
    """The fine points after these reports; the control plane is another one behind some of them."""
    sampler = JobSampler(tmp_path)
    for number, each in enumerate(reports):
        if number in restarts:
            sampler = JobSampler(tmp_path)
        sampler.sample(each)
    return [p.numbers() for p in seen(tmp_path, FINE)]


def test_counters_become_rates_and_the_rest_stays_as_it_is(tmp_path):
    reports = [
        report(
            AT_MS + 1000 * second,
            next_offsets={"0": 50 * second, "1": 50 * second},
            joined_records=20 * second,
            lag_records=9,
            freshness_ms={"a": 30, "b": None, "c": 70},
            latency_ms=250,
            batch_stages_ms={"index": 1, "join": 200, "commit": 30},
        )
        for second in range(21)
    ]
    first, second = sampled(tmp_path, reports)
    assert first["records_per_s"] == second["records_per_s"] == 100
    assert (second["rows_per_s"], second["lag_records"], second["freshness_ms"]) == (20, 9, 70)
    assert (second["join_ms"], second["table_lag_records"]) == (200, 7)
    assert second["watermark_age_ms"] == 4_000
    assert (second["latency_ms"], second["as_of_age_ms"]) == (250, 2_000)
    assert second["changes_per_s"] is None  # nobody has counted them


BREAKS = {
    "counted_anew": [(0, 100), (1, 0), (11, 0)],
    "long_silence": [(0, 0), (45, 9_000), (58, 9_000)],
    "the_clock_went_back": [(9, 0), (8, 100), (19, 100)],
}


@pytest.mark.parametrize("told", BREAKS.values(), ids=BREAKS)
def test_there_is_no_rate_over_a_break(tmp_path, told):
    reports = [report(AT_MS + 1000 * at, joined_records=rows) for at, rows in told]
    assert {each["rows_per_s"] for each in sampled(tmp_path, reports)} == {None}


def test_a_report_counts_once_however_often_it_is_read(tmp_path):
    reports = [report(AT_MS)] * 5 + [report(AT_MS + 10_000)]
    assert len(sampled(tmp_path, reports)) == 1


def test_a_control_plane_that_comes_back_goes_on_and_leaves_a_gap(tmp_path):
    reports = [report(AT_MS + 1000 * second) for second in (0, 10, 20, 60, 70)]
    sampled(tmp_path, reports, restarts=(3,))
    points = seen(tmp_path, FINE)
    assert [(p.at_ms - AT_MS) // 1000 for p in points] == [0, 10, 60]


def test_minutes_are_made_of_their_points(tmp_path):
    sampled(tmp_path, [report(AT_MS + 1000 * s, lag_records=s) for s in range(0, 100, 10)])
    [first] = seen(tmp_path, COARSE)
    assert first.at_ms == AT_MS
    assert first.numbers()["lag_records"] == 25


@pytest.mark.parametrize("strange", [{"probe": 7}, {"dimensions": [{}]}, {"event_time": []}])
def test_a_report_that_cannot_be_read_is_left_out(tmp_path, strange):
    sampler = JobSampler(tmp_path)
    odd = Status(1, None, "", None, AT_MS, {"updated_at_ms": AT_MS, **strange})
    for each in (odd, report(AT_MS + 10_000), report(AT_MS + 20_000)):
        sampler.sample(each)
    assert seen(tmp_path, FINE)
