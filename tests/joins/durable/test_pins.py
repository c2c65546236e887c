"""Pins: written once, read the same for ever."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from joins.durable.pins import EventPin, Pin, PinStore, pin_json
from joins.plan.errors import CheckpointError
from watermark.freshness import LookUp, Proof

PIN = Pin(
    batch=7,
    topic="clicks",
    start_offsets={0: 10, 1: 0, 10: 5},
    end_offsets={0: 12, 1: 3, 10: 5},
    versions={"users": 12, "items": 3},
    batch_timestamp_ms=1_700_000_000_123,
    epoch=2,
)


def test_a_pin_is_read_as_it_was_written(tmp_path):
    store = PinStore(tmp_path / "pins")
    assert store.read(7) is None
    assert store.create(PIN) == PIN
    assert PinStore(tmp_path / "pins").read(7) == PIN


EVENT = {
    "of_this_runner": (
        '{"watermark":5,"processing_time":false,"window_watermark":4,"clock_ms":9,'
        '"has_ended":false,"channels":null,"waiting":1,"late":0,"fired":2,"at_end":[1],'
        '"backlog":{"read":[0],"read_before":[]},"dimensions":{"rates":{"0":[7,null]}},'
        '"state_versions":{"waiting":3}}'
    ),
    "of_an_older_runner": '{"watermark":5,"at_end":[],"dimensions":{}}',
}


@pytest.mark.parametrize("text", EVENT.values(), ids=EVENT)
def test_what_the_pin_of_an_event_batch_says_is_stored_as_it_always_was(tmp_path, text):
    pin = replace(PIN, event=EventPin.of(json.loads(text)))
    store = PinStore(tmp_path)
    assert store.create(pin) == pin
    stored = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert json.dumps(stored["event"], separators=(",", ":")) == text
    assert json.dumps(pin_json(store.read(7))["event"], separators=(",", ":")) == text


def test_the_time_of_each_table_is_pinned(tmp_path):
    as_of = {"users": Proof(1_000, {"file": "binlog.000001", "pos": 4}, source_ms=999)}
    looked_up = LookUp(900, {0: 7, 1: 0})
    pin = replace(PIN, as_of=as_of, stale_released=True, looked_up=looked_up)

    PinStore(tmp_path).create(pin)

    assert PinStore(tmp_path).read(PIN.batch) == pin


def test_a_pin_names_its_plan_and_one_without_a_name_has_the_first(tmp_path):
    store = PinStore(tmp_path)
    assert store.create(replace(PIN, plan=3)).plan == 3
    assert "plan" not in pin_json(PIN)  # as in the pins of older releases
    assert store.create(replace(PIN, batch=8)).plan == 1


def test_the_first_pin_of_a_batch_holds(tmp_path):
    store = PinStore(tmp_path)
    store.create(PIN)
    later = replace(PIN, versions={"users": 99}, epoch=3)
    assert store.create(later) == PIN
    assert store.read(7) == PIN


def test_all_who_pin_a_batch_at_once_get_the_same_pin(tmp_path):
    store = PinStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: store.create(replace(PIN, epoch=n)), range(32)))
    assert len({pin.epoch for pin in found}) == 1


def test_the_newest_pin_is_that_of_the_greatest_batch(tmp_path):
    store = PinStore(tmp_path / "pins")
    assert store.newest() is None
    for batch in (9, 100, 10):
        store.create(replace(PIN, batch=batch))
    assert store.newest() == replace(PIN, batch=100)


DAMAGED = {
    "cut": "{",
    "without_members": '{"format_version": 1}',
    "text_for_a_mapping": '{"format_version": 1, "batch": 7, "topic": "t", "start_offsets": "x"}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_pin_is_refused(tmp_path, content):
    store = PinStore(tmp_path)
    store.create(PIN)
    next(tmp_path.iterdir()).write_text(content)
    with pytest.raises(CheckpointError):
        store.read(7)
    with pytest.raises(CheckpointError):
        store.create(PIN)


def test_a_pin_counts_its_offsets_and_names_its_versions():
    assert PIN.records() == 2 + 3 + 0
    assert PIN.versions_text() == "items=3,users=12"


def test_commit_metadata_has_partitions_in_numeric_order():
    told = pin_json(PIN)
    assert list(told["end_offsets"]) == ["0", "1", "10"]
    assert json.loads(json.dumps(told)) == told


def test_pruning_keeps_the_newest_pins(tmp_path):
    store = PinStore(tmp_path / "pins")
    store.prune(keep=3)
    for batch in (7, 8, 9, 10, 11):
        store.create(replace(PIN, batch=batch))
    store.prune(keep=3)
    assert [store.read(batch) is not None for batch in range(7, 12)] == [False] * 2 + [True] * 3
    store.prune(keep=3)
    assert store.newest().batch == 11


def test_an_abandoned_pin_is_put_aside(tmp_path):
    store = PinStore(tmp_path / "pins")
    for batch in (7, 8):
        store.create(replace(PIN, batch=batch))
    store.abandon(8)
    store.abandon(8)
    assert store.newest() == PIN
    assert store.read(8) is None
    assert PinStore(tmp_path / "pins" / "abandoned").read(8) == replace(PIN, batch=8)
