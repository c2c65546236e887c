"""Every function, operator and cast over every type and the edges of its values.

Each row gives a value, NULL or a reason that the function itself has given: what a kernel raises
would be caught and told with the name of the exception, which counts as a failure here.
"""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import datetime as dt
import itertools
import math
import random
import re
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pytest

from joins.kernels.expressions import functions as kernels
from joins.plan.types import arrow_type, columns_of
from service.sql.expressions import expression_text
from service.sql.expressions.functions import ACCEPTED, ARITHMETIC, FUNCTIONS
from service.sql.text.script import SqlError
from tests.support.expressions import arrays, evaluated, planned, sql_type
from tests.support.lanes import some_of

LONG = "x" * 3_000
TEXTS = """|a|%|_|\\|12|1e400|NaN|Infinity|2024-02-29|1999-9-10 1:2:3|12:34:56|23:59:60|true|-|+|.
1.5f|1e-50|0000-01-01|9999-12-31|10000-01-01|9999-12-31 23:59:59.999999999|\uff12|😀|e\u0301|ß|İ
\u2028|ΑΣ|\x00|2024-02-29T12:00:00+25:00|99999999999999999999999999999999999999999
 -1.5 |1-1-1|a%_\\%%_a"""
TIMES = (
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59),
    dt.datetime(1969, 12, 31, 23, 59, 58),
    dt.datetime(2024, 2, 29, 12),
)
DAY, HOURS = 86_400_000_000, 3_600_000_000
DOUBLES = (
    0.0,
    -0.0,
    1.5,
    -2.5,
    math.nan,
    math.inf,
    -math.inf,
    1e7,
    1e-4,
    2.0**63,
    -(2.0**63),
    1e30,
)


def integers(bits):
    return (0, 1, -1, 2, 7, -7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))


def decimals(precision, scale):
    most = 10**precision - 1
    digits = (0, 1, -1, most, -most, most // 2, 5 * 10 ** max(precision - 2, 0))
    return tuple(Decimal(f"{number}E-{scale}") for number in digits)


EDGES = {
    "BOOLEAN": (True, False),
    "TINYINT": integers(8),
    "SMALLINT": integers(16),
    "INT": integers(32),
    "BIGINT": integers(64),
    "FLOAT": (*DOUBLES, 3.4028234663852886e38, 1e-45),
    "DOUBLE": (*DOUBLES, 1.7976931348623157e308, 5e-324),
    "DECIMAL(38, 0)": decimals(38, 0),
    "DECIMAL(38, 38)": decimals(38, 38),
    "DECIMAL(5, 2)": decimals(5, 2),
    "STRING": (*re.split(r"[|\n]", TEXTS), LONG),
    "BYTES": (b"", b"a", b"\xff\xfe", "é".encode(), LONG.encode()),
    "DATE": tuple(time.date() for time in TIMES),
    "TIME(3)": (0, DAY - 1_000, 45_296_123_000, -HOURS, 838 * HOURS),
    "TIMESTAMP(0)": TIMES,
    "TIMESTAMP(6)": tuple(time.replace(microsecond=123_456) for time in TIMES),
    "TIMESTAMP_LTZ(3)": tuple(time.replace(tzinfo=dt.UTC) for time in TIMES),
    "ARRAY<STRING>": ([], [None], ["a", None, ""], [LONG] * 3, ["😀", "1"]),
    "ARRAY<DECIMAL(5, 2)>": ([], [None], [Decimal("1.50"), None], [Decimal("-999.99")]),
    "MAP<STRING, INT>": ([], [("a", None)], [("a", 1), ("", 2)], [("😀", 2**31 - 1)]),
    "ROW<a STRING, b DOUBLE>": ({"a": None, "b": None}, {"a": "x", "b": math.nan}),
}
TYPES = {f"{place}{at}": kind for at, kind in enumerate(EDGES) for place in "cde"}
NAMES = {kind: at for at, kind in enumerate(EDGES)}
TEXT = NAMES["STRING"]
ROWS = 40


def of_table():
    """Each function with the types that it takes, or one type in all places where they are many."""
    accepted = {
        takes: [at for kind, at in NAMES.items() if sql_type(kind).name in names]
        for takes, (names, _) in ACCEPTED.items()
    }
    for name, function in FUNCTIONS.items():
        if (
            not name[0].isalpha()
            or " " in name
            or name in {"IN", "LIKE", "NEG", "NOT", "AND", "OR"}
        ):
            continue
        most = len(function.takes) + function.repeats
        for count in range(len(function.takes) - function.optional, most + 1):
            pools = [
                accepted[function.takes[min(at, len(function.takes) - 1)]] for at in range(count)
            ]
            every = list(itertools.product(*pools))
            if len(every) > 500:
                every = [kinds for kinds in every if len(set(kinds)) == 1]
            for kinds in every:
                yield name, [f"{'cde'[at % 3]}{kind}" for at, kind in enumerate(kinds)]


LITERALS = {  # function → the literals that it wants, by the place of the argument
    "LPAD": {1: ("0", "7", "-1", "4000")},
    "RPAD": {1: ("0", "7", "-1", "4000")},
    "REPEAT": {1: ("0", "3", "-1")},
    "ROUND": {1: ("-50", "-1", "0", "38", "2147483647")},
    "TRUNCATE": {1: ("-50", "-1", "0", "38", "2147483647")},
}


def calls():
    for name, arguments in of_table():
        places = LITERALS.get(name, {})
        for literals in itertools.product(*places.values()):
            given = dict(zip(places, literals, strict=True))
            yield f"{name}({', '.join(given.get(at, a) for at, a in enumerate(arguments))})"
        yield f"{name}({', '.join(arguments)})"


COMPARED = ("=", "<", ">=", "IS DISTINCT FROM")  # the others are computed as one of these


def pairs():
    of_two = [f"{{c}} {operator} {{d}}" for operator in (*COMPARED, *sorted(ARITHMETIC))]
    of_two += ["NULLIF({c}, {d})", "{c} IN ({d}, {e})", "{c} BETWEEN {d} AND {e}", "{c}[{d}]"]
    of_two += ["CASE WHEN {c} = {d} THEN {c} ELSE {e} END", "IF({c} IS NULL, {c}, {d})"]
    of_two += ["ARRAY[{c}, {d}]", "MAP[{c}, {d}]", "ROW({c}, {d})", "ARRAY_CONTAINS({c}, {d})"]
    of_two += ["CAST({c} AS {kind})", "TRY_CAST({c} AS {kind})"]
    for left, (kind, right) in itertools.product(range(len(EDGES)), NAMES.items()):
        for form in of_two if left <= right else of_two[-2:]:
            yield form.format(c=f"c{left}", d=f"d{right}", e=f"e{right}", kind=kind)


def of_one():
    of_each = """-{c}|NOT {c}|{c} IS NULL|{c} IS NOT NULL|{c} IS TRUE|{c} IS NOT FALSE
{c} IS UNKNOWN|CARDINALITY({c})|MAP_KEYS({c})|MAP_VALUES({c})|{c}.a|{c}.b|{c} AND {d}|{c} OR {d}
{c}['a']|{c}[1]|{c} + INTERVAL '1' DAY|{c} - INTERVAL '9000' YEAR(4)|{c} + INTERVAL '3650000' DAY(7)
{c} IN (1, 2)|{c} LIKE {d}|{c} NOT LIKE {d}|{c} LIKE {d} ESCAPE {e}|{c} LIKE {d} ESCAPE '!'
{c} LIKE 'a%' ESCAPE ''|{c} LIKE '%_a%_'|EXTRACT(YEAR FROM {c})
TRIM(BOTH {d} FROM {c})|TRIM(LEADING 'x' FROM {c})
CAST({c} AS CHAR(5))|CAST({c} AS VARCHAR(5))|REPLACE({c}, '', 'x')|REPLACE({c}, 'x', '')
SUBSTRING({c}, 2, -1)|STARTSWITH({c}, '')|POSITION('' IN {c})|{c} / 0|{c} % 0|{c} / 0.0"""
    for at in range(len(EDGES)):
        for form in re.split(r"[|\n]", of_each):
            yield form.format(c=f"c{at}", d=f"d{at}", e=f"e{at}")
        for further in ("", f", d{TEXT}"):
            yield f"ARRAY_JOIN(c{at}, c{TEXT}{further})"


SPECIAL = """FLOOR({c} TO {unit})|CEIL({c} TO {unit})|EXTRACT({unit} FROM {c})
TIMESTAMPADD({unit}, {n}, {c})|TIMESTAMPADD({unit}, 7, {c})|TIMESTAMPDIFF({unit}, {c}, {d})
{c} + INTERVAL '1' {unit} * {n}|({c}, {d}) OVERLAPS ({d}, {c})
({c}, INTERVAL '1' DAY) OVERLAPS ({d}, {c})"""
OF_TEXTS = r"""DATE_FORMAT({c}, 'yyyy-MM-dd EEE D a h:mm:ss.SSS')|DATE_FORMAT({c}, {t})
DATE_FORMAT({c}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')|TO_DATE({c}, 'yyyyMMdd')|TO_TIMESTAMP({c})
TO_TIMESTAMP({c}, 'yyyy-M-d H:m')|TO_TIMESTAMP_LTZ({c}, 0)|TO_TIMESTAMP_LTZ({c})
TO_TIMESTAMP_LTZ({c}, {t}, 'Asia/Tokyo')|FROM_UNIXTIME({c})|FROM_UNIXTIME({c}, 'yy Z X')
UNIX_TIMESTAMP({c})|UNIX_TIMESTAMP({c}, 'HH:mm')|CONVERT_TZ({c}, 'UTC', {t})|UNIX_TIMESTAMP()
HEX({c})|INSTR({c}, {t}, 1, 1)|INSTR({c}, {t}, -1)|SPLIT_INDEX({c}, {t}, 1)|TO_DATE({c})
LOCATE({t}, {c}, {n})
SPLIT_INDEX({c}, 32, 0)|ELT({n}, {c}, {c})|PRINTF({t}, {c})|TYPEOF({c})|TO_DATE({c}, {t})
PRINTF('%s %d %x %5.2f %b', {c}, {c}, {c}, {c}, {c})|RAND({c})|RAND_INTEGER({c}, {n})
{c} SIMILAR TO {t}|{c} SIMILAR TO 'a._%'|{c} BETWEEN SYMMETRIC {d} AND {c}
JSON_EXISTS({c}, 'lax $.a')|JSON_VALUE({c}, '$')|JSON_QUERY({c}, 'lax $..a')
JSON_VALUE({c}, 'lax $[0]' DEFAULT {t} ON EMPTY)|{c} IS JSON SCALAR|JSON_LENGTH({c})
JSON_VALUE({c}, '$' RETURNING INT)|JSON_QUERY({c}, '$' WITH WRAPPER)
JSON_QUERY({c}, '$' RETURNING ARRAY<STRING> EMPTY ARRAY ON ERROR)
JSON_STRING({c})|JSON_ARRAY({c}, {d} NULL ON NULL)|JSON_OBJECT(KEY 'a' VALUE {c})
JSON_OBJECT(KEY {c} VALUE JSON({t}))|CAST({c} AS BINARY(2))|CAST({c} AS VARBINARY(2))
ARRAY_APPEND({c}, {c}[1])|ARRAY_PREPEND({c}, NULL)|ARRAY_REMOVE({c}, {c}[1])
ARRAY_POSITION({c}, {c}[1])|ARRAY_CONCAT({c}, {c}, {c})|ARRAY_UNION({c}, {c})
ARRAY_EXCEPT({c}, {c})|ARRAY_INTERSECT({c}, {c})|ARRAY_DISTINCT({c})|ARRAY_REVERSE({c})
ARRAY_MAX({c})|ARRAY_MIN({c})|ELEMENT({c})|ARRAY_SLICE({c}, -2)|ARRAY_SLICE({c}, 1, {n})
ARRAY_SORT({c})|ARRAY_SORT({c}, FALSE, TRUE)|MAP_ENTRIES({c})|MAP_UNION({c}, {c})
MAP_FROM_ARRAYS({c}, {c})|MAP[{c}, {d}]|CAST(MAP[{c}, {d}] AS STRING)|MAP_KEYS(MAP[{c}, {d}])
NOW()|CURRENT_DATE|CURRENT_TIME|LOCALTIME|LOCALTIMESTAMP|CURRENT_TIMESTAMP
{c} IS NOT DISTINCT FROM {d}|IF({c} = {d}, {c}, {d})|PROCTIME()|NULLIF({c}, {d})|PI() + E()
COALESCE({c}, {d})|CURRENT_ROW_TIMESTAMP()"""
UNITS = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR"),
    *("MINUTE", "SECOND", "MILLISECOND", "EPOCH"),
)


def special():
    """Functions with rules of their own, over every type."""
    for at in range(len(EDGES)):
        names = {"c": f"c{at}", "d": f"d{at}", "t": f"e{TEXT}", "n": f"c{NAMES['INT']}"}
        for form in re.split(r"[|\n](?!_)", OF_TEXTS):
            yield form.format(**names)
        for form, unit in itertools.product(re.split(r"[|\n]", SPECIAL), UNITS):
            yield form.format(**names, unit=unit)


@cache  # two tests judge the calls
def accepted(make):
    found = {}
    for expression in dict.fromkeys(make()):
        try:
            found[expression] = planned(expression, TYPES)
        except SqlError:
            continue
    return found


def rows_of(types):
    pools = [(None, *EDGES[kind]) for kind in types.values()]
    if math.prod(map(len, pools)) <= ROWS:
        return list(itertools.product(*pools))
    dice = random.Random(7)
    return [tuple(map(dice.choice, pools)) for _ in range(ROWS)]


RAISED = re.compile(r": \w*(Error|Invalid|Operation|Exception|Unsupported\w*): ")


@cache
def answered(typed):
    types = {column.name: TYPES[column.name] for column in columns_of(typed.expression)}
    return evaluated(typed, arrays(types, rows_of(types)))


def judged(typed):
    """What is wrong with the answers of a planned expression, None if nothing is."""
    answer = answered(typed)
    if answer.values.type != arrow_type(typed.type):
        return f"a column of {answer.values.type}"
    raised = [reason for reason in answer.errors.values() if RAISED.search(reason)]
    return raised[0] if raised else None


GENERATED = {
    "calls": (calls, 750),
    "pairs": (pairs, 900),
    "of_one": (of_one, 150),
    "special": (special, 300),
}


@pytest.mark.parametrize(("make", "least"), some_of(GENERATED, "calls", "of_one"))
def test_no_function_raises_for_any_value_of_its_types(make, least):
    expressions = accepted(make)
    assert len(expressions) >= least
    wrong = {text: told for text, typed in expressions.items() if (told := judged(typed))}
    assert wrong == {}


def differing(typed):
    """The rows whose answer is another one without the others beside them."""
    types = {column.name: TYPES[column.name] for column in columns_of(typed.expression)}
    rows, every = rows_of(types), answered(typed)
    for at in range(len(rows)):
        alone = evaluated(typed, arrays(types, rows[at : at + 1]))
        own = alone.values.to_string(), alone.errors.get(0)
        beside = every.values.slice(at, 1).to_string(), every.errors.get(at)
        if own != beside:
            yield rows[at], own, beside


@pytest.mark.parametrize(("make", "least"), some_of(GENERATED, "of_one"))
def test_no_answer_depends_on_the_rows_beside_it(make, least):
    expressions = accepted(make)
    assert len(expressions) >= least
    wrong = {text: rows for text, typed in expressions.items() if (rows := [*differing(typed)])}
    assert wrong == {}


def test_every_function_of_the_table_is_generated():
    made = {name for name, _ in of_table()} | {"IN", "LIKE", "NEG", "NOT", "AND", "OR", "||"}
    made |= {name for name in FUNCTIONS if name.startswith("IS ")}
    assert set(FUNCTIONS) == made
    texts = " ".join((*of_one(), *special(), *pairs()))
    others = set(expression_text.NAMES) - made - {"MOD", "CASE"}
    assert {name for name in others if not re.search(rf"\b{name}\b", texts)} == set()


CANNOT_FAIL = re.compile(
    r"(CONCAT|CONCAT_WS|UPPER|LOWER|TRIM|LTRIM|RTRIM|REVERSE|LEFT|RIGHT|POSITION|REPLACE|CEIL|FLOOR"
    r"|CHAR_LENGTH|SUBSTRING|STARTSWITH|ENDSWITH|SQRT|POWER|YEAR|MONTH|QUARTER|WEEK|DAYOFWEEK|ABS"
    r"|DAYOFYEAR|DAYOFMONTH|HOUR|MINUTE|SECOND|DATE_FORMAT)\("
)


def test_a_function_that_cannot_fail_in_flink_fails_for_no_value_here():
    for text, typed in accepted(calls).items():
        if CANNOT_FAIL.match(text):
            assert answered(typed).errors == {}, text


def test_what_a_kernel_raises_is_the_failure_of_its_rows_only(monkeypatch):
    def fragile(op):
        if "b" in op.array(0).to_pylist():
            raise pa.ArrowInvalid("no b, please\nand more")
        return op.array(0)

    monkeypatch.setitem(kernels.FUNCTIONS, "REVERSE", fragile)
    typed = planned("REVERSE(c)", {"c": "STRING"})
    answer = evaluated(typed, arrays({"c": "STRING"}, [["a"], ["b"], [None], ["b"], ["c"]]))
    assert answer.values.to_pylist() == ["a", None, None, None, "c"]
    assert answer.errors == dict.fromkeys((1, 3), '"REVERSE": ArrowInvalid: no b, please')
    guarded = planned("CASE WHEN c = 'b' THEN 'x' ELSE REVERSE(c) END", {"c": "STRING"})
    answer = evaluated(guarded, arrays({"c": "STRING"}, [["a"], ["b"]]))
    assert (answer.values.to_pylist(), answer.errors) == (["a", "x"], {})
