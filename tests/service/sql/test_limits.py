import pytest

from service.jobs.store import plan_codec
from service.sql.planner.planner import plan
from service.sql.text.dialect import MAX_BYTES, MAX_DEPTH
from service.sql.text.script import SqlError
from tests.service.sql.scripts import selecting

WIDE = "CREATE TABLE w ({}) WITH ('connector' = 'print');\n".format(
    ", ".join(f"c{at} INT" for at in range(900))
)
VIEWS = "".join(f"CREATE VIEW v{at} AS SELECT * FROM v{at - 1};\n" for at in range(1, 20))
TOO_MUCH = {
    "columns_of_views": (
        f"{WIDE} CREATE VIEW v0 AS SELECT * FROM w;\n{VIEWS}",
        "views are expanded to more than 100,000 columns",
    ),
    "views_that_double_an_expression": (
        "CREATE TABLE w (a STRING) WITH ('connector' = 'print');\n"
        "CREATE VIEW v0 AS SELECT a || a AS a FROM w;\n" + VIEWS.replace("*", "a || a AS a"),
        "too large once it is written out",
    ),
    "64_kib": ("-- " + "x" * MAX_BYTES, "more than 65,536"),
    "64_kib_of_wide_characters": ("-- " + "\N{PILE OF POO}" * (MAX_BYTES // 4), "more than 65,536"),
    "ten_thousand_tokens": (";" * 10_001, "more than 10,000"),
    "parentheses": (selecting("(" * 3_000 + "n" + ")" * 3_000), "more than 200 levels"),
    "open_parentheses": ("INSERT INTO o SELECT " + "(" * 9_000, "more than 200 levels"),
    "nots": (selecting("NOT " * 300 + "ok", "BOOLEAN"), "more than 200 levels"),
    "minuses": (selecting("- " * 300 + "n", "INT"), "more than 200 levels"),
    "sums": (selecting(" + ".join(["n"] * 300), "INT"), "more than 200 levels"),
    "calls": (selecting("UPPER(" * 201 + "t" + ")" * 201), "the expression is nested"),
    "calls_that_a_plan_cannot_hold": (
        selecting("UPPER(" * 100 + "t" + ")" * 100),
        "too large once it is written out",
    ),
    "cases": (
        selecting("CASE WHEN ok THEN " * 201 + "t" + " END" * 201),
        "the expression is nested",
    ),
    "between_doubles_at_each_level": (
        selecting("(" * 40 + "ok" + " BETWEEN FALSE AND TRUE)" * 40, "BOOLEAN"),
        "too large once it is written out",
    ),
    "case_operand_doubles_at_each_level": (
        selecting("CASE " * 30 + "n" + " WHEN 1 THEN 1 WHEN 2 THEN 2 END" * 30, "INT"),
        "too large once it is written out",
    ),
    "columns": (selecting(", ".join(["n"] * 1_001)), "more than 1,000 columns"),
    "joins": (
        selecting("t").rstrip(";\n")
        + "".join(f" JOIN d FOR SYSTEM_TIME AS OF s.p AS d{i} ON s.k = d{i}.id" for i in range(40)),
        "more than 32 joins",
    ),
}


@pytest.mark.parametrize(("script", "message"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_too_much_is_refused(script, message):
    with pytest.raises(SqlError) as caught:
        plan(script)
    assert message in str(caught.value)


ENOUGH = {
    "parentheses": selecting("(" * (MAX_DEPTH - 5) + "t" + ")" * (MAX_DEPTH - 5)),
    "long_and": selecting(" AND ".join(["n = 1"] * 1_000), "BOOLEAN"),
    "long_or": selecting(" OR ".join(["n = 1"] * 1_000), "BOOLEAN"),
    "long_concatenation": selecting(" || ".join(["t"] * 1_000)),
    "long_in": selecting(f"n IN ({', '.join(str(i) for i in range(2_000))})", "BOOLEAN"),
    "deepest_plan": selecting("UPPER(" * 78 + "t" + ")" * 78),
    "deepest_case": selecting("CASE WHEN ok THEN " * 78 + "t" + " END" * 78),
    "deepest_condition": selecting("CASE WHEN " * 78 + "ok" + " THEN ok END" * 78, "BOOLEAN"),
}


@pytest.mark.parametrize("script", ENOUGH.values(), ids=ENOUGH)
def test_what_is_within_the_limits_can_be_stored(script):
    made = plan(script)
    assert plan_codec.load(plan_codec.dump(made)) == made
