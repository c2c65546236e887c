"""A planted fault is found, and a change between two positions is none."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.comparison import RecordDigests, RowDigests, states_between
from tests.support.laws import examples

GENERATION = 1
LOW_OF_COPY = 10


@dataclass(frozen=True)
class Change:
    pos: int
    row: int
    op: str
    key: int
    value: str | None


def records(changes, generation=GENERATION):
    names = ("_op", "_partition", "_offset", "_epoch", "_file", "_pos", "_row", "_generation")
    metas = [(c.op, 0, n, 0, 1, c.pos, c.row, generation) for n, c in enumerate(changes)]
    columns = list(zip(*metas, strict=True)) if metas else [()] * len(names)
    kinds = [pa.string(), pa.int32(), pa.int64(), pa.int32(), *[pa.int64()] * 3, pa.int32()]
    table = {"k": pa.array([c.key for c in changes], pa.int64())}
    table["v"] = pa.array([c.value for c in changes], pa.string())
    for name, kind, values in zip(names, kinds, columns, strict=True):
        table[name] = pa.array(values, kind)
    return pa.table(table)


def digests(changes, progress=None):
    return RecordDigests.of(records(changes), ("k",), ("k", "v"), progress or Progress())


def source(rows):
    table = pa.table(
        {
            "k": pa.array(list(rows), pa.int64()),
            "v": pa.array(list(rows.values()), pa.string()),
        }
    )
    return RowDigests.of(table, ("k",), ("k", "v"))


def compared(changes, rows, low, high=None, generation=GENERATION):
    """Keys of the source that differ, and keys that only the copy has."""
    low, high = (0, 1, low), (0, 1, low if high is None else high)
    states = states_between(digests(changes), low, high, generation=generation)
    read = source(rows)
    differing = [
        key for key, is_wrong in zip(rows, states.differing(read), strict=True) if is_wrong
    ]
    return differing, sorted(changes[at].key for at in states.extra(read))


COPY = [Change(LOW_OF_COPY, -1, "r", key, "a") for key in (1, 2, 3)]
CASES = {
    "an_equal_copy": (COPY, {1: "a", 2: "a", 3: "a"}, 20, ([], [])),
    "a_byte": (COPY, {1: "a", 2: "b", 3: "a"}, 20, ([2], [])),
    "a_null_is_no_empty_text": (COPY, {1: "a", 2: "", 3: None}, 20, ([2, 3], [])),
    "a_lost_insert": (COPY, {1: "a", 2: "a", 3: "a", 4: "x"}, 20, ([4], [])),
    "a_lost_delete": (COPY, {1: "a", 3: "a"}, 20, ([], [2])),
    "a_lost_update": (COPY, {1: "a", 2: "new", 3: "a"}, 20, ([2], [])),
    "a_doubled_event_brings_an_old_row_back": (
        [*COPY, Change(15, 0, "u", 2, "b"), Change(16, 0, "u", 2, "a")],
        {1: "a", 2: "b", 3: "a"},
        20,
        ([2], []),
    ),
    "a_change_behind_the_position_does_not_count": (
        [*COPY, Change(20, 0, "u", 1, "later"), Change(25, 0, "d", 2, None)],
        {1: "a", 2: "a", 3: "a"},
        20,
        ([], []),
    ),
    "a_copy_at_the_position_counts": (COPY, {1: "a", 2: "a", 3: "b"}, LOW_OF_COPY, ([3], [])),
    "a_change_before_the_position_counts": (
        [*COPY, Change(19, 0, "u", 1, "now"), Change(19, 1, "d", 2, None)],
        {1: "now", 3: "a"},
        20,
        ([], []),
    ),
    "a_key_that_is_new_behind_the_position": (
        [*COPY, Change(21, 0, "c", 9, "x")],
        {1: "a", 2: "a", 3: "a"},
        20,
        ([], []),
    ),
    "deleted_and_written_again": (
        [*COPY, Change(12, 0, "d", 1, None), Change(12, 1, "c", 1, "z")],
        {1: "z", 2: "a", 3: "a"},
        20,
        ([], []),
    ),
    "a_chunk_that_was_copied_twice_counts_as_it_was_read_last": (
        [*COPY, Change(LOW_OF_COPY, -1, "r", 2, "read later")],
        {1: "a", 2: "read later", 3: "a"},
        20,
        ([], []),
    ),
    "an_empty_copy_of_an_empty_table": ([], {}, 20, ([], [])),
    "an_empty_copy": ([], {1: "a"}, 20, ([1], [])),
    "an_emptied_table": (COPY, {}, 20, ([], [1, 2, 3])),
}


@pytest.mark.parametrize("case", CASES)
def test_compared(case):
    changes, rows, position, expected = CASES[case]

    assert compared(changes, rows, position) == expected


@pytest.mark.parametrize("read", [{1: "a"}, {1: "b"}, {}, {1: "c"}])
def test_every_state_inside_an_interval_is_right(read):
    changes = [
        COPY[0],
        Change(21, 0, "u", 1, "b"),
        Change(23, 0, "d", 1, None),
        Change(25, 0, "c", 1, "c"),
    ]

    assert compared(changes, read, 20, 30) == ([], [])


@pytest.mark.parametrize(
    ("read", "expected"), [({1: "z"}, ([1], [])), ({1: "d"}, ([1], [])), ({}, ([], [1]))]
)
def test_what_was_never_true_inside_the_interval_is_wrong(read, expected):
    changes = [COPY[0], Change(21, 0, "u", 1, "b"), Change(31, 0, "u", 1, "d")]

    assert compared(changes, read, 20, 30) == expected


def test_rows_of_an_older_copy_are_gone():
    assert compared(COPY, {}, 20, generation=GENERATION + 1) == ([], [])


def test_snapshot_rows_behind_the_watermark_record_do_not_count():
    late = Change(LOW_OF_COPY, -1, "r", 7, "late")
    progress = Progress({(0, GENERATION): 2})
    kept = digests([*COPY, late], progress)

    assert len(kept) == 3


def test_nested_columns_are_compared_by_their_values():
    def rows(inner):
        kind = pa.struct([("x", pa.list_(pa.int64()))])
        return pa.table({"k": pa.array([1], pa.int64()), "v": pa.array([inner], kind)})

    one, other, same = (
        RowDigests.of(rows({"x": x}), ("k",), ("k", "v")) for x in ([1, 2], [1, None], [1, 2])
    )
    assert one.row == same.row
    assert one.row != other.row


# The law: histories of a table, read at a random position
# --------------------------------------------------------------------------------------------------

KEYS, VALUES = st.integers(0, 5), st.sampled_from(["a", "b", "c", None])
STEPS = st.lists(st.tuples(KEYS, st.sampled_from(["put", "delete"]), VALUES), max_size=25)


def history(first, steps):
    """Changelog records of a table, and its rows by position: before each step, and after all."""
    rows = dict(first)
    changes = [Change(LOW_OF_COPY, -1, "r", key, value) for key, value in rows.items()]
    by_position = [(LOW_OF_COPY + 1, dict(rows))]
    for number, (key, what, value) in enumerate(steps):
        pos = 20 + 10 * number
        if what == "delete":
            if key not in rows:
                continue
            del rows[key]
            changes.append(Change(pos, 0, "d", key, None))
        else:
            changes.append(Change(pos, 0, "u" if key in rows else "c", key, value))
            rows[key] = value
        by_position.append((pos + 10, dict(rows)))
    return changes, by_position


@settings(max_examples=examples(300))
@given(first=st.dictionaries(KEYS, VALUES), steps=STEPS, data=st.data())
def test_a_true_copy_has_no_difference_at_any_position(first, steps, data):
    changes, by_position = history(first, steps)
    position, rows = data.draw(st.sampled_from(by_position))
    in_any_order = data.draw(st.permutations(changes))
    low = data.draw(st.sampled_from([p for p, _ in by_position if p <= position]))
    high = data.draw(st.sampled_from([p for p, _ in by_position if p >= position]))

    assert compared(in_any_order, rows, position) == ([], [])
    assert compared(in_any_order, rows, low, high) == ([], [])


@settings(max_examples=examples(300))
@given(first=st.dictionaries(KEYS, VALUES, min_size=1), steps=STEPS, data=st.data())
def test_every_fault_is_found_at_every_position_where_it_shows(first, steps, data):
    """One record is lost, changed by a byte, or written a second time; the oracle is a fold."""
    changes, by_position = history(first, steps)
    position, rows = data.draw(st.sampled_from(by_position))
    at = data.draw(st.integers(0, len(changes) - 1))
    victim, fault = changes[at], data.draw(st.sampled_from(["lost", "byte", "doubled"]))
    if fault == "lost":
        faulty = [*changes[:at], *changes[at + 1 :]]
    elif fault == "byte":
        value = None if victim.op == "d" else f"{victim.value}."
        faulty = [*changes[:at], Change(victim.pos, victim.row, victim.op, victim.key, value)]
        faulty += changes[at + 1 :]
    else:
        behind = data.draw(st.integers(victim.pos, max(victim.pos, position)))
        op = "u" if victim.op == "r" else victim.op
        faulty = [*changes, Change(behind, 99, op, victim.key, victim.value)]

    copy: dict[int, str | None] = {}
    for change in sorted(faulty, key=lambda c: (c.pos, c.row)):
        if change.pos < position:
            copy.pop(change.key, None)
            if change.op != "d":
                copy[change.key] = change.value
    wrong = {key for key in rows if key not in copy or copy[key] != rows[key]}

    differing, extra = compared(faulty, rows, position)
    assert (set(differing), set(extra)) == (wrong, copy.keys() - rows.keys())


def test_keys_that_change_meanwhile_are_counted():
    changes = [*COPY, Change(21, 0, "u", 1, "b"), Change(22, 0, "c", 9, "x")]
    states = states_between(digests(changes), (0, 1, 20), (0, 1, 30), generation=GENERATION)

    assert states.changing == 2
    assert states.differing(source({1: "b", 2: "a", 3: "a", 9: "x"})).tolist() == [False] * 4
