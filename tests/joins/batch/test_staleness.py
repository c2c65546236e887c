"""The gate after the opening: which records pass, what is shown, and what an operator releases."""

import errno
import time

import pytest

from joins.batch import staleness
from joins.batch.staleness import StalenessGate
from joins.durable.requests import Request
from joins.plan.errors import NothingToAcknowledgeError, RequestError
from watermark.freshness import GateState, LookUp, Proof

HOUR_MS = 3_600_000


def now_ms():
    return time.time_ns() // 1_000_000


class Records:
    """Records of two partitions, one a second, the newest now; counts the questions."""

    def __init__(self):
        self.begin_ms = now_ms() - 100_000
        self.asked = 0

    def first_at(self, time_ms):
        self.asked += 1
        first = max(0, min(100, -(-(time_ms - self.begin_ms) // 1_000)))
        return {0: first, 1: first}


@pytest.fixture
def gate(tmp_path):
    return StalenessGate({"users": 5_000}, tmp_path / "stale.json", tmp_path / "decisions.jsonl")


def cut(gate, records, *, age_ms, start=0, end=100):
    proofs = {} if age_ms is None else {"users": Proof(now_ms() - age_ms, {})}
    return gate.cut({0: start, 1: start}, {0: end, 1: end}, proofs, records.first_at)


def request(body, request_id="r1"):
    return Request(request_id, "acknowledge", {"cause": "stale", **body}, now_ms(), "ann")


def test_without_the_option_nothing_is_asked_and_nothing_waits(tmp_path):
    gate, records = StalenessGate({}, tmp_path / "a", tmp_path / "b"), Records()

    assert cut(gate, records, age_ms=None) == ({0: 100, 1: 100}, False)
    assert (records.asked, gate.holding) == (0, None)


def test_a_table_that_is_near_lets_all_pass_without_a_question(gate):
    records = Records()

    assert cut(gate, records, age_ms=1_000) == ({0: 100, 1: 100}, False)
    assert (records.asked, gate.holding) == (0, None)


def test_a_batch_ends_before_the_first_record_that_is_too_new(gate):
    records = Records()

    ends, released = cut(gate, records, age_ms=50_000)

    assert not released
    assert all(54 <= end <= 56 for end in ends.values())  # T + 5 s of 100 s
    assert gate.holding.state is GateState.HOLDING
    assert [each.table for each in gate.holding.tables] == ["users"]
    assert 'table "users" is as of' in gate.holding.text(now_ms())


def test_records_before_the_start_are_never_taken_back(gate):
    assert cut(gate, Records(), age_ms=50_000, start=80) == ({0: 80, 1: 80}, False)


def test_a_table_without_a_proof_holds_everything(gate):
    records = Records()

    assert cut(gate, records, age_ms=None) == ({0: 0, 1: 0}, False)
    assert records.asked == 0
    assert "waits for the first answer" in gate.holding.text(now_ms())


def test_a_quiet_stream_holds_nothing(gate):
    assert cut(gate, Records(), age_ms=None, start=100) == ({0: 100, 1: 100}, False)
    assert gate.holding is None


def test_it_lets_go_by_itself_and_says_since_when_it_held(gate):
    records = Records()
    cut(gate, records, age_ms=50_000)
    since_ms = gate.holding.since_ms
    cut(gate, records, age_ms=40_000)
    assert gate.holding.since_ms == since_ms

    assert cut(gate, records, age_ms=0) == ({0: 100, 1: 100}, False)
    assert gate.holding is None


def test_of_several_tables_the_oldest_decides(tmp_path):
    gate = StalenessGate({"a": 5_000, "b": HOUR_MS}, tmp_path / "s", tmp_path / "d")
    records = Records()
    proofs = {"a": Proof(now_ms(), {}), "b": Proof(now_ms() - HOUR_MS - 50_000, {})}

    ends, _ = gate.cut({0: 0, 1: 0}, {0: 100, 1: 100}, proofs, records.first_at)

    assert all(48 <= end <= 52 for end in ends.values())
    assert [each.table for each in gate.holding.tables] == ["b"]


def test_a_partition_that_was_not_there_waits(gate):
    ends, _ = gate.cut(
        {0: 0}, {0: 100, 7: 3}, {"users": Proof(now_ms() - 50_000, {})}, Records().first_at
    )

    assert ends[7] == 0


class LateClock(Records):
    """Records of a producer or broker whose clock is an hour behind: none looks too new."""

    def first_at(self, time_ms):
        return super().first_at(time_ms + HOUR_MS)


def test_records_that_came_too_late_wait_whatever_their_times_say(gate):
    records, now = LateClock(), now_ms()
    for age_ms, end in ((60_000, 40), (47_000, 53), (45_500, 54), (44_000, 56), (0, 100)):
        gate.note_ends(LookUp(now - age_ms, {0: end, 1: end}))

    ends, _ = cut(gate, records, age_ms=50_000)

    assert ends == {0: 54, 1: 54}, "T + 5 s is 45 s ago"
    assert gate.holding.state is GateState.HOLDING
    assert cut(gate, records, age_ms=1_000) == ({0: 100, 1: 100}, False)


def test_a_later_runner_knows_which_records_came_after_the_newest_pin(gate, tmp_path):
    now = now_ms()
    for age_ms, end in ((60_000, 40), (47_000, 53), (44_000, 56)):
        gate.note_ends(LookUp(now - age_ms, {0: end, 1: end}))
    cut(gate, LateClock(), age_ms=50_000)
    pinned = gate.looked_up
    assert pinned == LookUp(now - 47_000, {0: 53, 1: 53}), "T + 5 s is 45 s ago"

    later = StalenessGate({"users": 5_000}, tmp_path / "s", tmp_path / "d")
    later.note_ends(pinned)
    later.note_ends(LookUp(now, {0: 100, 1: 100}))

    assert cut(later, LateClock(), age_ms=50_000) == ({0: 53, 1: 53}, False)
    assert cut(later, LateClock(), age_ms=1_000) == ({0: 100, 1: 100}, False)


def test_records_that_were_there_before_the_first_look_up_count_by_their_times(gate):
    gate.note_ends(LookUp(now_ms() - 1_000, {0: 90, 1: 90}))

    assert cut(gate, LateClock(), age_ms=50_000) == ({0: 90, 1: 90}, False)
    ends, _ = cut(gate, Records(), age_ms=50_000)
    assert all(54 <= end <= 56 for end in ends.values())


def test_an_operator_releases_for_an_interval_and_the_pin_says_so(gate, tmp_path):
    records = Records()
    cut(gate, records, age_ms=50_000)

    record = gate.acknowledge(request({"reason": "known outage", "for_s": 60}))

    assert (record["cause"], record["choice"], record["by"]) == ("stale", "release", "ann")
    assert cut(gate, records, age_ms=50_000) == ({0: 100, 1: 100}, True)
    assert gate.holding.state is GateState.RELEASED
    assert gate.acknowledge(request({"reason": "known outage", "for_s": 60})) == record
    assert (tmp_path / "decisions.jsonl").read_text().count("known outage") == 1


def test_a_release_survives_a_restart_and_ends(gate, tmp_path):
    cut(gate, Records(), age_ms=50_000)
    gate.acknowledge(request({"reason": "known outage", "for_s": 1}))
    until_ms = gate.released_until_ms

    again = StalenessGate({"users": 5_000}, tmp_path / "stale.json", tmp_path / "decisions.jsonl")

    assert again.released_until_ms == until_ms
    again._release = {**again._release, "until_ms": now_ms() - 1}
    assert cut(again, Records(), age_ms=50_000)[1] is False


def full(*_):
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize("write", ["write_json_atomically", "append_missing"])
def test_a_release_counts_once_it_is_durable_and_is_in_the_list(gate, tmp_path, monkeypatch, write):
    """The disk was full; the runner carries out the request again."""
    cut(gate, Records(), age_ms=50_000)
    asked = request({"reason": "known outage", "for_s": 60})
    with monkeypatch.context() as disk:
        disk.setattr(staleness, write, full)
        with pytest.raises(OSError, match="no space"):
            gate.acknowledge(asked)

    again = StalenessGate({"users": 5_000}, tmp_path / "stale.json", tmp_path / "decisions.jsonl")
    assert again.released_until_ms == gate.released_until_ms

    record = gate.acknowledge(asked)
    assert (tmp_path / "decisions.jsonl").read_text().count(record["reason"]) == 1
    again = StalenessGate({"users": 5_000}, tmp_path / "stale.json", tmp_path / "decisions.jsonl")
    assert again.released_until_ms == gate.released_until_ms > now_ms()


REFUSED = {
    "without_a_reason": ({"for_s": 60}, RequestError),
    "without_an_interval": ({"reason": "x"}, RequestError),
    "for_longer_than_a_day": ({"reason": "x", "for_s": 86_401}, RequestError),
    "for_no_time": ({"reason": "x", "for_s": 0}, RequestError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_release_is_refused(gate, case):
    body, error = REFUSED[case]
    cut(gate, Records(), age_ms=50_000)

    with pytest.raises(error):
        gate.acknowledge(request(body))
    assert gate.released_until_ms == 0


def test_nothing_is_released_while_nothing_waits(gate):
    with pytest.raises(NothingToAcknowledgeError):
        gate.acknowledge(request({"reason": "x", "for_s": 60}))


def test_a_bound_that_is_never_reached_for_long_is_told(gate):
    records = Records()
    for _ in range(8):
        assert not gate.is_unreachable or _ > 5
        cut(gate, records, age_ms=7_000)
        cut(gate, records, age_ms=1_000)

    assert gate.is_unreachable
    gate._moments = [at_ms - 600_000 for at_ms in gate._moments]
    assert not gate.is_unreachable, "it was reached for ten minutes"
