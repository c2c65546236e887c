"""The first batch that has a position: what pins prove, and what their versions add."""

import pytest

from joins.durable.pins import Pin, PinStore
from joins.lookback.tokens import first_batch
from joins.plan.positions import token_of
from watermark.freshness import Proof


def pins(directory, *proofs):
    """Pins of batches 0, 1, …; each (P, oldest change added, newest change there) or None."""
    store = PinStore(directory)
    directory.mkdir()
    for batch, proof in enumerate(proofs):
        as_of = {}
        if proof is not None:
            pos, added, through = proof
            position = {"file": "binlog.000001", "pos": pos}
            if added != "unknown":
                places = [None if at is None else [1, at] for at in (added, through)]
                position |= {"added": places[0], "through": places[1]}
            as_of = {"users": Proof(1_000 * (batch + 1), position)}
        store.create(Pin(batch, "clicks", {0: 0}, {0: 0}, {"users": batch}, 0, 1, as_of=as_of))
    return directory


FIRST = {
    "no_batch_has_it": ([(100, None, 90), (200, 110, 190)], "binlog.000001:201", None),
    "the_first_that_proves_it": (
        [(100, None, 90), (200, 110, 190), (300, 210, 290)],
        "binlog.000001:200",
        1,
    ),
    "an_earlier_version_has_the_change_before_it_is_proven": (
        [(100, None, 90), (100, 110, 150), (100, 160, 190), (200, None, 190)],
        "binlog.000001:140",
        1,
    ),
    "a_later_change_does_not_count": (
        [(100, None, 90), (100, 110, 150), (100, 160, 190), (200, None, 190)],
        "binlog.000001:185",
        2,
    ),
    "a_position_without_a_change_of_the_table_is_the_proof": (
        [(100, 60, 90), (100, None, 90), (200, None, 90)],
        "binlog.000001:150",
        2,
    ),
    "a_position_behind_the_last_change_counts_from_that_change_on": (
        [(100, None, 90), (100, 110, 110), (100, None, 110), (200, None, 110)],
        "binlog.000001:150",
        1,
    ),
    "pins_without_a_proof_have_nothing": ([None, None, (200, None, 90)], "binlog.000001:150", 2),
    "what_is_unknown_after_a_restart_is_not_passed_over": (
        [(100, None, 90), (100, "unknown", None), (100, None, 130), (200, None, 130)],
        "binlog.000001:120",
        1,
    ),
    "a_time_is_proven_by_T": ([(100, None, 90), (100, None, 90)], "at:1500", 1),
}


@pytest.mark.parametrize("case", FIRST)
def test_first_batch(case, tmp_path):
    proofs, position, expected = FIRST[case]
    directory = pins(tmp_path / "pins", *proofs)

    found = first_batch(directory, "users", token_of(position, 0), len(proofs) - 1)

    assert (found.batch, found.newest_batch) == (expected, len(proofs) - 1)


def test_a_place_in_a_binlog_is_one_of_the_server_that_answers_now(tmp_path):
    """The place of a write on the server before a failover is far behind on the next one."""
    store = PinStore(tmp_path / "pins")
    (tmp_path / "pins").mkdir()
    for batch, (server_id, file, pos) in enumerate([(1, 9, 500), (1, 9, 600), (2, 3, 100)]):
        position = {"file": f"binlog.{file:06}", "pos": pos, "gtid": f"0-1-{batch + 7}"}
        proof = Proof(1_000 + batch, {**position, "server_id": server_id})
        pin = Pin(
            batch=batch,
            topic="clicks",
            start_offsets={0: 0},
            end_offsets={0: 0},
            versions={"users": batch},
            batch_timestamp_ms=0,
            epoch=1,
            as_of={"users": proof},
        )
        store.create(pin)

    def batch_of(position):
        return first_batch(tmp_path / "pins", "users", token_of(position, 0), 2).batch

    assert batch_of("binlog.000009:550") is None
    assert batch_of("binlog.000003:90") == 2
    assert batch_of("0-1-8") == 1, "a GTID is the same on either server"


def test_a_batch_counts_once_it_is_committed(tmp_path):
    directory = pins(tmp_path / "pins", (100, None, 90), (200, None, 90))
    token = token_of("binlog.000001:150", 0)

    assert first_batch(directory, "users", token, 0).batch is None
    assert first_batch(directory, "users", token, 1).batch == 1


def test_where_it_stands_is_told(tmp_path):
    directory = pins(tmp_path / "pins", (100, None, 90))

    found = first_batch(directory, "users", token_of("binlog.000001:150", 0), 0)

    assert found.as_json()["position"]["pos"] == 100
    assert first_batch(tmp_path / "none", "users", token_of("now", 0), None).as_json() == {
        "batch": None,
        "newest_batch": None,
        "as_of_ms": None,
        "position": {},
    }
