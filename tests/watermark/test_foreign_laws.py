"""Laws of the evidence for somebody else's snapshot, on histories of a connector."""

import pytest

from tests.support.laws import examples
from tests.watermark.foreign_model import FIRST, LAST, ROW, SETTLE_MS, STREAMED, Reader, history
from watermark.foreign_records import NoticeKind

PARTS = 4
HISTORIES = max(600, examples(24_000))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_opening_is_early_and_none_is_missed(part):
    opened = 0
    for seed in range(part, HISTORIES, PARTS):
        opened += follow(seed)
    assert opened > HISTORIES // PARTS // 3


@pytest.mark.parametrize("part", range(PARTS))
def test_kills_between_any_two_durable_writes_change_nothing(part):
    opened = 0
    for seed in range(part, HISTORIES // 3, PARTS):
        opened += follow(seed, kills=(0.02, 0.1, 0.3)[seed % 3])
    assert opened > HISTORIES // 3 // PARTS // 3


def follow(seed: int, kills: float = 0.0) -> bool:
    """Read a history from a random time of it on; whether its newest snapshot opened."""
    made = history(seed)
    now = made.rng.choice([1_000_000, made.now_ms // 2 + 500_000, made.now_ms + 1_000])
    reader = Reader(made, now, limit=made.rng.choice([1, 3, 50]), kills=kills)
    if made.is_compacted and made.rng.random() < 0.5:
        reader.compact(now)
    end = max([made.now_ms, *(r.there_ms for r in made.records)]) + 5_000
    was_open = None
    while now < end + 3 * SETTLE_MS:
        answer = reader.step(now)
        if answer is not None and was_open != reader.machine.generation:
            was_open = reader.machine.generation
            fault = reader.fault(now)
            assert fault is None, (seed, now, answer, fault)
        at_end = all(reader.at[p] == e for p, e in reader.ends(now).items())
        now += made.rng.choice([1, 20, 300]) if not at_end else made.rng.choice([20, 300, 2_000])
    assert kills or not reader.deaths
    reader.kills = 0.0
    for _ in range(60 if kills else 4):
        answer = reader.step(now)
    is_open = answer is not None
    if expects_to_open(reader):
        assert is_open, (seed, made.tells, reader.machine.ask(now, reader.applied()))
    return is_open


def expects_to_open(reader: Reader) -> bool:
    """Whether a reader has been given all that it needs, by what was sent only."""
    made = reader.made
    if made.last_was_aborted:
        return False
    left = [r for log in reader.logs for r in log if id(r) not in reader.removed]
    own = [r for r in left if r.snapshot == made.snapshot]
    rows = [r for r in own if r.kind in (FIRST, ROW, LAST)]
    if not made.copies[made.snapshot]:
        return "scan" in made.tells and (made.snapshot == 1 or made.has_started)
    if not rows:
        return False
    streamed = {r.partition for r in own if r.kind is STREAMED}
    last = any(r.kind is LAST for r in rows)
    skipped = any(notice.kind is NoticeKind.SKIPPED for _, notice in made.notices)
    if skipped and not last and not {"scan", "completed"} & made.tells:
        return False  # it looks like a snapshot that was skipped in its midst
    return (
        last
        or bool({"scan", "completed", "commit"} & made.tells)
        or len(streamed) == made.partitions
    )
