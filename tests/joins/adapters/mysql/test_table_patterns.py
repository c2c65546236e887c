"""Names and expressions of captured tables, as Flink CDC reads them."""

import pytest

from joins.plan.table_patterns import TablePattern, is_pattern, why_unusable

NAMES = {
    "digits": ("db_[0-9]+", ["db_1", "DB_20"], ["db_", "db_1a", "adb_1", "db"]),
    "anything": ("t_.*", ["t_", "t_1", "T_x y"], ["t", "at_1"]),
    "alternatives": ("(t[5-8]|tt)", ["t5", "tt"], ["t4", "t5t", "ttt"]),
    "class": (r"t_\d{1,3}", ["t_1", "t_123"], ["t_", "t_1234", "t_٣"]),
    "escaped": (r"a\.b", ["a.b"], ["axb"]),
    "plain": ("orders.2026$", ["orders.2026$", "Orders.2026$"], ["ordersx2026$"]),
}


@pytest.mark.parametrize(("text", "matching", "others"), NAMES.values(), ids=NAMES)
def test_an_expression_matches_whole_names(text, matching, others):
    assert why_unusable(text) is None
    pattern = TablePattern("shop", text)
    assert [pattern.has("shop", name) for name in matching] == [True] * len(matching)
    assert [pattern.has("shop", name) for name in others] == [False] * len(others)


def test_system_databases_never_match():
    pattern = TablePattern(".*", ".*")
    assert pattern.has("shop", "t")
    names = ("mysql", "SYS", "information_schema", "performance_schema")
    assert [pattern.has(name, "t") for name in names] == [False] * 4


@pytest.mark.parametrize(
    "text", ["a|b", "a,b", "(a|b)|c_[0-9]+", "(a", "[a", "*a", "a{2,1}", "(?=a)"]
)
def test_an_expression_that_means_something_else_is_refused(text):
    assert is_pattern(text)
    assert why_unusable(text)
