"""Work items: who gets which files, what goes with the batch, and when small files are merged."""

import json
from dataclasses import replace

import pytest

from joins.adapters.delta.state_log import StateFile
from joins.batch.event_channels import EventInput, Merged
from joins.batch.event_stages import (
    MANY_IN_BUCKET,
    WaitingPlan,
    act_stage,
    to_merge,
    window_stage,
)
from joins.batch.event_state import Advance, EventChannels, EventState
from joins.plan.plan import WindowKind
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark


def file(name, first, last, **given):
    keep, bucket, rows = given.get("keep", last), given.get("bucket", 0), given.get("rows", 10)
    return StateFile(name, rows, 100, first, last, keep, bucket)


def move(after, upto, steps=()):
    merged = Merged(Watermark(after), Watermark(upto), {}, tuple(steps))
    ends = (EventState(watermark=each, window_watermark=each) for each in (after, upto))
    return Advance(*ends, merged, EventChannels([EventInput("probe")]))


def told(plan):
    return [json.loads(item) for item in plan.items]


def test_only_files_with_something_due_are_read_and_whole_ones_go():
    files = [file("gone", 10, 20), file("partly", 15, 90), file("later", 50, 90)]
    plan = act_stage([], files, move(5, 20))
    (item,) = told(plan)
    assert item["parts"] == [
        {
            "partition": 0,
            "arrivals": [],
            "waiting": [
                {"path": "gone", "rewrite": False},
                {"path": "partly", "rewrite": False},
            ],
        }
    ]
    assert (item["after"], item["upto"], plan.removed) == (5, 20, ("gone",))


def test_in_processing_time_every_file_is_read_and_goes():
    files = [file("a", 10, 20), file("b", 2**62, 2**62, bucket=1)]
    before = EventState(watermark=5, window_watermark=5)
    after = replace(before, watermark=MIN_TIMESTAMP, processing_time=True, window_watermark=900)
    switch = replace(move(5, 5), before=before, after=after)
    plan = act_stage([], files, switch)
    (item,) = told(plan)
    assert (item["after"], item["upto"]) == (5, MAX_TIMESTAMP)
    assert plan.removed == ("a", "b")
    (fires,) = told(window_stage([], [file("w", 700, 700)], switch, WindowKind.TUMBLE))
    assert (fires["after"], fires["upto"], len(fires["parts"])) == (5, 900, 1)
    (later,) = told(
        act_stage([{"path": "p", "partition": 0, "rows": 1}], [], replace(switch, before=after))
    )
    assert (later["after"], later["upto"]) == (MIN_TIMESTAMP, MAX_TIMESTAMP)


def test_parts_are_partitions_in_their_order_and_share_small_tasks():
    arrivals = [{"path": f"a{p}", "partition": p, "rows": 10} for p in (2, 0, 1)]
    (item,) = told(act_stage(arrivals, [file("w", 1, 2, bucket=1)], move(0, 5)))
    assert [(part["partition"], len(part["waiting"])) for part in item["parts"]] == [
        (0, 0),
        (1, 1),
        (2, 0),
    ]


def test_many_rows_have_many_tasks():
    arrivals = [{"path": f"a{p}", "partition": p, "rows": 4_000} for p in range(4)]
    assert len(told(act_stage(arrivals, [], move(0, 5)))) == 4


def test_a_batch_without_anything_has_one_item_without_parts():
    (item,) = told(act_stage([], [], move(0, 5)))
    assert item["parts"] == []


def test_steps_are_the_watermarks_of_the_batch():
    (item,) = told(act_stage([], [], move(0, 5, [(0, 3, 2), (1, 0, 5)])))
    assert item["steps"] == [2, 5]


FEW = [file(f"f{at:02d}", 1, 9) for at in range(MANY_IN_BUCKET)]
MERGES = {
    "few_files_stay": (FEW, 0),
    "many_small_files_become_one": ([*FEW, file("more", 1, 9)], MANY_IN_BUCKET + 1),
    "an_old_large_one_is_left_alone": ([file("a", 1, 9, rows=10**6), *FEW], MANY_IN_BUCKET),
    "none_is_taken_from_between_others": (
        [*FEW[:10], file("f09b", 1, 9, rows=10**6), *FEW[10:]],
        MANY_IN_BUCKET - 10,
    ),
    "one_before_large_ones_is_not_written_again": (
        [*(file(f"a{at:02d}", 1, 9, rows=10**6) for at in range(MANY_IN_BUCKET)), file("b", 1, 9)],
        0,
    ),
    "buckets_are_not_mixed": (
        [file(f"f{at}", 1, 9, bucket=at) for at in range(MANY_IN_BUCKET + 1)],
        0,
    ),
}


@pytest.mark.parametrize(("files", "merged"), MERGES.values(), ids=MERGES)
def test_small_files_of_a_bucket_are_merged_when_there_are_many(files, merged):
    assert len(to_merge(files)) == merged


def test_files_of_late_rows_stay_small_as_each_row_that_leaves_rewrites_one():
    files = [file(f"f{at:02d}", 1, 9, rows=10_000) for at in range(MANY_IN_BUCKET + 1)]
    plan = WaitingPlan.of(files, move(5, 6), 0, has_news=False)
    (part,) = plan.parts.values()
    assert [each["path"] for each in part["files"] if each["rewrite"]] == ["f14", "f15", "f16"]


def test_merged_files_go_with_the_batch_though_nothing_of_them_is_due():
    files = [file(f"f{at}", 50, 90) for at in range(MANY_IN_BUCKET + 1)]
    plan = act_stage([], files, move(5, 20))
    ((part,),) = [item["parts"] for item in told(plan)]
    assert {each["rewrite"] for each in part["waiting"]} == {True}
    assert len(plan.removed) == MANY_IN_BUCKET + 1


def test_windows_get_all_files_of_a_bucket_with_news_or_something_due():
    files = [file("a", 10, 10, keep=40), file("b", 90, 90), file("c", 90, 90, bucket=1)]
    partials = [{"bucket": 2, "path": "p", "rows": 3}]
    plan = window_stage(partials, files, move(5, 20), WindowKind.TUMBLE)
    (item,) = told(plan)
    assert [
        (part["bucket"], [each["path"] for each in part["state"]]) for part in item["parts"]
    ] == [
        (0, ["a", "b"]),
        (2, []),
    ]
    assert plan.removed == (), "late rows of a fired window may still need it"
    assert window_stage([], files, move(20, 40), WindowKind.TUMBLE).removed == ("a",)


def test_sessions_with_news_are_written_anew_by_bucket():
    files = [file("a", 50, 60), file("b", 50, 60, bucket=1)]
    partials = [{"bucket": 0, "path": "p", "rows": 3}]
    plan = window_stage(partials, files, move(5, 20), WindowKind.SESSION)
    assert plan.removed == ("a",)
