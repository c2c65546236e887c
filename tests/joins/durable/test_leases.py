"""Leases: which versions of a dimension somebody may still have to read."""

import pytest

from joins.durable.leases import Lease, oldest_attached, oldest_leased, oldest_of_shared
from joins.durable.pins import Pin, PinStore
from joins.plan.errors import CheckpointError


@pytest.fixture
def pins(tmp_path):
    return tmp_path / "pins"


def pin(directory, batch, **versions):
    PinStore(directory).create(Pin(batch, "t", {0: batch}, {0: batch + 1}, versions, 1_000, 1))


def test_nothing_is_leased_before_the_opening(pins):
    assert oldest_leased(pins, 10, {}, {"users": 7, "items": None}) == {}


def test_the_opening_is_leased_until_there_is_a_pin(pins):
    opening = {"users": 3, "items": 5}
    assert oldest_leased(pins, 10, opening, {}) == opening
    pin(pins, 0, users=4, items=5)
    assert oldest_leased(pins, 10, opening, {}) == {"users": 4, "items": 5}


def test_the_oldest_of_the_kept_pins_counts(pins):
    for batch in range(20):
        pin(pins, batch, users=100 + batch)
    for kept, version in {1: 119, 5: 115, 20: 100, 1000: 100}.items():
        assert oldest_leased(pins, kept, {"users": 1}, {"users": 130}) == {"users": version}


def test_the_newest_index_is_leased_for_the_next_batch(pins):
    assert oldest_leased(pins, 10, {"users": 9}, {"users": 8}) == {"users": 8}
    assert oldest_leased(pins, 10, {"users": 9}, {"users": None}) == {"users": 9}


def test_a_damaged_pin_is_not_passed_over(pins):
    pin(pins, 0, users=4)
    (pins / "0000000000.json").write_text("{")
    with pytest.raises(CheckpointError):
        oldest_leased(pins, 10, {}, {})


def test_a_reader_holds_all_of_a_shared_table_until_it_says_what_it_needs(tmp_path):
    lease = Lease(tmp_path / "leases" / "a.json")
    assert oldest_attached(tmp_path / "leases") is None
    lease.begin()
    assert oldest_attached(tmp_path / "leases") == 0
    lease.hold(7)
    lease.begin()  # as its next runner does
    assert oldest_attached(tmp_path / "leases") == 7


def test_the_oldest_of_all_readers_counts_and_without_one_the_newest_version(tmp_path):
    leases = tmp_path / "leases"
    assert oldest_of_shared(leases, {"users": 9}) == {"users": 9}
    for name, version in {"a": 5, "b": 3, "c": 12}.items():
        lease = Lease(leases / f"{name}.json")
        lease.begin()
        lease.hold(version)
    assert oldest_of_shared(leases, {"users": 9}) == {"users": 3}
    assert oldest_of_shared(leases, {"users": None}) == {}
    (leases / "b.json").unlink()
    assert oldest_of_shared(leases, {"users": 9}) == {"users": 5}
    (leases / "c.json").unlink()
    (leases / "a.json").unlink()
    assert oldest_of_shared(leases, {"users": 9}) == {"users": 9}


def test_a_damaged_lease_is_no_permission_to_clean_up(tmp_path):
    lease = Lease(tmp_path / "a.json")
    lease.begin()
    lease.file.write_bytes(b"{")
    with pytest.raises(CheckpointError):
        oldest_of_shared(tmp_path, {"users": 9})
