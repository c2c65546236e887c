"""A script is cut into its statements where its semicolons are, and nothing moves."""

import pytest

from service.sql.text.dialect import Use, only, pieces
from service.sql.text.script import SqlError

CUTS = {
    "nothing": ("", []),
    "blanks_and_comments": (" ;; -- a; b\n /* ; */ ", []),
    "no_end": ("SHOW TABLES", [(Use.ASKS, "SHOW TABLES")]),
    "two": (
        "CREATE TABLE a (b INT); SHOW VIEWS;",
        [(Use.DECLARES, "CREATE TABLE a (b INT)"), (Use.ASKS, "SHOW VIEWS")],
    ),
    "semicolons_that_end_nothing": (
        "SET 'a;b'='c;d'; DROP TABLE `x;y`; -- ;\nDESC t;",
        [
            (Use.DECLARES, "SET 'a;b'='c;d'"),
            (Use.DECLARES, "DROP TABLE `x;y`"),
            (Use.ASKS, "DESC t"),
        ],
    ),
    "settings_are_shown": ("set;", [(Use.ASKS, "set")]),
    "a_statement_set_is_one": (
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END; SET;",
        [
            (
                Use.RUNS,
                "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
            ),
            (Use.ASKS, "SET"),
        ],
    ),
    "the_older_form_too": (
        "BEGIN STATEMENT SET; INSERT INTO a SELECT CASE x WHEN 1 THEN 2 END FROM t; END; "
        "STOP JOB 'x'",
        [
            (
                Use.RUNS,
                "BEGIN STATEMENT SET; INSERT INTO a SELECT CASE x WHEN 1 THEN 2 END FROM t; END",
            ),
            (Use.ASKS, "STOP JOB 'x'"),
        ],
    ),
    "a_case_is_no_set": (
        "SELECT CASE a WHEN 1 THEN 2 END FROM t; INSERT INTO a SELECT 1;",
        [
            (Use.PREVIEWS, "SELECT CASE a WHEN 1 THEN 2 END FROM t"),
            (Use.RUNS, "INSERT INTO a SELECT 1"),
        ],
    ),
    "an_end_too_many": (
        "END; SHOW JOBS; END",
        [(Use.DECLARES, "END"), (Use.ASKS, "SHOW JOBS"), (Use.DECLARES, "END")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), CUTS.values(), ids=CUTS)
def test_each_statement_is_found_with_its_use(text, expected):
    assert [(p.use, text[p.start : p.end]) for p in pieces(text)] == expected


def test_half_a_string_cannot_be_cut():
    with pytest.raises(SqlError):
        pieces("SHOW TABLES; SET 'a")


def test_what_is_left_out_leaves_every_other_statement_where_it_was():
    text = "CREATE TABLE é (\n  a INT) -- c; d\n;\nSHOW TABLES; INSERT INTO b\nSELECT 1"
    first, question, insert = pieces(text)
    kept = only(text, [first, insert])
    assert kept == "CREATE TABLE é (\n  a INT) -- c; d\n;\n             INSERT INTO b\nSELECT 1"
    assert only(text, [question]).split("\n")[3:] == ["SHOW TABLES;"]
    assert only(text, pieces(text)) == text
