"""Dead letters that were replayed or discarded are counted from the files of the replays."""

import pytest

from joins.durable.letter_replays import (
    ChosenLetter,
    LetterReplay,
    LetterReplays,
    SettledLetters,
)


def bad(offset, *inserts):
    return {"batch": 0, "partition": 0, "offset": offset, "reason": "x", "inserts": list(inserts)}


def letter(offset, *inserts, entries=1):
    return ChosenLetter(0, 0, offset, inserts=inserts or (1,), entries=entries)


OF_TWO = letter(7, 1, 2, entries=2)
PARSED_BY_NONE = letter(8, 1, 2, entries=1)
# (letters, reason of a discard, still bad) of each replay → replayed, discarded
HISTORIES = {
    "none": ([], 0, 0),
    "replayed": ([((letter(1), letter(2)), None, [])], 2, 0),
    "still_bad": ([((letter(1), letter(2)), None, [bad(2, 1)])], 1, 0),
    "replayed_at_last": ([((letter(2),), None, [bad(2, 1)]), ((letter(2),), None, [])], 1, 0),
    "discarded": ([((letter(1), letter(2)), "test data", [])], 0, 2),
    "discarded_after_a_replay": (
        [((letter(2),), None, [bad(2, 1)]), ((letter(2),), "no", [])],
        0,
        1,
    ),
    "of_two_inserts": ([((OF_TWO,), None, [])], 2, 0),
    "of_two_inserts_by_half": ([((OF_TWO,), None, [bad(7, 2)])], 0, 0),
    "the_other_half_is_discarded": (
        [((OF_TWO,), None, [bad(7, 2)]), ((letter(7, 2, entries=2),), "no", [])],
        0,
        2,
    ),
    "one_entry_for_all_inserts": ([((PARSED_BY_NONE,), None, [])], 1, 0),
}


@pytest.mark.parametrize(("steps", "replayed", "discarded"), HISTORIES.values(), ids=HISTORIES)
def test_settled_letters_are_counted_as_their_batches_have_counted_them(
    tmp_path, steps, replayed, discarded
):
    replays = LetterReplays(tmp_path / "replays")
    for number, (letters, reason, still_bad) in enumerate(steps, start=1):
        before = replays.settled()
        replays.create(LetterReplay(number, f"r{number}", "me", letters, discarded=reason))
        assert replays.settled() == before  # it is not done yet
        replays.finish(number, {"replay": number, "rows": 1, "still_bad": still_bad})
        replays.settled()
    assert replays.settled() == SettledLetters(replayed, discarded)
    assert LetterReplays(tmp_path / "replays").settled() == replays.settled()
