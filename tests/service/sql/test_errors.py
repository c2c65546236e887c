import pytest

from service.sql.planner.planner import plan
from service.sql.text.script import SqlError
from tests.service.sql.scripts import selecting


def refused(script):
    with pytest.raises(SqlError) as caught:
        plan(script)
    return caught.value


def test_error_points_at_line_and_column():
    error = refused("SET 'pipeline.name' = 'x';\n  SET 'pipeline.nam' = 'y';\n")
    assert (error.line, error.column) == (2, 7)
    assert error.excerpt == "  SET 'pipeline.nam' = 'y';\n      ^"
    assert error.message.startswith("line 2, column 7: ")


def test_a_tab_is_shown_as_a_blank_and_the_caret_stays_under_its_place():
    error = refused("SET\t'pipeline.nam' = 'y';\n")
    assert error.excerpt == "SET 'pipeline.nam' = 'y';\n    ^"


def test_caret_stays_under_the_place_in_a_very_long_line():
    error = refused(selecting(" + ".join(["n"] * 60) + " + nn", "INT"))
    line, caret = error.excerpt.splitlines()
    assert line[caret.index("^") :].startswith("nn")
    assert len(line) <= 120


def test_password_is_in_no_message_and_no_excerpt():
    options = "'connector' = 'mysql-cdc', 'password' = 'hunter2', 'prot' = '1'"
    error = refused(f"CREATE TABLE d (id BIGINT) WITH ({options});")
    assert "hunter2" not in f"{error} {error.hint} {error.excerpt}"
    assert "'password' = '*******'" in error.excerpt
    bad = refused(f"CREATE TABLE d (id BIGINT) WITH ({options.replace('hunter2', 'a${b}')});")
    assert "a${b}" not in f"{bad} {bad.hint} {bad.excerpt}"


def test_the_way_out_of_options_that_are_taken_over_needs_no_name():
    """`my-table` is a name in backticks only."""
    made = selecting("t").replace("TABLE s ", "TABLE `my-table` ")
    like = "CREATE TABLE p WITH ('connector' = 'print') LIKE `my-table`;"
    with pytest.raises(SqlError, match='options of "my-table"') as caught:
        plan(made.replace("INSERT", f"{like} INSERT"))
    assert caught.value.hint.startswith("Write LIKE … (EXCLUDING OPTIONS), and all")


def test_terminal_escapes_are_not_repeated():
    error = refused("SELECT `\N{RIGHT-TO-LEFT OVERRIDE}x`;\n")
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in f"{error} {error.hint} {error.excerpt}"
    error = refused("SET '\x9b31m' = 'x'; ")
    assert "\x9b" not in f"{error} {error.hint} {error.excerpt}"


MASKED = {
    "blank_lines": "'password'\n\n = \n'hunter2', 'prot' = '1'",
    "comments": "'password' /* ' */ = -- it's\n 'hunter2', 'prot' = '1'",
    "another_case": "'properties.sasl.JAAS.config' = 'hunter2'",
    "quote_inside": "'password' = 'it''s hunter2', 'prot' = '1'",
    "not_closed": "'password' = 'hunter2",
}


@pytest.mark.parametrize("options", MASKED.values(), ids=MASKED)
def test_password_is_masked_however_it_is_written(options):
    error = refused(f"CREATE TABLE d (id BIGINT) WITH ('connector' = 'mysql-cdc', {options});")
    assert "hunter2" not in f"{error} {error.hint} {error.excerpt}"


def test_text_full_of_credential_words_is_masked_at_once():
    error = refused("SET '" + "password" * 8_000)
    assert "is not closed" in error.message
