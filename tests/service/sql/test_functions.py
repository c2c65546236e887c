"""The allow-list and the evaluator agree on names and results."""

import pytest

from joins.kernels.expressions.evaluate import FUNCTIONS as EVALUATED
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from service.sql.expressions.array_functions import ARRAY_FUNCTIONS
from service.sql.expressions.expression_text import NAMES
from service.sql.expressions.functions import (
    ARITHMETIC,
    COMPARISONS,
    EXTRACTED,
    FUNCTIONS,
    REFUSED,
)
from service.sql.expressions.json_functions import JSON_FUNCTIONS, OTHER_FUNCTIONS
from service.sql.expressions.nested_access import NESTED
from service.sql.expressions.time_functions import TIME_FUNCTIONS
from service.sql.planner.planner import plan
from tests.service.sql.scripts import selecting
from tests.support.plan_laws import NOW_MS, column_of


def test_every_call_of_the_planner_is_known_to_the_evaluator():
    calls = {function.call for function in (*FUNCTIONS.values(), *EXTRACTED.values())}
    assert calls | COMPARISONS | ARITHMETIC <= set(EVALUATED)


def test_no_function_is_both_allowed_and_refused():
    assert not set(FUNCTIONS) & set(REFUSED)


UNFIT = {
    "TO_TIMESTAMP_LTZ(-62135596801, 0)": "TO_TIMESTAMP_LTZ",
    "TO_TIMESTAMP_LTZ(253402300799, 0) + INTERVAL '3650000' DAY": None,
    "DATE_FORMAT(TIMESTAMP '0001-01-01 00:00:00' - INTERVAL '1' DAY, 'yyyy')": "DATE_FORMAT",
}


@pytest.mark.parametrize(("expression", "failed"), UNFIT.items(), ids=UNFIT)
def test_a_time_that_does_not_fit_fails_its_row(expression, failed):
    kind = "STRING" if expression.startswith("DATE_FORMAT") else "TIMESTAMP_LTZ(3)"
    (column,) = plan(selecting(expression, kind)).output
    result = evaluate_rows(column.expression, Scope(column_of(None), 1, 0))
    assert (result.values.null_count == 1) == (failed is not None)
    assert [failed in reason for reason in result.errors.values()] == [True] * bool(failed)


DOCUMENT = '{"i": 42, "d": 1.5, "e": 1e3, "b": true, "s": "x", "n": null, "o": {}}'
AT_A_PATH = {
    "'$.i' RETURNING INT": "42",
    "'$.i' RETURNING INTEGER": "42",
    "'$.i' RETURNING VARCHAR": "42",
    "'$.d' RETURNING DOUBLE": "1.5",
    "'$.e' RETURNING DOUBLE": "1000.0",
    "'$.b' RETURNING BOOLEAN": "TRUE",
    "'$.b' RETURNING STRING": "true",
    "'$.n' RETURNING INT": None,
    "'$.x' RETURNING INT DEFAULT 7 ON EMPTY": None,
    "'lax $.x' RETURNING INT DEFAULT 7 ON EMPTY": "7",
    "'lax $.x' RETURNING DOUBLE DEFAULT 8 ON ERROR DEFAULT 7 ON EMPTY": "7.0",
    "'$.x' RETURNING BOOLEAN NULL ON EMPTY DEFAULT FALSE ON ERROR": "FALSE",
    "'strict $.o' RETURNING STRING DEFAULT 'none' ON ERROR": "none",
}
WRONG_FORMS = ("'$.i' RETURNING DOUBLE", "'$.e' RETURNING INT", "'$.s' RETURNING INT NULL ON ERROR")
RESULTS = {
    "TO_TIMESTAMP_LTZ(9223372036854775807, 3)": None,
    "CONCAT_WS('~', 'AA', CAST(NULL AS STRING), 'BB', '', 'CC')": "AA~BB~~CC",
    "SUBSTRING('Apache Flink' FROM 8 FOR 3)": "Fli",
    "SUBSTRING('Apache Flink' FROM -5)": "Flink",
    "SUBSTR('abc', 2)": "bc",
    "TRIM('  a ')": "a",
    "TRIM(LEADING 'x' FROM 'xxax')": "ax",
    "TRIM(TRAILING 'x' FROM 'xxax')": "xxa",
    "POSITION('in' IN 'Flink')": "3",
    "INSTR('Flink', 'in')": "3",
    "INSTR('Flink', 'x')": "0",
    "LOCATE('in', 'Flink')": "3",
    "LOCATE('', 'Flink', 4)": "1",
    "CHAR_LENGTH('äö')": "2",
    "COALESCE(CAST(NULL AS STRING), 'x')": "x",
    "NULLIF(5, 5)": None,
    "NULLIF(5, 0)": "5",
    "IFNULL(CAST(NULL AS INT), 5)": "5",
    "IFNULL(1, 5)": "1",
    "IF(1 > 2, 'yes', 'no')": "no",
    "GREATEST(1, 3, 2)": "3",
    "GREATEST(1, CAST(NULL AS INT))": None,
    "LEAST(1, 3, 2)": "1",
    "LPAD('hi', 4, '??')": "??hi",
    "LPAD('hi', 1, '??')": "h",
    "SIGN(-0.1)": "-1.0",
    "LPAD('hi', 1, '')": None,
    "TRY_CAST('5 | 1' AS DATE)": "0005-01-01",
    "TRY_CAST(' 5 | 1' AS DATE)": None,
    "TRY_CAST(' 2024-1-5 ' AS DATE)": "2024-01-05",
    "TRY_CAST('2024-01-05 ' AS TIMESTAMP(3))": None,
    "RPAD('hi', 2, '')": None,
    "RPAD('hi', 4, '?')": "hi??",
    "REPLACE('hello world', 'world', 'flink')": "hello flink",
    "TRANSLATE('www.apache.org', 'abc', CAST(NULL AS STRING))": "www.phe.org",
    "TRANSLATE('www.apache.org', CAST(NULL AS STRING), '123')": "www.apache.org",
    "TRANSLATE('www.apache.org', CAST(NULL AS STRING), CAST(NULL AS STRING))": "www.apache.org",
    "TRANSLATE('', CAST(NULL AS STRING), CAST(NULL AS STRING))": "",
    "TRANSLATE(CAST(NULL AS STRING), 'abc', CAST(NULL AS STRING))": None,
    "REVERSE('abc')": "cba",
    "LEFT('abc', 2)": "ab",
    "RIGHT('abc', 2)": "bc",
    "CAST(-12 AS VARCHAR)": "-12",
    "CAST(-12 AS CHAR)": "-",
    "CAST('Flink' AS VARBINARY)": "Flink",
    "MOD(-7, 2)": "-1",
    "ROUND(CAST(2.5 AS DECIMAL(3, 1)), 0)": "3",
    "CEIL(CAST(2.1 AS DECIMAL(3, 1)))": "3",
    "FLOOR(CAST(-2.1 AS DECIMAL(3, 1)))": "-3",
    "YEAR(DATE '1994-09-27')": "1994",
    "QUARTER(DATE '1994-09-27')": "3",
    "MONTH(DATE '1994-09-27')": "9",
    "WEEK(DATE '1994-09-27')": "39",
    "WEEK(DATE '2021-01-03')": "53",
    "DAYOFYEAR(DATE '1994-09-27')": "270",
    "DAYOFMONTH(DATE '1994-09-27')": "27",
    "DAYOFWEEK(DATE '1994-09-27')": "3",
    "DAYOFWEEK(DATE '2021-01-03')": "1",
    "EXTRACT(DOW FROM DATE '2021-01-02')": "7",
    "EXTRACT(DOY FROM TIMESTAMP '2024-12-31 23:00:00')": "366",
    "HOUR(TIMESTAMP '1994-09-27 13:14:15')": "13",
    "DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05.999', 'yyyy-MM-dd HH:mm:ss')": (
        "2024-02-29 13:04:05"
    ),
    "DATE_FORMAT(TIMESTAMP '0007-02-09 00:00:00', 'yyyy/MM/dd')": "0007/02/09",
    "DATE_FORMAT(TIMESTAMP '1969-12-31 23:59:59.5', 'ss')": "59",
    "DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05', 'HH''h''mm 100%')": "13h04 100%",
    "DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05.678', 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''')": (
        "2024-02-29T13:04:05.678Z"
    ),
    "DATE_FORMAT(TIMESTAMP '1969-12-31 23:59:59.045', 'SSS/S/SSSSSS')": "045/0/045000",
    "DATE_FORMAT(CAST(NULL AS TIMESTAMP(3)), 'yyyy')": None,
    "DATE_FORMAT(CAST(NULL AS TIMESTAMP(3)), 'ss.SSS')": None,
    "DATE_FORMAT(CAST(NULL AS TIMESTAMP(3)), '')": None,
    "DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05', '')": "",
    "DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05', 'dd MMMM yyyy')": "29 February 2024",
    "DATE_FORMAT(CURRENT_TIMESTAMP, 'yyyyMMdd')": "20231114",
    "TIMESTAMP '2024-02-29 00:00:00' + INTERVAL '1.5' SECOND": "2024-02-29 00:00:01.500",
    "TIMESTAMP '1970-01-01 00:00:00' - INTERVAL '1' DAY": "1969-12-31 00:00:00",
    "CAST(NULL AS TIMESTAMP(3)) - INTERVAL '1' DAY": None,
    "TIMESTAMP '2024-03-31 13:04:05' - INTERVAL '1' MONTH": "2024-02-29 13:04:05",
    "TIMESTAMP '1969-12-31 23:59:59' + INTERVAL '2' MONTH": "1970-02-28 23:59:59",
    "TIMESTAMP '2024-02-29 00:00:00' + INTERVAL '1' YEAR": "2025-02-28 00:00:00",
    "TO_TIMESTAMP_LTZ(1700000000123, 3)": "2023-11-14 22:13:20.123",
    "TO_TIMESTAMP_LTZ(-1)": "1969-12-31 23:59:59.999",
    "TO_TIMESTAMP_LTZ(4, 0)": "1970-01-01 00:00:04.000",
    "TO_TIMESTAMP_LTZ(CAST(NULL AS BIGINT), 3)": None,
    "JSON_STRING(JSON_OBJECT(KEY 'a' VALUE 1))": '{"a":1}',
    "JSON_STRING(JSON_OBJECT(KEY 'a' VALUE CAST(NULL AS INT) ABSENT ON NULL))": "{}",
    "JSON_STRING(JSON_ARRAY(1, JSON_ARRAY('x')))": '[1,["x"]]',
    "JSON_STRING(JSON_STRING(JSON_OBJECT(KEY 'a' VALUE 1)))": '"{\\"a\\":1}"',
    "JSON_ARRAY(JSON_STRING(JSON_ARRAY(1)))": '["[1]"]',
    **{f"JSON_VALUE('{DOCUMENT}', {rest})": value for rest, value in AT_A_PATH.items()},
}


@pytest.mark.parametrize(("expression", "expected"), RESULTS.items(), ids=RESULTS)
def test_result_is_that_of_flink(expression, expected):
    (column,) = plan(selecting(f"CAST({expression} AS STRING)")).output
    result = evaluate_rows(column.expression, Scope(column_of(None), 1, NOW_MS))
    assert result.errors == {}
    assert result.values.to_pylist() == [expected]


@pytest.mark.parametrize("rest", WRONG_FORMS)
def test_json_of_another_form_than_returning_says_fails_its_row(rest):
    """As Flink 2.2 does: it casts behind ON ERROR, so that 42 is no DOUBLE there."""
    (column,) = plan(selecting(f"CAST(JSON_VALUE('{DOCUMENT}', {rest}) AS STRING)")).output
    result = evaluate_rows(column.expression, Scope(column_of(None), 1, 0))
    assert list(result.errors) == [0]


def test_each_function_has_a_form_for_the_reference():
    special = (NESTED, ARRAY_FUNCTIONS, JSON_FUNCTIONS, OTHER_FUNCTIONS, TIME_FUNCTIONS)
    known = {name for table in (FUNCTIONS, *special) for name in table}
    words = {name for name in known if name[0].isalpha() and " " not in name}
    operators = {"AND", "IN", "LIKE", "NEG", "NOT", "OR", "OVERLAPS", "SIMILAR"}
    made = {"ARRAY", "MAP", "ROW"}
    others = {"CASE", "CAST", "IF", "MOD", "NULLIF", "TRY_CAST"}
    assert words - operators - made | others == set(NAMES)
