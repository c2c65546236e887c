"""What a commit has changed in an output by key, against what it should have changed."""

import pyarrow as pa
import pytest

from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from joins.kernels.json.exact import differences
from joins.kernels.probe.probe import COORDINATES, DEAD_LETTERS, JoinedBatch
from joins.lookback.past_indexes import changed_rows, last_changes

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])


def rows(**values):
    return pa.table({"key": list(values), "n": list(values.values())}, schema=SCHEMA)


def answer(*changes):
    kinds, keys, numbers = zip(*changes, strict=True)
    batch = pa.record_batch([pa.array(keys), pa.array(numbers, pa.int64())], schema=SCHEMA)
    nothing = (schema.empty_table() for schema in (COORDINATES, DEAD_LETTERS))
    return JoinedBatch(batch, *nothing, 0, 0, kinds=pa.array(kinds, pa.int8()))


CHANGES = last_changes(
    [
        answer((INSERT, "a", 1), (INSERT, "b", 1), (INSERT, "c", 1)),
        answer((UPDATE_BEFORE, "a", 1), (UPDATE_AFTER, "a", 2), (DELETE, "b", 1)),
    ],
    ("key",),
)


def test_the_last_change_of_a_key_counts():
    assert CHANGES == {
        '{"key":"a"}': '{"key":"a","n":2}',
        '{"key":"b"}': None,
        '{"key":"c"}': '{"key":"c","n":1}',
    }


FOUND = {
    "all_new": ([rows(a=2, c=1)], [], []),
    "rows_that_it_leaves_alone": ([rows(a=2, c=1), rows(x=7)], [rows(a=0, b=3, x=7)], []),
    "a_row_that_was_the_same": ([rows(a=2, c=1)], [rows(c=1)], []),
    "one_is_missing": ([rows(a=2)], [], [("missing", '{"key":"c","n":1}')]),
    "one_has_an_older_value": (
        [rows(a=1, c=1)],
        [],
        [("missing", '{"key":"a","n":2}'), ("extra", '{"key":"a","n":1}')],
    ),
    "a_deleted_one_stays": ([rows(a=2, c=1, b=3)], [rows(b=3)], [("extra", '{"key":"b","n":3}')]),
    "an_old_one_stays_beside": (
        [rows(a=2, c=1), rows(a=0)],
        [rows(a=0)],
        [("extra", '{"key":"a","n":0}')],
    ),
    "another_key_is_gone": ([rows(a=2, c=1)], [rows(x=7)], [("missing", '{"key":"x","n":7}')]),
    "another_key_came": ([rows(a=2, c=1, x=7)], [], [("extra", '{"key":"x","n":7}')]),
    "another_key_twice": (
        [rows(a=2, c=1, x=7), rows(x=7)],
        [rows(x=7)],
        [("extra", '{"key":"x","n":7}')],
    ),
}


@pytest.mark.parametrize(("added", "removed", "wrong"), FOUND.values(), ids=FOUND)
def test_what_a_commit_has_changed_is_compared(added, removed, wrong):
    wanted, found = changed_rows(CHANGES, added, removed, ("key",))
    told = [(d.kind, d.expected or d.actual) for d in differences(wanted, found)]
    assert told == wrong
