"""Rows and their kinds as values of a topic."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.row_kinds import SIGNS, all_kinds, is_any, signs
from joins.kernels.formats.encoders import debezium_values, without_gone
from tests.support.laws import examples

ROW = '{"id":1}'
DEBEZIUM = {
    "+I": '{"before":null,"after":{"id":1},"op":"c"}',
    "-U": '{"before":{"id":1},"after":null,"op":"d"}',
    "+U": '{"before":null,"after":{"id":1},"op":"c"}',
    "-D": '{"before":{"id":1},"after":null,"op":"d"}',
}


@pytest.mark.parametrize("sign", SIGNS)
def test_debezium_json_is_what_flink_writes(sign):
    kinds = pa.array([SIGNS.index(sign)], pa.int8())
    assert debezium_values(pa.array([ROW]), kinds).to_pylist() == [DEBEZIUM[sign]]


def test_rows_without_kinds_are_insertions():
    assert debezium_values(pa.array([ROW, ROW]), None).to_pylist() == [DEBEZIUM["+I"]] * 2
    assert without_gone(pa.array([ROW]), None).to_pylist() == [ROW]
    assert all_kinds(None, 3).to_pylist() == [0, 0, 0]


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers()), max_size=12)


def table_of(changes):
    """What a table has behind (kind, key, value) changes, as whoever applies them would have it."""
    rows = {}
    for kind, key, value in changes:
        if kind in (0, 2):
            rows[key] = value
        elif kind == 3:
            rows.pop(key, None)
    return rows


@settings(max_examples=examples(100))
@given(CHANGES, st.integers(0, 3))
def test_the_newest_value_of_each_key_is_the_table(changes, first):
    kinds = pa.array([kind for kind, _, _ in changes], pa.int8()).slice(first)
    objects = pa.array([json.dumps(v) for _, _, v in changes], pa.string()).slice(first)
    values = without_gone(objects, kinds).to_pylist()
    skipped = is_any(kinds, (1,)).to_pylist()
    newest = {}
    for (_, key, _), value, skip in zip(changes[first:], values, skipped, strict=True):
        if not skip:
            newest[key] = value
    found = {key: json.loads(value) for key, value in newest.items() if value is not None}
    assert found == table_of(changes[first:])
    assert signs(kinds).to_pylist() == [SIGNS[kind] for kind, _, _ in changes[first:]]
