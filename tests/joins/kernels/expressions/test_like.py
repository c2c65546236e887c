"""LIKE: what it matches, and that no pattern makes it slow."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from joins.kernels.strings import texts
from tests.support.expressions import arrays, evaluated, planned
from tests.support.laws import examples

TYPES = {"t": "STRING", "p": "STRING", "e": "STRING"}
OF_COLUMNS = planned("t LIKE p", TYPES)
ESCAPED = planned("t LIKE p ESCAPE e", TYPES)


def reference(text, pattern):
    regex = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


UNHURRIED = settings(max_examples=examples(50))


@UNHURRIED
@given(
    st.lists(
        st.tuples(st.text("ab\n😀", max_size=8), st.text("ab_%", max_size=7)),
        min_size=2,
        max_size=9,
    )
)
@example([("aab", "%ab"), ("abab", "%a_b%"), ("aXbab", "a%ab"), ("ab", "ab%ab"), ("", "%%")])
def test_a_pattern_of_each_row_matches_as_a_regular_expression(rows):
    answer = evaluated(OF_COLUMNS, arrays(TYPES, [(*row, None) for row in rows]))
    assert answer.values.to_pylist() == [reference(*row) for row in rows]


def literal(pattern):
    return planned(f"t LIKE '{pattern}'", TYPES)


@UNHURRIED
@given(st.text("ab\n", max_size=8), st.text("ab_%", max_size=7))
def test_a_literal_pattern_of_any_length_matches_as_a_regular_expression(text, pattern):
    long = pattern + "%" * 200
    answers = [
        evaluated(literal(each), arrays(TYPES, [(text, None, None)] * 2)).values.to_pylist()
        for each in (pattern, long)
    ]
    assert answers == [[reference(text, pattern)] * 2, [reference(text, long)] * 2]


HOSTILE = {
    "many_any": ("a" * 40_000, "%a" * 60 + "%b"),
    "many_any_that_match": ("a" * 40_000, "%a" * 20_000),
    "only_any": ("a" * 40_000, "%" * 40_000 + "b"),
    "half_and_half": ("ab" * 20_000, "%" + "ab" * 9_000 + "c%"),
    "single_characters": ("a" * 5_000, "%" + "a_" * 1_000 + "b%"),
    "escaped": ("%" * 40_000, "!%%" * 10_000 + "b"),
}


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("text", "pattern"), HOSTILE.values(), ids=HOSTILE)
def test_a_pattern_on_which_a_backtracking_matcher_hangs_is_answered(text, pattern, rows):
    answer = evaluated(ESCAPED, arrays(TYPES, [(text, pattern, "!")] * rows))
    assert answer.errors == {}
    assert answer.values.to_pylist() == [pattern == "%a" * 20_000] * rows


def test_a_pattern_that_would_be_compared_too_often_fails_its_row():
    length = int(texts.MAX_COMPARISONS**0.5)
    rows = [("a" * 3 * length, "%" + "a_" * length + "b%", None), ("ab", "a_%", None)]
    answer = evaluated(OF_COLUMNS, arrays(TYPES, rows))
    assert answer.values.to_pylist() == [None, True]
    assert list(answer.errors) == [0]
