"""Regular expressions of Java by RE2: what is the same, what is none, what is not known."""

import random
import time

import pytest
from pyspark.errors import IllegalArgumentException

from joins.kernels.strings.regular import (
    SimilarError,
    UnknownAnswerError,
    _by,
    compiled,
    matcher,
    matches,
)
from tests.support.expressions import arrays, evaluated, planned

MATCHES = {
    "a_point_is_no_end_of_a_line": (".+", "a\rb", "a"),
    "a_point_is_all_with_s": ("(?s).+", "a\rb", "a\rb"),
    "quoted": ("\\Qa.b\\E", "axb a.b", "a.b"),
    "a_bracket_that_stands_first": ("[]a]+", "x]a", "]a"),
    "named": ("(?<n>b)+", "abba", "bb"),
    "code_point": ("\\u0041", "xA", "A"),
    "lazy": ("a+?", "aaa", "a"),
    "case_off": ("(?-i)É", "éÉ", "É"),
    "a_vertical_tab_is_a_space": ("\\s", "a\vb", "\v"),
    "a_vertical_tab_is_a_space_of_a_class": ("[^\\s]+", "\vb", "b"),
    "and_is_no_other_character": ("[\\S,]+", "a,\vb", "a,"),
    "a_backslash_before_u": ("(?i)c:\\\\users", "C:\\Users", "C:\\Users"),
}
NONE = ("(", ")", "[a", "*a", "a**", "{", "x{y", "a\\", "(?<n>a)(?<n>b)")
UNKNOWN = (
    *("a(?=b)", "(?<!a)b", "(a)\\1", "(?<x>a)\\k<x>", "a++", "a*+", "[a-z&&[^b]]", "[a[b]]"),
    *("\\h", "\\R", "a\\Z", "(?>a)", "(?x)a b", "\\p{javaLowerCase}", "a{5000}", "(?i)é"),
    *("(?s)*", "{2}", "{1,}?a", "(?i)\\p{Lu}"),
    *("(?i)\\u00e9", "(?i)\\xe9", "(?i)[\\x{e0}-\\x{ff}]"),
)


@pytest.mark.parametrize(("expression", "text", "expected"), MATCHES.values(), ids=MATCHES)
def test_an_expression_matches_what_it_matches_in_java(expression, text, expected):
    assert compiled(expression).search(text).group() == expected


@pytest.mark.parametrize("expression", NONE)
def test_what_java_refuses_matches_nothing(expression):
    assert compiled(expression) is None


@pytest.mark.parametrize("expression", UNKNOWN)
def test_what_only_java_knows_is_not_answered(expression):
    with pytest.raises(UnknownAnswerError):
        compiled(expression)


def test_an_expression_of_a_column_that_only_java_knows_fails_its_row():
    types = {"t": "STRING", "r": "STRING"}
    columns = arrays(types, [("ab", "a(?=b)"), ("ab", "a"), ("ab", "("), (None, "a(?=b)")])
    answer = evaluated(planned("REGEXP(t, r)", types), columns)
    assert list(answer.errors) == [0]
    assert answer.values.to_pylist() == [None, True, False, None]


OF_JAVA = {  # as Java 17 answers them
    "an_end_is_one": ("REGEXP_COUNT(t, '$')", "ab", 1),
    "an_empty_text_has_one_end": ("REGEXP_COUNT(t, '$')", "", 1),
    "edges_of_words": ("REGEXP_COUNT(t, '\\b')", "ab cd", 4),
    "at_the_end": ("REGEXP_REPLACE(t, '$', 'x')", "ab", "abx"),
    "at_edges": ("REGEXP_REPLACE(t, '\\b', '|')", "ab cd", "|ab| |cd|"),
    "nothing_is_something": ("REGEXP_REPLACE(t, 'b*', '|')", "abc", "|a||c|"),
    "every_nothing": ("REGEXP_EXTRACT_ALL(t, '(b*)')", "abc", ["", "b", "", ""]),
    "in_another_case": ("REGEXP(t, '(?i)cafe')", "CAFE", True),
}


@pytest.mark.parametrize(("call", "text", "expected"), OF_JAVA.values(), ids=OF_JAVA)
def test_matches_of_nothing_are_those_of_java(call, text, expected):
    types = {"t": "STRING"}
    answer = evaluated(planned(call, types), arrays(types, [[text]]))
    assert (answer.values.to_pylist(), answer.errors) == ([expected], {})


@pytest.mark.parametrize("text", ["abc\n", "abc\r\n", "abc\u2028"])
def test_an_end_before_a_line_break_is_not_answered(text):
    """In Java `c$` matches there; nothing of RE2 does without taking the line break, too."""
    types = {"t": "STRING"}
    columns = arrays(types, [["abc"], [text], ["a\nc"]])
    for call in ("REGEXP(t, 'c$')", "REGEXP_EXTRACT(t, 'c$', 0) = 'c'"):
        answer = evaluated(planned(call, types), columns)
        assert list(answer.errors) == [1]
        assert answer.values.to_pylist() == [True, None, True]


@pytest.mark.parametrize("flags", ["(?m)", "(?im)"])
def test_an_end_of_each_line_is_answered_before_a_line_feed(flags):
    types = {"t": "STRING"}
    columns = arrays(types, [["abc\n"], ["abc\nd\n"], ["d\n"], ["abc\r\nd"], ["abc\u2028d"]])
    answer = evaluated(planned(f"REGEXP(t, '{flags}c$')", types), columns)
    assert answer.values.to_pylist() == [True, True, False, None, None]
    assert list(answer.errors) == [3, 4]


ELSEWHERE = {  # an expression, a text that both know, one on which they differ
    "an_end_of_a_line_of_which_one_part_knows": ("a(?m)$", "a\nb", "a\rb"),
    "a_begin_of_a_line": ("(?m)^b", "a\nb\n", "a\rb"),
    "a_begin_behind_the_last_line": ("(?m)^x*", "a", "a\n"),
    "a_point_behind_one_that_is_all": ("(?s:a).", "ab", "a\r"),
    "an_edge_of_a_word": ("\\bx\\b", "€ x €", "éx"),
    "no_edge": ("\\Bx", "ax", "€x"),
    "a_long_s": ("(?i)s", "Sé", "\u017f"),
}


@pytest.mark.parametrize(("expression", "same", "other"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_text_on_which_re2_and_java_differ_is_not_answered(expression, same, other):
    types = {"t": "STRING", "r": "STRING"}
    columns = arrays(types, [[same, expression], [other, expression]])
    answer = evaluated(planned("REGEXP_REPLACE(t, r, '!')", types), columns)
    assert list(answer.errors) == [1]
    assert "!" in answer.values.to_pylist()[0]


PIECES = (
    r"a k s S K é . ^ $ \b \B \s \S \w \W \d \D \A \z \x0B \n \t \. \- \p{L} \p{Lu} \P{L} \pL "
    r"[ak] [^a] [\s] [^\s] [^\w] [\d-] [a-k] [K-S] (a) () (?:k|s) (?<n>k) \Qa.\E \x{e9} \u00e9 "
    r"(?i) (?m) (?s) (?i:k) (?m:^) (?m:$) (?s:.) (?-m) (?im) (?ms) (?i-m) | * + ? {2} {1,} *? +?"
)
CHARACTERS = "akKsSéÉ\u017f\u212a\n\r\v\f\x85\u2028 -_1٣\u0301\t\u0131ß.\x1c\xa0"


def test_what_is_answered_is_what_java_answers(spark):
    """1,500 expressions made of all that is translated, each for a text with what may differ."""
    by_java = spark.sparkContext._jvm.java.util.regex.Pattern
    chance, answered = random.Random(1), 0
    for _ in range(1_500):
        expression = "".join(chance.choices(PIECES.split(), k=chance.randint(1, 4)))
        text = "".join(chance.choices(CHARACTERS, k=chance.randint(0, 5)))
        try:
            by = _by(expression, text)
        except UnknownAnswerError:
            continue
        try:
            matcher_of_java = by_java.compile(expression).matcher(text)
        except IllegalArgumentException:
            assert by is None, (expression, text)
            continue
        expected = []
        while matcher_of_java.find():
            expected.append((matcher_of_java.start(), matcher_of_java.end()))
        assert by is not None, (expression, text)
        assert [match.span() for match in matches(by, text)] == expected, (expression, text)
        answered += 1
    assert answered > 500


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|a)*b", "(.*a){20}", "(x+x+)+y"])
def test_no_expression_takes_more_than_linear_time(expression):
    text = "a" * 50_000 + "!"
    columns = arrays({"t": "STRING"}, [[text]])
    begin = time.monotonic()
    for call in (f"REGEXP(t, '{expression}')", f"REGEXP_COUNT(t, '{expression}')"):
        assert evaluated(planned(call, {"t": "STRING"}), columns).errors == {}
    assert time.monotonic() - begin < 20


SIMILAR = {
    "one_character": ("a_", "ab", True),
    "any_number": ("a%", "abc", True),
    "the_whole_text": ("b", "abc", False),
    "choice": ("(a|b)+c", "abac", True),
    "class": ("[[:DIGIT:]]+", "12", True),
}


@pytest.mark.parametrize(("pattern", "text", "expected"), SIMILAR.values(), ids=SIMILAR)
def test_similar_to_is_a_regular_expression_of_sql(pattern, text, expected):
    assert (matcher(pattern).fullmatch(text) is not None) == expected


def test_an_escape_stands_before_a_character():
    assert matcher("100!%", "!").fullmatch("100%") is not None
    assert matcher("100!%", "!").fullmatch("1000") is None
    with pytest.raises(SimilarError):
        matcher("a!", "!")
